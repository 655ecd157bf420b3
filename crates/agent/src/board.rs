//! What the pod is to show, by who wants it shown. Plugins post; one thread brings it to the pod and keeps it there.

mod difference;
mod local;
mod shown;
mod sink;
mod writer;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pillion_agent_api::Target;

pub(crate) use self::local::Local;
pub(crate) use self::sink::{Cluster, app_environment};
pub(crate) use self::writer::Writer;

/// How often the pod is looked at, unless a configuration says so.
const DEFAULT_REASSERT: Duration = Duration::from_mins(1);
/// What the API server would take is more; nobody reads it.
const MOST_MESSAGE_BYTES: usize = 1024;

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
    /// Labels that are to be gone, whoever set them: an agent that ran before this one may have.
    pub absent_labels: BTreeSet<String>,
    /// Annotations that are to be gone.
    pub absent_annotations: BTreeSet<String>,
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

impl ConditionStatus {
    /// As the API has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// What an answer of the API server told about the pod, besides its marks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodFacts {
    /// Its address.
    pub ip: Option<String>,
    /// Ports with names, by container and name.
    pub ports: BTreeMap<(String, String), u16>,
}

/// What happened on the way to the pod, for those who watch agents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Writes that the API server took.
    pub writes: u64,
    /// Marks that were set again, by the writer that had overwritten them.
    pub reasserts: BTreeMap<String, u64>,
    /// Writes that failed or were refused.
    pub failures: u64,
}

/// A place in the pod that holds one mark.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    Label(String),
    Annotation(String),
    Condition(String),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Label(key) => write!(f, "label {key}"),
            Self::Annotation(key) => write!(f, "annotation {key}"),
            Self::Condition(kind) => write!(f, "condition {kind}"),
        }
    }
}

/// What is in a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Text(String),
    Condition(Condition),
}

/// What each place is to hold; `None` where it is to be empty.
pub(crate) type Wanted = BTreeMap<Place, Option<Content>>;

/// Why one that waited goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Woken {
    Changed,
    Due,
    Closed,
}

/// What the pod is to show.
#[derive(Debug)]
pub struct Board {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    posted: BTreeMap<String, Marks>,
    /// Every place that was ever asked for: what nobody asks for any more is taken away.
    known: BTreeSet<Place>,
    reassert: Duration,
    facts: Option<PodFacts>,
    facts_are_wanted: bool,
    counters: Counters,
    /// Grows with every change.
    version: u64,
    is_closed: bool,
}

impl Default for Board {
    fn default() -> Self {
        let state = State {
            posted: BTreeMap::new(),
            known: BTreeSet::new(),
            reassert: DEFAULT_REASSERT,
            facts: None,
            facts_are_wanted: false,
            counters: Counters::default(),
            version: 0,
            is_closed: false,
        };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }
}

impl Board {
    /// Replaces what a source wants shown.
    pub fn post(&self, source: &str, mut marks: Marks) {
        for condition in marks.conditions.values_mut() {
            cut(&mut condition.message, MOST_MESSAGE_BYTES);
        }
        let mut state = self.state();
        if state.posted.get(source) != Some(&marks) {
            state.known.extend(places_of(&marks));
            state.posted.insert(source.to_owned(), marks);
            self.tell(state);
        }
    }

    /// Takes away what a source wanted shown.
    pub fn withdraw(&self, source: &str) {
        let mut state = self.state();
        if state.posted.remove(source).is_some() {
            self.tell(state);
        }
    }

    /// Takes away what parts of a plugin (`plugin/part`) wanted shown, except these.
    pub fn withdraw_all_but(&self, plugin: &str, kept: &BTreeSet<String>) {
        let mut state = self.state();
        let before = state.posted.len();
        state.posted.retain(|source, _| {
            let is_of_plugin = source.strip_prefix(plugin).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
            !is_of_plugin || kept.contains(source)
        });
        if state.posted.len() != before {
            self.tell(state);
        }
    }

    /// What a source wants shown now.
    pub fn posted(&self, source: &str) -> Option<Marks> {
        self.state().posted.get(source).cloned()
    }

    /// What the API server told about the pod; nothing before its first answer. Once asked, it will be found out.
    pub fn facts(&self) -> Option<PodFacts> {
        let mut state = self.state();
        let facts = state.facts.clone();
        if !state.facts_are_wanted {
            state.facts_are_wanted = true;
            self.tell(state);
        }
        facts
    }

    /// What happened on the way to the pod.
    pub fn counters(&self) -> Counters {
        self.state().counters.clone()
    }

    /// The gauges of all sources.
    pub fn metrics(&self) -> BTreeMap<String, f64> {
        self.state().posted.values().flat_map(|marks| marks.metrics.clone()).collect()
    }

    /// How often the pod is to be looked at.
    pub(crate) fn set_reassert(&self, interval: Option<Duration>) {
        let mut state = self.state();
        let interval = interval.unwrap_or(DEFAULT_REASSERT);
        if state.reassert != interval {
            state.reassert = interval;
            self.tell(state);
        }
    }

    pub(crate) fn reassert(&self) -> Duration {
        self.state().reassert
    }

    /// What is to be in each place that anybody ever asked for. Of two sources that want one place, the one whose name
    /// comes later has it.
    pub(crate) fn wanted(&self) -> Wanted {
        let state = self.state();
        let mut wanted: Wanted = state.known.iter().map(|place| (place.clone(), None)).collect();
        for marks in state.posted.values() {
            let text = |text: &String| Some(Content::Text(text.clone()));
            wanted.extend(marks.labels.iter().map(|(key, value)| (Place::Label(key.clone()), text(value))));
            wanted.extend(marks.annotations.iter().map(|(key, value)| (Place::Annotation(key.clone()), text(value))));
            wanted.extend(marks.conditions.iter().map(|(kind, condition)| {
                (Place::Condition(kind.clone()), Some(Content::Condition(condition.clone())))
            }));
        }
        wanted
    }

    /// What other objects are to hold.
    pub(crate) fn targets(&self) -> Vec<(Target, String)> {
        self.state().posted.values().flat_map(|marks| marks.targets.clone()).collect()
    }

    /// Whether there is a reason to ask the API server at all.
    pub(crate) fn is_of_use(&self) -> bool {
        let state = self.state();
        !state.known.is_empty() || (state.facts_are_wanted && state.facts.is_none())
    }

    pub(crate) fn tell_facts(&self, facts: PodFacts) {
        self.state().facts = Some(facts);
    }

    pub(crate) fn count(&self, change: impl FnOnce(&mut Counters)) {
        change(&mut self.state().counters);
    }

    /// No more will come; what is posted is still brought to the pod, if that is possible at once.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.is_closed = true;
        self.tell(state);
    }

    /// Waits until something is changed since this version, or until then.
    pub(crate) fn wait(&self, seen: &mut u64, until: Option<Instant>) -> Woken {
        let mut state = self.state();
        loop {
            if state.is_closed {
                return Woken::Closed;
            }
            if state.version != *seen {
                *seen = state.version;
                return Woken::Changed;
            }
            state = match until.map(|until| until.saturating_duration_since(Instant::now())) {
                Some(Duration::ZERO) => return Woken::Due,
                Some(left) => self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0,
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, mut state: MutexGuard<'_, State>) {
        state.version += 1;
        drop(state);
        self.changed.notify_all();
    }
}

fn places_of(marks: &Marks) -> impl Iterator<Item = Place> {
    let labels = marks.labels.keys().chain(&marks.absent_labels).cloned().map(Place::Label);
    let annotations = marks.annotations.keys().chain(&marks.absent_annotations).cloned().map(Place::Annotation);
    labels.chain(annotations).chain(marks.conditions.keys().cloned().map(Place::Condition))
}

/// Shortens a text to so many bytes or a few less, between two characters.
pub(crate) fn cut(text: &mut String, most: usize) {
    text.truncate(text.floor_char_boundary(most));
}

#[cfg(test)]
mod tests;
