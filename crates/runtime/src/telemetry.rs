//! How a program tells about itself: logs, metrics, and whether it is well.
//!
//! - [`start_logs`]: structured logs on stderr.
//! - [`registry`]: metrics, beginning with what the process costs and which build it is.
//! - [`admin`]: `/healthz`, `/readyz` and `/metrics`, with named [`Checks`].
//!
//! A component adds its metrics by a function `register(&mut Registry)` of its own. Label values come from enums and
//! from names known when the program is built, never from objects of the cluster.

use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

mod admin;
mod logs;
mod process;
#[cfg(test)]
mod tests;

pub use admin::{Checks, admin};
pub use logs::{LogError, LogFormat, start as start_logs};

/// Metrics of a process and its build; the program adds its own under a prefix of its choice.
pub fn registry(program: &'static str, version: &'static str) -> Registry {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(process::Process::new()));
    let build = Info::new(vec![("program", program), ("version", version)]);
    registry.register("build", "Which program this is", build);
    registry
}
