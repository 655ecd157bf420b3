//! A watch on any kind that keeps of every object only what the caller needs.
//!
//! - [`watch`]: what to watch and what to keep; gives a [`Store`] and the future that fills it.
//! - [`Store`]: the objects kept, readable from many threads; [`Store::changes`] tells what changed, and
//!   [`Store::list_again`] is for those who have changed their mind about what to keep.
//!
//! The kind may be a type of Kubernetes, one of the caller's own that reads only some fields, or
//! `PartialObjectMeta` for metadata only. Where one broken object must not stop the watch, wrap the type in
//! `kube::core::DeserializeGuard`. Each watch has its own back-off, so a failing one does not slow the others.

use std::fmt::Debug;
use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBackoff, ExponentialBuilder};
use futures::StreamExt as _;
use kube::runtime::watcher::{self, Event, InitialListStrategy, watcher};
use kube::{Api, Resource};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

mod changes;
mod store;
#[cfg(test)]
mod tests;

pub use changes::Changes;
pub use store::{Key, Listing, Objects, Store};

/// First pause after an error.
const SHORTEST_PAUSE: Duration = Duration::from_millis(200);
/// Longest pause, before up to as much again is added by chance: a cluster that is back is noticed soon.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Which objects a watch sees.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// A label selector, evaluated by the API server.
    pub labels: Option<String>,
    /// A field selector, evaluated by the API server.
    pub fields: Option<String>,
    /// How new a list must be.
    pub freshness: Freshness,
}

/// How new a list must be. What comes after it is the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Freshness {
    /// As new as the moment it is asked for, page by page. For those who write: a restart never goes back in time.
    #[default]
    Latest,
    /// What the API server has at hand, streamed: cheapest for both sides. It may be older than what was seen before,
    /// from another API server, and is then followed by what happened since.
    Any,
}

/// Metrics of all watches of a program.
#[derive(Clone, Debug, Default)]
pub struct WatchMetrics {
    objects: Family<WatchLabel, Gauge>,
    events: Family<WatchLabel, Counter>,
    lists: Family<WatchLabel, Counter>,
    errors: Family<WatchLabel, Counter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WatchLabel {
    watch: &'static str,
}

/// Watches the selected objects of a kind and keeps of each what `slim` gives; where it gives nothing, the object is not
/// kept. The store fills while the future runs, which it does until it is dropped.
pub fn watch<K, V, F>(
    name: &'static str,
    api: Api<K>,
    selection: Selection,
    metrics: &WatchMetrics,
    slim: F,
) -> (Store<V>, impl Future<Output = ()> + Send + use<K, V, F>)
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
    V: PartialEq + Send + Sync + 'static,
    F: Fn(K) -> Option<V> + Send + 'static,
{
    let store = Store::new();
    let driver = Driver { name, api, selection, metrics: metrics.of(name), store: store.clone(), slim };
    (store, driver.run())
}

struct Driver<K, V, F> {
    name: &'static str,
    api: Api<K>,
    selection: Selection,
    metrics: OwnMetrics,
    store: Store<V>,
    slim: F,
}

/// Metrics of one watch.
struct OwnMetrics {
    objects: Gauge,
    events: Counter,
    lists: Counter,
    errors: Counter,
}

/// How to go on after an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Recovery {
    /// From where it was.
    Resume,
    /// With a new list.
    Relist,
    /// With a new list, page by page: this API server cannot stream one.
    RelistInPages,
}

struct Pauses {
    backoff: ExponentialBackoff,
    last: Option<Instant>,
}

impl<K, V, F> Driver<K, V, F>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
    V: PartialEq + Send + Sync + 'static,
    F: Fn(K) -> Option<V> + Send + 'static,
{
    async fn run(self) {
        let mut config = self.selection.config();
        let mut pauses = Pauses::new();
        loop {
            self.store.list_starts();
            let mut events = std::pin::pin!(watcher(self.api.clone(), config.clone()));
            let recovery = loop {
                let event = tokio::select! {
                    event = events.next() => event,
                    () = self.store.list_wanted() => break Recovery::Relist,
                };
                match event {
                    Some(Ok(event)) => self.happens(event),
                    Some(Err(error)) => {
                        let pause = pauses.next();
                        let recovery = Recovery::of(&error);
                        self.failed(&error, pause, recovery);
                        sleep(pause).await;
                        if recovery != Recovery::Resume {
                            break recovery;
                        }
                    }
                    None => break Recovery::Relist,
                }
            };
            if recovery == Recovery::RelistInPages {
                config.initial_list_strategy = InitialListStrategy::ListWatch;
            }
        }
    }

    fn happens(&self, event: Event<K>) {
        self.metrics.events.inc();
        match event {
            Event::Init => return self.store.list_begins(),
            Event::InitApply(object) => return self.store.list_brings(Key::of(&object), (self.slim)(object)),
            Event::InitDone => {
                self.store.list_ends();
                self.metrics.lists.inc();
                info!(watch = self.name, objects = self.store.len(), "listed");
            }
            Event::Apply(object) => self.store.apply(Key::of(&object), (self.slim)(object)),
            Event::Delete(object) => self.store.apply(Key::of(&object), None),
        }
        self.metrics.objects.set(i64::try_from(self.store.len()).unwrap_or(i64::MAX));
    }

    fn failed(&self, error: &watcher::Error, pause: Duration, recovery: Recovery) {
        self.metrics.errors.inc();
        warn!(watch = self.name, %error, ?pause, ?recovery, "the watch failed");
        self.store.failed(error.to_string());
    }
}

impl Selection {
    fn config(&self) -> watcher::Config {
        let config = watcher::Config {
            label_selector: self.labels.clone(),
            field_selector: self.fields.clone(),
            ..watcher::Config::default()
        };
        match self.freshness {
            Freshness::Latest => config,
            Freshness::Any => config.any_semantic().streaming_lists(),
        }
    }
}

impl Recovery {
    fn of(error: &watcher::Error) -> Self {
        // kube goes on by itself, from where it was or with a new list, except for these two, which it would ask for
        // the same again for ever.
        let watcher::Error::WatchStartFailed(kube::Error::Api(status)) = error else { return Self::Resume };
        match status.code {
            // The version to go on from is gone.
            410 => Self::Relist,
            // `sendInitialEvents` is refused where the API server has no streaming lists.
            400 | 422 => Self::RelistInPages,
            _ => Self::Resume,
        }
    }
}

impl Pauses {
    fn new() -> Self {
        let builder = ExponentialBuilder::new()
            .with_min_delay(SHORTEST_PAUSE)
            .with_max_delay(LONGEST_PAUSE)
            .with_factor(2.0)
            .with_jitter()
            .without_max_times();
        Self { backoff: builder.build(), last: None }
    }

    fn next(&mut self) -> Duration {
        if self.last.is_some_and(|last| last.elapsed() > store::APART) {
            *self = Self::new();
        }
        self.last = Some(Instant::now());
        self.backoff.next().unwrap_or(LONGEST_PAUSE)
    }
}

impl WatchMetrics {
    /// Adds the metrics of watches to a registry.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let Self { objects, events, lists, errors } = metrics.clone();
        registry.register("watch_objects", "Objects a watch keeps", objects);
        registry.register("watch_events", "Events a watch has seen, lists included", events);
        registry.register(
            "watch_lists",
            "Lists a watch has completed; more than one means that it lost its place",
            lists,
        );
        registry.register("watch_errors", "Errors of a watch; it goes on after each", errors);
        metrics
    }

    fn of(&self, watch: &'static str) -> OwnMetrics {
        let label = WatchLabel { watch };
        OwnMetrics {
            objects: self.objects.get_or_create_owned(&label),
            events: self.events.get_or_create_owned(&label),
            lists: self.lists.get_or_create_owned(&label),
            errors: self.errors.get_or_create_owned(&label),
        }
    }
}
