//! How the tests ask: sets and pods as people write them, one decision, and what must hold of every decision.

use pillion_api::{Meaning, PodRevisions, REVISIONS, Reason, review};
use pillion_inject::{
    Candidate, Decision, Installation, Namespace, Outcome, Record, SetIndex, inject, marks, mismatch,
};
use serde_json::{Map, Value, json};

use crate::api_server;

/// A set of this name for pods labelled `app: web`, unless it says otherwise.
pub(crate) fn set(name: &str, mut spec: Value) -> Meaning {
    let fields = spec.as_object_mut().unwrap();
    fields.entry("selector").or_insert_with(|| json!({"matchLabels": {"app": "web"}}));
    let (version, kind) = ("apps.kruise.io/v1alpha1", "SidecarSet");
    read(&json!({"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}))
}

/// A set with one container of this name.
pub(crate) fn plain_set(name: &str, container: &str) -> Meaning {
    set(name, json!({"containers": [image(container)]}))
}

/// What a set means that has no errors.
pub(crate) fn read(object: &Value) -> Meaning {
    let review = review(object);
    let errors: Vec<String> = review.errors().map(ToString::to_string).collect();
    assert_eq!(errors, [""; 0]);
    review.meaning.unwrap()
}

/// A pod labelled `app: web`.
pub(crate) fn pod(spec: Value) -> Value {
    json!({"metadata": {"labels": {"app": "web"}}, "spec": spec})
}

/// A pod with one container, `app`.
pub(crate) fn one_app() -> Value {
    pod(json!({"containers": [image("app")]}))
}

/// A container of this name and nothing else.
pub(crate) fn image(name: &str) -> Value {
    json!({"name": name, "image": format!("registry.example/{name}:1")})
}

/// A container of this name with fields.
pub(crate) fn with(name: &str, fields: Value) -> Value {
    joined(image(name), fields)
}

/// A container of this name as it is injected, with fields.
pub(crate) fn injected(name: &str, fields: Value) -> Value {
    joined(with(name, json!({"env": [mark()]})), fields)
}

/// The variable that every injected container has.
pub(crate) fn mark() -> Value {
    json!({"name": "IS_INJECTED", "value": "true"})
}

/// The fields of both; the second wins.
pub(crate) fn joined(mut one: Value, other: Value) -> Value {
    let Value::Object(fields) = other else { unreachable!("fields are an object") };
    one.as_object_mut().unwrap().extend(fields);
    one
}

/// Asks the sets that match about a pod of namespace `shop`.
pub(crate) fn ask<'a>(pod: &'a Value, sets: &'a [Meaning]) -> Decision<'a> {
    ask_in(&Namespace::named("shop"), pod, sets, Installation::default())
}

/// Asks the sets that match, and checks what must hold of every decision.
pub(crate) fn ask_in<'a>(
    namespace: &Namespace,
    pod: &'a Value,
    sets: &'a [Meaning],
    installation: Installation<'_>,
) -> Decision<'a> {
    let candidates: Vec<_> = matching(namespace, pod, sets).into_iter().map(Candidate::latest).collect();
    ask_for(namespace, pod, &candidates, installation)
}

/// Asks these, and checks what must hold of every decision.
pub(crate) fn ask_for<'a>(
    namespace: &Namespace,
    pod: &'a Value,
    candidates: &[Candidate<'a>],
    installation: Installation<'_>,
) -> Decision<'a> {
    let decision = inject(pod, namespace, candidates.iter().copied(), installation);

    let backwards = inject(pod, namespace, candidates.iter().copied().rev(), installation);
    assert_eq!(backwards.patch, decision.patch, "the order in which sets are given does not matter");

    let mut names: Vec<&str> = candidates.iter().map(|candidate| candidate.set.name.as_str()).collect();
    names.sort_unstable();
    let asked: Vec<&str> = decision.verdicts.iter().map(|verdict| verdict.set).collect();
    assert_eq!(asked, names, "every set has one verdict, in the order of names");

    assert_eq!(decision.pod.is_some(), !decision.patch.is_empty(), "there is a new pod if something changes");
    let mut patched = pod.clone();
    json_patch::patch(&mut patched, &serde_json::from_value::<json_patch::Patch>(patch(&decision)).unwrap()).unwrap();
    assert_eq!(&patched, decision.pod.as_ref().unwrap_or(pod), "the patch does what was decided");
    if decision.is_refused() {
        assert_eq!(decision.patch, [], "a pod that is refused is not changed");
        return decision;
    }

    for (again, how) in [
        (patched.clone(), "as we left it"),
        (api_server::returned(&patched), "with defaults filled in"),
        (api_server::returned(&api_server::returned(&patched)), "with defaults filled in twice"),
    ] {
        let second = inject(&again, namespace, candidates.to_vec(), installation);
        assert_eq!(second.patch, [], "a pod that is reviewed again, {how}, stays as it is");
        let after = |outcome| if outcome == Outcome::Applied { Outcome::Kept } else { outcome };
        let expected: Vec<_> = decision.verdicts.iter().map(|verdict| (verdict.set, after(verdict.outcome))).collect();
        let outcomes: Vec<_> = second.verdicts.iter().map(|verdict| (verdict.set, verdict.outcome)).collect();
        assert_eq!(outcomes, expected, "a pod that is reviewed again, {how}, gets the same verdicts");
    }
    decision
}

/// The sets that match, by the index and one by one.
pub(crate) fn matching<'a>(namespace: &Namespace, pod: &'a Value, sets: &'a [Meaning]) -> Vec<&'a Meaning> {
    let empty = Map::new();
    let labels = pod["metadata"]["labels"].as_object().unwrap_or(&empty);
    let label = |key: &str| labels.get(key).and_then(Value::as_str);
    let found: Vec<&Meaning> = sets.iter().filter(|set| mismatch(set, label, namespace).is_none()).collect();
    let pairs: Vec<(&str, &str)> = labels.iter().map(|(key, value)| (key.as_str(), value.as_str().unwrap())).collect();
    let index = SetIndex::new(sets.iter().cloned());
    let indexed: Vec<&str> = index.matching(&pairs, namespace).iter().map(|set| set.name.as_str()).collect();
    let mut names: Vec<&str> = found.iter().map(|set| set.name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(indexed, names, "the index finds what matches");
    found
}

/// The patch as it is sent.
pub(crate) fn patch(decision: &Decision<'_>) -> Value {
    serde_json::to_value(&decision.patch).unwrap()
}

/// The pod that comes of it, with its record as JSON.
pub(crate) fn after(decision: &Decision<'_>) -> Value {
    let mut pod = decision.pod.clone().unwrap();
    if let Some(record) = pod["metadata"]["annotations"].get_mut(marks::DECISION) {
        let text = record.as_str().unwrap();
        assert!(Record::parse(text).is_some(), "{text} is a record");
        *record = serde_json::from_str(text).unwrap();
    }
    // Which revisions a pod has, `revisions` tests.
    if let Some(annotations) = pod["metadata"]["annotations"].as_object_mut()
        && let Some(text) = annotations.remove(REVISIONS)
    {
        assert!(PodRevisions::parse(text.as_str().unwrap()).is_some(), "{text} are revisions");
    }
    pod
}

/// What the sets decided: name, outcome and code.
pub(crate) fn verdicts<'a>(decision: &Decision<'a>) -> Vec<(&'a str, &'static str, Reason)> {
    decision.verdicts.iter().map(|verdict| (verdict.set, verdict.outcome.word(), verdict.reason)).collect()
}

/// Why the one set could not be applied.
pub(crate) fn refusal(decision: &Decision<'_>) -> (Reason, String) {
    assert!(decision.is_refused());
    let refusals: Vec<_> = decision.refusals().collect();
    assert_eq!(refusals.len(), 1);
    (refusals[0].reason, refusals[0].message.clone())
}

/// The metadata of a pod that got these containers of these sets, with this record.
pub(crate) fn metadata(sets: &str, containers: &str, record: Value) -> Value {
    json!({
        "labels": {"app": "web", "pillion.dev/injected": "true"},
        "annotations": {
            "kruise.io/sidecarset-injected-list": sets,
            "pillion.dev/containers": containers,
            "pillion.dev/decision": {"v": 1, "sets": record},
        },
    })
}

/// A pod of this spec that got these containers of one set.
pub(crate) fn applied(set: &str, containers: &str, spec: Value) -> Value {
    let mut record = json!({});
    record[set] = json!({"code": "PL201"});
    json!({"metadata": metadata(set, containers, record), "spec": spec})
}
