//! Which revision a pod says it has.

use pillion_api::{Meaning, REVISIONS};
use pillion_inject::{Candidate, Choice, Installation, Namespace, PodHead, marks};
use serde_json::{Value, json};

use crate::asking::{ask, ask_for, one_app, plain_set};

fn revisions(pod: &Value) -> &Value {
    &pod["metadata"]["annotations"][REVISIONS]
}

fn asked<'a>(pod: &'a Value, set: &'a Meaning, choice: Choice<'a>) -> Option<Value> {
    let candidate = Candidate { choice, ..Candidate::latest(set) };
    ask_for(&Namespace::named("shop"), pod, &[candidate], Installation::default()).pod
}

#[test]
fn a_pod_has_the_revision_it_was_given() {
    let (pod, sets) = (one_app(), [plain_set("a", "proxy"), plain_set("b", "agent")]);
    let injected = ask(&pod, &sets).pod.unwrap();
    let expected = format!(r#"{{"a":{{"is":"{}"}},"b":{{"is":"{}"}}}}"#, sets[0].revision, sets[1].revision);
    assert_eq!(revisions(&injected), &json!(expected));
    let old = plain_set("a", "old-proxy");
    let choice = Choice::Revision { name: "a-5d8c", template: &old.template };
    let injected = asked(&pod, &sets[0], choice).unwrap();
    assert_eq!(revisions(&injected), r#"{"a":{"is":"a-5d8c"}}"#);
}

#[test]
fn a_pod_that_is_seen_again_keeps_the_one_it_has() {
    let (pod, set) = (one_app(), plain_set("a", "proxy"));
    let choice = Choice::Revision { name: "a-5d8c", template: &set.template };
    let injected = asked(&pod, &set, choice).unwrap();
    assert_eq!(asked(&injected, &set, choice), None, "the containers are there, and of that revision");
    // Where that revision is not stored, they are compared with the one that a new pod gets.
    let newest = asked(&injected, &set, Choice::Latest).unwrap();
    assert_eq!(revisions(&newest), &json!(format!(r#"{{"a":{{"is":"{}"}}}}"#, set.revision)));
    // So whoever chooses is told.
    let bytes = injected.to_string();
    assert_eq!(PodHead::parse(bytes.as_bytes()).unwrap().revisions().of("a").unwrap().is, "a-5d8c");
    // Another set comes beside it, and one that does not match any more leaves its sidecars behind, which nobody has checked.
    let other = plain_set("b", "agent");
    let both = ask(&injected, std::slice::from_ref(&other)).pod.unwrap();
    let expected = format!(r#"{{"a":{{"is":"a-5d8c","altered":true}},"b":{{"is":"{}"}}}}"#, other.revision);
    assert_eq!(revisions(&both), &json!(expected));
}

#[test]
fn nobody_gives_a_revision_to_himself() {
    let mut pod = one_app();
    pod["metadata"]["annotations"] = json!({REVISIONS: r#"{"a":{"is":"a-mine"}}"#, marks::INJECTED_SETS: "a"});
    let bytes = pod.to_string();
    assert!(PodHead::parse(bytes.as_bytes()).unwrap().is_marked());
    let set = plain_set("a", "proxy");
    let injected = asked(&pod, &set, Choice::Latest).unwrap();
    assert_eq!(revisions(&injected), &json!(format!(r#"{{"a":{{"is":"{}"}}}}"#, set.revision)));
    let cleaned = ask(&pod, &[]).pod.unwrap();
    assert_eq!(revisions(&cleaned), &Value::Null);
    // Of a set that was not applied it says nothing.
    pod["metadata"]["annotations"][marks::INJECTED_SETS] = json!("b");
    let bytes = pod.to_string();
    assert_eq!(PodHead::parse(bytes.as_bytes()).unwrap().revisions().of("a"), None);
}
