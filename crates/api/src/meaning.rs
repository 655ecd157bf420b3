//! What a SidecarSet means: spellings resolved, defaults filled in, patterns and expressions compiled.
//!
//! This is what deciders read. It is never stored, and says nothing about how the user spelt it.

use std::collections::BTreeMap;

use pillion_expr::{Field, Mode, NamePattern, Program};
use serde_json::{Map, Value};

use crate::finish::{FinishMode, FinishWatch};
use crate::injection::{Proportion, RevisionPolicy};
use crate::pod_changes::PatchPolicy;
use crate::selector::Selector;
use crate::sidecar_set::{FailurePolicy, SetMode};
use crate::update::UpdateType;

/// The label every namespace has, with its own name as the value.
pub const NAMESPACE_NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// A SidecarSet without errors.
#[derive(Clone, Debug, PartialEq)]
pub struct Meaning {
    /// Name of the set.
    pub name: String,
    /// The label `apps.kruise.io/sidecarset-custom-version` of the set.
    pub custom_version: Option<String>,
    /// Which pods.
    pub selector: Selector,
    /// Of which namespaces.
    pub namespaces: Namespaces,
    /// What they get: exactly what a revision covers.
    pub template: Template,
    /// The name of that revision.
    pub revision: String,
    /// What happens to a pod the set cannot be applied to.
    pub failure_policy: FailurePolicy,
    /// Whether pods are changed at all.
    pub mode: SetMode,
    /// How its containers that end with the others are ended.
    pub finish: Finish,
    /// Whether a pod may leave the set out.
    pub allow_opt_out: bool,
    /// Which revision new pods get.
    pub injection: Injection,
    /// How running pods follow.
    pub update: Update,
    /// How many old revisions are kept; at least one.
    pub revision_history_limit: u32,
}

/// How containers that end with the others are ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Finish {
    /// By whom.
    pub mode: FinishMode,
    /// How our agent learns that the others have ended.
    pub watch: FinishWatch,
}

/// Which namespaces are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Namespaces {
    /// All of them.
    All,
    /// The one of this name.
    Named(String),
    /// Those with these labels.
    Selected(Selector),
}

/// What a pod gets: the part of a set that revisions cover.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Template {
    /// Init containers, plain and native, in the order written.
    pub init_containers: Vec<Sidecar>,
    /// Containers, in the order written.
    pub containers: Vec<Sidecar>,
    /// Volumes, in the order written.
    pub volumes: Vec<NamedVolume>,
    /// Names of secrets.
    pub image_pull_secrets: Vec<String>,
    /// Annotations, in the order written; no key twice.
    pub annotations: Vec<AnnotationPatch>,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Account for pods that have only `default`.
    pub service_account_name: Option<String>,
    /// Whether processes are to be shared; `None` leaves the pod as it is.
    pub share_process_namespace: Option<bool>,
    /// Volumes of the set for the pod's own containers.
    pub app_volume_mounts: Vec<AppMount>,
}

/// A container of the set.
#[derive(Clone, Debug, PartialEq)]
pub struct Sidecar {
    /// Its name.
    pub name: String,
    /// How it runs.
    pub kind: SidecarKind,
    /// Where it goes in the pod's list.
    pub placement: Placement,
    /// The container for the pod, without our own fields and without computed resources.
    pub container: Map<String, Value>,
    /// How its resources are computed, if they are.
    pub resources: Option<ComputedResources>,
    /// Whether it gets the volume mounts of the pod's own containers.
    pub shares_volumes: bool,
    /// Whether it gets the volume devices of the pod's own containers.
    pub shares_devices: bool,
    /// Variables it gets from the pod's own containers.
    pub transfers: Vec<Transfer>,
    /// Whether it ends when all others have ended for good.
    pub ends_with_the_others: bool,
}

/// How a container of the set runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SidecarKind {
    /// Beside the pod's own.
    Container,
    /// Once, before them.
    PlainInit,
    /// As an init container with `restartPolicy: Always`, as long as the pod.
    NativeSidecar,
}

/// Where a container goes in the pod's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Before those of the pod.
    Before,
    /// After those of the pod.
    After,
}

/// Resources computed from the pod's own containers.
#[derive(Clone, Debug)]
pub struct ComputedResources {
    /// How several targets become one amount.
    pub mode: Mode,
    /// Which containers are targets.
    pub targets: NamePattern,
    /// The expressions there are, in the order of [`Field::ALL`].
    pub programs: Vec<Program>,
}

impl ComputedResources {
    /// The expression of a field. `None`: no limit, or a request of 0.
    pub fn program(&self, field: Field) -> Option<&Program> {
        self.programs.iter().find(|program| program.field() == field)
    }
}

/// What was compiled is the same if what it was compiled from is.
impl PartialEq for ComputedResources {
    fn eq(&self, other: &Self) -> bool {
        let sources = |it: &Self| it.programs.iter().map(|p| (p.field(), p.source().to_owned())).collect::<Vec<_>>();
        self.mode == other.mode && self.targets.as_str() == other.targets.as_str() && sources(self) == sources(other)
    }
}

/// A volume of the set.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedVolume {
    /// Its name.
    pub name: String,
    /// The volume as it was written.
    pub volume: Map<String, Value>,
}

/// An annotation for the pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnnotationPatch {
    /// Its key.
    pub key: String,
    /// Its value.
    pub value: String,
    /// What happens where the pod has the key.
    pub policy: PatchPolicy,
}

/// A volume of the set in the pod's own containers.
#[derive(Clone, Debug)]
pub struct AppMount {
    /// Which containers.
    pub targets: NamePattern,
    /// Name of the volume.
    pub volume: String,
    /// Where.
    pub path: String,
    /// Whether it can only be read there.
    pub read_only: bool,
}

impl PartialEq for AppMount {
    fn eq(&self, other: &Self) -> bool {
        let parts = |it: &Self| (it.targets.as_str().to_owned(), it.volume.clone(), it.path.clone(), it.read_only);
        parts(self) == parts(other)
    }
}

/// Variables to copy from one container of the pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The container.
    pub source: TransferSource,
    /// The variables, sorted, none twice.
    pub names: Vec<String>,
}

/// Which container variables are copied from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransferSource {
    /// The one of this name.
    Container(String),
    /// The one whose name is in this field of the pod.
    FromPod(PodField),
}

/// A field of a pod that can hold a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PodField {
    /// `metadata.name`
    Name,
    /// A label.
    Label(String),
    /// An annotation.
    Annotation(String),
}

/// Which revision new pods get.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Injection {
    /// None at all.
    pub paused: bool,
    /// Not, or not only, the newest.
    pub pin: Option<Pin>,
    /// How a proportion is kept.
    pub proportion: Proportion,
}

/// A pinned revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pin {
    /// Which one.
    pub revision: RevisionReference,
    /// When it is used.
    pub policy: RevisionPolicy,
}

/// How a revision is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RevisionReference {
    /// By its own name.
    Name(String),
    /// The newest with this custom version.
    CustomVersion(String),
}

/// How running pods follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Update {
    /// Whether they do.
    pub kind: UpdateType,
    /// Whether no further pod is updated.
    pub paused: bool,
    /// Which pods are updated; `None` for all.
    pub selector: Option<Selector>,
    /// How many stay at the old revision.
    pub partition: PodCount,
    /// How many may be unavailable at a time.
    pub max_unavailable: PodCount,
    /// Which are updated first.
    pub priority: Priority,
    /// Labels to spread by, with the value or `*`.
    pub scatter: Vec<(String, String)>,
    /// Whether the first pod is updated alone.
    pub probe: bool,
    /// Whether resources of running containers are changed.
    pub resize: bool,
    /// How long the first pod must run, and a container with a startup probe be ready, to count; in seconds.
    pub settle_seconds: u32,
    /// When an update stops by itself.
    pub gate: HealthGate,
}

/// When an update stops by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HealthGate {
    /// From so many updated pods that are not well.
    pub max_unhealthy: PodCount,
    /// Whether those get the revision back that they had.
    pub rollback: bool,
}

/// A number of pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodCount {
    /// So many.
    Pods(u32),
    /// So many of a hundred; at most 100.
    Percent(u8),
}

/// Which pods are updated first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Priority {
    /// None in particular.
    #[default]
    None,
    /// Those with a larger sum of weights.
    Weights(Vec<(u8, Selector)>),
    /// Those with a larger number in the first of these labels, then the next.
    Ordered(Vec<String>),
}
