//! What the pod is to show, by who wants it shown. Plugins post; one thread brings it to the pod and keeps it there.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, PoisonError};

use pillion_agent_api::Target;

/// What one source wants the pod to show. What it posted before and does not name now is taken away.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Marks {
    /// Labels of the pod.
    pub labels: BTreeMap<String, String>,
    /// Annotations of the pod.
    pub annotations: BTreeMap<String, String>,
    /// Conditions of the pod, by type.
    pub conditions: BTreeMap<String, Condition>,
    /// Fields of other objects.
    pub targets: Vec<(Target, String)>,
    /// Gauges.
    pub metrics: BTreeMap<String, f64>,
}

/// A condition of the pod, without its times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Whether it holds.
    pub status: ConditionStatus,
    /// Why, as one word.
    pub reason: String,
    /// Why, for people; at most 1024 bytes are written.
    pub message: String,
}

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionStatus {
    /// It does.
    True,
    /// It does not.
    False,
    /// Nobody knows.
    Unknown,
}

/// What the pod is to show.
#[derive(Debug, Default)]
pub struct Board {
    posted: Mutex<BTreeMap<String, Marks>>,
    changed: Condvar,
}

impl Board {
    /// Replaces what a source wants shown.
    pub fn post(&self, source: &str, marks: Marks) {
        let mut posted = self.posted.lock().unwrap_or_else(PoisonError::into_inner);
        if posted.get(source) != Some(&marks) {
            posted.insert(source.to_owned(), marks);
            self.changed.notify_all();
        }
    }

    /// What a source wants shown now.
    pub fn posted(&self, source: &str) -> Option<Marks> {
        self.posted.lock().unwrap_or_else(PoisonError::into_inner).get(source).cloned()
    }
}
