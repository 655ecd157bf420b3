//! What runs in the cluster, and the only part of us that writes to it: asks the deciders, and does what they say.
//!
//! - [`Settings`]: what a process is told; [`run`]: the whole of it, from the first connection to the last.
//! - [`names`]: the objects that are ours by name.
//! - [`admission`]: from the bytes of an `AdmissionReview` to the bytes of its answer, with no cluster in sight.
//! - [`webhook`]: the role that answers the API server. It never watches pods.
//! - [`controller`]: the role that looks after sets and pods; one replica of it acts.
//! - [`agents`]: the role that gives agents in pods what they need; [`hot_updates`]: what was asked for workloads.
//! - [`rightsizer`]: the role that recommends sizes for containers, and applies them to running pods.
//! - [`events`]: events on objects, told beside the work.
//! - [`view`]: what both roles decide from: all sets, compiled, and the namespaces.
//! - [`finish`]: how sidecars of pods are ended.
//! - [`switch`]: whether injection is switched off.
#![forbid(unsafe_code)]

pub mod admission;
pub mod agents;
mod asking;
mod autoscalers;
mod chance;
mod conditions;
pub mod controller;
pub mod events;
pub mod finish;
mod gates;
pub mod hot_updates;
mod leading;
mod ledger_shelf;
mod limit_ranges;
pub mod names;
pub mod rightsizer;
mod run;
mod settings;
mod sizing_settings;
pub mod switch;
mod upstream;
pub mod view;
pub mod webhook;

pub use gates::{CPU_STARTUP_BOOST, GATES, IN_POD_AGENT, NATIVE_SIDECAR, POD_WEBHOOK, SIDECAR_FINISH};
pub use run::run;
pub use settings::{Role, Settings};
pub use sizing_settings::{MetricsSource, SizingSettings};
