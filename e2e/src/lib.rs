//! What e2e tests share: a place of their own on the shared bed, pods to put there, and a webhook of their own.
//!
//! - [`Scene`]: a namespace on the shared bed with typed helpers; tells what it saw when the test fails.
//! - [`pods`]: pods made of the test program.
//! - [`Manager`]: the real manager as a process beside the bed.
//! - [`agent_pods`]: pods of an app with a real agent beside it.
//! - [`file_server`]: a place from which files are fetched.
//! - [`finishing`]: pods that must end by themselves, and how their containers did.
//! - [`sizing`]: right-sizing, with the rights of the chart.
//! - [`rollouts`]: a set and pods to roll it out over.
//! - [`agents`]: agents in pods, without the agent.
//! - [`bystanders`]: people and nodes that have nothing to do with Pillion, and their work.
//! - [`Balancer`]: one address before several of them.
//! - [`canary`]: sets that pin a revision, pods of them, and what their ledgers went through.
//! - [`Caller`]: calls a webhook as the API server does.
//! - [`Webhook`]: an admission webhook served by the test process.
//! - [`chart`]: the chart, rendered and installed by Helm.
//! - [`leftovers`]: everything in a cluster, and what a test left in it.
//! - [`pod_schema`]: the schema of containers and volumes that an API server serves.
//! - [`page`]: pages for people, whose commands are run.
//! - [`fixture`]: what was recorded on a real cluster, for tests that have none.
#![forbid(unsafe_code)]

pub mod agent_pods;
pub mod agents;
mod balancer;
pub mod bystanders;
mod caller;
pub mod canary;
pub mod chart;
pub mod file_server;
pub mod finishing;
pub mod fixture;
pub mod leftovers;
pub mod manager;
pub mod page;
pub mod pod_schema;
pub mod pods;
pub mod programs;
pub mod rollouts;
mod scene;
pub mod sizing;
mod tls;
mod webhook;

pub use balancer::Balancer;
pub use caller::{Caller, Connection};
pub use manager::Manager;
pub use scene::Scene;
pub use webhook::Webhook;
