//! Which revision each pod should have, and which pods change next.
//!
//! - [`Pod`]: a pod that exists, as far as an update looks at it.
//! - [`plan`]: of a [`Fleet`], a set and its pods at one moment, which pods are written now, and its [`Progress`]. What it
//!   plans is checked by `pillion_plan::check` against [`ground`].
//! - [`OwnWrites`]: what we have written and the watch has not shown yet.
//! - [`Difference`]: what lies between two revisions, by what a running pod can follow.
//! - [`choice`]: which revision a new pod gets; [`ledger`]: the counts by which a proportion is exact.
//! - [`history`]: which revisions are kept, and which one a set pins.
//! - [`pinned_target`], [`effective_max_unavailable`]: what the numbers of a strategy come to. There is one function for
//!   each, for whoever asks.
//!
//! The manager and the command line call these functions on the same pods. The crate knows nothing of the API server, and
//! takes the time as a value.
#![forbid(unsafe_code)]

pub mod choice;
mod difference;
mod fleet;
pub mod history;
pub mod ledger;
mod order;
mod own_writes;
mod planner;
mod pod;
mod progress;
mod resources;
mod share;
mod sizers;
mod swap;

pub use difference::{Difference, Place};
pub use fleet::{DisruptionBudget, Fleet};
pub use own_writes::OwnWrites;
pub use pillion_plan::List;
pub use planner::{ground, plan};
pub use pod::{Container, Owner, Pod, RawPod, State, Status, Workload};
pub use progress::{Blocked, Counts, Gate, Progress, RevisionCount, Stalled};
pub use share::{effective_max_unavailable, pinned_target};
pub use sizers::{Sizer, Sizers};
