//! What a node does with a container, as far as it was seen on real ones.
//!
//! A changed image first ends the old container, which may take its time; until then its status stays as it was. A pod's main
//! container that has no image waits; a native sidecar stays terminated, and only events would tell.

use pillion_plan::List;
use serde_json::{Value, json};

/// How long a node and a container take, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Habits {
    /// Until the old container has ended.
    pub stop: u32,
    /// Until the new one runs.
    pub start: u32,
    /// Until that one is ready.
    pub ready: u32,
}

/// A container on its node.
#[derive(Clone, Debug)]
pub(crate) struct NodeContainer {
    pub(crate) name: String,
    pub(crate) list: List,
    phase: Phase,
    restarts: u32,
    started: u32,
    started_at: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    Running { image: String, ready_in: Option<u32> },
    Stopping { image: String, left: u32 },
    Starting { left: u32 },
    NoImage { image: String },
    Crashed { image: String, left: u32 },
}

/// How long a container that crashed is held back; always the same, so that tests end.
const BACK_OFF: u32 = 3;

impl NodeContainer {
    /// One that runs and is ready.
    pub(crate) fn running(name: &str, list: List, image: &str, now: &str) -> Self {
        let phase = Phase::Running { image: image.to_owned(), ready_in: None };
        Self { name: name.to_owned(), list, phase, restarts: 0, started: 1, started_at: now.to_owned() }
    }

    /// The image that runs and is ready.
    pub(crate) fn serves(&self) -> Option<&str> {
        match &self.phase {
            Phase::Running { image, ready_in: None } if !matches!(tag(image), "sick" | "crash") => Some(image),
            // It serves until it has ended.
            Phase::Stopping { image, .. } => Some(image),
            _ => None,
        }
    }

    /// A second passes; the pod's spec asks for this image.
    pub(crate) fn tick(&mut self, wanted: &str, habits: Habits, now: &str) {
        if matches!(&self.phase, Phase::Running { image, ready_in: None } if image == wanted && tag(image) != "crash") {
            return;
        }
        self.phase = match self.phase.clone() {
            Phase::Running { image, .. } if image != wanted => self.stop(image, wanted, habits.stop, habits, now),
            Phase::Running { image, .. } if tag(&image) == "crash" => Phase::Crashed { image, left: BACK_OFF },
            Phase::Running { image, ready_in } => {
                Phase::Running { image, ready_in: ready_in.and_then(|left| left.checked_sub(1)) }
            }
            Phase::Stopping { image, left } => self.stop(image, wanted, left, habits, now),
            Phase::Starting { left: 0 } => self.run(wanted, habits, now),
            Phase::Starting { left } => Phase::Starting { left: left - 1 },
            Phase::NoImage { image } if image == wanted => Phase::NoImage { image },
            Phase::Crashed { image, left } if image == wanted && left > 0 => Phase::Crashed { image, left: left - 1 },
            Phase::NoImage { .. } | Phase::Crashed { .. } => self.run(wanted, habits, now),
        };
    }

    fn stop(&mut self, image: String, wanted: &str, left: u32, habits: Habits, now: &str) -> Phase {
        match (left, habits.start) {
            (0, 0) => self.run(wanted, habits, now),
            (0, start) => Phase::Starting { left: start - 1 },
            (left, _) => Phase::Stopping { image, left: left - 1 },
        }
    }

    fn run(&mut self, image: &str, habits: Habits, now: &str) -> Phase {
        let image = image.to_owned();
        if tag(&image) == "missing" {
            return Phase::NoImage { image };
        }
        self.restarts += 1;
        self.started += 1;
        now.clone_into(&mut self.started_at);
        Phase::Running { image, ready_in: habits.ready.checked_sub(1) }
    }

    /// The status of the container in its pod's.
    pub(crate) fn status(&self, pod: &str) -> Value {
        let state = match &self.phase {
            Phase::Running { .. } | Phase::Stopping { .. } => json!({"running": {"startedAt": self.started_at}}),
            Phase::Starting { .. } => json!({"terminated": {"reason": "Completed"}}),
            Phase::NoImage { .. } if self.list == List::Init => json!({"terminated": {"reason": "Completed"}}),
            Phase::NoImage { .. } => json!({"waiting": {"reason": "ErrImagePull"}}),
            Phase::Crashed { .. } => json!({"waiting": {"reason": "CrashLoopBackOff"}}),
        };
        json!({
            "name": self.name,
            "restartCount": self.restarts,
            "containerID": format!("containerd://{pod}-{}-{:012}", self.name, self.started),
            "ready": self.serves().is_some(),
            "state": state,
        })
    }
}

fn tag(image: &str) -> &str {
    image.rsplit_once(':').map_or("", |(_, tag)| tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn habits(stop: u32, start: u32, ready: u32) -> Habits {
        Habits { stop, start, ready }
    }

    /// What the status tells, second by second: state, ready, restarts.
    fn seen(list: List, image: &str, habits: Habits, seconds: usize) -> Vec<(String, bool, u64)> {
        let mut container = NodeContainer::running("proxy", list, "proxy:1", "then");
        let mut seen = Vec::new();
        for _ in 0..seconds {
            container.tick(image, habits, "now");
            let status = container.status("pod");
            let state = status["state"].as_object().unwrap().iter().next().unwrap();
            let words = state.1["reason"].as_str().unwrap_or(state.0).to_owned();
            seen.push((words, status["ready"] == true, status["restartCount"].as_u64().unwrap()));
        }
        seen
    }

    #[test]
    fn a_quick_swap_is_seen_only_by_its_restart() {
        assert_eq!(
            seen(List::Main, "proxy:2", habits(0, 0, 0), 2),
            [("running".into(), true, 1), ("running".into(), true, 1)]
        );
    }

    #[test]
    fn a_slow_one_looks_well_until_the_old_container_has_ended() {
        let words = seen(List::Main, "proxy:2", habits(2, 1, 1), 5);
        let expected = [
            ("running", true, 0),
            ("running", true, 0),
            ("Completed", false, 0),
            ("running", false, 1),
            ("running", true, 1),
        ];
        assert_eq!(words, expected.map(|(words, ready, restarts)| (words.to_owned(), ready, restarts)));
    }

    #[test]
    fn an_image_that_is_missing_ends_the_old_container_all_the_same() {
        assert_eq!(seen(List::Main, "proxy:missing", habits(0, 0, 0), 9)[8], ("ErrImagePull".into(), false, 0));
        assert_eq!(seen(List::Init, "proxy:missing", habits(0, 0, 0), 9)[8], ("Completed".into(), false, 0));
    }

    #[test]
    fn what_crashes_and_what_is_sick_never_serves_for_long() {
        let crash = seen(List::Main, "proxy:crash", habits(0, 0, 0), 12);
        assert!(crash.iter().any(|it| it.0 == "CrashLoopBackOff") && crash.iter().all(|it| !it.1), "{crash:?}");
        assert!(crash[11].2 >= 2, "{crash:?}");
        assert_eq!(seen(List::Main, "proxy:sick", habits(0, 0, 1), 9)[8], ("running".into(), false, 1));
    }
}
