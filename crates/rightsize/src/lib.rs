//! How much a container needs, from what it used, and when and how it gets it.
//!
//! - [`Autoscaler`]: what a `VerticalPodAutoscaler` means, with all defaults.
//! - [`Amounts`], [`ContainerRecommendation`]: what is recommended for a container.
//! - [`Aggregate`]: what is known of what containers used; [`recommend`] makes numbers of it, [`explain`] says how.
//! - [`wanted`], [`admit`]: what each container of a pod should have, and how a pod that is created gets it.
//! - [`plan`]: which running [`Pod`]s change now, and how; [`check`] finds what no plan may do, and is written apart from it.
//! - [`review`]: what is wrong with an object.
//!
//! The crate knows nothing of the API server, and takes the time as a value.
#![forbid(unsafe_code)]

mod amounts;
mod apply;
mod estimate;
mod policy;
mod recommendation;
mod review;

pub use amounts::Amounts;
pub use apply::{
    Admitted, Container, ContainerKind, ContainerOom, ContainerResources, DisruptionBudget, Gates, Ground, LimitRange,
    LimitRanges, Owner, Pod, PodEviction, PodResize, RESIZED_AT, RawPod, Remark, ResizeState, SIZED, SizeAction,
    SizeChange, SizeRule, SizeViolation, SizedContainer, SizedPod, Sizing, Tries, Unsized, UpdatePlan, UpdaterSettings,
    Waiting, Wanted, WantedContainer, Which, Why, admit, check, is_above_pod_limits, plan, pod_request, wanted,
};
pub use estimate::{
    Aggregate, BUCKETS, Bar, Bound, ContainerType, Explanation, Histogram, Instance, Key, Oom, Origin, Percentiles,
    ResourceExplanation, Scale, Settings, Step, Taken, Usage, count_of_apps, explain, recommend,
};
pub use policy::{Autoscaler, Boost, BoostBy, ContainerPolicy, EvictionRequirement, Mode, Target, UPDATE_MODE};
pub use recommendation::{ContainerRecommendation, Recommendation};
pub use review::review;
