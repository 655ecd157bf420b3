//! What a set changes about a pod besides its containers, as it is stored.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A secret of the pod's namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LocalObjectReference {
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// Annotations to write on the pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PatchPodMetadata {
    /// The annotations.
    #[schemars(extend("minProperties" = 1, "maxProperties" = 64, "additionalProperties" = {"type": "string", "maxLength": 16384}))]
    pub annotations: BTreeMap<String, String>,
    /// For keys the pod has: Retain keeps the pod's value (default), Overwrite replaces it, MergePatchJson merges the two
    /// as JSON (RFC 7386).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch_policy: Option<PatchPolicy>,
}

/// For keys the pod has: Retain keeps the pod's value (default), Overwrite replaces it, MergePatchJson merges the two as
/// JSON (RFC 7386).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PatchPolicy {
    /// It stays.
    #[default]
    Retain,
    /// It is replaced.
    Overwrite,
    /// Both are JSON and are merged.
    MergePatchJson,
}

/// A volume of the set to mount into the pod's own containers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppVolumeMount {
    /// Which containers and native sidecars of the pod: a regular expression, not anchored, searched in their names.
    /// Default `.*`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub target_containers_name_regex: Option<String>,
    /// Name of a volume of this set.
    #[schemars(length(min = 1, max = 63))]
    pub volume: String,
    /// Where it appears in the containers. A container that has something mounted there is a clash.
    #[schemars(length(min = 1, max = 1024), regex(pattern = r"^/[^:]*$"))]
    pub path: String,
    /// Whether the containers may only read it. Default false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
}
