//! One write for many: the ledger of one set, and those who wait for a reservation in it.

use std::time::Duration;

use pillion_api::InjectionLedger;
use pillion_rollout::ledger::{Given, Ledger};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep};
use tracing::debug;

use super::NO_LEDGER;
use super::metrics::LedgerMetrics;
use crate::admission::Ask;
use crate::ledger_shelf::{Shelf, Written};

/// Before an API server that has no time is asked again.
const PAUSE: Duration = Duration::from_millis(20);

/// One who waits for a reservation.
pub(super) struct Waiting {
    pub(super) ask: Ask,
    pub(super) id: String,
    /// Nobody listens any more after this.
    pub(super) until: Instant,
    pub(super) answer_tx: oneshot::Sender<Result<Given, String>>,
}

/// Writes the ledger of one set.
pub(super) struct Committer {
    pub(super) set: String,
    pub(super) shelf: Shelf,
    pub(super) metrics: LedgerMetrics,
}

impl Committer {
    /// Works until nobody can ask any more.
    pub(super) async fn run(self, mut waiting_rx: mpsc::UnboundedReceiver<Waiting>) {
        while let Some(first) = waiting_rx.recv().await {
            let mut batch = vec![first];
            while let Ok(next) = waiting_rx.try_recv() {
                batch.push(next);
            }
            self.commit(batch).await;
        }
    }

    /// Decides about all of them, and writes once. Tries again as long as anybody listens.
    async fn commit(&self, mut batch: Vec<Waiting>) {
        let mut why = NO_LEDGER.to_owned();
        loop {
            let now = Instant::now();
            batch.retain(|waiting| !waiting.answer_tx.is_closed() && waiting.until > now);
            let Some(until) = batch.iter().map(|waiting| waiting.until).max() else { return };
            let Some(ledger) = self.shelf.get(&self.set) else { break };
            if batch.iter().any(|waiting| waiting.ask.set_uid != ledger.spec.set_uid) {
                // Somebody has not heard yet that this is another set.
                break;
            }
            let mut next = Ledger::read(&ledger.spec);
            let reserve = |waiting: &Waiting| next.reserve(&waiting.ask.share(), &waiting.ask.newcomer(&waiting.id));
            let given: Vec<Given> = batch.iter().map(reserve).collect();
            let next = InjectionLedger { metadata: ledger.metadata.clone(), spec: next.stored() };
            if next.spec == ledger.spec {
                return answer(batch, given);
            }
            self.metrics.writes.inc();
            match self.shelf.replace(next, until - now).await {
                Written::Done => {
                    self.metrics.reservations.inc_by(batch.len() as u64);
                    return answer(batch, given);
                }
                Written::Late => {
                    self.metrics.conflicts.inc();
                    "others were faster".clone_into(&mut why);
                }
                Written::Failed(reason) => {
                    debug!(set = self.set, reason, "cannot write the ledger");
                    why = reason;
                    sleep(PAUSE).await;
                }
            }
            // What was written by whom, only the API server knows. Reservations of ours that are in it are found again.
            self.shelf.read_again(&self.set, until.saturating_duration_since(Instant::now())).await;
        }
        for waiting in batch {
            let _ = waiting.answer_tx.send(Err(why.clone()));
        }
    }
}

fn answer(batch: Vec<Waiting>, given: Vec<Given>) {
    for (waiting, given) in batch.into_iter().zip(given) {
        // One who does not listen any more has given the pod the pinned revision, and the id by which it is counted.
        let _ = waiting.answer_tx.send(Ok(given));
    }
}
