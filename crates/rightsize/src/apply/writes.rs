//! The writes of sizing to running pods, as values.

use std::fmt;

use jiff::Timestamp;
use pillion_plan::List;
use pillion_quantity::Resource;
use serde_json::{Map, Value, json};

use super::held::{ContainerKind, ContainerResources};
use super::sized::{BOOST_PREFIX, IN_PLACE, SIZED, SizedPod};
use crate::amounts::Amounts;

/// Pod annotation with the time we resized it last: how long it has been as it is counts from there.
pub const RESIZED_AT: &str = "pillion.dev/resized-at";

/// One write to one pod.
#[derive(Clone, Debug, PartialEq)]
pub enum SizeAction {
    /// Some containers get other resources in place.
    Resize(PodResize),
    /// Some containers lose the cpu they had for their start, in place.
    Unboost(PodResize),
    /// The pod is evicted, so that one comes in its place that is sized when it is created.
    Evict(PodEviction),
}

/// Containers of a running pod get other resources.
#[derive(Clone, Debug, PartialEq)]
pub struct PodResize {
    /// Namespace of the pod.
    pub namespace: Box<str>,
    /// Its name.
    pub name: Box<str>,
    /// Its uid: another pod of the same name is left alone.
    pub uid: Box<str>,
    /// The uid of the object that makes it anew.
    pub owner: Option<Box<str>>,
    /// The `VerticalPodAutoscaler`.
    pub autoscaler: Box<str>,
    /// The containers that get something else; the others are not touched.
    pub changes: Vec<SizeChange>,
    /// Whether some of them are restarted by it.
    pub is_disruptive: bool,
    /// Containers whose start is over.
    pub unboosted: Vec<Box<str>>,
    /// When it was planned.
    pub at: Timestamp,
    /// What the pod says we gave its containers, afterwards.
    pub sized: SizedPod,
}

/// Other resources for a container.
#[derive(Clone, Debug, PartialEq)]
pub struct SizeChange {
    /// The list the container is in.
    pub list: List,
    /// Its place there.
    pub index: u16,
    /// Its name.
    pub name: Box<str>,
    /// What it is there.
    pub kind: ContainerKind,
    /// What the pod says it has.
    pub from: ContainerResources,
    /// What it gets; everything it will have of cpu and memory.
    pub to: ContainerResources,
    /// Whether the pod has requests of it, of whatever resource.
    pub has_requests: bool,
    /// Whether the pod has limits of it, of whatever resource.
    pub has_limits: bool,
}

/// A pod is evicted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodEviction {
    /// Namespace of the pod.
    pub namespace: Box<str>,
    /// Its name.
    pub name: Box<str>,
    /// Its uid: another pod of the same name is left alone.
    pub uid: Box<str>,
    /// The uid of the object that makes it anew.
    pub owner: Option<Box<str>>,
    /// Why, in words.
    pub why: String,
    /// The requests of the containers for whose sake it is evicted: one that comes with them again was not sized.
    pub had: Vec<(Box<str>, Amounts)>,
}

impl SizeAction {
    /// The uid of the pod.
    pub fn uid(&self) -> &str {
        match self {
            Self::Resize(resize) | Self::Unboost(resize) => &resize.uid,
            Self::Evict(eviction) => &eviction.uid,
        }
    }

    /// The resize, if it is one.
    pub const fn resize(&self) -> Option<&PodResize> {
        match self {
            Self::Resize(resize) | Self::Unboost(resize) => Some(resize),
            Self::Evict(_) => None,
        }
    }
}

impl SizeChange {
    /// The amounts that change: the side, the resource and what it becomes.
    pub fn amounts(&self) -> impl Iterator<Item = (&'static str, Resource, i64)> + use<> {
        let sides = [("requests", self.from.requests, self.to.requests), ("limits", self.from.limits, self.to.limits)];
        sides.into_iter().flat_map(|(side, from, to)| {
            let changed = to.iter().filter(move |(resource, amount)| from.get(*resource) != Some(*amount));
            changed.map(move |(resource, amount)| (side, resource, amount))
        })
    }
}

impl PodResize {
    /// The JSON patch of the pod's subresource `resize`. It changes nothing if the pod or a container is another one, and
    /// leaves other resources than cpu and memory alone.
    pub fn patch(&self) -> Value {
        let mut operations = vec![json!({"op": "test", "path": "/metadata/uid", "value": self.uid})];
        for change in &self.changes {
            let container = format!("/spec/{}/{}", change.list.field(), change.index);
            operations.push(json!({"op": "test", "path": format!("{container}/name"), "value": change.name}));
            for (side, is_there) in [("requests", change.has_requests), ("limits", change.has_limits)] {
                let amounts = change.amounts().filter(|(own, ..)| *own == side);
                let amounts = amounts.map(|(_, resource, amount)| (resource.name(), Amounts::write(resource, amount)));
                let list = format!("{container}/resources/{side}");
                if is_there {
                    let add = |(name, text)| json!({"op": "add", "path": format!("{list}/{name}"), "value": text});
                    operations.extend(amounts.map(add));
                    continue;
                }
                let all: Map<String, Value> = amounts.map(|(name, text)| (name.to_owned(), text.into())).collect();
                if !all.is_empty() {
                    operations.push(json!({"op": "add", "path": list, "value": all}));
                }
            }
        }
        operations.into()
    }

    /// The merge patch of the pod's annotations, to be made after [`Self::patch`]. The API server refuses it for a pod
    /// with another uid.
    pub fn marks(&self) -> Value {
        let mut annotations = Map::new();
        for container in &self.unboosted {
            annotations.insert(format!("{BOOST_PREFIX}{container}"), Value::Null);
        }
        annotations.insert(IN_PLACE.to_owned(), "true".into());
        annotations.insert(RESIZED_AT.to_owned(), self.at.to_string().into());
        annotations.insert(SIZED.to_owned(), self.sized.write().into());
        json!({"metadata": {"uid": self.uid, "annotations": annotations}})
    }
}

impl PodEviction {
    /// The object to create at the pod's subresource `eviction`.
    pub fn object(&self) -> Value {
        json!({
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"namespace": self.namespace, "name": self.name},
            "deleteOptions": {"preconditions": {"uid": self.uid}},
        })
    }
}

impl fmt::Display for SizeAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (verb, resize) = match self {
            Self::Evict(own) => return write!(f, "evict pod {}/{}: {}", own.namespace, own.name, own.why),
            Self::Resize(resize) => ("resize", resize),
            Self::Unboost(resize) => ("end the boost of", resize),
        };
        write!(f, "{verb} pod {}/{}", resize.namespace, resize.name)?;
        let mut separator = ": ";
        for change in &resize.changes {
            for (side, resource, amount) in change.amounts() {
                let side = side.trim_end_matches('s');
                write!(f, "{separator}{resource} {side} of {} to {}", change.name, Amounts::write(resource, amount))?;
                separator = ", ";
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
