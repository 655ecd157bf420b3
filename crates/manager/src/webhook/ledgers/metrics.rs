//! What reservations are counted by.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

/// Metrics of all ledgers.
#[derive(Clone, Debug)]
pub struct LedgerMetrics {
    pub(super) reservations: Counter,
    pub(super) writes: Counter,
    pub(super) conflicts: Counter,
    pub(super) unavailable: Counter,
    pub(super) waited: Histogram,
}

impl LedgerMetrics {
    /// Adds the metrics of ledgers to a registry.
    pub fn register(registry: &mut Registry) -> Self {
        let waited = Histogram::new([5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 0.1, 0.2, 0.5]);
        let (reservations, writes, conflicts, unavailable) =
            (Counter::default(), Counter::default(), Counter::default(), Counter::default());
        registry.register("ledger_reservations", "Pods that got a reservation", reservations.clone());
        registry.register("ledger_writes", "Writes of ledgers that were tried; one serves many pods", writes.clone());
        let help = "Writes of ledgers for which another replica was faster; they are tried again";
        registry.register("ledger_conflicts", help, conflicts.clone());
        let help = "Pods that got the pinned revision because no ledger could be written in time";
        registry.register("ledger_unavailable", help, unavailable.clone());
        let help = "How long a review waited for its reservation";
        registry.register_with_unit("ledger_wait", help, Unit::Seconds, waited.clone());
        Self { reservations, writes, conflicts, unavailable, waited }
    }
}
