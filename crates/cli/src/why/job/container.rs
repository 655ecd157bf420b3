//! The containers of a pod of a Job: what they are to its end, and how they are.

use std::collections::BTreeSet;

use jiff::Timestamp;
use pillion_api::terminate_variable;
use pillion_inject::{is_wrapped_sidecar, marks};
use serde_json::{Map, Value, json};

use super::{text, time};
use crate::rollout::age;

/// What a container is to the end of its pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// An init container that is always restarted.
    Native,
    /// One whose command the agent runs as a sidecar.
    Agent,
    /// One that is marked as a sidecar, and nothing was done about it.
    Marked,
    /// One that a set added, and that is no sidecar.
    Injected,
    /// Any other.
    Plain,
    /// An init container that ends before the others start.
    Init,
}

/// What a container does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It runs.
    Running(Option<Timestamp>),
    /// It has ended with this code.
    Ended(i64, Option<Timestamp>),
    /// It does not run yet, and why.
    Waiting(String),
}

/// A container with its state.
pub(super) struct Seen<'a> {
    pub(super) name: &'a str,
    pub(super) kind: Kind,
    pub(super) state: State,
    /// Whether its startup is over.
    pub(super) is_started: bool,
    pub(super) is_injected: bool,
    pub(super) restarts: u64,
    /// Whether it has ended and is not started again.
    pub(super) is_done: bool,
}

impl Seen<'_> {
    pub(super) fn is_running(&self) -> bool {
        matches!(self.state, State::Running(_))
    }

    pub(super) fn row(&self, now: Timestamp) -> [String; 4] {
        [self.name.to_owned(), self.told_state(now), self.told_kind().to_owned(), self.told_end().to_owned()]
    }

    pub(super) fn json(&self, now: Timestamp) -> Value {
        json!({"name": self.name, "state": self.told_state(now), "kind": self.told_kind(), "ends": self.told_end()})
    }

    fn told_state(&self, now: Timestamp) -> String {
        let restarts = if self.restarts > 0 { format!(", restart {}", self.restarts) } else { String::new() };
        let told = |at: Option<Timestamp>| at.map(|at| age(now.duration_since(at)));
        match &self.state {
            State::Running(since) => {
                let since = told(*since).map(|age| format!(" for {age}")).unwrap_or_default();
                format!("running{since}{restarts}")
            }
            State::Ended(code, at) => {
                let at = told(*at).map(|age| format!(", {age} ago")).unwrap_or_default();
                format!("ended {code}{at}{restarts}")
            }
            State::Waiting(reason) if reason.is_empty() => format!("waiting{restarts}"),
            State::Waiting(reason) => format!("waiting: {reason}{restarts}"),
        }
    }

    fn told_kind(&self) -> &'static str {
        match self.kind {
            Kind::Native => "native sidecar",
            Kind::Agent => "wrapped sidecar",
            Kind::Marked => "marked as sidecar",
            Kind::Injected => "added by a set",
            Kind::Plain => "plain container",
            Kind::Init => "init container",
        }
    }

    fn told_end(&self) -> &'static str {
        match (self.kind, &self.state) {
            (_, State::Ended(..)) if self.is_done => "has ended for good",
            (Kind::Plain | Kind::Injected | Kind::Init, State::Ended(..)) => "is started again",
            (Kind::Native, _) => "the node, after all others",
            (Kind::Agent, _) => "the agent, after all others",
            (Kind::Marked, _) => "nothing: it is marked, and runs as a plain container",
            (Kind::Injected | Kind::Plain | Kind::Init, _) => "itself, and nothing else",
        }
    }
}

/// The containers of a pod that matter to its end: all, but for plain init containers that are done.
pub(super) fn seen(pod: &Value) -> Vec<Seen<'_>> {
    let named = marks::names(pod["metadata"]["annotations"][marks::SIDECARS].as_str());
    let policy = text(&pod["spec"]["restartPolicy"]);
    let of = |list: &str, statuses: &str| {
        let containers = pod["spec"][list].as_array().map_or(&[][..], Vec::as_slice);
        let statuses = pod["status"][statuses].as_array().map_or(&[][..], Vec::as_slice);
        let is_init = list == "initContainers";
        let read = |container| one(container, statuses, is_init, &named, policy);
        containers.iter().map(read).collect::<Vec<_>>()
    };
    let mut all = of("initContainers", "initContainerStatuses");
    all.retain(|container| container.kind != Kind::Init || !container.is_done);
    all.extend(of("containers", "containerStatuses"));
    all
}

fn one<'a>(
    container: &'a Value,
    statuses: &[Value],
    is_init: bool,
    named: &BTreeSet<String>,
    policy: &str,
) -> Seen<'a> {
    let name = text(&container["name"]);
    let status = statuses.iter().find(|status| status["name"] == name).unwrap_or(&Value::Null);
    let mut variables = container["env"].as_array().into_iter().flatten();
    let is_injected =
        variables.any(|variable| marks::is_injected_variable(text(&variable["name"]), variable["value"].as_str()));
    let is = |what: fn(&Map<String, Value>) -> bool| container.as_object().is_some_and(what);
    let is_marked = named.contains(name) || is(|container| terminate_variable(container).is_some());
    let is_run_by_agent = is(is_wrapped_sidecar);
    let kind = match (is_init, container["restartPolicy"] == "Always") {
        (true, true) => Kind::Native,
        (true, false) => Kind::Init,
        (false, _) if is_run_by_agent => Kind::Agent,
        (false, _) if is_marked => Kind::Marked,
        (false, _) if is_injected => Kind::Injected,
        (false, _) => Kind::Plain,
    };
    let state = state(&status["state"]);
    let is_done = match (&state, kind) {
        (State::Ended(0, _), _) => true,
        (State::Ended(..), Kind::Native) => false,
        (State::Ended(..), _) => policy == "Never",
        _ => false,
    };
    Seen {
        name,
        kind,
        state,
        is_started: status["started"].as_bool().unwrap_or_default(),
        is_injected,
        restarts: status["restartCount"].as_u64().unwrap_or_default(),
        is_done,
    }
}

fn state(state: &Value) -> State {
    if let Some(running) = state.get("running") {
        return State::Running(time(&running["startedAt"]));
    }
    if let Some(ended) = state.get("terminated") {
        return State::Ended(ended["exitCode"].as_i64().unwrap_or_default(), time(&ended["finishedAt"]));
    }
    State::Waiting(text(&state["waiting"]["reason"]).to_owned())
}
