//! Which revision each pod should have, and which pods change next.
//!
//! - [`Pod`]: a pod that exists, as far as an update looks at it.
//! - [`pinned_target`], [`effective_max_unavailable`]: what the numbers of a strategy come to. There is one function for
//!   each, for whoever asks.
//!
//! The manager and the command line call these functions on the same pods. The crate knows nothing of the API server, and
//! takes the time as a value.
#![forbid(unsafe_code)]

mod pod;
mod share;

pub use pod::{Container, List, Owner, Pod, RawPod, State, Status, Workload};
pub use share::{effective_max_unavailable, pinned_target};
