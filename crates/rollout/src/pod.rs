//! A pod that exists, read as far as an update looks at it, and kept small: there are very many.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use pillion_api::{PodRevisions, REVISIONS};
use pillion_plan::List;
use pillion_pod::Metadata;
pub use pillion_pod::Owner;
use serde::Deserialize;
use serde_json::Value;

/// Pod annotation with the names of the containers that are ours.
const CONTAINERS: &str = "pillion.dev/containers";
/// Pod annotation with the record of decisions.
const DECISION: &str = "pillion.dev/decision";
/// Label of a pod that a `ReplicaSet` of a Deployment made; the name of the `ReplicaSet` ends in its value.
const TEMPLATE_HASH: &str = "pod-template-hash";
/// So much of a container's id tells it from others.
const ID_LENGTH: usize = 12;

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
    /// The object that makes it anew.
    pub owner: Option<Owner>,
    /// Whether a node was chosen for it.
    pub is_assigned: bool,
    /// Whether its phase is Pending.
    pub is_pending: bool,
    /// Whether its condition Ready is True.
    pub is_ready: bool,
    /// Since when that is as it is.
    pub ready_since: Option<Timestamp>,
    /// Whether it is on its way out.
    pub is_deleting: bool,
    /// Whether it has ended for good.
    pub is_ended: bool,
    /// The annotation with its revisions, as it is: a write that updates the pod tests it.
    pub record: Option<Box<str>>,
    /// What the annotation says.
    pub revisions: PodRevisions,
    /// The reservations it was admitted with, by set.
    pub reservations: Box<[(Box<str>, Box<str>)]>,
    /// Whether it lists the containers that are ours. One that does not was injected by `OpenKruise`.
    pub is_listed: bool,
    /// The containers that are ours.
    pub containers: Box<[Container]>,
}

/// The pods that serve one purpose together, by what makes them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Workload<'a> {
    /// Its namespace.
    pub namespace: &'a str,
    /// Its kind, such as Deployment.
    pub kind: &'a str,
    /// Its name.
    pub name: &'a str,
}

/// A container of ours.
#[derive(Clone, Debug, PartialEq)]
pub struct Container {
    /// In which list of the pod.
    pub list: List,
    /// At which place there.
    pub index: u16,
    /// Its name.
    pub name: Box<str>,
    /// The image it should run.
    pub image: Box<str>,
    /// Its resources, if it has any.
    pub resources: Option<Box<Value>>,
    /// Whether it has a startup probe.
    pub has_startup_probe: bool,
    /// What the node tells of it.
    pub status: Option<Status>,
}

/// What a node tells of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// How often it was restarted.
    pub restarts: u32,
    /// The end of its id.
    pub id: Box<str>,
    /// What it does.
    pub state: State,
    /// Whether it is ready.
    pub is_ready: bool,
}

/// What a container does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// It runs, since this time.
    Running(Option<Timestamp>),
    /// It does not run yet, and why.
    Waiting(Box<str>),
    /// It has ended, and why.
    Terminated(Box<str>),
}

impl Status {
    /// What is remembered of a container that is about to be changed, to tell later that it was.
    pub fn mark(&self) -> String {
        format!("{} {}", self.restarts, self.id)
    }
}

impl Pod {
    /// Reads a pod.
    pub fn read(raw: RawPod) -> Self {
        let RawPod { mut metadata, spec, status } = raw;
        let owner = metadata.take_controller();
        let annotations = metadata.annotations.unwrap_or_default();
        let record = annotations.get(REVISIONS);
        let listed = annotations.get(CONTAINERS);
        let names: Option<BTreeSet<&str>> = listed.map(|list| list.split(',').map(str::trim).collect());
        let statuses: BTreeMap<&str, &RawStatus> =
            status.all().map(|container| (&*container.name, container)).collect();
        let in_list = |list, containers: Option<Vec<RawContainer>>| {
            let containers = containers.unwrap_or_default().into_iter().enumerate();
            let ours = containers.filter(|(_, container)| {
                container.is_injected() && names.as_ref().is_none_or(|names| names.contains(&*container.name))
            });
            let read = ours.map(|(index, container)| {
                let status = statuses.get(&*container.name).map(|status| status.read());
                container.read(list, index, status)
            });
            read.collect::<Vec<_>>()
        };
        let mut containers = in_list(List::Init, spec.init_containers);
        containers.extend(in_list(List::Main, spec.containers));
        let ready = status.conditions.iter().flatten().find(|condition| &*condition.kind == "Ready");
        let decided = annotations.get(DECISION).and_then(|text| serde_json::from_str::<Decided>(text).ok());
        let decided = decided.into_iter().flat_map(|decided| decided.sets);
        let reservations = decided.filter_map(|(set, entry)| Some((set, entry.reservation?)));
        let phase = status.phase.as_deref();
        Self {
            namespace: metadata.namespace.unwrap_or_default(),
            name: metadata.name.unwrap_or_default(),
            uid: metadata.uid.unwrap_or_default(),
            labels: metadata.labels.unwrap_or_default().into_iter().collect(),
            created: metadata.creation_timestamp.unwrap_or_default(),
            owner,
            is_assigned: spec.node_name.is_some_and(|node| !node.is_empty()),
            is_pending: phase == Some("Pending"),
            is_ready: ready.is_some_and(|condition| &*condition.status == "True"),
            ready_since: ready.and_then(|condition| condition.last_transition_time),
            is_deleting: metadata.deletion_timestamp.is_some(),
            is_ended: matches!(phase, Some("Succeeded" | "Failed")),
            record: record.cloned(),
            revisions: record.and_then(|text| PodRevisions::parse(text)).unwrap_or_default(),
            reservations: reservations.collect(),
            is_listed: listed.is_some(),
            containers: containers.into(),
        }
    }

    /// A label.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels.iter().find(|(own, _)| **own == *key).map(|(_, value)| &**value)
    }

    /// A container of ours.
    pub fn container(&self, name: &str) -> Option<&Container> {
        self.containers.iter().find(|container| *container.name == *name)
    }

    /// What makes it: the Deployment of its `ReplicaSet`, else its owner, else nothing but itself.
    pub fn workload(&self) -> Workload<'_> {
        let namespace = &self.namespace;
        let Some(owner) = &self.owner else { return Workload { namespace, kind: "Pod", name: &self.name } };
        let deployment = self.label(TEMPLATE_HASH).filter(|_| &*owner.kind == "ReplicaSet");
        let deployment = deployment.and_then(|hash| owner.name.strip_suffix(hash)?.strip_suffix('-'));
        match deployment {
            Some(name) => Workload { namespace, kind: "Deployment", name },
            None => Workload { namespace, kind: &owner.kind, name: &owner.name },
        }
    }
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
    containers: Option<Vec<RawContainer>>,
    init_containers: Option<Vec<RawContainer>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawContainer {
    name: Box<str>,
    image: Option<Box<str>>,
    resources: Option<Box<Value>>,
    startup_probe: Option<serde::de::IgnoredAny>,
    env: Option<Vec<RawVariable>>,
}

#[derive(Clone, Debug, Deserialize)]
struct RawVariable {
    name: Box<str>,
    value: Option<Box<str>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawPodStatus {
    phase: Option<Box<str>>,
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
    last_transition_time: Option<Timestamp>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawStatus {
    name: Box<str>,
    #[serde(default)]
    restart_count: u32,
    #[serde(rename = "containerID")]
    container_id: Option<Box<str>>,
    #[serde(default)]
    ready: bool,
    #[serde(default)]
    state: RawState,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct RawState {
    running: Option<RawRunning>,
    waiting: Option<RawReason>,
    terminated: Option<RawReason>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawRunning {
    started_at: Option<Timestamp>,
}

#[derive(Clone, Debug, Deserialize)]
struct RawReason {
    reason: Option<Box<str>>,
}

/// What of a record of decisions is read here.
#[derive(Deserialize)]
struct Decided {
    sets: BTreeMap<Box<str>, DecidedEntry>,
}

#[derive(Deserialize)]
struct DecidedEntry {
    reservation: Option<Box<str>>,
}

impl RawPod {
    /// The version the API server gave it.
    pub fn resource_version(&self) -> Option<&str> {
        self.metadata.resource_version.as_deref()
    }

    /// An annotation.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.metadata.annotations.as_ref()?.get(key).map(AsRef::as_ref)
    }
}

impl RawContainer {
    /// Whether it carries the variable that says a `SidecarSet` put it there.
    fn is_injected(&self) -> bool {
        let mut variables = self.env.iter().flatten();
        variables.any(|variable| &*variable.name == "IS_INJECTED" && variable.value.as_deref() == Some("true"))
    }

    fn read(self, list: List, index: usize, status: Option<Status>) -> Container {
        Container {
            list,
            index: u16::try_from(index).unwrap_or(u16::MAX),
            name: self.name,
            image: self.image.unwrap_or_default(),
            resources: self.resources.filter(|resources| resources.as_object().is_some_and(|it| !it.is_empty())),
            has_startup_probe: self.startup_probe.is_some(),
            status,
        }
    }
}

impl RawPodStatus {
    fn all(&self) -> impl Iterator<Item = &RawStatus> {
        self.init_container_statuses.iter().chain(&self.container_statuses).flatten()
    }
}

impl RawStatus {
    fn read(&self) -> Status {
        let reason = |it: &RawReason| it.reason.clone().unwrap_or_default();
        let id = self.container_id.as_deref().unwrap_or_default();
        Status {
            restarts: self.restart_count,
            id: id[id.floor_char_boundary(id.len().saturating_sub(ID_LENGTH))..].into(),
            state: match (&self.state.running, &self.state.waiting, &self.state.terminated) {
                (Some(running), ..) => State::Running(running.started_at),
                (None, _, Some(terminated)) => State::Terminated(reason(terminated)),
                (None, Some(waiting), None) => State::Waiting(reason(waiting)),
                (None, None, None) => State::Waiting(Box::default()),
            },
            is_ready: self.ready,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod() -> Value {
        json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "web-5d8c-a", "namespace": "shop", "uid": "u-1", "creationTimestamp": "2026-01-02T03:04:05Z",
                "labels": {"app": "web", "pod-template-hash": "5d8c"},
                "annotations": {
                    "pillion.dev/containers": "proxy, init",
                    "pillion.dev/decision": r#"{"v":1,"sets":{"mesh":{"code":"PL201","reservation":"r-7"},"logs":{"code":"PL201"}}}"#,
                    "pillion.dev/revisions": r#"{"mesh":{"is":"mesh-1"}}"#},
                "ownerReferences": [{"apiVersion": "v1", "kind": "Other", "name": "o", "uid": "u-0"},
                    {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5d8c", "uid": "u-2", "controller": true}]},
            "spec": {"nodeName": "n", "containers": [{"name": "app", "image": "app:1"},
                    {"name": "other", "image": "x", "env": [{"name": "IS_INJECTED", "value": "true"}]}],
                "initContainers": [{"name": "init", "image": "init:1"},
                    {"name": "proxy", "image": "proxy:1", "resources": {"limits": {"cpu": "1"}}, "startupProbe": {"exec": {}},
                     "env": [{"name": "A", "valueFrom": {}}, {"name": "IS_INJECTED", "value": "true"}]}]},
            "status": {"phase": "Running",
                "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-02T03:05:00Z"}],
                "initContainerStatuses": [{"name": "proxy", "restartCount": 3, "ready": true, "containerID": "containerd://0123456789abcdef",
                    "state": {"running": {"startedAt": "2026-01-02T03:04:30Z"}}}]}})
    }

    fn read(pod: Value) -> Pod {
        Pod::read(serde_json::from_value(pod).unwrap())
    }

    #[test]
    fn of_a_pod_is_kept_what_an_update_looks_at() {
        let pod = read(pod());
        assert_eq!((&*pod.namespace, &*pod.name, &*pod.uid), ("shop", "web-5d8c-a", "u-1"));
        assert_eq!(
            [pod.is_assigned, pod.is_pending, pod.is_ready, pod.is_deleting, pod.is_ended],
            [true, false, true, false, false]
        );
        assert_eq!(pod.ready_since, Some("2026-01-02T03:05:00Z".parse().unwrap()));
        assert_eq!(pod.record.as_deref(), Some(r#"{"mesh":{"is":"mesh-1"}}"#));
        assert_eq!(pod.revisions.of("mesh").unwrap().is, "mesh-1");
        assert_eq!(*pod.reservations, [("mesh".into(), "r-7".into())]);
        let status = Status {
            restarts: 3,
            id: "456789abcdef".into(),
            state: State::Running(Some("2026-01-02T03:04:30Z".parse().unwrap())),
            is_ready: true,
        };
        assert_eq!(status.mark(), "3 456789abcdef");
        let proxy = Container {
            list: List::Init,
            index: 1,
            name: "proxy".into(),
            image: "proxy:1".into(),
            resources: Some(Box::new(json!({"limits": {"cpu": "1"}}))),
            has_startup_probe: true,
            status: Some(status),
        };
        assert_eq!(*pod.containers, [proxy], "ours are those that were injected and are on the list");
        assert_eq!(pod.workload(), Workload { namespace: "shop", kind: "Deployment", name: "web" });
    }

    #[test]
    fn a_pod_without_a_list_has_the_containers_that_were_injected() {
        let mut other = pod();
        other["metadata"]["annotations"] = json!({"kruise.io/sidecarset-injected-list": "mesh"});
        let other = read(other);
        assert!(!other.is_listed);
        assert_eq!(other.containers.iter().map(|it| &*it.name).collect::<Vec<_>>(), ["proxy", "other"]);
    }

    #[test]
    fn a_workload_is_what_makes_a_pod() {
        let mut one = pod();
        one["metadata"]["labels"] = json!({});
        assert_eq!(read(one.clone()).workload(), Workload { namespace: "shop", kind: "ReplicaSet", name: "web-5d8c" });
        one["metadata"]["ownerReferences"] = json!(null);
        assert_eq!(read(one).workload(), Workload { namespace: "shop", kind: "Pod", name: "web-5d8c-a" });
        assert_eq!(read(json!({})), Pod::default());
    }

    #[test]
    fn a_state_is_one_of_three() {
        let state = |state: Value| {
            let mut pod = pod();
            pod["status"]["initContainerStatuses"][0]["state"] = state;
            read(pod).containers[0].status.clone().unwrap().state
        };
        assert_eq!(state(json!({"waiting": {"reason": "ErrImagePull"}})), State::Waiting("ErrImagePull".into()));
        assert_eq!(
            state(json!({"terminated": {"reason": "Completed", "exitCode": 0}})),
            State::Terminated("Completed".into())
        );
        assert_eq!(state(json!({})), State::Waiting("".into()));
    }
}
