//! A pod that exists, read as far as sizing looks at it, and kept small: there are very many.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use pillion_plan::List;
pub use pillion_pod::Owner;
use pillion_pod::{Metadata, QosClass};
use serde::Deserialize;
use serde_json::Value;

use super::held::{ContainerKind, ContainerResources, Held};
use super::sized::{BOOST_PREFIX, MIRROR, OBSERVED, SIZED, SizedPod};
use super::writes::RESIZED_AT;

/// A pod that exists.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "Kubernetes tells each of them apart from the others")]
pub struct Pod {
    /// Its namespace.
    pub namespace: Box<str>,
    /// Its name.
    pub name: Box<str>,
    /// Its uid.
    pub uid: Box<str>,
    /// Its labels.
    pub labels: Arc<[(Box<str>, Box<str>)]>,
    /// When it was created.
    pub created: Timestamp,
    /// When its node took it.
    pub started: Option<Timestamp>,
    /// The object that makes it anew.
    pub owner: Option<Owner>,
    /// Whether a node was chosen for it.
    pub is_assigned: bool,
    /// Whether its phase is Pending.
    pub is_pending: bool,
    /// Whether it is on its way out.
    pub is_deleting: bool,
    /// Whether it has ended for good.
    pub is_ended: bool,
    /// Since when it is ready; `None` where it is not.
    pub ready_since: Option<Timestamp>,
    /// The node's answer to a resize that is not done.
    pub resize: ResizeState,
    /// Since when that is so.
    pub resize_since: Option<Timestamp>,
    /// Its class, as the API server has it.
    pub qos: Option<QosClass>,
    /// Whether it has resources of its own beside those of its containers.
    pub has_pod_level_resources: bool,
    /// Whether it is the copy of a static pod, or runs on Windows: neither can be resized.
    pub cannot_resize: bool,
    /// The containers that were there when it was admitted, where that is known.
    pub observed: Option<Box<[Box<str>]>>,
    /// What containers had before they got more cpu for their start.
    pub boosts: Box<[(Box<str>, ContainerResources)]>,
    /// What we gave its containers, by name.
    pub sized: Box<[(Box<str>, ContainerResources)]>,
    /// When we resized it last, as far as it tells.
    pub resized: Option<Timestamp>,
    /// Its containers: init containers first, as they start.
    pub containers: Box<[Container]>,
}

/// The node's answer to a resize.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ResizeState {
    /// None is under way.
    #[default]
    None,
    /// The node has no room now.
    Deferred,
    /// The node never has room.
    Infeasible,
    /// The node does it.
    InProgress,
    /// The node tries it again and again, as with a memory limit below what is used.
    Failing,
    /// An answer of another kind.
    Unknown(Box<str>),
}

/// A container that exists.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "Kubernetes tells each of them apart from the others")]
pub struct Container {
    /// In which list of the pod.
    pub list: List,
    /// At which place there.
    pub index: u16,
    /// Its name.
    pub name: Box<str>,
    /// What it is there.
    pub kind: ContainerKind,
    /// What the pod says of cpu and memory.
    pub asked: ContainerResources,
    /// Whether the pod has requests of it, of whatever resource.
    pub has_requests: bool,
    /// Whether the pod has limits of it, of whatever resource.
    pub has_limits: bool,
    /// What the node has given it, where that is something else.
    pub given: Option<Box<ContainerResources>>,
    /// Whether another amount of cpu restarts it.
    pub restarts_for_cpu: bool,
    /// Whether another amount of memory restarts it.
    pub restarts_for_memory: bool,
    /// How often it was restarted.
    pub restarts: u32,
    /// Whether its start is over: its startup probe has succeeded, or it has none.
    pub is_started: bool,
    /// Whether it has ended, and well.
    pub is_done: bool,
    /// Since when it runs.
    pub running_since: Option<Timestamp>,
    /// The last time it was ended for want of memory.
    pub oom: Option<ContainerOom>,
}

/// A container was ended for want of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContainerOom {
    /// When it had started.
    pub started: Timestamp,
    /// When it was ended.
    pub ended: Timestamp,
}

impl Container {
    /// What it has: what the node has given it, else what the pod says.
    pub fn has(&self) -> ContainerResources {
        self.given.as_deref().copied().unwrap_or(self.asked)
    }
}

impl Pod {
    /// Reads a pod.
    pub fn read(raw: RawPod) -> Self {
        let RawPod { mut metadata, spec, status } = raw;
        let owner = metadata.take_controller();
        let annotations = metadata.annotations.unwrap_or_default();
        let statuses: BTreeMap<&str, &RawStatus> =
            status.all().map(|container| (&*container.name, container)).collect();
        let in_list = |list: List, containers: Option<Vec<RawContainer>>| {
            let containers = containers.unwrap_or_default().into_iter().enumerate();
            containers
                .map(|(index, container)| {
                    let status = statuses.get(&*container.name).copied();
                    container.read(list, index, status)
                })
                .collect::<Vec<_>>()
        };
        let mut containers = in_list(List::Init, spec.init_containers);
        containers.extend(in_list(List::Main, spec.containers));
        let condition =
            |kind: &str| status.conditions.iter().flatten().find(|own| &*own.kind == kind && &*own.status == "True");
        let (pending, progress) = (condition("PodResizePending"), condition("PodResizeInProgress"));
        let phase = status.phase.as_deref();
        let is_mirror = annotations.contains_key(MIRROR);
        let boosts = annotations.iter().filter_map(|(key, text)| {
            let before: Value = serde_json::from_str(text).ok()?;
            Some((key.strip_prefix(BOOST_PREFIX)?.into(), ContainerResources::read(Some(&before))))
        });
        let sized = annotations.get(SIZED).and_then(|text| SizedPod::parse(text));
        let sized = sized.filter(|own| own.uid.is_none() || own.uid == metadata.uid);
        let sized = sized.into_iter().flat_map(|own| own.containers);
        let names =
            |list: &str| list.split(',').map(str::trim).filter(|name| !name.is_empty()).map(Box::from).collect();
        Self {
            created: metadata.creation_timestamp.unwrap_or_default(),
            started: status.start_time,
            owner,
            is_assigned: spec.node_name.is_some_and(|node| !node.is_empty()),
            is_pending: phase == Some("Pending"),
            is_deleting: metadata.deletion_timestamp.is_some(),
            is_ended: matches!(phase, Some("Succeeded" | "Failed")),
            ready_since: condition("Ready").and_then(|condition| condition.last_transition_time),
            resize: ResizeState::read(pending, progress),
            resize_since: pending.or(progress).and_then(|condition| condition.last_transition_time),
            qos: status.qos_class.as_deref().and_then(qos),
            has_pod_level_resources: spec
                .resources
                .is_some_and(|own| own.as_object().is_some_and(|own| !own.is_empty())),
            cannot_resize: is_mirror || spec.os.is_some_and(|os| &*os.name == "windows"),
            observed: annotations.get(OBSERVED).map(|list| names(list)),
            boosts: boosts.collect(),
            sized: sized.map(|(name, own)| (name, own.gave)).collect(),
            resized: annotations.get(RESIZED_AT).and_then(|text| text.parse().ok()),
            containers: containers.into(),
            namespace: metadata.namespace.unwrap_or_default(),
            name: metadata.name.unwrap_or_default(),
            uid: metadata.uid.unwrap_or_default(),
            labels: metadata.labels.unwrap_or_default().into_iter().collect(),
        }
    }

    /// Whether its work is done and only native sidecars are left of it, as with a Job's pod for a moment.
    pub fn is_finishing(&self) -> bool {
        let mut apps = self.containers.iter().filter(|container| container.kind == ContainerKind::App);
        self.owner.as_ref().is_some_and(|owner| &*owner.kind == "Job") && apps.all(|container| container.is_done)
    }

    /// A container.
    pub fn container(&self, name: &str) -> Option<&Container> {
        self.containers.iter().find(|container| *container.name == *name)
    }

    /// Whether the container was there when the pod was admitted; also where that is not known.
    pub fn is_observed(&self, name: &str) -> bool {
        self.observed.as_ref().is_none_or(|names| names.iter().any(|own| **own == *name))
    }

    /// Whether some container still has more cpu for its start.
    pub fn is_boosted(&self) -> bool {
        !self.boosts.is_empty()
    }

    /// What the container had before it got more cpu for its start.
    pub fn before_boost(&self, name: &str) -> Option<ContainerResources> {
        self.boosts.iter().find(|(own, _)| **own == *name).map(|(_, before)| *before)
    }

    /// What we gave a container, as far as the pod tells.
    pub fn sized(&self, name: &str) -> Option<ContainerResources> {
        self.sized.iter().find(|(own, _)| **own == *name).map(|(_, gave)| *gave)
    }

    pub(crate) fn held(&self) -> Vec<Held<'_>> {
        let hold = |container: &'_ Container| {
            let Container { list, index, kind, .. } = *container;
            (list, index, kind, container.has())
        };
        let all = self.containers.iter().map(|container| (&*container.name, hold(container)));
        all.map(|(name, (list, index, kind, has))| Held { list, index, name, kind, has }).collect()
    }
}

impl ResizeState {
    fn read(pending: Option<&RawCondition>, progress: Option<&RawCondition>) -> Self {
        let reason = |condition: &RawCondition| condition.reason.clone().unwrap_or_default();
        match (pending.map(reason), progress.map(reason)) {
            (None, None) => Self::None,
            (Some(word), _) => match &*word {
                "Deferred" => Self::Deferred,
                "Infeasible" => Self::Infeasible,
                _ => Self::Unknown(word),
            },
            (None, Some(word)) => match &*word {
                "" => Self::InProgress,
                "Error" => Self::Failing,
                _ => Self::Unknown(word),
            },
        }
    }
}

fn qos(word: &str) -> Option<QosClass> {
    Some(match word {
        "Guaranteed" => QosClass::Guaranteed,
        "Burstable" => QosClass::Burstable,
        "BestEffort" => QosClass::BestEffort,
        _ => return None,
    })
}

/// The JSON of a pod, as far as it is read here.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct RawPod {
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    spec: RawSpec,
    #[serde(default)]
    status: RawPodStatus,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawSpec {
    node_name: Option<Box<str>>,
    os: Option<RawOs>,
    resources: Option<Value>,
    containers: Option<Vec<RawContainer>>,
    init_containers: Option<Vec<RawContainer>>,
}

#[derive(Clone, Debug, Deserialize)]
struct RawOs {
    name: Box<str>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawContainer {
    name: Box<str>,
    restart_policy: Option<Box<str>>,
    resources: Option<Value>,
    resize_policy: Option<Vec<RawResizePolicy>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawResizePolicy {
    resource_name: Box<str>,
    restart_policy: Box<str>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawPodStatus {
    phase: Option<Box<str>>,
    start_time: Option<Timestamp>,
    qos_class: Option<Box<str>>,
    conditions: Option<Vec<RawCondition>>,
    container_statuses: Option<Vec<RawStatus>>,
    init_container_statuses: Option<Vec<RawStatus>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawCondition {
    #[serde(rename = "type")]
    kind: Box<str>,
    status: Box<str>,
    reason: Option<Box<str>>,
    last_transition_time: Option<Timestamp>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawStatus {
    name: Box<str>,
    #[serde(default)]
    restart_count: u32,
    started: Option<bool>,
    resources: Option<Value>,
    #[serde(default)]
    state: RawState,
    #[serde(default)]
    last_state: RawState,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct RawState {
    running: Option<RawRunning>,
    terminated: Option<RawEnd>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawRunning {
    started_at: Option<Timestamp>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawEnd {
    exit_code: Option<i32>,
    reason: Option<Box<str>>,
    started_at: Option<Timestamp>,
    finished_at: Option<Timestamp>,
}

impl RawPod {
    /// The version the API server gave it.
    pub fn resource_version(&self) -> Option<&str> {
        self.metadata.resource_version.as_deref()
    }
}

impl RawContainer {
    fn read(self, list: List, index: usize, status: Option<&RawStatus>) -> Container {
        let restarts_for = |resource: &str| {
            let mut policies = self.resize_policy.iter().flatten();
            policies.any(|own| &*own.resource_name == resource && &*own.restart_policy == "RestartContainer")
        };
        let has = |side: &str| self.resources.as_ref().is_some_and(|own| own.get(side).is_some_and(Value::is_object));
        let asked = ContainerResources::read(self.resources.as_ref());
        let given = status.and_then(|own| own.resources.as_ref()).map(|own| ContainerResources::read(Some(own)));
        Container {
            list,
            index: u16::try_from(index).unwrap_or(u16::MAX),
            kind: ContainerKind::of(list, self.restart_policy.as_deref()),
            has_requests: has("requests"),
            has_limits: has("limits"),
            given: given.filter(|given| *given != asked).map(Box::new),
            asked,
            restarts_for_cpu: restarts_for("cpu"),
            restarts_for_memory: restarts_for("memory"),
            restarts: status.map_or(0, |own| own.restart_count),
            is_started: status.is_some_and(|own| own.started == Some(true)),
            is_done: status
                .is_some_and(|own| own.state.terminated.as_ref().is_some_and(|end| end.exit_code == Some(0))),
            running_since: status.and_then(|own| own.state.running.as_ref()?.started_at),
            oom: status.and_then(RawStatus::oom),
            name: self.name,
        }
    }
}

impl RawPodStatus {
    fn all(&self) -> impl Iterator<Item = &RawStatus> {
        self.init_container_statuses.iter().chain(&self.container_statuses).flatten()
    }
}

impl RawStatus {
    /// Of one that has not started again, the end is its state and not yet its last one.
    fn oom(&self) -> Option<ContainerOom> {
        let ends = [&self.state.terminated, &self.last_state.terminated].into_iter().flatten();
        let end = ends.into_iter().find(|end| end.reason.as_deref() == Some("OOMKilled"))?;
        let ended = end.finished_at?;
        Some(ContainerOom { started: end.started_at.unwrap_or(ended), ended })
    }
}

#[cfg(test)]
mod tests;
