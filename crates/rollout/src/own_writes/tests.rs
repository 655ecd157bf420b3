use super::*;

fn update(before: Option<&str>, after: &str) -> PodUpdate {
    PodUpdate {
        namespace: "shop".to_owned(),
        name: "web".to_owned(),
        uid: "uid".to_owned(),
        set: "mesh".to_owned(),
        to: after.to_owned(),
        images: Vec::new(),
        resources: Vec::new(),
        record_before: before.map(record),
        record_after: record(after),
        adoption: None,
    }
}

fn record(revision: &str) -> String {
    format!(r#"{{"mesh":{{"is":"{revision}"}}}}"#)
}

fn pod(revision: Option<&str>) -> Pod {
    Pod { uid: "uid".into(), record: revision.map(|it| record(it).into()), ..Pod::default() }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

#[test]
fn a_write_counts_until_the_watch_shows_it() {
    let mut writes = OwnWrites::default();
    writes.wrote(&update(Some("a"), "b"), at(0));
    assert_eq!(writes.of("uid", "mesh", at(1)).map(|it| &*it.is), Some("b"));
    assert_eq!((writes.of("uid", "logs", at(1)), writes.of("other", "mesh", at(1))), (None, None));
    writes.saw(&pod(Some("a")));
    assert!(!writes.is_empty());
    writes.saw(&pod(Some("b")));
    assert!(writes.is_empty());
}

#[test]
fn the_watch_may_show_what_came_between_two_writes_or_what_another_wrote() {
    let mut writes = OwnWrites::default();
    writes.wrote(&update(None, "a"), at(0));
    writes.wrote(&update(Some("a"), "b"), at(1));
    for behind in [None, Some("a")] {
        writes.saw(&pod(behind));
        assert_eq!(writes.of("uid", "mesh", at(2)).map(|it| &*it.is), Some("b"), "{behind:?}");
    }
    writes.saw(&pod(Some("of another manager")));
    assert!(writes.is_empty());
}

#[test]
fn a_pod_that_is_gone_is_forgotten() {
    let mut writes = OwnWrites::default();
    writes.wrote(&update(Some("a"), "b"), at(0));
    writes.forget("uid");
    assert!(writes.is_empty());
    writes.wrote(&update(Some("a"), "b"), at(0));
    writes.retain(|uid| uid != "uid");
    assert!(writes.is_empty());
}

#[test]
fn nothing_waits_for_ever() {
    let mut writes = OwnWrites::default();
    writes.wrote(&update(Some("a"), "b"), at(0));
    let overdue = |second| writes.overdue(at(second)).collect::<Vec<_>>();
    assert_eq!((overdue(9), overdue(10)), (vec![], vec!["uid"]));
    assert_eq!(
        [0, 9, 10, 59, 60].map(|now| writes.next_change(at(now))),
        [Some(at(10)), Some(at(10)), Some(at(60)), Some(at(60)), None]
    );
    assert!(writes.of("uid", "mesh", at(59)).is_some());
    assert!(writes.of("uid", "mesh", at(60)).is_none());
}

#[test]
fn a_pod_that_was_read_tells_whether_the_write_arrived() {
    let mut writes = OwnWrites::default();
    writes.wrote(&update(Some("a"), "b"), at(0));
    writes.read(&pod(Some("b")), at(10));
    assert!(writes.of("uid", "mesh", at(11)).is_some(), "the watch is still behind");
    assert_eq!(
        (writes.overdue(at(19)).count(), writes.overdue(at(20)).count()),
        (0, 1),
        "it is read again, not all the time"
    );
    writes.read(&pod(Some("a")), at(20));
    assert!(writes.is_empty(), "it never arrived");
}
