//! What the controller tells about a set.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the controller has seen and done.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SidecarSetStatus {
    /// The generation of the set this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Ready, Progressing, Stalled and FailOpen, each with its reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Option<Vec<Condition>>,
    /// Pods the set selects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matched_pods: Option<i32>,
    /// Pods that carry the sidecars of this set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub injected_pods: Option<i32>,
    /// Pods with the newest revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_pods: Option<i32>,
    /// Pods that carry the sidecars of this set and are ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready_pods: Option<i32>,
    /// Updated pods that are ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_ready_pods: Option<i32>,
    /// Pods created after the selector was observed that carry no sidecar of this set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missed_pods: Option<i32>,
    /// Pods that are older than the selector and carry no sidecar of this set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predating_pods: Option<i32>,
    /// Pods that follow only when they are created again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub needs_recreate_pods: Option<i32>,
    /// Pods whose record says why they were left out: they asked for it, injection was paused, or the set could not be
    /// applied and its failurePolicy is Ignore.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out_pods: Option<i32>,
    /// Since when pods of the present selector are expected to carry the sidecars. Pods created later are missed if they
    /// do not; older ones predate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector_observed_time: Option<Time>,
    /// What was observed at that time: the selector, the namespaces, and whether pods are changed, as a hash.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub selector_hash: Option<String>,
    /// What the last edit does to pods and workloads there are, were they created again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blast_radius: Option<BlastRadius>,
    /// Name of the newest revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub latest_revision: Option<String>,
    /// Pods per revision, the newest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub revisions: Option<Vec<RevisionStatus>>,
    /// What the numbers of the strategies come to for the pods there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effective: Option<EffectiveNumbers>,
    /// How often the name of a revision had to be changed because it was taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collision_count: Option<i32>,
}

/// Pods of one revision.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RevisionStatus {
    /// Name of the revision.
    #[schemars(length(max = 253))]
    pub name: String,
    /// Its custom version, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub custom_version: Option<String>,
    /// Pods with this revision.
    pub pods: i32,
    /// Those of them that are ready.
    pub ready_pods: i32,
}

/// What the numbers of the strategies come to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EffectiveNumbers {
    /// Pods that stay at the old revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition: Option<EffectiveNumber>,
    /// Pods that may be unavailable at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_unavailable: Option<EffectiveNumber>,
}

/// What a number or percentage comes to: 5% of 6 is 1.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EffectiveNumber {
    /// As it was written.
    #[schemars(extend("maxLength" = 8))]
    pub given: IntOrString,
    /// Of so many pods.
    pub of: i32,
    /// The absolute number.
    pub is: i32,
}

/// What an edit does to pods and workloads there are, were they created again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlastRadius {
    /// The generation of the set the edit made.
    pub generation: i64,
    /// Of pods.
    pub pods: BlastCounts,
    /// Of templates of Deployments, StatefulSets, DaemonSets, Jobs and CronJobs.
    pub templates: BlastCounts,
    /// Some of them by name, those that would be refused first.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "atomic"))]
    pub examples: Option<Vec<BlastExample>>,
}

/// How many an edit concerns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlastCounts {
    /// How many were looked at: those the set selects, or selected before.
    pub checked: i32,
    /// How many would come out otherwise than before the edit.
    pub would_change: i32,
    /// How many would be refused.
    pub would_be_refused: i32,
}

/// One that an edit concerns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlastExample {
    /// Its kind, such as Deployment.
    #[schemars(length(max = 63))]
    pub kind: String,
    /// Its namespace.
    #[schemars(length(max = 63))]
    pub namespace: String,
    /// Its name.
    #[schemars(length(max = 253))]
    pub name: String,
    /// What would become of it, with the reason code where it would be refused.
    #[schemars(length(max = 320))]
    pub effect: String,
}
