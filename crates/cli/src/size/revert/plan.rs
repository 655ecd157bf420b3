//! Which containers of a running pod differ from the template of its workload, and the patch that takes them back.

use std::collections::BTreeMap;

use pillion_inject::marks;
use pillion_quantity::{Quantity, Resource};
use serde_json::{Map, Value, json};

/// What is to be done to one pod.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PodPlan {
    pub(super) name: String,
    uid: Value,
    /// Containers whose amounts change.
    pub(super) changes: Vec<ContainerPlan>,
    /// What stays as it is, and why.
    pub(super) stays: Vec<String>,
}

/// What is to be done to one container.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ContainerPlan {
    list: &'static str,
    index: usize,
    pub(super) name: String,
    /// `requests.cpu`, what it is, what the template says.
    pub(super) fields: Vec<(String, Option<String>, String)>,
    /// Requests and limits as they are to be, where they change.
    resources: Vec<(&'static str, Value)>,
}

/// What is to be done to a pod; `None` for one that has ended, or is on its way out.
pub(super) fn plan(pod: &Value, template: &Value) -> Option<PodPlan> {
    let metadata = &pod["metadata"];
    let has_ended = ["Succeeded", "Failed"].iter().any(|phase| pod["status"]["phase"] == **phase);
    if has_ended || !metadata["deletionTimestamp"].is_null() {
        return None;
    }
    let mut plan = PodPlan {
        name: metadata["name"].as_str()?.to_owned(),
        uid: metadata["uid"].clone(),
        changes: Vec::new(),
        stays: Vec::new(),
    };
    let injected = marks::names(metadata["annotations"][marks::CONTAINERS].as_str());
    let written: BTreeMap<&str, &Value> =
        lists(template).filter_map(|(_, _, container)| Some((container["name"].as_str()?, container))).collect();
    for (list, index, container) in lists(pod) {
        let Some(name) = container["name"].as_str() else { continue };
        match written.get(name) {
            Some(written) => plan.take(list, index, name, container, written),
            None if injected.contains(name) => {
                plan.stays.push(format!("{name} is injected: its SidecarSet says its size, and a new pod gets it"));
            }
            None => plan.stays.push(format!("{name} is not in the template: whoever added it says its size")),
        }
    }
    Some(plan)
}

/// The containers that run as long as their pod does, with their places.
fn lists(pod: &Value) -> impl Iterator<Item = (&'static str, usize, &Value)> {
    let list = |name: &'static str| {
        let containers = pod["spec"][name].as_array().into_iter().flatten();
        containers.enumerate().map(move |(at, container)| (name, at, container))
    };
    let native = list("initContainers").filter(|(_, _, container)| container["restartPolicy"] == "Always");
    native.chain(list("containers"))
}

impl PodPlan {
    fn take(&mut self, list: &'static str, index: usize, name: &str, present: &Value, written: &Value) {
        let mut change =
            ContainerPlan { list, index, name: name.to_owned(), fields: Vec::new(), resources: Vec::new() };
        for side in ["requests", "limits"] {
            let mut amounts: Map<String, Value> = present["resources"][side].as_object().cloned().unwrap_or_default();
            let mut is_changed = false;
            for resource in [Resource::Cpu, Resource::Memory].map(Resource::name) {
                let field = format!("{side}.{resource}");
                let is = present["resources"][side][resource].as_str();
                match (is, said(written, side, resource)) {
                    (None, None) => {}
                    (Some(is), Some(says)) if is_same(is, says) => {}
                    (Some(is), None) => self.stays.push(format!(
                        "{name} keeps {field} {is}: the template has none, and one that is set can only be changed"
                    )),
                    (is, Some(says)) => {
                        amounts.insert(resource.to_owned(), json!(says));
                        change.fields.push((field, is.map(str::to_owned), says.to_owned()));
                        is_changed = true;
                    }
                }
            }
            if is_changed {
                change.resources.push((side, Value::Object(amounts)));
            }
        }
        if !change.fields.is_empty() {
            self.changes.push(change);
        }
    }

    /// Changes exactly the pod and the containers that were looked at.
    pub(super) fn patch(&self) -> Value {
        let mut operations = vec![json!({"op": "test", "path": "/metadata/uid", "value": self.uid})];
        for ContainerPlan { list, index, name, resources, .. } in &self.changes {
            let place = format!("/spec/{list}/{index}");
            operations.push(json!({"op": "test", "path": format!("{place}/name"), "value": name}));
            for (side, amounts) in resources {
                // Of a field that is there, this is a replacement.
                let path = format!("{place}/resources/{side}");
                operations.push(json!({"op": "add", "path": path, "value": amounts}));
            }
        }
        Value::Array(operations)
    }
}

/// What a template says of a field. A request that is missing is the limit, as the API server fills it in.
fn said<'a>(container: &'a Value, side: &str, resource: &str) -> Option<&'a str> {
    let resources = &container["resources"];
    let limit = || resources["limits"][resource].as_str().filter(|_| side == "requests");
    resources[side][resource].as_str().or_else(limit)
}

/// `0.1` and `100m` are the same.
fn is_same(one: &str, other: &str) -> bool {
    let read = |text: &str| text.parse::<Quantity>().ok();
    one == other || (read(one).is_some() && read(one) == read(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template() -> Value {
        json!({"spec": {
            "initContainers": [
                {"name": "setup", "resources": {"requests": {"cpu": "1"}}},
                {"name": "vault", "restartPolicy": "Always", "resources": {"requests": {"memory": "64Mi"}}},
            ],
            "containers": [{"name": "app", "resources": {"requests": {"cpu": "0.1"}, "limits": {"memory": "1Gi"}}}],
        }})
    }

    fn sized() -> Value {
        json!({
            "metadata": {"name": "web-0", "uid": "u-1", "annotations": {"pillion.dev/containers": "proxy"}},
            "spec": {
                "initContainers": [
                    {"name": "setup", "resources": {"requests": {"cpu": "2"}}},
                    {"name": "vault", "restartPolicy": "Always", "resources": {"requests": {"memory": "90Mi"}}},
                ],
                "containers": [
                    {"name": "proxy", "resources": {"requests": {"cpu": "1"}}},
                    {"name": "app", "resources": {"requests": {"cpu": "250m", "memory": "2Gi", "example.com/gpu": "1"},
                        "limits": {"memory": "2Gi", "cpu": "1"}}},
                    {"name": "istio", "resources": {}},
                ],
            },
            "status": {"phase": "Running"},
        })
    }

    #[test]
    fn what_differs_is_taken_back_and_the_rest_is_named() {
        let plan = plan(&sized(), &template()).unwrap();
        let told: Vec<String> = plan.changes.iter().map(|it| format!("{} {:?}", it.name, it.fields)).collect();
        assert_eq!(
            told,
            [
                r#"vault [("requests.memory", Some("90Mi"), "64Mi")]"#,
                r#"app [("requests.cpu", Some("250m"), "0.1"), ("requests.memory", Some("2Gi"), "1Gi"), ("limits.memory", Some("2Gi"), "1Gi")]"#,
            ]
        );
        assert_eq!(
            plan.stays,
            [
                "proxy is injected: its SidecarSet says its size, and a new pod gets it",
                "app keeps limits.cpu 1: the template has none, and one that is set can only be changed",
                "istio is not in the template: whoever added it says its size",
            ]
        );
        assert_eq!(
            plan.patch(),
            json!([
                {"op": "test", "path": "/metadata/uid", "value": "u-1"},
                {"op": "test", "path": "/spec/initContainers/1/name", "value": "vault"},
                {"op": "add", "path": "/spec/initContainers/1/resources/requests", "value": {"memory": "64Mi"}},
                {"op": "test", "path": "/spec/containers/1/name", "value": "app"},
                {"op": "add", "path": "/spec/containers/1/resources/requests",
                    "value": {"cpu": "0.1", "memory": "1Gi", "example.com/gpu": "1"}},
                {"op": "add", "path": "/spec/containers/1/resources/limits", "value": {"memory": "1Gi", "cpu": "1"}},
            ])
        );
    }

    #[test]
    fn a_pod_like_its_template_is_left_alone_however_amounts_are_written() {
        let mut pod = template();
        pod["metadata"] = json!({"name": "web-0", "uid": "u-1"});
        pod["spec"]["containers"][0]["resources"] =
            json!({"requests": {"cpu": "100m", "memory": "1024Mi"}, "limits": {"memory": "1Gi"}});
        let plan = plan(&pod, &template()).unwrap();
        assert_eq!((plan.changes, plan.stays), (Vec::new(), Vec::new()));
    }

    #[test]
    fn pods_that_end_are_left_alone() {
        let mut pod = sized();
        pod["status"]["phase"] = json!("Failed");
        assert_eq!(plan(&pod, &template()), None);
        let mut pod = sized();
        pod["metadata"]["deletionTimestamp"] = json!("2026-11-15T22:40:05Z");
        assert_eq!(plan(&pod, &template()), None);
    }
}
