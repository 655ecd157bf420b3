//! The record of decisions: its exact text, its cap, and that it stays.

use pillion_api::{FailurePolicy, Meaning, Reason};
use pillion_inject::{Candidate, Choice, Entry, Installation, MAX_RECORD, Namespace, Record, marks};
use serde_json::{Value, json};

use crate::asking::{ask, ask_for, image, one_app, plain_set, pod, set, with};
use crate::scenarios::resources;

fn text(pod: &Value) -> &str {
    pod["metadata"]["annotations"][marks::DECISION].as_str().unwrap()
}

#[test]
fn it_is_compact_and_says_everything() {
    let policy = json!({
        "targetContainerMode": "sum",
        "resourceExpr": {"limits": {"cpu": "cpu*50%"}, "requests": {"cpu": "cpu*25%", "memory": "10Mi"}},
    });
    let transfer =
        json!([{"sourceContainerName": "none", "envName": "A"}, {"sourceContainerName": "app", "envName": "B"}]);
    let proxy = with("proxy", json!({"resourcesPolicy": policy, "transferEnv": transfer}));
    let mesh = set("mesh", json!({"containers": [proxy]}));
    let mut clash = plain_set("clash", "app");
    clash.failure_policy = FailurePolicy::Ignore;
    let logs = set("logs", json!({"containers": [image("logs")], "injectStrategy": {"paused": true}}));
    let pod = pod(json!({"containers": [with("app", json!({"resources": resources(["", ""], ["400m", ""])}))]}));
    let choice = Choice::Revision { name: "mesh-5d8c", template: &mesh.template };
    let candidates = [
        Candidate { choice, reservation: Some("r-7"), ..Candidate::latest(&mesh) },
        Candidate::latest(&clash),
        Candidate::latest(&logs),
    ];
    let decision = ask_for(&Namespace::named("shop"), &pod, &candidates, Installation::default());
    let expected = concat!(
        r#"{"v":1,"sets":{"#,
        r#""clash":{"code":"PL306","why":"the pod has a container app of its own"},"#,
        r#""logs":{"code":"PL204","why":"injection of the set is paused"},"#,
        r#""mesh":{"code":"PL201","reservation":"r-7","sizes":{"proxy":{"limits.cpu":["unlimited","unlimited"],"#,
        r#""requests.cpu":["400m","100m"],"requests.memory":["0","10Mi"]}},"warnings":["PL352"]}}}"#,
    );
    assert_eq!(text(&decision.pod.unwrap()), expected);
    let record = Record::parse(expected).unwrap();
    let codes: Vec<(&str, &str)> =
        record.sets.iter().map(|(name, entry)| (name.as_str(), entry.code.as_str())).collect();
    assert_eq!(codes, [("clash", "PL306"), ("logs", "PL204"), ("mesh", "PL201")]);
    assert_eq!((record.sets["mesh"].reservation.as_deref(), record.cut), (Some("r-7"), 0));
}

#[test]
fn a_revision_that_was_not_counted_is_told() {
    let mesh = plain_set("mesh", "proxy");
    let pod = one_app();
    let choice = Choice::Revision { name: "mesh-5d8c", template: &mesh.template };
    let candidates = [Candidate { choice, trouble: Some("others were faster"), ..Candidate::latest(&mesh) }];
    let decision = ask_for(&Namespace::named("shop"), &pod, &candidates, Installation::default());
    let warnings: Vec<_> = decision.verdicts[0].warnings.iter().map(|it| (it.reason, it.message.as_str())).collect();
    assert_eq!(warnings, [(Reason::LedgerUnavailable, "the pod gets revision mesh-5d8c: others were faster")]);
    assert_eq!(text(&decision.pod.unwrap()), r#"{"v":1,"sets":{"mesh":{"code":"PL201","warnings":["PL354"]}}}"#);
}

#[test]
fn what_is_none_of_ours_is_no_record() {
    for text in [
        "",
        "null",
        "{}",
        r#"{"v":1}"#,
        r#"{"v":2,"sets":{}}"#,
        r#"{"v":1,"sets":{},"more":1}"#,
        r#"{"v":1,"sets":{"a":{"code":"PL201","more":1}}}"#,
        r#"{"v":1,"sets":{"a":{}}}"#,
    ] {
        assert_eq!(Record::parse(text), None, "{text}");
    }
    let padded = format!("{}{}", r#"{"v":1,"sets":{}}"#, " ".repeat(MAX_RECORD));
    assert_eq!(Record::parse(&padded[..MAX_RECORD]).map(|record| record.sets.len()), Some(0));
    assert_eq!(Record::parse(&padded[..=MAX_RECORD]), None);
}

#[test]
fn words_are_shortened_where_a_letter_ends() {
    // 235 bytes up to the first letter of two bytes, so that byte 240 is in the middle of one.
    let mut pod = one_app();
    pod["metadata"]["labels"]["tier"] = json!("é".repeat(200));
    let mut labelled = set("a", json!({"containers": [image("a")], "labels": {"tier": "x"}}));
    labelled.failure_policy = FailurePolicy::Ignore;
    let sets = [labelled];
    let decision = ask(&pod, &sets);
    assert!(decision.verdicts[0].message.len() > 400);
    let record = Record::parse(text(decision.pod.as_ref().unwrap())).unwrap();
    let why = record.sets["a"].why.clone().unwrap();
    let start = "the pod has label tier=";
    let letters = (240 - start.len()) / 2;
    assert_eq!(why, format!("{start}{}…", "é".repeat(letters)));
    assert_eq!(start.len() % 2, 1, "so that byte 240 is in the middle of a letter");
}

/// So many sets, all of which match; those with an even number cannot be applied. Names have this length.
fn many(count: usize, length: usize) -> Vec<Meaning> {
    let sets = (0..count).map(|number| {
        let name = format!("{number:0length$}");
        let mut set = plain_set(&name, if number % 2 == 0 { "app" } else { &name });
        set.failure_policy = FailurePolicy::Ignore;
        set
    });
    sets.collect()
}

fn record_of(sets: &[Meaning]) -> (Record, usize) {
    let pod = one_app();
    let decision = ask(&pod, sets);
    let text = text(decision.pod.as_ref().unwrap());
    (Record::parse(text).unwrap(), text.len())
}

/// The code of the set of this number.
fn code(number: usize) -> &'static str {
    if number.is_multiple_of(2) { Reason::ContainerClash.code() } else { Reason::Injected.code() }
}

#[test]
fn a_record_that_would_be_too_long_loses_words_first() {
    let (whole, _) = record_of(&many(100, 10));
    assert_eq!(whole.cut, 0);
    assert!(whole.sets.values().all(|entry| entry.why.is_some() == (entry.code == "PL306")));

    let (cut, length) = record_of(&many(200, 10));
    assert_eq!((cut.cut, cut.sets.len()), (1, 200));
    assert!(length <= MAX_RECORD);
    for (number, (name, entry)) in cut.sets.iter().enumerate() {
        assert_eq!((name, entry.code.as_str()), (&format!("{number:010}"), code(number)));
        assert_eq!((&entry.why, entry.sizes.len(), entry.warnings.len()), (&None, 0, 0));
    }
}

#[test]
fn and_then_the_last_sets() {
    // The longest names there are.
    let (cut, length) = record_of(&many(200, 63));
    assert_eq!(cut.cut, 2);
    // As many as fit: an entry has 63 bytes of name and 20 others.
    assert!(length <= MAX_RECORD && length + 83 > MAX_RECORD, "{length}");
    assert_eq!(cut.sets.len(), (MAX_RECORD - r#"{"v":1,"sets":{},"cut":2}"#.len() + 1) / 83);
    for (number, (name, entry)) in cut.sets.iter().enumerate() {
        assert_eq!((name, entry.code.as_str()), (&format!("{number:063}"), code(number)));
    }
}

#[test]
fn reservations_go_when_sets_go() {
    let with_reservations = |count: usize| {
        let (pod, sets) = (one_app(), many(count, 10));
        let ids: Vec<String> = sets.iter().map(|set| format!("{}-5d8c7f9b6", set.name)).collect();
        let candidates: Vec<Candidate<'_>> = sets
            .iter()
            .zip(&ids)
            .map(|(set, id)| Candidate { reservation: Some(id), ..Candidate::latest(set) })
            .collect();
        let decision = ask_for(&Namespace::named("shop"), &pod, &candidates, Installation::default());
        Record::parse(text(decision.pod.as_ref().unwrap())).unwrap()
    };
    let cut = with_reservations(150);
    assert_eq!((cut.cut, cut.sets.len()), (1, 150));
    let applied = |(name, entry): (&String, &Entry)| {
        let reserved = (entry.code == Reason::Injected.code()).then(|| format!("{name}-5d8c7f9b6"));
        entry.reservation == reserved
    };
    assert!(cut.sets.iter().all(applied), "a set that is not applied reserves nothing");
    let cut = with_reservations(200);
    assert_eq!((cut.cut, cut.sets.len()), (2, 200));
    assert!(cut.sets.values().all(|entry| entry.reservation.is_none()));
}

#[test]
fn a_pod_that_is_seen_again_keeps_what_was_said_the_first_time() {
    let policy = json!({"targetContainerMode": "sum", "resourceExpr": {"limits": {"cpu": "cpu*50%"}}});
    let mesh = |policy: &Value| set("mesh", json!({"containers": [with("proxy", json!({"resourcesPolicy": policy}))]}));
    let pod = pod(json!({"containers": [with("app", json!({"resources": resources(["1", ""], ["", ""])}))]}));
    let sets = [mesh(&policy)];
    let first = ask(&pod, &sets).pod.unwrap();
    let expected = r#"{"v":1,"sets":{"mesh":{"code":"PL201","sizes":{"proxy":{"limits.cpu":["1","500m"]}}}}}"#;
    assert_eq!(text(&first), expected);
    // Also when the set would say something else by now.
    let doubled = json!({"targetContainerMode": "sum", "resourceExpr": {"limits": {"cpu": "cpu*2"}}});
    let sets = [mesh(&doubled)];
    let again = ask(&first, &sets).pod.unwrap();
    assert_eq!((text(&again), &again["spec"]), (expected, &first["spec"]));
    // A set that came later is added to it.
    let sets = [mesh(&doubled), plain_set("logs", "shipper")];
    let second = ask(&first, &sets).pod.unwrap();
    let added = expected.replace(r#"{"mesh""#, r#"{"logs":{"code":"PL201"},"mesh""#);
    assert_eq!(text(&second), added);
}

#[test]
fn a_set_that_adds_something_more_says_what_it_added() {
    let sized = |name: &str, expression: &str| {
        let policy = json!({"targetContainerMode": "sum", "resourceExpr": {"requests": {"cpu": expression}}});
        with(name, json!({"resourcesPolicy": policy}))
    };
    let pod = pod(json!({"containers": [with("app", json!({"resources": resources(["", ""], ["1", ""])}))]}));
    let sets = [set("mesh", json!({"containers": [sized("proxy", "cpu*50%")]}))];
    let first = ask(&pod, &sets).pod.unwrap();
    let sets = [set("mesh", json!({"containers": [sized("proxy", "cpu*50%"), sized("agent", "cpu*10%")]}))];
    let second = ask(&first, &sets).pod.unwrap();
    let expected = r#"{"v":1,"sets":{"mesh":{"code":"PL201","sizes":{"agent":{"requests.cpu":["1","100m"]}}}}}"#;
    assert_eq!(text(&second), expected);
}
