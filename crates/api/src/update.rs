//! How running pods follow a change of the set, as it is stored.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::selector::LabelSelector;

/// How running pods follow a change of the set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdateStrategy {
    /// RollingUpdate (default), or NotUpdate: running pods stay as they are.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<UpdateType>,
    /// True: no further pod is updated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// Only pods with these labels are updated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
    /// How many pods stay at the old revision: a number, or a percentage, rounded up. Default 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maxLength" = 8))]
    pub partition: Option<IntOrString>,
    /// How many pods may be unavailable at a time: a number, or a percentage, rounded up. Default 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maxLength" = 8))]
    pub max_unavailable: Option<IntOrString>,
    /// Which pods are updated first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority_strategy: Option<PriorityStrategy>,
    /// Pods with these labels are spread over the whole update.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key", "value"]))]
    pub scatter_strategy: Option<Vec<ScatterTerm>>,
    /// Whether the first pod is updated alone, and the others follow when it runs and is ready. Default true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe: Option<bool>,
    /// Whether changed resources are given to running containers, without a restart. Default false: pods get them when
    /// they are created again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resize: Option<bool>,
    /// How long the first pod must run before others follow, and a container with a startup probe must be ready before it
    /// counts as updated. Default 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 3600))]
    pub settle_seconds: Option<i32>,
    /// When the update stops by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health_gate: Option<HealthGate>,
}

/// When the update stops by itself: when updated pods crash, or stay unready.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HealthGate {
    /// From how many of them: a number, or a percentage of all pods, rounded up. Default 1%.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maxLength" = 8))]
    pub max_unhealthy: Option<IntOrString>,
    /// True: they get the revision back that they had. Default false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollback: Option<bool>,
}

/// RollingUpdate (default), or NotUpdate: running pods stay as they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum UpdateType {
    /// They do, a few at a time.
    #[default]
    RollingUpdate,
    /// They do not.
    NotUpdate,
}

/// Which pods are updated first: by weight or by order, not both.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PriorityStrategy {
    /// Pods with a larger sum of weights first.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "atomic"))]
    pub weight_priority: Option<Vec<WeightTerm>>,
    /// Pods with a larger number in these labels first.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "atomic"))]
    pub order_priority: Option<Vec<OrderTerm>>,
}

/// The weight of pods with certain labels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WeightTerm {
    /// From 0 to 100.
    #[schemars(range(min = 0, max = 100))]
    pub weight: i32,
    /// The pods.
    pub match_selector: LabelSelector,
}

/// A label whose value ends in a number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OrderTerm {
    /// The label.
    #[schemars(length(min = 1, max = 317))]
    pub ordered_key: String,
}

/// A label to spread pods by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScatterTerm {
    /// The label.
    #[schemars(length(min = 1, max = 317))]
    pub key: String,
    /// Its value; `*` for every value there is.
    #[schemars(length(max = 63))]
    pub value: String,
}
