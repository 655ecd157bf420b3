//! Where a result is told.

use std::collections::BTreeMap;

/// Where a result is told. At least one of its places is given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Storage {
    /// The annotation of the pod that holds the state.
    pub annotation_key: Option<String>,
    /// The label of the pod that holds the state.
    pub label_key: Option<String>,
    /// The condition of the pod: True, False or Unknown, with the state as its message.
    pub condition_type: Option<String>,
    /// A field of another object.
    pub target: Option<Target>,
    /// What else is set on the pod in a state; keys that only other states list are removed.
    pub marker_policies: Vec<MarkerPolicy>,
    /// The gauge that shows the state, where it is a number.
    pub metric_name: Option<String>,
}

/// A field of another object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its API group; empty for the core.
    pub group: String,
    /// Its version.
    pub version: String,
    /// The plural.
    pub resource: String,
    /// Its namespace, which is the pod's.
    pub namespace: String,
    /// Its name, which is the pod's: the policies on agents allow no other.
    pub name: String,
    /// JSON pointer of the field; segments are keys, never positions.
    pub pointer: String,
}

/// What is set in a state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MarkerPolicy {
    /// The state it is for; `None` for every state that has none of its own.
    pub state: Option<String>,
    /// Labels of the pod.
    pub labels: BTreeMap<String, String>,
    /// Annotations of the pod.
    pub annotations: BTreeMap<String, String>,
    /// What is written at the target's pointer. Without it nothing is, in this state: a state is not a value.
    pub value: Option<String>,
}
