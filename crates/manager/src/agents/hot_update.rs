//! Which pods of a workload are told next of a version that was asked for, and how far that is.
//!
//! A few are told at a time; the next ones follow when the agents of those say that it is done. One that says that it failed
//! stops the rest: a version that breaks one pod is not tried on all.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use pillion_agent_api::{Outcome, OutcomeState};
use pillion_api::{HotUpdateSpec, HotUpdateStatus, Reason};

use super::pods::AgentPod;
use crate::conditions::{Stands, condition};

/// So many pods are named.
const EXAMPLES: usize = 3;
/// How many of a hundred pods may be at it where nothing is said.
const IN_FLIGHT_PERCENT: usize = 25;

/// How far a pod is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It does not know yet.
    Untold,
    /// It knows.
    InFlight,
    /// It has the version.
    Done,
    /// It could not load it.
    Failed,
}

/// What comes next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Step {
    /// Pods to be told, in this order.
    pub(super) tell: Vec<String>,
    /// How far it is, before these are told.
    pub(super) progress: Progress,
}

/// How far an update is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Progress {
    pods: usize,
    done: usize,
    failed: usize,
    in_flight: Vec<String>,
    /// The first pod that failed, and what its agent said.
    failure: Option<(String, String)>,
    is_superseded: bool,
}

/// What comes next of a record: `pods` are those of its workload that have an agent, by name, and `wanted` is what their
/// annotation says when they have been told.
pub(super) fn step<'a>(
    spec: &HotUpdateSpec,
    wanted: &str,
    pods: impl IntoIterator<Item = (&'a str, &'a AgentPod)>,
) -> Step {
    let mut untold = Vec::new();
    let mut progress = Progress::default();
    for (name, pod) in pods.into_iter().filter(|(_, pod)| !pod.is_deleting) {
        progress.pods += 1;
        let (stage, message) = stage(spec, wanted, pod);
        match stage {
            Stage::Untold => untold.push(name.to_owned()),
            Stage::InFlight => progress.in_flight.push(name.to_owned()),
            Stage::Done => progress.done += 1,
            Stage::Failed => {
                progress.failed += 1;
                progress.failure.get_or_insert((name.to_owned(), message));
            }
        }
    }
    let room = in_flight(spec.max_in_flight.as_ref(), progress.pods).saturating_sub(progress.in_flight.len());
    let room = if progress.failed > 0 { 0 } else { room };
    untold.truncate(room);
    Step { tell: untold, progress }
}

fn stage(spec: &HotUpdateSpec, wanted: &str, pod: &AgentPod) -> (Stage, String) {
    if pod.wanted.as_deref() != Some(wanted) {
        return (Stage::Untold, String::new());
    }
    let outcome = pod.result.as_deref().and_then(|text| serde_json::from_str::<Outcome>(text).ok());
    match outcome.filter(|outcome| outcome.version == spec.version) {
        Some(Outcome { state: OutcomeState::Done, .. }) => (Stage::Done, String::new()),
        Some(Outcome { state: OutcomeState::Failed, message, .. }) => (Stage::Failed, message),
        Some(Outcome { state: OutcomeState::Working, .. }) | None => (Stage::InFlight, String::new()),
    }
}

/// How many pods may be at it at a time: at least one, or nothing would ever come of it.
fn in_flight(asked: Option<&IntOrString>, pods: usize) -> usize {
    let percent = |percent: usize| (pods * percent).div_ceil(100);
    let asked = match asked {
        None => percent(IN_FLIGHT_PERCENT),
        Some(IntOrString::Int(number)) => usize::try_from(*number).unwrap_or_default(),
        Some(IntOrString::String(text)) => {
            percent(text.strip_suffix('%').and_then(|text| text.parse().ok()).unwrap_or(IN_FLIGHT_PERCENT))
        }
    };
    asked.max(1)
}

impl Progress {
    /// That of a record which another one of the same workload has replaced.
    pub(super) fn superseded() -> Self {
        Self { is_superseded: true, ..Self::default() }
    }

    /// The status of a record. What `before` has that is still so keeps its time.
    pub(super) fn status(&self, generation: i64, before: Option<&HotUpdateStatus>, now: Timestamp) -> HotUpdateStatus {
        let count = |pods: usize| Some(i32::try_from(pods).unwrap_or(i32::MAX));
        let waiting = self.pods - self.done - self.failed;
        let (reason, what) = self.stands();
        let coded = format!("{}: {what}: {}", reason.code(), reason.cure());
        let stalled = match &self.failure {
            Some(_) => (true, reason.name(), coded.clone()),
            None => (false, "NoneFailed", "no pod says that it failed".to_owned()),
        };
        let ready = match reason {
            Reason::HotUpdateDone | Reason::HotUpdateProgressing => what,
            _ => coded,
        };
        let ready = (reason == Reason::HotUpdateDone, reason.name(), ready);
        let earlier = before.and_then(|before| before.conditions.as_deref());
        let conditions = [("Ready", ready), ("Stalled", stalled)].map(|(kind, (holds, reason, message))| {
            condition(Stands { kind, holds, reason, message }, generation, earlier, now)
        });
        HotUpdateStatus {
            observed_generation: Some(generation),
            pods: count(self.pods),
            done: count(self.done),
            failed: count(self.failed),
            waiting: count(waiting),
            conditions: Some(conditions.into()),
        }
    }

    fn stands(&self) -> (Reason, String) {
        let Self { pods, done, .. } = self;
        if self.is_superseded {
            return (Reason::HotUpdateSuperseded, "another record of the workload holds".to_owned());
        }
        if let Some((pod, why)) = &self.failure {
            let others = match self.failed {
                1 => String::new(),
                failed => format!(", as {} more", failed - 1),
            };
            return (Reason::HotUpdateFailed, format!("pod {pod} failed{others}: {why}"));
        }
        match self.pods {
            0 => (Reason::HotUpdateNoPods, "there is no pod to tell".to_owned()),
            _ if done == pods => (Reason::HotUpdateDone, format!("{done} of {pods} pods have the version")),
            _ => {
                let named: Vec<&str> = self.in_flight.iter().take(EXAMPLES).map(String::as_str).collect();
                let more = self.in_flight.len().saturating_sub(EXAMPLES);
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                let at_it =
                    if named.is_empty() { String::new() } else { format!("; at it: {}{more}", named.join(", ")) };
                (Reason::HotUpdateProgressing, format!("{done} of {pods} pods have the version{at_it}"))
            }
        }
    }
}

#[cfg(test)]
mod tests;
