//! Events on objects, told beside the work and never in its way.
//!
//! Whoever has something to say puts it into a queue that does not wait; one task writes. The same thing about the same
//! object is written once a minute at most, and counted by Kubernetes where it goes on.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use tracing::{debug, warn};

/// So many wait to be written; more are dropped and counted.
const ROOM: usize = 512;
/// The same is not written again for this long.
const APART: Duration = Duration::from_mins(1);
/// So many events of one namespace are written in this time; more are dropped and counted.
const MOST_OF_NAMESPACE: u32 = 60;
/// So many things are remembered as told; then all are forgotten.
const REMEMBERED: usize = 10_000;
/// An event that takes longer is given up.
const PATIENCE: Duration = Duration::from_secs(5);
/// The API server takes no longer note.
const MAX_NOTE: usize = 1_000;

/// Something to be told about an object.
#[derive(Clone, Debug)]
pub struct Note {
    /// The object.
    pub regarding: ObjectReference,
    /// Another object that has to do with it.
    pub related: Option<ObjectReference>,
    /// Whether somebody should look at it.
    pub is_warning: bool,
    /// Why, as one word: `Injected`.
    pub reason: String,
    /// What was done or not: `Inject`.
    pub action: &'static str,
    /// In words.
    pub message: String,
}

/// Takes notes. Clones put them into the same queue.
#[derive(Clone)]
pub struct Events {
    queue: mpsc::Sender<Note>,
    metrics: EventMetrics,
}

/// Metrics of events.
#[derive(Clone, Debug, Default)]
pub struct EventMetrics {
    dropped: Counter,
    failed: Counter,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Told {
    regarding: (Option<String>, Option<String>, Option<String>),
    reason: String,
    related: Option<String>,
}

/// Notes of the last minute, and their number for each namespace.
#[derive(Default)]
struct Memory {
    told: BTreeMap<Told, Instant>,
    namespaces: BTreeMap<String, (Instant, u32)>,
}

impl Events {
    /// Writes events as `pillion-<role>` while the future runs.
    pub fn new(client: Client, role: &str, replica: &str, metrics: EventMetrics) -> (Self, BoxFuture<'static, ()>) {
        let (queue, notes) = mpsc::channel(ROOM);
        let reporter = Reporter { controller: format!("pillion-{role}"), instance: Some(replica.to_owned()) };
        let recorder = Recorder::new(client, reporter);
        (Self { queue, metrics: metrics.clone() }, write(recorder, notes, metrics).boxed())
    }

    /// Has something told, if there is room.
    pub fn tell(&self, note: Note) {
        if self.queue.try_send(note).is_err() {
            self.metrics.dropped.inc();
        }
    }
}

async fn write(recorder: Recorder, mut notes: mpsc::Receiver<Note>, metrics: EventMetrics) {
    let mut memory = Memory::default();
    while let Some(note) = notes.recv().await {
        let now = Instant::now();
        if !memory.is_new(&note, now) {
            continue;
        }
        if !memory.has_room(&note, now) {
            metrics.dropped.inc();
            continue;
        }
        let event = Event {
            type_: if note.is_warning { EventType::Warning } else { EventType::Normal },
            reason: note.reason,
            note: Some(note.message[..note.message.floor_char_boundary(MAX_NOTE)].to_owned()),
            action: note.action.to_owned(),
            secondary: note.related,
        };
        let error = match timeout(PATIENCE, recorder.publish(&event, &note.regarding)).await {
            Ok(Ok(())) => {
                debug!(reason = event.reason, object = note.regarding.name, "told");
                continue;
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => "no answer in time".to_owned(),
        };
        metrics.failed.inc();
        warn!(error, reason = event.reason, object = note.regarding.name, "cannot write an event");
    }
}

impl Memory {
    /// Whether it was not told lately. It then is from now on.
    fn is_new(&mut self, note: &Note, now: Instant) -> bool {
        let ObjectReference { kind, namespace, name, .. } = note.regarding.clone();
        let related = note.related.as_ref().and_then(|related| related.name.clone());
        let told = Told { regarding: (kind, namespace, name), reason: note.reason.clone(), related };
        if self.told.get(&told).is_some_and(|before| now.duration_since(*before) < APART) {
            return false;
        }
        if self.told.len() >= REMEMBERED {
            self.told.clear();
        }
        self.told.insert(told, now);
        true
    }

    /// Returns true if the namespace of a note may have one more event. A note on an object of the whole cluster counts for the
    /// namespace of the related object: pods of that namespace have caused it.
    fn has_room(&mut self, note: &Note, now: Instant) -> bool {
        let related = note.related.as_ref().and_then(|related| related.namespace.as_ref());
        let Some(namespace) = note.regarding.namespace.as_ref().or(related) else { return true };
        self.namespaces.retain(|_, (began, _)| now.duration_since(*began) < APART);
        let (_, count) = self.namespaces.entry(namespace.clone()).or_insert((now, 0));
        *count += 1;
        *count <= MOST_OF_NAMESPACE
    }
}

impl EventMetrics {
    /// Adds the metrics of events to a registry.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let Self { dropped, failed } = metrics.clone();
        registry.register("events_dropped", "Events that were not written because too many waited", dropped);
        registry.register("events_failed", "Events that could not be written", failed);
        metrics
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(name: &str, reason: &str, related: Option<&str>) -> Note {
        let named = |name: &str| ObjectReference { name: Some(name.to_owned()), ..ObjectReference::default() };
        Note {
            regarding: named(name),
            related: related.map(named),
            is_warning: false,
            reason: reason.to_owned(),
            action: "Inject",
            message: String::new(),
        }
    }

    #[test]
    fn the_same_about_the_same_object_is_told_once_a_minute() {
        let mut memory = Memory::default();
        let now = Instant::now();
        let minute = |minutes| now + Duration::from_mins(minutes);
        assert!(memory.is_new(&note("web", "Injected", Some("mesh")), now));
        assert!(!memory.is_new(&note("web", "Injected", Some("mesh")), now + Duration::from_secs(59)));
        assert!(memory.is_new(&note("api", "Injected", Some("mesh")), now));
        assert!(memory.is_new(&note("web", "Skipped", Some("mesh")), now));
        assert!(memory.is_new(&note("web", "Injected", Some("logs")), now));
        assert!(memory.is_new(&note("web", "Injected", Some("mesh")), minute(1)));
        assert!(!memory.is_new(&note("web", "Injected", Some("mesh")), minute(1)));
    }

    #[test]
    fn attack_one_namespace_causes_so_many_events_a_minute() {
        let mut memory = Memory::default();
        let now = Instant::now();
        let of = |namespace: Option<&str>, related: Option<&str>| {
            let mut note = note("web", "Refused", Some("owner"));
            note.regarding.namespace = namespace.map(str::to_owned);
            note.related.as_mut().unwrap().namespace = related.map(str::to_owned);
            note
        };
        let mut written = |note: &Note, now| (0..100).filter(|_| memory.has_room(note, now)).count();
        assert_eq!(written(&of(Some("evil"), None), now), 60);
        assert_eq!(written(&of(None, Some("evil")), now), 0);
        assert_eq!(written(&of(Some("team"), Some("evil")), now), 60);
        assert_eq!(written(&of(None, None), now), 100);
        assert_eq!(written(&of(Some("evil"), None), now + APART), 60);
    }

    #[test]
    fn what_is_remembered_has_an_end() {
        let mut memory = Memory::default();
        let now = Instant::now();
        for number in 0..=REMEMBERED {
            memory.is_new(&note(&number.to_string(), "Injected", None), now);
        }
        assert_eq!(memory.told.len(), 1);
    }
}
