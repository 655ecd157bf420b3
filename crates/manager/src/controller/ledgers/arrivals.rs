//! Reservations of pods that were seen. A pod may come and go between two looks at the pods there are; its reservation would
//! then count for a minute more.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;
use pillion_rollout::Pod;

/// Ids of reservations. Clones collect for the same reader.
#[derive(Clone, Default)]
pub(in super::super) struct Arrivals(Arc<Mutex<BTreeSet<String>>>);

impl Arrivals {
    /// A pod was seen, or seen again.
    pub(in super::super) fn saw(&self, pod: &Pod) {
        // Almost no pod has one.
        if !pod.reservations.is_empty() {
            self.0.lock().extend(pod.reservations.iter().map(|(_, id)| id.to_string()));
        }
    }

    /// Takes all ids that came since the last time.
    pub(super) fn take(&self) -> BTreeSet<String> {
        std::mem::take(&mut *self.0.lock())
    }
}
