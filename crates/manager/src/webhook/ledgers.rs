//! Which revision a new pod gets where a proportion is counted.
//!
//! Reviews of one set that come at the same time share one write: while one is under way, the others gather for the
//! next. Replicas race by the version of the ledger. Whoever waits too long gets the pinned revision, which takes nothing
//! from the proportion that is promised.
//!
//! - [`Ledgers`]: all ledgers there are, and the way to a reservation.
//! - [`commit`]: one write for many.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use kube::Client;
use parking_lot::Mutex;
use pillion_rollout::ledger::{Given, Ledger};
use pillion_runtime::watch::WatchMetrics;
use prometheus_client::registry::Registry;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use crate::admission::{Ask, Reservation};
use crate::chance;
use crate::ledger_shelf::Shelf;

mod commit;
mod metrics;
mod quota;

use commit::{Committer, Waiting};
pub use metrics::LedgerMetrics;
pub use quota::Origin;
use quota::Quota;

/// The field manager of reservations.
const MANAGER: &str = "pillion-webhook";
/// A review waits no longer for its reservation.
const PATIENCE: Duration = Duration::from_millis(500);
/// This much of a review's own time is left for the rest of it.
const MARGIN: Duration = Duration::from_millis(100);

/// All ledgers. Clones share their writes.
#[derive(Clone)]
pub struct Ledgers(Arc<Shared>);

struct Shared {
    shelf: Shelf,
    committers: Mutex<BTreeMap<String, mpsc::UnboundedSender<Waiting>>>,
    metrics: LedgerMetrics,
    quota: Mutex<Quota>,
    /// What makes ids of this process unlike those of others.
    prefix: String,
    next: AtomicU64,
}

impl Ledgers {
    /// Watches the ledgers of the installation in a namespace while the future runs. Writes go by a client that is told
    /// of a busy API server at once.
    pub fn watch(
        client: Client,
        namespace: &str,
        watch_metrics: &WatchMetrics,
        registry: &mut Registry,
    ) -> (Self, BoxFuture<'static, ()>) {
        let (shelf, driver) = Shelf::watch(client, namespace, MANAGER, "ledgers", watch_metrics);
        let shared = Shared {
            shelf,
            committers: Mutex::default(),
            metrics: LedgerMetrics::register(registry),
            quota: Mutex::default(),
            prefix: chance::word(),
            next: AtomicU64::new(1),
        };
        (Self(Arc::new(shared)), driver)
    }

    /// A readiness check: whether all ledgers are known.
    pub fn check_complete(&self) -> Result<(), String> {
        self.0.shelf.check_complete()
    }

    /// What the next pod would get; nothing is reserved.
    pub fn look(&self, ask: &Ask) -> Reservation {
        let given = self.0.shelf.get(&ask.set).filter(|ledger| ledger.spec.set_uid == ask.set_uid);
        let Some(ledger) = given else { return Reservation::in_trouble(None, NO_LEDGER) };
        let given = Ledger::read(&ledger.spec).reserve(&ask.share(), &ask.newcomer(""));
        Reservation { is_newest: given == Given::Newest, id: None, trouble: None }
    }

    /// Reserves a place for a new pod. It takes no longer than a review may wait, which itself has so much time left.
    pub async fn reserve(&self, ask: Ask, origin: &Origin, remaining: Duration) -> Reservation {
        let began = Instant::now();
        if !self.0.quota.lock().take(&ask.set, origin, began) {
            self.0.metrics.unavailable.inc();
            return Reservation::in_trouble(None, "its namespace has too many reservations");
        }
        let until = began + PATIENCE.min(remaining.saturating_sub(MARGIN));
        let id = self.id();
        let (answer_tx, answer_rx) = oneshot::channel();
        self.queue(Waiting { ask, id: id.clone(), until, answer_tx });
        let answered = timeout_at(until, answer_rx).await;
        self.0.metrics.waited.observe(began.elapsed().as_secs_f64());
        let reservation = match answered {
            Ok(Ok(Ok(Given::Full))) => Reservation::in_trouble(None, "there are too many reservations"),
            Ok(Ok(Ok(given))) => Reservation { is_newest: given == Given::Newest, id: Some(id), trouble: None },
            Ok(Ok(Err(trouble))) => Reservation::in_trouble(Some(id), &trouble),
            // It may have been written all the same; by its id the pod is counted as what it is.
            Ok(Err(_)) | Err(_) => Reservation::in_trouble(Some(id), "the ledger was not written in time"),
        };
        if reservation.trouble.is_some() {
            self.0.metrics.unavailable.inc();
        }
        reservation
    }

    /// Hands it to the one who writes the ledger of the set; there is one for each, from the first time it is asked.
    fn queue(&self, waiting: Waiting) {
        let mut committers = self.0.committers.lock();
        let committer = committers.entry(waiting.ask.set.clone()).or_insert_with_key(|set| {
            let (waiting_tx, waiting_rx) = mpsc::unbounded_channel();
            let Shared { shelf, metrics, .. } = &*self.0;
            let committer = Committer { set: set.clone(), shelf: shelf.clone(), metrics: metrics.clone() };
            tokio::spawn(committer.run(waiting_rx));
            waiting_tx
        });
        // It ends only with this map.
        let _ = committer.send(waiting);
    }

    /// Short, and unlike any other: it is written into the ledger and into the pod.
    fn id(&self) -> String {
        format!("{}.{}", self.0.prefix, chance::letters(self.0.next.fetch_add(1, Ordering::Relaxed)))
    }
}

const NO_LEDGER: &str = "there is no ledger of the set yet";
