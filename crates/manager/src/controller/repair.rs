//! Which missed pods are evicted, so that their workload creates them again. Only where it was asked for.
//!
//! - [`plan`]: the decision, pure.
//! - [`rehearsal`]: the pod as it would be created again, pure; the API server is asked what would become of it.
//! - [`sweeper`]: carries it out.
//!
//! The guards: only pods that a `ReplicaSet`, `StatefulSet` or `DaemonSet` creates again; only after a rehearsal in which
//! the pod came back with its sidecars; by the Eviction API, which keeps to disruption budgets; one at a time per workload,
//! which must be as many and as ready as before until the next; and no workload again whose new pods were missed as well.

mod plan;
mod rehearsal;
mod sweeper;

pub(super) use sweeper::Sweeper;
