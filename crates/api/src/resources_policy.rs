//! `resourcesPolicy` as it is stored, in both spellings.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Resources computed, when a pod is created, from those of the pod's own containers. `pillion expr` shows what an
/// expression gives.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourcesPolicy {
    /// How several target containers become one amount: sum or max. Required. Also accepted as targetContainersMode.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("enum" = ["sum", "max"]))]
    pub target_container_mode: Option<TargetMode>,
    /// OpenKruise's spelling of targetContainerMode. Give one of the two.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("enum" = ["sum", "max"]))]
    pub target_containers_mode: Option<TargetMode>,
    /// Which containers and native sidecars of the pod are targets: a regular expression, not anchored, searched in
    /// their names. Default `.*`. Injected containers and plain init containers never are. A pod without a target is
    /// refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub target_containers_name_regex: Option<String>,
    /// The expressions. Required. Also accepted as resourcesExpr.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_expr: Option<ResourceExpr>,
    /// OpenKruise's spelling of resourceExpr. Give one of the two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources_expr: Option<ResourceExpr>,
}

/// How several containers become one amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum TargetMode {
    /// All together.
    Sum,
    /// The largest.
    Max,
}

/// Expressions such as `max(cpu*50%, 50m)`, by resource: cpu and memory, no others. Each knows one variable, its own
/// resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceExpr {
    /// Keys cpu and memory. The variable is the targets' limits; a target without one makes it unlimited. No expression,
    /// or an unlimited result: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maxProperties" = 8, "additionalProperties" = {"type": "string", "maxLength": 4096}))]
    pub limits: Option<BTreeMap<String, String>>,
    /// Keys cpu and memory. The variable is the targets' requests; a target without one counts as 0. No expression: 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maxProperties" = 8, "additionalProperties" = {"type": "string", "maxLength": 4096}))]
    pub requests: Option<BTreeMap<String, String>>,
}
