use proptest::prelude::*;

use super::*;
use crate::board::local::apply;
use crate::board::{Condition, ConditionStatus};

const NOW: Timestamp = Timestamp(1_794_700_000);

fn text(value: &str) -> Content {
    Content::Text(value.to_owned())
}

fn condition(status: ConditionStatus, message: &str) -> Content {
    Content::Condition(Condition { status, reason: "R".to_owned(), message: message.to_owned() })
}

fn kind(name: &str) -> Place {
    Place::Condition(name.to_owned())
}

fn shown(pod: &Value) -> Shown {
    serde_json::from_value(pod.clone()).unwrap()
}

/// What is to be written, and the pod after it.
fn write(wanted: &Wanted, pod: &Value, now: Timestamp) -> (Value, Value) {
    let before = shown(pod);
    let difference = Difference::of(wanted, &before, &BTreeSet::new(), now);
    let patch = patch_of(difference.changes.iter().chain(&difference.heartbeats), &before, now);
    let mut after = pod.clone();
    apply(&mut after, &patch);
    (patch, after)
}

#[test]
fn one_patch_has_everything_that_differs_and_nothing_else() {
    let pod = json!({
        "metadata": {"labels": {"same": "1", "old": "x", "theirs": "y"}, "annotations": {"a": "1"}},
        "status": {"conditions": [{"type": "Gone", "status": "True"}, {"type": "Ready", "status": "True"}]},
    });
    let label = |key: &str| Place::Label(key.to_owned());
    let wanted = Wanted::from([
        (label("same"), Some(text("1"))),
        (label("old"), None),
        (label("not-there"), None),
        (label("new"), Some(text("z"))),
        (Place::Annotation("a".to_owned()), Some(text("2"))),
        (kind("Gone"), None),
        (kind("New"), Some(condition(ConditionStatus::Unknown, "m"))),
    ]);
    let (patch, _) = write(&wanted, &pod, NOW);
    let time = NOW.to_string();
    let expected = json!({
        "metadata": {"labels": {"old": null, "new": "z"}, "annotations": {"a": "2"}},
        "status": {"conditions": [
            {"$patch": "delete", "type": "Gone"},
            {"type": "New", "status": "Unknown", "reason": "R", "message": "m",
             "lastProbeTime": time, "lastTransitionTime": time},
        ]},
    });
    assert_eq!(patch, expected);
}

#[test]
fn the_time_of_a_transition_changes_with_the_status_alone() {
    let wanted = |status, message| Wanted::from([(kind("A"), Some(condition(status, message)))]);
    let transition = |pod: &Value| pod["status"]["conditions"][0]["lastTransitionTime"].clone();
    let (_, pod) = write(&wanted(ConditionStatus::True, "1"), &json!({}), NOW);
    let later = Timestamp(NOW.0 + 5);
    let (patch, pod) = write(&wanted(ConditionStatus::True, "2"), &pod, later);
    assert_eq!(patch["status"]["conditions"][0]["lastProbeTime"], later.to_string());
    assert_eq!(transition(&pod), NOW.to_string());
    let (_, pod) = write(&wanted(ConditionStatus::False, "2"), &pod, later);
    assert_eq!(transition(&pod), later.to_string());
}

#[test]
fn a_condition_that_stays_is_renewed_once_in_ten_minutes() {
    let wanted = Wanted::from([
        (kind("A"), Some(condition(ConditionStatus::True, "1"))),
        (kind("B"), Some(condition(ConditionStatus::True, "1"))),
        (Place::Label("a".to_owned()), Some(text("1"))),
    ]);
    let (_, pod) = write(&wanted, &json!({}), NOW);
    let (patch, _) = write(&wanted, &pod, Timestamp(NOW.0 + 599));
    assert_eq!(patch, json!({}));
    let later = Timestamp(NOW.0 + 600);
    let (patch, pod) = write(&wanted, &pod, later);
    let renewed = |kind: &str| json!({"type": kind, "status": "True", "reason": "R", "message": "1", "lastProbeTime": later.to_string()});
    assert_eq!(patch, json!({"status": {"conditions": [renewed("A"), renewed("B")]}}));
    assert_eq!(write(&wanted, &pod, later).0, json!({}));
}

#[test]
fn a_condition_of_another_writer_is_left_alone() {
    let fields = json!({"f:status": {"f:conditions": {"k:{\"type\":\"A\"}": {"f:status": {}}}}});
    let pod = json!({
        "metadata": {"managedFields": [{"manager": "kruise-manager", "fieldsV1": fields}]},
        "status": {"conditions": [{"type": "A", "status": "False"}]},
    });
    let wanted = Wanted::from([(kind("A"), Some(condition(ConditionStatus::True, "1")))]);
    let difference = Difference::of(&wanted, &shown(&pod), &BTreeSet::new(), NOW);
    let foreign = BTreeMap::from([("A".to_owned(), "kruise-manager".to_owned())]);
    assert_eq!(difference, Difference { foreign, ..Difference::default() });
    // Nor is it removed when it is no longer wanted.
    let difference = Difference::of(&Wanted::from([(kind("A"), None)]), &shown(&pod), &BTreeSet::new(), NOW);
    assert_eq!(difference, Difference::default());
    // One that was ours before is defended: a virtual kubelet writes back what it has.
    let difference = Difference::of(&wanted, &shown(&pod), &BTreeSet::from(["A".to_owned()]), NOW);
    assert_eq!(difference.changes, wanted);
}

fn any_wanted() -> impl Strategy<Value = Wanted> {
    let place = prop_oneof!["[a-d]".prop_map(Place::Label), "[a-d]".prop_map(Place::Annotation)];
    let texts = prop::collection::btree_map(place, prop::option::of("[a-c]{0,2}".prop_map(Content::Text)), 0..8);
    let status = prop_oneof![Just(ConditionStatus::True), Just(ConditionStatus::False), Just(ConditionStatus::Unknown)];
    let condition = (status, "[R-S]?", "[m-n]?")
        .prop_map(|(status, reason, message)| Content::Condition(Condition { status, reason, message }));
    let conditions = prop::collection::btree_map("[A-D]".prop_map(Place::Condition), prop::option::of(condition), 0..5);
    (texts, conditions).prop_map(|(mut texts, conditions)| {
        texts.extend(conditions);
        texts
    })
}

proptest! {
    #[test]
    fn one_write_is_enough_and_the_next_is_none(first in any_wanted(), second in any_wanted(), wait in 0_u64..2_000) {
        let (_, pod) = write(&first, &json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}}), NOW);
        let later = Timestamp(NOW.0 + wait);
        let (_, pod) = write(&second, &pod, later);
        prop_assert_eq!(write(&second, &pod, later).0, json!({}));
        let after = shown(&pod);
        for (place, content) in &second {
            prop_assert!(after.holds(place, content.as_ref()), "{} is to hold {:?} in {}", place, content, pod);
        }
        for (place, content) in first.iter().filter(|(place, _)| !second.contains_key(place)) {
            prop_assert!(after.holds(place, content.as_ref()), "{} is not wanted otherwise in {}", place, pod);
        }
        prop_assert_eq!(after.condition("Ready").map(|ready| ready.status.as_str()), Some("True"));
    }
}
