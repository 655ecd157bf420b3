//! How much a container needs, from what it used.
//!
//! Samples go into an [`Aggregate`], one for each [`Key`]; what must be remembered of a running container between two
//! samples is its [`Instance`]. [`recommend`] reads aggregates, [`explain`] says how it came to each number. The numbers are
//! those of the upstream Vertical Pod Autoscaler for the same samples, and [`Aggregate::save`] and [`Aggregate::load`] speak
//! its checkpoints.

mod aggregate;
mod buckets;
mod checkpoint;
mod explain;
mod histogram;
mod instance;
mod moment;
mod number;
mod recommend;
mod settings;
mod steps;

pub use aggregate::{Aggregate, Key};
pub use buckets::{BUCKETS, Scale};
pub use explain::{Bar, Explanation, ResourceExplanation, explain};
pub use histogram::Histogram;
pub use instance::{Instance, Oom, Usage};
pub use recommend::{ContainerType, count_of_apps, recommend};
pub use settings::{Percentiles, Settings};
pub use steps::{Bound, Origin, Step, Taken};
