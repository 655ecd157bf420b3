//! The objects of right-sizing, as upstream's Vertical Pod Autoscaler has them: whoever has objects of it keeps them.
//!
//! Words that are one of a few are text here and lists of words in the schema: one object with a word of a later version
//! must not hide all the others from a watch.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, CustomResourceExt as _};
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};

use crate::crd::tighten;

/// Amounts by the name of the resource.
pub type ResourceList = BTreeMap<String, Quantity>;

/// How the pods of a workload are sized.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "autoscaling.k8s.io",
    version = "v1",
    kind = "VerticalPodAutoscaler",
    plural = "verticalpodautoscalers",
    shortname = "vpa",
    namespaced,
    status = "VerticalPodAutoscalerStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "A VerticalPodAutoscaler sizes the containers of a workload's pods by what they use.",
    printcolumn = r#"{"name":"Mode","type":"string","jsonPath":".spec.updatePolicy.updateMode"}"#,
    printcolumn = r#"{"name":"CPU","type":"string","jsonPath":".status.recommendation.containerRecommendations[0].target.cpu"}"#,
    printcolumn = r#"{"name":"Mem","type":"string","jsonPath":".status.recommendation.containerRecommendations[0].target.memory"}"#,
    printcolumn = r#"{"name":"Provided","type":"string","jsonPath":".status.conditions[?(@.type==\"RecommendationProvided\")].status"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name":"MinReplicas","type":"integer","jsonPath":".spec.updatePolicy.minReplicas","priority":1}"#,
    printcolumn = r#"{"name":"OOMSeconds","type":"integer","jsonPath":".spec.updatePolicy.evictAfterOOMSeconds","priority":1}"#
)]
#[serde(rename_all = "camelCase")]
pub struct VerticalPodAutoscalerSpec {
    /// The object whose pods are sized: a Deployment, StatefulSet, DaemonSet, ReplicaSet, ReplicationController, Job or CronJob, or any object with a scale subresource.
    pub target_ref: TargetReference,
    /// When and how pods change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_policy: Option<PodUpdatePolicy>,
    /// Bounds and exceptions for single containers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_policy: Option<PodResourcePolicy>,
    /// Who recommends. At most one; without it, the recommender named default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recommenders: Option<Vec<RecommenderSelector>>,
    /// More cpu while pods start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub startup_boost: Option<StartupBoost>,
}

/// An object in the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct TargetReference {
    /// Its group and version, as apps/v1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// Its kind, as Deployment.
    pub kind: String,
    /// Its name.
    pub name: String,
}

/// When and how pods change.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodUpdatePolicy {
    /// Off: only recommend. Initial: size pods when they are created. Recreate (default): also evict pods that are far off. InPlaceOrRecreate: resize them in place, and evict where that is not possible. InPlace: resize and never evict. Auto means Recreate and is deprecated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["Off", "Initial", "Recreate", "InPlaceOrRecreate", "InPlace", "Auto"]))]
    pub update_mode: Option<String>,
    /// How many pods a workload must have before one of them is disrupted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_replicas: Option<i32>,
    /// What must hold before a pod is evicted; all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eviction_requirements: Option<Vec<EvictionRequirement>>,
    /// How soon after its start a container must be ended for want of memory to count as a quick one.
    #[serde(rename = "evictAfterOOMSeconds", default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub evict_after_oom_seconds: Option<i32>,
}

/// What must hold before a pod is evicted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EvictionRequirement {
    /// For at least one of these resources.
    pub resources: Vec<String>,
    /// Whether the target is above or below the requests.
    #[schemars(extend("enum" = ["TargetHigherThanRequests", "TargetLowerThanRequests"]))]
    pub change_requirement: String,
}

/// Bounds and exceptions for single containers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodResourcePolicy {
    /// One for each container; the name * is for all that have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_policies: Option<Vec<ContainerResourcePolicy>>,
}

/// Bounds and exceptions for one container.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContainerResourcePolicy {
    /// The container, or * for all without a policy of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_name: Option<String>,
    /// Auto (default), or Off: neither recommended for nor changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["Auto", "Off"]))]
    pub mode: Option<String>,
    /// Never recommend less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "amounts")]
    pub min_allowed: Option<ResourceList>,
    /// Never recommend more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "amounts")]
    pub max_allowed: Option<ResourceList>,
    /// Which resources are sized; cpu and memory where none are named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controlled_resources: Option<Vec<String>>,
    /// RequestsAndLimits (default): limits follow in proportion. RequestsOnly: limits stay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["RequestsAndLimits", "RequestsOnly"]))]
    pub controlled_values: Option<String>,
    /// More cpu while the container starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub startup_boost: Option<StartupBoost>,
    /// Not supported here: the installation has one for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "amount")]
    pub oom_bump_up_ratio: Option<Quantity>,
    /// Not supported here: the installation has one for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "amount")]
    pub oom_min_bump_up: Option<Quantity>,
    /// Not supported here: the installation has one for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub memory_aggregation_interval_seconds: Option<i32>,
    /// Not supported here: the installation has one for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub memory_aggregation_interval_count: Option<i64>,
}

/// More while something starts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StartupBoost {
    /// More cpu.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<CpuBoost>,
}

/// More cpu while something starts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CpuBoost {
    /// Factor: so many times as much. Quantity: so much more.
    #[serde(rename = "type")]
    #[schemars(extend("enum" = ["Factor", "Quantity"]))]
    pub kind: String,
    /// How many times as much; from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub factor: Option<i32>,
    /// How much more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "amount")]
    pub quantity: Option<Quantity>,
    /// How long it lasts after the pod is ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub duration_seconds: Option<i32>,
}

/// Who recommends.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecommenderSelector {
    /// Its name.
    pub name: String,
}

/// What is recommended, and how it stands.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VerticalPodAutoscalerStatus {
    /// What is recommended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recommendation: Option<RecommendedPodResources>,
    /// How it stands, by type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<AutoscalerCondition>>")]
    pub conditions: Option<Vec<AutoscalerCondition>>,
    /// The generation of the object this status is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// What is recommended for the containers of a pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecommendedPodResources {
    /// In the order of their names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_recommendations: Option<Vec<RecommendedContainerResources>>,
}

/// What is recommended for a container.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecommendedContainerResources {
    /// The container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_name: Option<String>,
    /// What it should ask for.
    #[schemars(schema_with = "amounts")]
    pub target: ResourceList,
    /// A pod that asks for less is changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "amounts")]
    pub lower_bound: Option<ResourceList>,
    /// A pod that asks for more is changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "amounts")]
    pub upper_bound: Option<ResourceList>,
    /// The target before bounds of the policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "amounts")]
    pub uncapped_target: Option<ResourceList>,
}

/// How something stands. Of a condition of other objects it differs in that only type and status must be there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AutoscalerCondition {
    /// What it is about.
    #[serde(rename = "type")]
    pub kind: String,
    /// True, False or Unknown.
    pub status: String,
    /// Since when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
    /// Why, in one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The same in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The generation it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

impl From<Condition> for AutoscalerCondition {
    fn from(condition: Condition) -> Self {
        Self {
            kind: condition.type_,
            status: condition.status,
            last_transition_time: Some(condition.last_transition_time),
            reason: Some(condition.reason),
            message: Some(condition.message),
            observed_generation: condition.observed_generation,
        }
    }
}

/// What was learned of one container of a workload, kept for a restart.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "autoscaling.k8s.io",
    version = "v1",
    kind = "VerticalPodAutoscalerCheckpoint",
    plural = "verticalpodautoscalercheckpoints",
    shortname = "vpacheckpoint",
    namespaced,
    derive = "PartialEq",
    derive = "Default",
    doc = "A VerticalPodAutoscalerCheckpoint keeps what was learned of one container of a workload."
)]
#[serde(rename_all = "camelCase")]
pub struct VerticalPodAutoscalerCheckpointSpec {
    /// The VerticalPodAutoscaler, in the same namespace.
    #[serde(rename = "vpaObjectName", default, skip_serializing_if = "Option::is_none")]
    pub vpa_object_name: Option<String>,
    /// The container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_name: Option<String>,
}

/// What was learned, as the field `status` of a checkpoint has it. The definition has no subresource for it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VerticalPodAutoscalerCheckpointStatus {
    /// When it was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_update_time: Option<Time>,
    /// The form of the rest; v3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// What cpu was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_histogram: Option<HistogramCheckpoint>,
    /// Peaks of memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_histogram: Option<HistogramCheckpoint>,
    /// When the first sample was taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_sample_start: Option<Time>,
    /// When the last one was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_sample_start: Option<Time>,
    /// How many samples of cpu there were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_samples_count: Option<i64>,
}

/// A histogram as it is kept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HistogramCheckpoint {
    /// When a sample has the weight 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference_timestamp: Option<Time>,
    /// Weights by the number of the bucket, the largest being 10000.
    #[serde(default, deserialize_with = "by_number", skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "AnyObject")]
    pub bucket_weights: BTreeMap<u32, u32>,
    /// What all weights come to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_weight: Option<f64>,
}

#[derive(JsonSchema)]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
struct AnyObject {}

/// The schema of a quantity.
fn amount(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",
        "x-kubernetes-int-or-string": true,
    })
}

/// The schema of amounts by resource.
fn amounts(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let value = amount(generator);
    schemars::json_schema!({"type": "object", "additionalProperties": value})
}

/// The definition of VerticalPodAutoscaler, ready to be applied. One that is there already is used and never replaced.
pub fn vertical_pod_autoscaler_crd() -> Value {
    let mut crd = definition(serde_json::to_value(VerticalPodAutoscaler::crd()).unwrap_or_default());
    if let Some(schema) = crd.pointer_mut("/spec/versions/0/schema/openAPIV3Schema") {
        let spec = &mut schema["properties"]["spec"]["properties"];
        let boost = json!([
            {"rule": "self.type != 'Factor' || (has(self.factor) && !has(self.quantity))", "message": "a boost of type Factor has a factor and no quantity"},
            {"rule": "self.type != 'Quantity' || (has(self.quantity) && !has(self.factor))", "message": "a boost of type Quantity has a quantity and no factor"},
        ]);
        spec["startupBoost"]["properties"]["cpu"]["x-kubernetes-validations"] = boost.clone();
        spec["resourcePolicy"]["properties"]["containerPolicies"]["items"]["properties"]["startupBoost"]["properties"]
            ["cpu"]["x-kubernetes-validations"] = boost;
    }
    crd
}

/// The schema of VerticalPodAutoscaler.
pub(crate) fn vertical_pod_autoscaler_schema() -> Value {
    vertical_pod_autoscaler_crd().pointer("/spec/versions/0/schema/openAPIV3Schema").cloned().unwrap_or_default()
}

/// Reads a map whose keys are numbers. In JSON they are texts, and where an object was read with fields left over for later,
/// as objects of any kind are, they stay texts.
fn by_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<u32, u32>, D::Error> {
    let texts = BTreeMap::<String, u32>::deserialize(deserializer)?;
    let number = |(key, weight): (String, u32)| {
        let key = key.parse().map_err(|_| D::Error::custom(format!("{key:?} is no number of a bucket")))?;
        Ok((key, weight))
    };
    texts.into_iter().map(number).collect()
}

/// The definition of VerticalPodAutoscalerCheckpoint, ready to be applied.
pub fn vertical_pod_autoscaler_checkpoint_crd() -> Value {
    let mut crd = definition(serde_json::to_value(VerticalPodAutoscalerCheckpoint::crd()).unwrap_or_default());
    if let Some(schema) = crd.pointer_mut("/spec/versions/0/schema/openAPIV3Schema") {
        let mut status = serde_json::to_value(
            schemars::generate::SchemaSettings::openapi3()
                .with(|settings| settings.inline_subschemas = true)
                .into_generator()
                .into_root_schema_for::<VerticalPodAutoscalerCheckpointStatus>(),
        )
        .unwrap_or_default();
        if let Some(fields) = status.as_object_mut() {
            fields.remove("$schema");
        }
        tighten(&mut status);
        // Upstream writes null where it has no time.
        for histogram in ["cpuHistogram", "memoryHistogram"] {
            status["properties"][histogram]["properties"]["referenceTimestamp"]["nullable"] = json!(true);
        }
        for time in ["lastUpdateTime", "firstSampleStart", "lastSampleStart"] {
            status["properties"][time]["nullable"] = json!(true);
        }
        schema["properties"]["status"] = status;
    }
    crd
}

fn definition(mut crd: Value) -> Value {
    crd["metadata"]["labels"] = json!({"app.kubernetes.io/part-of": "pillion"});
    // The API server keeps the groups of Kubernetes for definitions that say who approved them.
    crd["metadata"]["annotations"] =
        json!({"api-approved.kubernetes.io": "https://github.com/kubernetes/kubernetes/pull/63797"});
    if let Some(schema) = crd.pointer_mut("/spec/versions/0/schema/openAPIV3Schema") {
        tighten(schema);
    }
    crd
}

#[cfg(test)]
mod tests;
