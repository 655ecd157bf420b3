//! How a rollout stands: what the planner of the controller says of what the cluster has.
//!
//! The planner is asked about all pods for what happens next and what does not, and about the pods of each workload for its
//! numbers; what it says of one pod does not depend on the others.

use std::collections::BTreeMap;

use jiff::Timestamp;
use pillion_api::names::NEVER_REVIEWED;
use pillion_api::{HealthGate, Meaning, PodCount, Reason, SetMode};
use pillion_rollout::{Counts, Fleet, OwnWrites, Pod, Progress, Sizers, Stalled, plan};
use serde_json::Value;

use super::gather::Rollout;

/// How a rollout stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Picture {
    pub(super) set: String,
    /// The newest revision.
    pub(super) newest: String,
    /// The other revision that most pods have.
    pub(super) from: Option<String>,
    pub(super) state: State,
    pub(super) progress: Progress,
    pub(super) partition: PodCount,
    pub(super) max_unavailable: PodCount,
    /// Pods that were given the newest revision and do not run it yet, by name; the first that is tried alone.
    pub(super) under_way: Vec<String>,
    /// Whether one pod is tried before all others.
    pub(super) is_probing: bool,
    /// Pods that are written to next.
    pub(super) next: Vec<String>,
    /// By namespace, kind and name.
    pub(super) workloads: Vec<WorkloadPicture>,
    /// What the controller says of it, where it says more.
    pub(super) controller: Vec<String>,
}

/// How the pods of one workload stand.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct WorkloadPicture {
    pub(super) namespace: String,
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) counts: Counts,
    pub(super) stalled: Option<Stalled>,
}

/// In one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// All pods have the newest revision and run it.
    Done,
    /// All pods have it that are to have it.
    Resting(Reason),
    /// Pods are updated, or are about to be.
    Moving,
    /// Somebody, or something that changes by itself, holds it.
    Held(Reason),
    /// It does not go on by itself.
    Stalled(Reason),
}

impl State {
    /// For people and programs.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Resting(_) => "resting",
            Self::Moving => "progressing",
            Self::Held(_) => "waiting",
            Self::Stalled(_) => "stalled",
        }
    }

    /// Whether there is nothing to wait for.
    pub(super) fn is_final(self) -> bool {
        matches!(self, Self::Done | Self::Resting(_) | Self::Stalled(_))
    }

    pub(super) fn is_stalled(self) -> bool {
        matches!(self, Self::Stalled(_))
    }

    pub(super) fn reason(self) -> Reason {
        match self {
            Self::Done => Reason::UpToDate,
            Self::Moving => Reason::Progressing,
            Self::Resting(reason) | Self::Held(reason) | Self::Stalled(reason) => reason,
        }
    }
}

impl Picture {
    pub(super) fn of(rollout: &Rollout, now: Timestamp) -> Self {
        let set = as_installed(rollout);
        let templates = rollout.revisions.templates();
        let own_writes = OwnWrites::default();
        let troubles = BTreeMap::new();
        let sizers = Sizers::default();
        let facts = &rollout.world.given.facts;
        let left_alone = [NEVER_REVIEWED, facts.namespace.as_str()];
        let pods: Vec<&Pod> = rollout.pods.iter().collect();
        let fleet = Fleet {
            set: &set,
            templates: &templates,
            pods: &pods,
            budgets: &rollout.budgets,
            troubles: &troubles,
            own_writes: &own_writes,
            left_alone: &left_alone,
            // Autoscalers are not asked: of what they size, a status may wait for more than the controller does.
            sizers: &sizers,
            now,
            is_off: facts.is_off,
        };
        let (plan, progress) = plan(&fleet);
        let open = with_open_gate(&set);
        let alone = Fleet { set: &open, ..fleet };
        let title = |pod: &Pod| format!("{}/{}", pod.namespace, pod.name);
        let is_under_way = |pod: &&&Pod| {
            let has_newest = pod.revisions.of(&set.name).is_some_and(|it| it.is == set.revision && !it.was.is_empty());
            has_newest && progress_of(&alone, &[**pod]).counts.updating == 1
        };
        let counts = super::history::counts(&set.name, &rollout.pods);
        let others =
            counts.into_iter().filter_map(|(name, count)| Some((count, name.filter(|it| *it != set.revision)?)));
        Self {
            set: set.name.clone(),
            newest: set.revision.clone(),
            from: others.max().map(|(_, name)| name.to_owned()),
            state: state(&progress),
            partition: set.update.partition,
            max_unavailable: set.update.max_unavailable,
            under_way: pods.iter().filter(is_under_way).map(|pod| title(pod)).collect(),
            is_probing: progress.blocked.iter().any(|blocked| blocked.reason == Reason::ProbeUnfinished),
            next: plan.actions.iter().map(|it| format!("{}/{}", it.update().namespace, it.update().name)).collect(),
            workloads: workloads(&alone, &rollout.pods),
            controller: told_by_controller(&rollout.set, &progress),
            progress,
        }
    }
}

/// The set as the installation lets it be.
fn as_installed(rollout: &Rollout) -> Meaning {
    let mut set = rollout.meaning.clone();
    if rollout.world.given.facts.mode == SetMode::Observe {
        set.mode = SetMode::Observe;
    }
    set
}

/// How many pods close the gate is a question about all of them, and not about some.
fn with_open_gate(set: &Meaning) -> Meaning {
    let mut set = set.clone();
    set.update.gate = HealthGate { max_unhealthy: PodCount::Pods(u32::MAX), rollback: false };
    set
}

/// What the planner says of some of the pods.
fn progress_of(fleet: &Fleet<'_>, pods: &[&Pod]) -> Progress {
    plan(&Fleet { pods, ..*fleet }).1
}

fn workloads(fleet: &Fleet<'_>, pods: &[Pod]) -> Vec<WorkloadPicture> {
    let mut grouped: BTreeMap<_, Vec<&Pod>> = BTreeMap::new();
    for pod in pods {
        grouped.entry(pod.workload()).or_default().push(pod);
    }
    let pictures = grouped.into_iter().map(|(workload, pods)| {
        let progress = progress_of(fleet, &pods);
        WorkloadPicture {
            namespace: workload.namespace.to_owned(),
            kind: workload.kind.to_owned(),
            name: workload.name.to_owned(),
            counts: progress.counts,
            stalled: progress.stalled,
        }
    });
    pictures.collect()
}

fn state(progress: &Progress) -> State {
    let counts = &progress.counts;
    if let Some(stalled) = &progress.stalled {
        return State::Stalled(stalled.reason);
    }
    if counts.updating > 0 || counts.starting > 0 {
        return State::Moving;
    }
    let lasting = [
        Reason::PartitionKeeps,
        Reason::NeedsRecreate,
        Reason::OutsideUpdateSelector,
        Reason::UpdateSwitchedOff,
        Reason::NamespaceExcluded,
    ];
    let held = progress.blocked.iter().find(|blocked| !lasting.contains(&blocked.reason));
    match (held, progress.blocked.first()) {
        (Some(held), _) => State::Held(held.reason),
        (None, Some(kept)) => State::Resting(kept.reason),
        (None, None) => State::Done,
    }
}

/// What the conditions of the set add to what can be seen from here: events, and an edit that is not seen yet.
fn told_by_controller(set: &Value, progress: &Progress) -> Vec<String> {
    let mut told = Vec::new();
    let number = |pointer: &str| set.pointer(pointer).and_then(Value::as_i64);
    match (number("/metadata/generation"), number("/status/observedGeneration")) {
        (_, None) => told.push("the controller has not told anything of this set yet: does it run?".to_owned()),
        (Some(is), Some(seen)) if seen < is => told.push("the controller has not seen the last edit yet".to_owned()),
        _ => {}
    }
    let conditions = set.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
    let mut stalled = conditions.filter(|it| it["type"] == "Stalled" && it["status"] == "True");
    if let Some(message) = stalled.next().and_then(|it| it["message"].as_str()).filter(|_| progress.stalled.is_none()) {
        told.push(format!("the controller says that it is stalled: {message}"));
    }
    told
}
