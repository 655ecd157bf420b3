//! Which sidecars a pod gets at admission: one function from a pod and the sets that match it to a patch and the reasons.
//!
//! - [`SetIndex`]: all sets, compiled; [`SetIndex::matching`] finds those that match a pod without asking the others.
//! - [`inject`]: asks each [`Candidate`], and makes a [`Decision`]: one [`Verdict`] per set, and one JSON patch.
//! - [`Ending`]: how a container that is marked as a sidecar is ended when the others have, by [`Finishing`].
//! - [`Record`]: what of it the pod carries, so that anyone can be told later.
//! - [`coverage`]: which pods that exist carry what they should, and which were missed.
//! - [`mismatch`]: why a set does not match.
//! - [`Edit`]: what changing a set would do to a pod; [`Impact`]: to all of them.
//! - [`pod_security`]: which Pod Security level a pod, or an addition to it, has.
//! - [`pod_of`], [`fill_in`]: the pod a workload would create, and what the API server does to it before it asks us;
//!   [`uninjected`]: what a pod was before, as far as it tells.
//!
//! The webhook, the controller and the command line call these functions on the same bytes. A pod is JSON, edited only
//! where something of ours goes; fields nobody here knows stay as they are. Reviewing a pod twice changes nothing the
//! second time. The crate knows nothing of files, the API server, or the time.
#![forbid(unsafe_code)]

mod apply;
mod checked;
mod claims;
pub mod coverage;
mod decision;
mod evaluate;
mod finish;
pub mod hot_update;
mod impact;
mod inject;
mod likeness;
pub mod marks;
mod matching;
mod namespace;
mod plain_form;
mod pod;
mod pod_resources;
pub mod pod_security;
mod record;
mod security;
mod server_defaults;
mod set_index;
mod sidecar;
mod size;
mod templates;
mod uninjected;
mod volume;
mod workload;

pub use decision::{Decision, Ending, Outcome, Refusal, Size, Verdict, Warning};
pub use finish::{Agent, Finishing, is_wrapped_sidecar, mentions_variable};
pub use impact::{Cause, Counts, Edit, Effect, Example, Impact, Subject};
pub use inject::{Candidate, Choice, Installation, Sizer, inject};
pub use matching::{Mismatch, asked_for, mismatch};
pub use namespace::Namespace;
pub use pod::PodHead;
pub use record::{Entry, MAX_RECORD, Record};
pub use server_defaults::{Filled, FilledBy, LimitRange, fill_in};
pub use set_index::{SetIndex, selects_namespace};
pub use templates::{Origin, WorkloadPod, pod_of};
pub use uninjected::uninjected;
pub use workload::{Origins, Workload};
