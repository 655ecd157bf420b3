//! What a cluster does with a plan: a cluster as a value.
//!
//! - [`Cluster`]: pods as the API server stores them, at one second after the other. It takes writes as the API server does,
//!   [`Cluster::tick`] does what nodes would, and [`Cluster::seen`] is what a watch shows that is behind.
//! - [`Habits`]: how long a node and a container take for what they do.
//! - [`Truth`]: what really runs, which no status tells in time.
//!
//! Of an image its tag says what becomes of it: `missing` cannot be pulled, `crash` ends again and again, `sick` never becomes
//! ready, and every other runs. The crate decides nothing and knows no set.
#![forbid(unsafe_code)]

mod cluster;
mod node;

pub use cluster::{Cluster, Refused, Truth};
pub use node::Habits;
