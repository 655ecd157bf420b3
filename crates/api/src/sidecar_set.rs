//! The SidecarSet as it is stored: every field in the words the user wrote, nothing filled in.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::container::{SidecarContainer, Volume};
use crate::finish::FinishStrategy;
use crate::injection::{InjectStrategy, InjectionStrategy};
use crate::pod_changes::{AppVolumeMount, LocalObjectReference, PatchPodMetadata};
use crate::selector::LabelSelector;
use crate::status::SidecarSetStatus;
use crate::update::UpdateStrategy;

/// Group and version of a SidecarSet, as a manifest has them.
pub const API_VERSION: &str = "apps.kruise.io/v1alpha1";

/// What sidecars the selected pods get, and how running pods follow when the set changes.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "apps.kruise.io",
    version = "v1alpha1",
    kind = "SidecarSet",
    plural = "sidecarsets",
    shortname = "scs",
    category = "pillion",
    status = "SidecarSetStatus",
    derive = "PartialEq",
    doc = "A SidecarSet says which sidecars the pods it selects get, and how running pods follow when the set changes.",
    printcolumn = r#"{"name":"Matched","type":"integer","jsonPath":".status.matchedPods","description":"Pods the set selects"}"#,
    printcolumn = r#"{"name":"Injected","type":"integer","jsonPath":".status.injectedPods","description":"Pods that carry the sidecars"}"#,
    printcolumn = r#"{"name":"Updated","type":"integer","jsonPath":".status.updatedPods","description":"Pods with the newest revision"}"#,
    printcolumn = r#"{"name":"Ready","type":"integer","jsonPath":".status.readyPods","description":"Pods that carry the sidecars and are ready"}"#,
    printcolumn = r#"{"name":"Missed","type":"integer","jsonPath":".status.missedPods","description":"Pods that should carry the sidecars and do not"}"#,
    printcolumn = r#"{"name":"Status","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].reason","description":"Why the set is ready, or is not"}"#,
    printcolumn = r#"{"name":"Predating","type":"integer","jsonPath":".status.predatingPods","priority":1,"description":"Pods older than the selector, without the sidecars"}"#,
    printcolumn = r#"{"name":"Revision","type":"string","jsonPath":".status.latestRevision","priority":1,"description":"The newest revision"}"#,
    printcolumn = r#"{"name":"Mode","type":"string","jsonPath":".spec.mode","priority":1,"description":"Inject, or Observe and change nothing"}"#,
    printcolumn = r#"{"name":"Images","type":"string","jsonPath":".spec.containers[*].image","priority":1,"description":"Images of the containers"}"#,
    printcolumn = r#"{"name":"Message","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].message","priority":1,"description":"The same at length"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct SidecarSetSpec {
    /// Labels of the pods that get the sidecars. Required, and must not be empty.
    pub selector: LabelSelector,
    /// Only pods of this namespace. Give this or namespaceSelector, not both.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub namespace: Option<String>,
    /// Only pods of namespaces with these labels. Absent: of all namespaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<LabelSelector>,

    /// Init containers to add: plain ones, or native sidecars with restartPolicy Always.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub init_containers: Option<Vec<SidecarContainer>>,
    /// Containers to add beside those of the pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub containers: Option<Vec<SidecarContainer>>,
    /// Volumes the sidecars mount. A volume nothing mounts is not added to pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub volumes: Option<Vec<Volume>>,
    /// Secrets to add to the pod for pulling the sidecars' images.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub image_pull_secrets: Option<Vec<LocalObjectReference>>,
    /// Annotations to write on the pod, with a policy for those it already has.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "atomic"))]
    pub patch_pod_metadata: Option<Vec<PatchPodMetadata>>,
    /// Labels to add to the pod. A label the pod has with another value is a clash.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maxProperties" = 64, "additionalProperties" = {"type": "string", "maxLength": 63}))]
    pub labels: Option<BTreeMap<String, String>>,
    /// Service account for pods that have none of their own (`default`). The default token is then not mounted into the
    /// pod. A pod with another account is a clash.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$"))]
    pub service_account_name: Option<String>,
    /// Lets all containers of the pod see each other's processes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share_process_namespace: Option<bool>,
    /// Volumes of this set to mount into the pod's own containers.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "atomic"))]
    pub app_volume_mounts: Option<Vec<AppVolumeMount>>,

    /// What happens to a pod the set cannot be applied to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_policy: Option<FailurePolicy>,
    /// Whether the set changes pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<SetMode>,
    /// How containers marked with sidecar: true are ended when all others have ended for good. Pods that are created later
    /// follow a change; it makes no revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finish: Option<FinishStrategy>,
    /// Lets a pod leave this set out by naming it in its annotation pillion.dev/skip. Default false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_opt_out: Option<bool>,

    /// Which revision new pods get. Default: the newest. Also accepted as injectionStrategy, in another form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inject_strategy: Option<InjectStrategy>,
    /// The form of injectStrategy that OpenKruise ships. Give one of the two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub injection_strategy: Option<InjectionStrategy>,
    /// How running pods follow a change of the set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update_strategy: Option<UpdateStrategy>,
    /// How many revisions are kept. Those that pods have, and the one that is pinned, are kept besides. Default 10.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1000))]
    pub revision_history_limit: Option<i32>,
    /// Not supported; declared so that it is refused and not dropped. In v1alpha1 the custom version is the label
    /// apps.kruise.io/sidecarset-custom-version of the set.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub custom_version: Option<String>,
}

/// What happens to a pod the set cannot be applied to (negative result, no target, name clash, missing revision): Fail
/// refuses the pod (default), Ignore creates it without this set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum FailurePolicy {
    /// The pod is refused.
    #[default]
    Fail,
    /// The pod is created without this set.
    Ignore,
}

/// Inject changes pods (default). Observe matches, computes and reports, and changes nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SetMode {
    /// It does.
    #[default]
    Inject,
    /// It only says what it would do.
    Observe,
}
