//! What follows where a set cannot be applied: the pod is refused, or the set is left out, and only this set.

use pillion_api::{FailurePolicy, Meaning, Reason};
use pillion_inject::{Candidate, Choice, Installation, Namespace};
use serde_json::json;

use crate::asking::{after, ask, ask_for, image, injected, metadata, one_app, plain_set, verdicts};

fn of_policy(policy: FailurePolicy, mut set: Meaning) -> Meaning {
    set.failure_policy = policy;
    set
}

fn pinned<'a>(set: &'a Meaning, choice: Choice<'a>) -> Candidate<'a> {
    Candidate { choice, ..Candidate::latest(set) }
}

#[test]
fn fail_refuses_the_pod_and_changes_nothing_of_it() {
    let mut pod = one_app();
    pod["metadata"]["labels"]["pillion.dev/injected"] = json!("true");
    let sets = [plain_set("a", "proxy"), plain_set("b", "app"), plain_set("c", "app"), plain_set("d", "agent")];
    let decision = ask(&pod, &sets);
    // Every set is asked, so that a person sees all there is to mend.
    let expected = [
        ("a", "inject", Reason::Injected),
        ("b", "refuse", Reason::ContainerClash),
        ("c", "refuse", Reason::ContainerClash),
        ("d", "inject", Reason::Injected),
    ];
    assert_eq!(verdicts(&decision), expected);
    assert!(decision.is_refused());
    assert_eq!(decision.refusals().map(|verdict| verdict.set).collect::<Vec<_>>(), ["b", "c"]);
    assert_eq!(decision.patch, []);
    assert_eq!(decision.pod, None);
}

#[test]
fn ignore_leaves_out_this_set_and_only_this() {
    let (pod, sets) = (
        one_app(),
        [plain_set("a", "proxy"), of_policy(FailurePolicy::Ignore, plain_set("b", "app")), plain_set("c", "agent")],
    );
    let decision = ask(&pod, &sets);
    assert!(!decision.is_refused());
    let why = "the pod has a container app of its own";
    let record = json!({"a": {"code": "PL201"}, "b": {"code": "PL306", "why": why}, "c": {"code": "PL201"}});
    let spec = json!({"containers": [injected("proxy", json!({})), injected("agent", json!({})), image("app")]});
    assert_eq!(after(&decision), json!({"metadata": metadata("a,c", "agent,proxy", record), "spec": spec}));
}

#[test]
fn a_set_that_is_left_out_alone_is_on_record() {
    let (pod, sets) = (one_app(), [of_policy(FailurePolicy::Ignore, plain_set("b", "app"))]);
    let decision = ask(&pod, &sets);
    let why = "the pod has a container app of its own";
    let mut expected = pod.clone();
    expected["metadata"]["annotations"] =
        json!({"pillion.dev/decision": {"v": 1, "sets": {"b": {"code": "PL306", "why": why}}}});
    assert_eq!(after(&decision), expected);
}

#[test]
fn one_that_fails_is_enough() {
    let sets = [of_policy(FailurePolicy::Ignore, plain_set("a", "app")), plain_set("b", "app")];
    let pod = one_app();
    let decision = ask(&pod, &sets);
    let expected = [("a", "ignore", Reason::ContainerClash), ("b", "refuse", Reason::ContainerClash)];
    assert_eq!(verdicts(&decision), expected);
}

#[test]
fn a_revision_that_cannot_be_had_is_never_replaced_by_another() {
    let (fail, ignore) = (plain_set("a", "proxy"), of_policy(FailurePolicy::Ignore, plain_set("b", "agent")));
    let missing = Choice::Unavailable { name: "a-5d8c", reason: Reason::RevisionMissing };
    let foreign = Choice::Unavailable { name: "c-77f1", reason: Reason::RevisionOfAnotherSet };
    let candidates = [pinned(&fail, missing), pinned(&ignore, foreign)];
    let (pod, namespace) = (one_app(), Namespace::named("shop"));
    let decision = ask_for(&namespace, &pod, &candidates, Installation::default());
    let expected = [("a", "refuse", Reason::RevisionMissing), ("b", "ignore", Reason::RevisionOfAnotherSet)];
    assert_eq!(verdicts(&decision), expected);
    let messages: Vec<&str> = decision.verdicts.iter().map(|verdict| verdict.message.as_str()).collect();
    assert_eq!(messages, ["revision a-5d8c does not exist", "revision c-77f1 belongs to another set"]);
    assert_eq!(decision.verdicts[0].revision, "a-5d8c");

    let decision = ask_for(&namespace, &pod, &candidates[1..], Installation::default());
    let record = json!({"code": "PL315", "why": "revision c-77f1 belongs to another set"});
    let mut expected = pod.clone();
    expected["metadata"]["annotations"] = json!({"pillion.dev/decision": {"v": 1, "sets": {"b": record}}});
    assert_eq!(after(&decision), expected);
}

#[test]
fn a_revision_is_applied_in_the_place_of_the_set_as_it_stands() {
    let (set, old) = (plain_set("a", "proxy"), plain_set("a", "old-proxy"));
    let choice = Choice::Revision { name: "a-5d8c", template: &old.template };
    let (pod, namespace) = (one_app(), Namespace::named("shop"));
    let decision = ask_for(&namespace, &pod, &[pinned(&set, choice)], Installation::default());
    let record = json!({"a": {"code": "PL201"}});
    let spec = json!({"containers": [injected("old-proxy", json!({})), image("app")]});
    assert_eq!(after(&decision), json!({"metadata": metadata("a", "old-proxy", record), "spec": spec}));
    // It stays, whatever is chosen when the pod is seen again.
    let stored = decision.pod.unwrap();
    let again = ask_for(&namespace, &stored, &[pinned(&set, choice)], Installation::default());
    assert_eq!(again.patch, []);
}

#[test]
fn a_pod_that_cannot_be_read_is_judged_by_each_policy() {
    let sets = [
        plain_set("a", "proxy"),
        of_policy(FailurePolicy::Ignore, plain_set("b", "agent")),
        crate::asking::set("c", json!({"containers": [image("x")], "injectStrategy": {"paused": true}})),
    ];
    for (spec, message) in [
        (json!(null), "spec is missing"),
        (json!([]), "spec is no object"),
        (json!({"containers": {}}), "spec.containers is no list"),
        (json!({"containers": [image("app"), 1]}), "spec.containers[1] is no object"),
        (json!({"initContainers": [{"image": "x"}]}), "spec.initContainers[0] has no name"),
        (json!({"containers": [image("app")], "volumes": [{}]}), "spec.volumes[0] has no name"),
    ] {
        let pod = json!({"metadata": {"labels": {"app": "web"}}, "spec": spec});
        let decision = ask(&pod, &sets);
        let expected = [
            ("a", "refuse", Reason::UnreadablePod),
            ("b", "ignore", Reason::UnreadablePod),
            ("c", "skip", Reason::InjectionPaused),
        ];
        assert_eq!(verdicts(&decision), expected);
        assert_eq!(decision.verdicts[0].message, message);
        assert_eq!(decision.patch, []);
    }
}
