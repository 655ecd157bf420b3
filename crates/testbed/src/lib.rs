//! A real Kubernetes on one machine, for tests and for people: starts it, says how to reach it, and leaves nothing behind.
//!
//! - [`Config`]: what a bed consists of. A control plane (etcd, kube-apiserver) always; controllers, a real node
//!   (kubelet, containerd), simulated nodes (KWOK), metrics-server and a second API server by option.
//! - [`Bed`]: a running bed and the right to end it, or to kill and restart single parts.
//! - [`Cluster`]: how to reach a bed, also from another process.
//! - [`until`]: waiting on a condition with a deadline.
//!
//! Beds are isolated: each takes a [`Slot`], from which its namespace, addresses, cgroups and folder follow. All
//! processes of a bed are children of its keeper, a process that holds a pipe to the starter and, when the pipe closes
//! for whatever reason, ends them all and removes what is left. The crate knows nothing of Pillion.
#![forbid(unsafe_code)]

mod bed;
mod cgroup;
mod cluster;
mod command;
mod config;
mod error;
mod keeper;
mod logs;
mod network;
mod parts;
mod pki;
mod preflight;
mod site;
mod slot;
mod usage;
mod wait;

pub mod cli;

pub use bed::Bed;
pub use cluster::{Cluster, apply};
pub use config::{Config, Fleet};
pub use error::Error;
pub use keeper::{Signal, program as bed_program};
pub use parts::api_server::WEBHOOK_CLIENT;
pub use slot::Slot;
pub use wait::{Look, until};
