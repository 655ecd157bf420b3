//! The role that answers the API server: reviews of pods and of sets.
//!
//! - [`handlers`]: one review in, one answer out, counted.
//! - [`authority`]: the certificates: one authority in a Secret, a leaf per replica in memory.
//! - [`ledgers`]: which revision a new pod gets where a proportion is counted.
//! - [`paths`]: where the API server calls us, and nobody else.
//! - `sizing`: what pods are sized by, and the sign that they are.
//! - [`registration`]: what the API server is told about us, and put right when somebody changes it.
//!
//! A replica is ready when it knows all sets and namespaces and the API server trusts what it serves with.

pub mod authority;
mod events;
mod handlers;
pub mod ledgers;
mod metrics;
pub mod paths;
pub mod registration;
mod serve;
mod sizing;

pub use handlers::{Handlers, router};
pub use metrics::AdmissionMetrics;
pub use serve::{Webhook, start};
