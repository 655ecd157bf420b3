//! The writes to running pods, as values.

use std::fmt;

use pillion_api::REVISIONS;
use serde_json::{Value, json};

/// What is to be written, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// The writes. They concern different pods, so they can be made at the same time.
    pub actions: Vec<Action>,
}

/// One write to one pod.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// The pod gets the newest revision.
    Update(PodUpdate),
    /// The pod is not well with the newest revision and gets the one back that it had.
    Restore(PodUpdate),
}

/// A running pod gets another revision.
#[derive(Clone, Debug, PartialEq)]
pub struct PodUpdate {
    /// Namespace of the pod.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid: another pod of the same name is left alone.
    pub uid: String,
    /// The set.
    pub set: String,
    /// The revision.
    pub to: String,
    /// Containers that get another image, which restarts them.
    pub images: Vec<ImageChange>,
    /// Containers that get other resources, without a restart.
    pub resources: Vec<ResourceChange>,
    /// The annotation with the pod's revisions as it is now; `None` where there is none.
    pub record_before: Option<String>,
    /// As it will be.
    pub record_after: String,
    /// What makes a pod ours that another injector made.
    pub adoption: Option<Adoption>,
}

/// Another image for a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageChange {
    /// The list the container is in.
    pub list: List,
    /// Its place there.
    pub index: u16,
    /// Its name.
    pub name: String,
    /// The image it has.
    pub from: String,
    /// The image it gets.
    pub to: String,
}

/// Other resources for a container.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceChange {
    /// The list the container is in.
    pub list: List,
    /// Its place there.
    pub index: u16,
    /// Its name.
    pub name: String,
    /// The resources it has; `None` where it has none.
    pub from: Option<Value>,
    /// The resources it gets.
    pub to: Value,
}

/// The marks a pod gets that another injector made, with the first write of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adoption {
    /// All containers that were injected, in the order of the pod. The fence of the controller wants exactly those.
    pub containers: Vec<String>,
}

/// A list of containers in a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum List {
    /// `spec.initContainers`
    Init,
    /// `spec.containers`
    Main,
}

impl List {
    /// The field of a pod's spec.
    pub const fn field(self) -> &'static str {
        match self {
            Self::Init => "initContainers",
            Self::Main => "containers",
        }
    }
}

impl Plan {
    /// Whether nothing is to be written.
    pub fn is_empty(&self) -> bool {
        self.actions.is_empty()
    }
}

impl Action {
    /// What is written.
    pub fn update(&self) -> &PodUpdate {
        match self {
            Self::Update(update) | Self::Restore(update) => update,
        }
    }
}

impl PodUpdate {
    /// The JSON patch of the pod. It changes nothing if the pod is another one, or no longer what the plan was made from.
    ///
    /// That a pod without a record still has none cannot be tested; the test of the images it has stands in for it.
    pub fn patch(&self) -> Value {
        let mut operations = self.preconditions();
        for change in &self.images {
            let container = pointer(change.list, change.index);
            operations.push(json!({"op": "test", "path": format!("{container}/name"), "value": change.name}));
            operations.push(json!({"op": "test", "path": format!("{container}/image"), "value": change.from}));
            operations.push(json!({"op": "replace", "path": format!("{container}/image"), "value": change.to}));
        }
        operations.push(json!({"op": "add", "path": annotation_path(REVISIONS), "value": self.record_after}));
        if let Some(adoption) = &self.adoption {
            let containers = adoption.containers.join(",");
            operations
                .push(json!({"op": "add", "path": annotation_path("pillion.dev/containers"), "value": containers}));
            operations.push(json!({"op": "add", "path": "/metadata/labels/pillion.dev~1injected", "value": "true"}));
        }
        operations.into()
    }

    /// The JSON patch of the pod's subresource `resize`, to be made before [`Self::patch`]: the other way round, a manager
    /// that ends in between would leave a record of what was never done. The subresource keeps nothing but resources.
    pub fn resize(&self) -> Option<Value> {
        if self.resources.is_empty() {
            return None;
        }
        let mut operations = self.preconditions();
        for change in &self.resources {
            let container = pointer(change.list, change.index);
            operations.push(json!({"op": "test", "path": format!("{container}/name"), "value": change.name}));
            operations.push(json!({"op": "add", "path": format!("{container}/resources"), "value": change.to}));
        }
        Some(operations.into())
    }

    fn preconditions(&self) -> Vec<Value> {
        let mut operations = vec![json!({"op": "test", "path": "/metadata/uid", "value": self.uid})];
        if let Some(record) = &self.record_before {
            operations.push(json!({"op": "test", "path": annotation_path(REVISIONS), "value": record}));
        }
        operations
    }
}

fn pointer(list: List, index: u16) -> String {
    format!("/spec/{}/{index}", list.field())
}

/// The place of an annotation in a JSON patch.
pub fn annotation_path(key: &str) -> String {
    format!("/metadata/annotations/{}", key.replace('/', "~1"))
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("nothing to write");
        }
        for (at, action) in self.actions.iter().enumerate() {
            if at > 0 {
                f.write_str("\n")?;
            }
            action.fmt(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (verb, update) = match self {
            Self::Update(update) => ("update", update),
            Self::Restore(update) => ("restore", update),
        };
        write!(f, "{verb} pod {}/{} of set {} to {}", update.namespace, update.name, update.set, update.to)?;
        let mut separator = ": ";
        for change in &update.images {
            write!(f, "{separator}image of {} from {} to {}", change.name, change.from, change.to)?;
            separator = ", ";
        }
        for change in &update.resources {
            write!(f, "{separator}resources of {} to {}", change.name, change.to)?;
            separator = ", ";
        }
        if let Some(adoption) = &update.adoption {
            write!(f, "{separator}adopted with {}", adoption.containers.join(","))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
