use super::*;
use crate::{Budget, ImageChange, List, Ours};

const UIDS: [&str; 6] = ["0", "1", "2", "3", "4", "5"];
const RECORD: &str = r#"{"logs":{"is":"logs-1"},"mesh":{"is":"mesh-1"}}"#;

/// Six ready pods of one workload with an old revision; three may be unavailable.
fn ground() -> Ground<'static> {
    let facts = Facts {
        namespace: "shop",
        name: "web",
        is_selected: true,
        is_ready: true,
        record: Some(RECORD),
        ..Facts::default()
    };
    let proxy = Ours { list: List::Main, index: 1, name: "proxy", image: "proxy:1" };
    Ground {
        set: "mesh",
        newest: "mesh-2",
        max_unavailable: 3,
        workloads: vec![3],
        pods: UIDS.iter().map(|uid| (*uid, facts)).collect(),
        ours: UIDS.iter().map(|uid| (*uid, vec![proxy])).collect(),
        ..Ground::default()
    }
}

fn write(uid: &str, to: &str) -> PodUpdate {
    let image = ImageChange {
        list: List::Main,
        index: 1,
        name: "proxy".to_owned(),
        from: "proxy:1".to_owned(),
        to: "proxy:2".to_owned(),
    };
    PodUpdate {
        namespace: "shop".to_owned(),
        name: "web".to_owned(),
        uid: uid.to_owned(),
        set: "mesh".to_owned(),
        to: to.to_owned(),
        images: vec![image],
        resources: Vec::new(),
        record_before: Some(RECORD.to_owned()),
        record_after: RECORD.replace("mesh-1", to),
        adoption: None,
    }
}

fn update(uid: &str) -> Action {
    Action::Update(write(uid, "mesh-2"))
}

/// The rules that these writes break.
fn broken(ground: &Ground<'_>, actions: &[Action]) -> Vec<Rule> {
    let found = check(&Plan { actions: actions.to_vec() }, ground).err().unwrap_or_default();
    found.into_iter().map(|violation| violation.rule).collect()
}

fn with(edit: impl FnOnce(&mut Ground<'static>)) -> Ground<'static> {
    let mut ground = ground();
    edit(&mut ground);
    ground
}

fn pod<'g>(ground: &'g mut Ground<'static>, uid: &str) -> &'g mut Facts<'static> {
    ground.pods.get_mut(uid).unwrap()
}

const NONE: [Rule; 0] = [];

#[test]
fn as_many_as_may_be_unavailable_and_not_one_more() {
    let four = ["0", "1", "2", "3"].map(update);
    assert_eq!(broken(&ground(), &four[..3]), NONE);
    assert_eq!(broken(&with(|it| it.workloads = vec![9]), &four), [Rule::Availability]);
    assert_eq!(broken(&with(|it| it.max_unavailable = 9), &four), [Rule::WorkloadAvailability]);
    let unready = with(|it| (pod(it, "4").is_ready, it.workloads) = (false, vec![9]));
    assert_eq!(broken(&unready, &four[..2]), NONE);
    assert_eq!(broken(&unready, &four[..3]), [Rule::Availability]);
    let swapping = with(|it| (pod(it, "4").swaps_to, it.workloads) = (Some("mesh-1"), vec![9]));
    assert_eq!(broken(&swapping, &four[..3]), [Rule::Availability]);
}

#[test]
fn unready_pods_go_within_the_same_number_and_do_not_stand_in_their_own_way() {
    let unready = with(|it| it.pods.values_mut().for_each(|pod| pod.is_ready = false));
    assert_eq!(broken(&unready, &["0", "1", "2"].map(update)), NONE);
    assert_eq!(broken(&unready, &["0", "1", "2", "3"].map(update)), [Rule::Availability, Rule::WorkloadAvailability]);
    let all_on_the_way =
        |to| with(|it| it.pods.values_mut().for_each(|pod| (pod.is_ready, pod.swaps_to) = (false, Some(to))));
    assert_eq!(broken(&all_on_the_way("mesh-0"), &["0", "1", "2"].map(update)), NONE);
    assert_eq!(broken(&all_on_the_way("mesh-0"), &["0", "1", "2", "3"].map(update)).len(), 2);
    assert_eq!(broken(&all_on_the_way("mesh-2"), &[update("0")]).len(), 2);
    // One that is on the way and still ready may serve as well as any other.
    let ready = with(|it| it.pods.values_mut().for_each(|pod| pod.swaps_to = Some("mesh-0")));
    assert_eq!(broken(&ready, &[update("0")]), [Rule::Availability, Rule::WorkloadAvailability]);
}

#[test]
fn workloads_are_counted_apart() {
    let apart = with(|it| {
        it.workloads = vec![1, 2];
        for uid in ["3", "4", "5"] {
            pod(it, uid).workload = 1;
        }
    });
    assert_eq!(broken(&apart, &["0", "3", "4"].map(update)), NONE);
    assert_eq!(broken(&apart, &["0", "1"].map(update)), [Rule::WorkloadAvailability]);
}

#[test]
fn the_partition_keeps_its_pods() {
    let kept = with(|it| (it.pinned, pod(it, "5").is_newest) = (4, true));
    assert_eq!(broken(&kept, &[update("0")]), NONE);
    assert_eq!(broken(&kept, &[update("0"), update("1")]), [Rule::Partition]);
    assert_eq!(broken(&with(|it| it.pinned = 9), &[update("0")]), [Rule::Partition]);
}

#[test]
fn what_is_held_or_not_selected_is_not_updated() {
    assert_eq!(broken(&with(|it| it.is_held = true), &[update("0")]), [Rule::Held]);
    assert_eq!(broken(&with(|it| pod(it, "0").is_selected = false), &[update("0")]), [Rule::Held]);
}

#[test]
fn only_pods_of_the_set_are_written() {
    assert_eq!(broken(&ground(), &[update("9")]), [Rule::Membership]);
    assert_eq!(broken(&with(|it| pod(it, "0").is_excluded = true), &[update("0")]), [Rule::Membership]);
    assert_eq!(broken(&with(|it| pod(it, "0").name = "other"), &[update("0")]), [Rule::Membership]);
    assert_eq!(broken(&with(|it| it.set = "other"), &[update("0")]), [Rule::Target]);
}

#[test]
fn a_pod_is_written_once_and_for_something() {
    assert_eq!(broken(&ground(), &[update("0"), update("0")]), [Rule::OneWrite, Rule::OneWrite]);
    assert_eq!(broken(&with(|it| pod(it, "0").is_newest = true), &[update("0")]), [Rule::OneWrite]);
    let mut same = write("0", "mesh-2");
    same.images[0].to = "proxy:1".to_owned();
    assert_eq!(broken(&ground(), &[Action::Update(same)]), [Rule::OneWrite]);
}

#[test]
fn a_write_changes_only_what_is_ours() {
    let with = |edit: fn(&mut PodUpdate)| {
        let mut update = write("0", "mesh-2");
        edit(&mut update);
        broken(&ground(), &[Action::Update(update)])
    };
    assert_eq!(with(|it| it.images[0].name = "app".to_owned()), [Rule::OwnFields]);
    assert_eq!(with(|it| it.images[0].index = 0), [Rule::OwnFields]);
    assert_eq!(with(|it| it.images[0].list = List::Init), [Rule::OwnFields]);
    assert_eq!(with(|it| it.images[0].from = "proxy:0".to_owned()), [Rule::OwnFields]);
    assert_eq!(with(|it| it.images.push(it.images[0].clone())), [Rule::OneChange]);
    assert_eq!(with(|it| it.record_before = None), [Rule::OwnFields]);
    assert_eq!(with(|it| it.record_after = "{".to_owned()), [Rule::OwnFields]);
    assert_eq!(with(|it| it.record_after = RECORD.to_owned()), [Rule::OwnFields]);
    assert_eq!(with(|it| it.record_after = r#"{"mesh":{"is":"mesh-2"}}"#.to_owned()), [Rule::OwnFields]);
    let resources = |name: &str| {
        let mut update = write("0", "mesh-2");
        update.resources = vec![crate::ResourceChange {
            list: List::Main,
            index: 1,
            name: name.to_owned(),
            from: None,
            to: serde_json::json!({}),
        }];
        broken(&ground(), &[Action::Update(update)])
    };
    assert_eq!((resources("proxy"), resources("app")), (vec![], vec![Rule::OwnFields]));
}

#[test]
fn a_disruption_budget_allows_what_it_allows() {
    let budget = |allowed| Budget { name: "shop/web".to_owned(), allowed, pods: vec!["0", "1", "2"] };
    let allows = |allowed| with(|it| it.budgets = vec![budget(allowed)]);
    assert_eq!(broken(&allows(2), &["0", "1", "4"].map(update)), NONE);
    assert_eq!(broken(&allows(1), &["0", "1", "4"].map(update)), [Rule::DisruptionBudget]);
    let in_flight = with(|it| (pod(it, "2").swaps_to, it.budgets) = (Some("mesh-2"), vec![budget(1)]));
    assert_eq!(broken(&in_flight, &[update("0")]), [Rule::DisruptionBudget]);
    let unready = with(|it| (pod(it, "0").is_ready, it.budgets) = (false, vec![budget(0)]));
    assert_eq!(broken(&unready, &[update("0")]), NONE);
}

#[test]
fn pods_go_to_the_newest_and_back_only_where_that_is_asked_for() {
    assert_eq!(broken(&ground(), &[Action::Update(write("0", "mesh-0"))]), [Rule::Target]);
    let back = Action::Restore(write("0", "mesh-0"));
    assert_eq!(broken(&ground(), std::slice::from_ref(&back)), [Rule::Held]);
    assert_eq!(broken(&with(|it| it.may_restore = true), &[back]), NONE);
    assert_eq!(broken(&with(|it| it.may_restore = true), &[Action::Restore(write("0", "mesh-2"))]), [Rule::Target]);
}

#[test]
fn a_violation_names_the_pod() {
    let found = check(&Plan { actions: vec![update("9")] }, &ground()).unwrap_err();
    assert_eq!(found[0].to_string(), "pod shop/web: does not carry the set, or is gone");
}
