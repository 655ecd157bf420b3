//! Annotations and labels for pods.

use pillion_api::{Meaning, Reason};
use serde_json::{Value, json};

use crate::asking::{after, ask, image, one_app, patch, refusal, set};

fn annotating(name: &str, policy: Option<&str>, key: &str, value: &str) -> Meaning {
    let mut patch = json!({"annotations": {key: value}});
    if let Some(policy) = policy {
        patch["patchPolicy"] = json!(policy);
    }
    set(name, json!({"containers": [image(name)], "patchPodMetadata": [patch]}))
}

/// The value of annotation `k` that a pod with this one gets; `None` is none.
fn annotated(policy: Option<&str>, wanted: &str, present: Option<&str>) -> Value {
    let mut pod = one_app();
    if let Some(present) = present {
        pod["metadata"]["annotations"] = json!({"k": present, "other": "stays"});
    }
    let sets = [annotating("a", policy, "k", wanted)];
    let annotations = after(&ask(&pod, &sets))["metadata"]["annotations"].clone();
    assert_eq!(annotations.get("other"), present.map(|_| json!("stays")).as_ref());
    annotations["k"].clone()
}

#[test]
fn retain_writes_only_what_is_absent() {
    for policy in [None, Some("Retain")] {
        assert_eq!(annotated(policy, "set", None), "set");
        assert_eq!(annotated(policy, "set", Some("pod")), "pod");
        assert_eq!(annotated(policy, "set", Some("")), "");
    }
}

#[test]
fn overwrite_writes_always() {
    assert_eq!(annotated(Some("Overwrite"), "set", None), "set");
    assert_eq!(annotated(Some("Overwrite"), "set", Some("pod")), "set");
    assert_eq!(annotated(Some("Overwrite"), "", Some("pod")), "");
}

#[test]
fn merge_patch_json_merges_as_the_standard_says() {
    let merged = |wanted: &str, present: &str| annotated(Some("MergePatchJson"), wanted, Some(present));
    assert_eq!(annotated(Some("MergePatchJson"), r#"{"a": 1}"#, None), r#"{"a": 1}"#);
    assert_eq!(merged(r#"{"a": 1}"#, ""), r#"{"a": 1}"#);
    assert_eq!(merged(r#"{"a": {"b": 2}}"#, r#"{"a": {"c": 3}, "d": [1]}"#), r#"{"a":{"b":2,"c":3},"d":[1]}"#);
    assert_eq!(merged(r#"{"a": null, "d": [2]}"#, r#"{"a": {"c": 3}, "d": [1]}"#), r#"{"d":[2]}"#);
    assert_eq!(merged(r#"{"a": {"b": null, "c": 1}}"#, r#"{"x": 1}"#), r#"{"a":{"c":1},"x":1}"#);
    assert_eq!(merged(r#"{"a": {"b": 1}}"#, r#"{"a": "text"}"#), r#"{"a":{"b":1}}"#);
    assert_eq!(merged(r#"{"a": 1}"#, "[1, 2]"), r#"{"a":1}"#);
    // What says the same already keeps its spelling.
    assert_eq!(merged(r#"{"a": 1}"#, r#"{ "a" : 1 }"#), r#"{ "a" : 1 }"#);
    assert_eq!(merged("{}", r#"{ "a" : 1 }"#), r#"{ "a" : 1 }"#);
}

#[test]
fn what_is_no_json_cannot_be_merged() {
    let mut pod = one_app();
    pod["metadata"]["annotations"] = json!({"k": "text"});
    let sets = [annotating("a", Some("MergePatchJson"), "k", "{}")];
    let message = "annotation k of the pod is not JSON: expected ident at line 1 column 2".to_owned();
    assert_eq!(refusal(&ask(&pod, &sets)), (Reason::MergeNotJson, message));
}

#[test]
fn sets_write_in_the_order_of_their_names() {
    let value = |sets: &[Meaning]| {
        let mut pod = one_app();
        pod["metadata"]["annotations"] = json!({"k": r#"{"a":0,"b":0}"#});
        after(&ask(&pod, sets))["metadata"]["annotations"]["k"].clone()
    };
    let merge = |name: &str, value: &str| annotating(name, Some("MergePatchJson"), "k", value);
    let sets = [merge("b", r#"{"a":2,"x":2}"#), merge("a", r#"{"a":1,"y":1}"#)];
    assert_eq!(value(&sets), r#"{"a":2,"b":0,"x":2,"y":1}"#);
    let sets = [annotating("b", None, "k", "last"), merge("a", r#"{"a":null}"#)];
    assert_eq!(value(&sets), r#"{"b":0}"#);
}

#[test]
fn keys_are_escaped_in_paths_and_only_what_changes_is_written() {
    let mut spec = json!({"containers": [image("a")], "labels": {"example.com/tier": "front", "plain": "label"}});
    spec["patchPodMetadata"] = json!([
        {"annotations": {"example.com/owner": "platform", "same": "value"}, "patchPolicy": "Overwrite"},
    ]);
    let sets = [set("a", spec)];
    let mut pod = one_app();
    pod["metadata"]["annotations"] = json!({"example.com/owner": "shop", "same": "value"});
    pod["metadata"]["labels"]["plain"] = json!("label");
    let decision = ask(&pod, &sets);
    assert_eq!(
        patch(&decision).as_array().unwrap()[1..3],
        [
            json!({"op": "add", "path": "/metadata/labels/example.com~1tier", "value": "front"}),
            json!({"op": "replace", "path": "/metadata/annotations/example.com~1owner", "value": "platform"}),
        ]
    );
    assert_eq!(
        after(&decision)["metadata"]["labels"],
        json!({"app": "web", "plain": "label", "example.com/tier": "front", "pillion.dev/injected": "true"})
    );
}

#[test]
fn secrets_for_images_come_after_those_of_the_pod_and_none_twice() {
    let secrets = |name: &str, secrets: &[&str]| {
        let secrets: Vec<Value> = secrets.iter().map(|name| json!({"name": name})).collect();
        set(name, json!({"containers": [image(name)], "imagePullSecrets": secrets}))
    };
    let sets = [secrets("b", &["shared", "b"]), secrets("a", &["own", "shared", "a"])];
    let mut pod = one_app();
    pod["spec"]["imagePullSecrets"] = json!([{"name": "own"}]);
    let names = |pod: &Value| after(&ask(pod, &sets))["spec"]["imagePullSecrets"].clone();
    assert_eq!(names(&pod), json!([{"name": "own"}, {"name": "shared"}, {"name": "a"}, {"name": "b"}]));
    assert_eq!(names(&one_app()), json!([{"name": "own"}, {"name": "shared"}, {"name": "a"}, {"name": "b"}]));
}
