//! One object with `sidecar: true` in its pods as one that Kubernetes takes.

use pillion_inject::marks;
use serde_json::{Map, Value, json};

/// What is to be done to every object.
pub(super) struct Conversion<'a> {
    /// Whether sidecars become init containers.
    pub(super) is_native: bool,
    /// Whether the agent ends them.
    pub(super) is_wrap: bool,
    /// Containers that are sidecars whatever is written.
    pub(super) sidecars: &'a [String],
    /// Commands for containers that have none.
    pub(super) entrypoints: &'a [(String, Vec<String>)],
    /// Containers of those names that were found.
    pub(super) found: Vec<String>,
}

/// Whether an object was changed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// It was not.
    None,
    /// It was; this is what it is called.
    Some(String),
}

/// What a Job has of its controller, which no new Job may have.
const OF_JOB_CONTROLLER: [&str; 4] =
    ["controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"];
/// What only the API server writes.
const OF_API_SERVER: [&str; 6] =
    ["creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid"];

impl Conversion<'_> {
    /// Converts an object, and all objects of a list.
    pub(super) fn object(&mut self, object: &mut Value) -> Result<Change, String> {
        let kind = object["kind"].as_str().unwrap_or_default().to_owned();
        if kind.ends_with("List")
            && let Some(items) = object.get_mut("items").and_then(Value::as_array_mut)
        {
            let mut changed = Change::None;
            for item in items {
                if self.object(item)? != Change::None {
                    changed = Change::Some(kind.clone());
                }
            }
            return Ok(changed);
        }
        let place = match kind.as_str() {
            "Pod" => "",
            "Deployment"
            | "StatefulSet"
            | "DaemonSet"
            | "ReplicaSet"
            | "ReplicationController"
            | "Job"
            | "CloneSet" => "/spec/template",
            "CronJob" => "/spec/jobTemplate/spec/template",
            "PodTemplate" => "/template",
            _ => return Ok(Change::None),
        };
        let name = ["name", "generateName"].iter().find_map(|field| object["metadata"][*field].as_str());
        let title = format!("{kind} {}", name.unwrap_or_default()).trim_end().to_owned();
        let Some(pod) = object.pointer_mut(place).filter(|pod| pod.is_object()) else { return Ok(Change::None) };
        let is_changed = self.pod(pod).map_err(|what| format!("{title}: {what}"))?;
        if !is_changed {
            return Ok(Change::None);
        }
        as_written(object, &kind);
        Ok(Change::Some(title))
    }

    /// A name that was asked for and is nowhere.
    pub(super) fn missing(&self) -> Option<&str> {
        let asked = self.sidecars.iter().chain(self.entrypoints.iter().map(|(name, _)| name));
        asked.map(String::as_str).find(|name| !self.found.iter().any(|found| found == name))
    }

    fn pod(&mut self, pod: &mut Value) -> Result<bool, String> {
        let mut is_changed = false;
        for container in list(&mut pod["spec"], "initContainers") {
            if take_mark(container)? == Some(true) {
                let name = container["name"].as_str().unwrap_or_default();
                return Err(format!(
                    "init container {name} has sidecar: true: write restartPolicy: Always instead, which makes it a sidecar"
                ));
            }
        }
        let mut marked = Vec::new();
        for container in list(&mut pod["spec"], "containers") {
            let mark = take_mark(container)?;
            is_changed |= mark.is_some();
            let name = container["name"].as_str().unwrap_or_default().to_owned();
            is_changed |= self.give_command(container, &name);
            if mark == Some(true) || self.sidecars.contains(&name) {
                self.found.push(name.clone());
                marked.push(name);
            }
        }
        if marked.is_empty() {
            return Ok(is_changed);
        }
        if list(&mut pod["spec"], "containers").len() == marked.len() {
            return Err("all containers are sidecars: leave the mark off the one that does the work".to_owned());
        }
        if self.is_native {
            move_to_init(&mut pod["spec"], &marked)?;
        } else {
            annotate(pod, &marked, self.is_wrap);
        }
        Ok(true)
    }

    fn give_command(&mut self, container: &mut Value, name: &str) -> bool {
        let Some((_, command)) = self.entrypoints.iter().find(|(own, _)| own == name) else { return false };
        self.found.push(name.to_owned());
        let has_command = container["command"].as_array().is_some_and(|command| !command.is_empty());
        if !has_command {
            container["command"] = json!(command);
        }
        !has_command
    }
}

fn list<'a>(spec: &'a mut Value, field: &str) -> &'a mut [Value] {
    spec.get_mut(field).and_then(Value::as_array_mut).map_or(&mut [], Vec::as_mut_slice)
}

/// Takes `sidecar` out of a container; what it said.
fn take_mark(container: &mut Value) -> Result<Option<bool>, String> {
    let name = container["name"].as_str().unwrap_or_default().to_owned();
    let Some(mark) = container.as_object_mut().and_then(|fields| fields.remove("sidecar")) else { return Ok(None) };
    mark.as_bool().map(Some).ok_or_else(|| format!("container {name} has sidecar: {mark}: write true or false"))
}

/// Moves containers behind the init containers; nothing else of them changes.
fn move_to_init(spec: &mut Value, names: &[String]) -> Result<(), String> {
    let Some(containers) = spec["containers"].as_array_mut() else { return Ok(()) };
    let mut moved = Vec::new();
    for name in names {
        let Some(at) = containers.iter().position(|container| container["name"] == name.as_str()) else { continue };
        let mut container = containers.remove(at);
        if let Some(policy) = container["restartPolicy"].as_str().filter(|policy| *policy != "Always") {
            return Err(format!(
                "container {name} has restartPolicy {policy}: remove it, a native sidecar is always restarted"
            ));
        }
        if container["restartPolicyRules"].as_array().is_some_and(|rules| !rules.is_empty()) {
            return Err(format!(
                "container {name} has restartPolicyRules: remove them, a native sidecar is always restarted"
            ));
        }
        container["restartPolicy"] = json!("Always");
        moved.push(container);
    }
    if !spec["initContainers"].is_array() {
        spec["initContainers"] = json!([]);
    }
    if let Some(init) = spec["initContainers"].as_array_mut() {
        init.extend(moved);
    }
    Ok(())
}

/// Names the sidecars on the pod, beside those that are named there.
fn annotate(pod: &mut Value, names: &[String], is_wrap: bool) {
    if !pod["metadata"]["annotations"].is_object() {
        pod["metadata"]["annotations"] = Value::Object(Map::new());
    }
    let annotations = &mut pod["metadata"]["annotations"];
    let there = annotations[marks::SIDECARS].as_str().unwrap_or_default().to_owned();
    let mut all: Vec<&str> = there.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    for name in names {
        if !all.contains(&name.as_str()) {
            all.push(name);
        }
    }
    annotations[marks::SIDECARS] = json!(all.join(","));
    if is_wrap {
        annotations[marks::FINISH_MODE] = json!("Wrap");
    }
}

/// An object that a cluster gave becomes one that can be created.
fn as_written(object: &mut Value, kind: &str) {
    let is_of_cluster = object["metadata"].get("uid").is_some();
    if !is_of_cluster {
        return;
    }
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.retain(|key, _| !OF_API_SERVER.contains(&key.as_str()));
    }
    if kind != "Job" {
        return;
    }
    // A Job chooses its pods by the uid that its controller gives it.
    if let Some(spec) = object["spec"].as_object_mut() {
        spec.remove("selector");
    }
    for place in ["/metadata/labels", "/spec/template/metadata/labels"] {
        if let Some(labels) = object.pointer_mut(place).and_then(Value::as_object_mut) {
            labels.retain(|key, _| !OF_JOB_CONTROLLER.contains(&key.as_str()));
        }
    }
}
