//! What the controller is measured by. No label names an object.

use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// Metrics of the controller. Only the leader's say anything.
#[derive(Clone, Debug, Default)]
pub(super) struct ControllerMetrics {
    pub(super) missed: Gauge,
    pub(super) statuses: Counter,
    pub(super) failed_statuses: Counter,
    /// Plans that were not carried out because they break a rule. There are none.
    pub(super) violations: Counter,
    repairs: Family<RepairLabel, Counter>,
    updates: Family<UpdateLabel, Counter>,
}

/// What became of a pod that was to be created again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelValue)]
pub(super) enum Repair {
    /// It was evicted.
    Evicted,
    /// The Eviction API says that it must wait.
    Budget,
    /// It would not come back with its sidecars.
    Rehearsal,
    /// It is gone or changed, or the API server failed.
    Failed,
}

/// What became of the update of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelValue)]
pub(super) enum Updated {
    /// The API server has taken it.
    Written,
    /// The pod was not what the plan was made from.
    Changed,
    /// The pod was gone.
    Gone,
    /// The API server did not want it.
    Refused,
    /// There was no answer.
    Unknown,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct UpdateLabel {
    outcome: Updated,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RepairLabel {
    outcome: Repair,
}

impl ControllerMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let Self { missed, statuses, failed_statuses, violations, repairs, updates } = metrics.clone();
        registry.register("pods_missed", "Pods that should carry a sidecar and do not, as the leader sees it", missed);
        registry.register("status_writes", "Statuses of sets that were written", statuses);
        registry.register(
            "status_failures",
            "Statuses of sets that could not be written; they are tried again",
            failed_statuses,
        );
        let help = "Plans that were not carried out because they break a rule: a defect, please report it";
        registry.register("plan_violations", help, violations);
        registry.register("pod_updates", "Updates of running pods, by what became of the write", updates);
        registry.register("repairs", "Missed pods that were to be created again, by what became of it", repairs);
        metrics
    }

    pub(super) fn repaired(&self, outcome: Repair) {
        self.repairs.get_or_create(&RepairLabel { outcome }).inc();
    }

    pub(super) fn updated(&self, outcome: Updated) {
        self.updates.get_or_create(&UpdateLabel { outcome }).inc();
    }

    /// Who does not lead knows nothing.
    pub(super) fn forget(&self) {
        self.missed.set(0);
    }
}
