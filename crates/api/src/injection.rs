//! Which revision new pods get, as it is stored: the proposals' form and OpenKruise's.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which revision new pods get.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InjectStrategy {
    /// True: new pods get nothing of this set. Running pods are updated all the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// Every new pod gets this revision. Not together with revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub controller_revision: Option<String>,
    /// New pods get this revision or the newest, in the proportion of updateStrategy.partition.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub revision: Option<String>,
    /// How the proportion is kept: Exact counts pods (default), Random draws and writes nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proportion: Option<Proportion>,
}

/// Which revision new pods get, in OpenKruise's form.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InjectionStrategy {
    /// True: new pods get nothing of this set. Running pods are updated all the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// The revision, and when it is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<InjectionRevision>,
    /// How the proportion of policy Partial is kept: Exact counts pods (default), Random draws and writes nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proportion: Option<Proportion>,
}

/// A revision, and when new pods get it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InjectionRevision {
    /// Name of a ControllerRevision of this set. Give this or customVersion.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub revision_name: Option<String>,
    /// The newest revision with this custom version. Give this or revisionName.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub custom_version: Option<String>,
    /// Always: every new pod gets it (default). Partial: in the proportion of updateStrategy.partition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<RevisionPolicy>,
}

/// Always: every new pod gets the revision (default). Partial: in the proportion of updateStrategy.partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RevisionPolicy {
    /// For every new pod.
    #[default]
    Always,
    /// In proportion.
    Partial,
}

/// How the proportion is kept: Exact counts pods (default), Random draws and writes nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Proportion {
    /// By counting.
    #[default]
    Exact,
    /// By drawing.
    Random,
}
