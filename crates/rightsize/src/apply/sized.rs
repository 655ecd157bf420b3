//! What we gave a pod's containers when it was admitted, kept on the pod.
//!
//! Two questions need it. A review that the API server repeats must change nothing: a container that has what we gave it
//! is left alone, whatever is recommended by then. And a running pod whose container has something else was changed by
//! someone after us.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::held::ContainerResources;

/// Pod annotation with what we gave its containers.
pub const SIZED: &str = "pillion.dev/sized";
/// Pod annotation with what was done, in words.
pub(crate) const UPDATES: &str = "vpaUpdates";
/// Pod annotation with the containers that were there at admission.
pub(crate) const OBSERVED: &str = "vpaObservedContainers";
/// Pod annotation with what a container had before it got more cpu for its start; the name of the container follows.
pub(crate) const BOOST_PREFIX: &str = "vpaCpuStartupBoost/";
/// Pod annotation of a pod that was resized.
pub(crate) const IN_PLACE: &str = "vpaInPlaceUpdated";
/// Pod annotation of the copy of a static pod.
pub(crate) const MIRROR: &str = "kubernetes.io/config.mirror";

/// What we gave a pod's containers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SizedPod {
    /// The `VerticalPodAutoscaler`.
    pub by: Box<str>,
    /// The uid of the pod, where it had one by then: another pod with a copy of the annotation is none of ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<Box<str>>,
    /// By the name of the container.
    pub containers: BTreeMap<Box<str>, SizedContainer>,
}

/// What we gave a container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SizedContainer {
    /// As `resources` of the container; cpu and memory only.
    #[serde(with = "resources")]
    pub gave: ContainerResources,
    /// In words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Box<str>>,
}

impl SizedPod {
    /// Reads the annotation; `None` where it is not of ours.
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// As an annotation.
    pub fn write(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Whether a container has what we gave it.
    pub fn holds(&self, container: &str, has: ContainerResources) -> bool {
        self.containers.get(container).is_some_and(|own| own.gave == has)
    }
}

mod resources {
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    use super::{ContainerResources, Value};

    pub(super) fn serialize<S: Serializer>(resources: &ContainerResources, serializer: S) -> Result<S::Ok, S::Error> {
        resources.to_json().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ContainerResources, D::Error> {
        Ok(ContainerResources::read(Some(&Value::deserialize(deserializer)?)))
    }
}
