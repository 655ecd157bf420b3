//! Our objects: which fields they have, what they mean, what is wrong with them, and why.
//!
//! - [`SidecarSet`]: the object as it is stored, in the words the user wrote. Containers and volumes are JSON that is
//!   carried as it is ([`SidecarContainer`]).
//! - [`review`]: everything that is to be said about a SidecarSet ([`Problem`]), and its [`Meaning`]: one spelling, all
//!   defaults, patterns and expressions compiled. Deciders read meanings only.
//! - [`clashes`]: what two sets would both give to one pod; [`advice`]: what a cluster may want of a set besides.
//! - [`revision`]: what a revision covers, and its name; [`PodRevisions`]: which revisions a pod has.
//! - [`names`]: the objects of an installation; [`harm_to_bystanders`]: how its policies and webhook configurations could harm
//!   requests of others.
//! - [`Reason`]: the codes of every verdict, refusal and finding.
//! - [`sidecar_set_crd`]: the CustomResourceDefinition, with the same rules in CEL.
//! - [`VerticalPodAutoscaler`], [`VerticalPodAutoscalerCheckpoint`]: how pods of a workload are sized, as upstream has it.
//! - [`InjectionLedger`]: what a canary is counted by; [`HotUpdate`]: which version of a file pods of a workload are to have.
//!
//! Defaults are applied here and never stored, so that upgrading changes no object. The crate knows nothing of pods, files
//! or the API server, and reads no clock.
#![forbid(unsafe_code)]
#![expect(
    clippy::doc_markdown,
    clippy::doc_link_with_quotes,
    reason = "comments of fields are what `kubectl explain` prints"
)]

mod advice;
mod bystanders;
mod clash;
mod container;
mod crd;
mod finish;
mod hot_update;
mod injection;
mod injection_ledger;
mod meaning;
pub mod names;
mod pod_changes;
mod pod_revisions;
mod problem;
mod read;
mod reason;
mod resources_policy;
pub mod revision;
mod rule;
mod schema_check;
mod selector;
mod sidecar_set;
mod status;
mod template_check;
mod update;
mod vertical_pod_autoscaler;

pub use advice::advice;
pub use bystanders::harm_to_bystanders;
pub use clash::{Clash, clashes};
pub use container::{
    ContainerFields, FieldRef, OWN_FIELDS, PodInjectPolicy, Resources, SharePolicy, ShareType, SidecarContainer,
    SourceContainerNameFrom, TransferEnv, UpgradeStrategy, Volume,
};
pub use crd::{sidecar_set_crd, sidecar_set_schema};
pub use finish::{FinishMode, FinishStrategy, FinishWatch, TERMINATE, TERMINATE_WITH_IMAGE, terminate_variable};
pub use hot_update::{HotUpdate, HotUpdateSpec, HotUpdateStatus, WorkloadReference, hot_update_crd};
pub use injection::{InjectStrategy, InjectionRevision, InjectionStrategy, Proportion, RevisionPolicy};
pub use injection_ledger::{InjectionLedger, InjectionLedgerSpec, injection_ledger_crd};
pub use meaning::{
    AnnotationPatch, AppMount, ComputedResources, Finish, HealthGate, Injection, Meaning, NAMESPACE_NAME_LABEL,
    NamedVolume, Namespaces, Pin, Placement, PodCount, PodField, Priority, RevisionReference, Sidecar, SidecarKind,
    Template, Transfer, TransferSource, Update,
};
pub use pod_changes::{AppVolumeMount, LocalObjectReference, PatchPodMetadata, PatchPolicy};
pub use pod_revisions::{PodRevision, PodRevisions, REVISIONS};
pub use problem::{Excerpt, FieldPath, Problem, Segment, Severity};
pub use read::{
    CUSTOM_VERSION_LABEL, MAX_PROBLEMS, Review, expression_warnings, ratchet, review, template, validate_write,
};
pub use reason::{Group, Reason, UnknownReason, reason_codes_page};
pub use resources_policy::{ResourceExpr, ResourcesPolicy, TargetMode};
pub use schema_check::check_autoscaler;
pub use selector::{Condition, LabelSelector, LabelSelectorRequirement, Requirement, Selector, SelectorOperator};
pub use sidecar_set::{API_VERSION, FailurePolicy, SetMode, SidecarSet, SidecarSetSpec};
pub use status::{
    BlastCounts, BlastExample, BlastRadius, EffectiveNumber, EffectiveNumbers, RevisionStatus, SidecarSetStatus,
};
pub use template_check::{TEMPLATE_SCHEMA, is_dns_label};
pub use update::{
    HealthGate as StoredHealthGate, OrderTerm, PriorityStrategy, ScatterTerm, UpdateStrategy, UpdateType, WeightTerm,
};
pub use vertical_pod_autoscaler::{
    AutoscalerCondition, ContainerResourcePolicy, CpuBoost, EvictionRequirement, HistogramCheckpoint,
    PodResourcePolicy, PodUpdatePolicy, RecommendedContainerResources, RecommendedPodResources, RecommenderSelector,
    ResourceList, StartupBoost, TargetReference, VerticalPodAutoscaler, VerticalPodAutoscalerCheckpoint,
    VerticalPodAutoscalerCheckpointSpec, VerticalPodAutoscalerCheckpointStatus, VerticalPodAutoscalerSpec,
    VerticalPodAutoscalerStatus, vertical_pod_autoscaler_checkpoint_crd, vertical_pod_autoscaler_crd,
};
