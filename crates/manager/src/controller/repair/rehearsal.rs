//! A pod as its workload would create it again, to ask the API server what would become of it.

use pillion_inject::marks;
use serde_json::{Map, Value, json};

/// What of the metadata a pod is created with.
const CREATED_WITH: [&str; 4] = ["namespace", "labels", "annotations", "ownerReferences"];
/// What of the spec is decided after a pod was created, or forbidden before.
const DECIDED_LATER: [&str; 4] = ["nodeName", "ephemeralContainers", "priority", "preemptionPolicy"];
/// A name has no more characters, and five are drawn.
const LONGEST_START: usize = 248;

/// The pod as it would be created again, under a name that is free.
pub(super) fn created_again(pod: &Value) -> Value {
    let none = Map::new();
    let before = pod["metadata"].as_object().unwrap_or(&none);
    let mut metadata: Map<String, Value> = Map::new();
    for field in CREATED_WITH {
        if let Some(value) = before.get(field) {
            metadata.insert(field.to_owned(), value.clone());
        }
    }
    // The name is taken by the pod itself.
    let name = before.get("name").and_then(Value::as_str).unwrap_or("pod");
    let start = &name[..name.floor_char_boundary(LONGEST_START - 1)];
    metadata.insert("generateName".to_owned(), json!(format!("{start}-")));
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.remove(marks::DECISION);
        annotations.remove(marks::CONTAINERS);
        annotations.remove(pillion_api::REVISIONS);
    }
    for owner in metadata.get_mut("ownerReferences").and_then(Value::as_array_mut).into_iter().flatten() {
        // To set it, one must be allowed to finalize the owner.
        if let Some(owner) = owner.as_object_mut() {
            owner.remove("blockOwnerDeletion");
        }
    }
    let mut spec = pod["spec"].clone();
    if let Some(spec) = spec.as_object_mut() {
        for field in DECIDED_LATER {
            spec.remove(field);
        }
    }
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
}

/// Whether a pod that came back from a rehearsal has the sidecars of these sets.
pub(super) fn carries(pod: &Value, sets: &[String]) -> bool {
    let metadata = &pod["metadata"];
    let listed = metadata["annotations"][marks::INJECTED_SETS].as_str().unwrap_or_default();
    let is_listed = |set: &String| listed.split(',').any(|name| name.trim() == set);
    metadata["labels"][marks::INJECTED_LABEL] == "true" && sets.iter().all(is_listed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_is_created_again_without_what_became_of_it() {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "web-7-a", "namespace": "shop", "generateName": "web-7-", "uid": "u", "resourceVersion": "5",
                "creationTimestamp": "2026-01-02T03:04:05Z", "managedFields": [{}], "generation": 1, "finalizers": ["x/y"],
                "labels": {"app": "web"}, "annotations": {"a": "b", "pillion.dev/decision": "{}", "pillion.dev/containers": "x"},
                "ownerReferences": [{"kind": "ReplicaSet", "name": "web-7", "controller": true, "blockOwnerDeletion": true}]},
            "spec": {"nodeName": "node-1", "priority": 0, "preemptionPolicy": "PreemptLowerPriority", "priorityClassName": "p",
                "containers": [{"name": "app", "unknown": 1, "volumeMounts": [{"name": "kube-api-access-x"}]}],
                "ephemeralContainers": [{"name": "debug"}], "volumes": [{"name": "kube-api-access-x"}]},
            "status": {"phase": "Running"},
        });
        assert_eq!(
            created_again(&pod),
            json!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": {"namespace": "shop", "generateName": "web-7-a-", "labels": {"app": "web"}, "annotations": {"a": "b"},
                    "ownerReferences": [{"kind": "ReplicaSet", "name": "web-7", "controller": true}]},
                "spec": {"priorityClassName": "p",
                    "containers": [{"name": "app", "unknown": 1, "volumeMounts": [{"name": "kube-api-access-x"}]}],
                    "volumes": [{"name": "kube-api-access-x"}]},
            })
        );
        let long = json!({"metadata": {"name": "x".repeat(253)}, "spec": {}});
        assert_eq!(created_again(&long)["metadata"]["generateName"].as_str().unwrap().len(), 248);
    }

    #[test]
    fn a_pod_must_come_back_with_every_set_it_lacks() {
        let came = |label: Value, list: &str| {
            json!({"metadata": {
            "labels": {"pillion.dev/injected": label}, "annotations": {"kruise.io/sidecarset-injected-list": list}}})
        };
        let sets = ["logs".to_owned(), "mesh".to_owned()];
        assert!(carries(&came(json!("true"), "audit,logs, mesh"), &sets));
        assert!(!carries(&came(json!("true"), "audit,logs,mesh-2"), &sets));
        assert!(!carries(&came(Value::Null, "logs,mesh"), &sets));
        assert!(!carries(&json!({}), &sets));
    }
}
