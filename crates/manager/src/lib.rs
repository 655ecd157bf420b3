//! What runs in the cluster, and the only part of us that writes to it: asks the deciders, and does what they say.
//!
//! - [`Settings`]: what a process is told; [`run`]: the whole of it, from the first connection to the last.
//! - [`names`]: the objects that are ours by name.
//! - [`admission`]: from the bytes of an `AdmissionReview` to the bytes of its answer, with no cluster in sight.
//! - [`webhook`]: the role that answers the API server. It never watches pods.
//! - [`controller`]: the role that looks after sets and pods; one replica of it acts.
//! - [`agents`]: the role that gives agents in pods what they need; [`hot_updates`]: what was asked for workloads.
//! - [`events`]: events on objects, told beside the work.
//! - [`view`]: what both roles decide from: all sets, compiled, and the namespaces.
//! - [`finish`]: how sidecars of pods are ended.
//! - [`switch`]: whether injection is switched off.
#![forbid(unsafe_code)]

pub mod admission;
pub mod agents;
mod chance;
pub mod controller;
pub mod events;
pub mod finish;
mod gates;
pub mod hot_updates;
mod ledger_shelf;
pub mod names;
mod run;
mod settings;
pub mod switch;
pub mod view;
pub mod webhook;

pub use gates::{GATES, IN_POD_AGENT, POD_WEBHOOK, SIDECAR_FINISH};
pub use run::run;
pub use settings::{Role, Settings};
