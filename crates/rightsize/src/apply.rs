//! How containers get what is recommended for them: when their pod is created, while it runs, or by a new pod in its place.

mod admit;
mod boost;
mod budget;
mod check;
mod held;
mod limit_range;
mod pod;
mod priority;
mod resize;
#[cfg(test)]
mod samples;
mod sized;
mod told;
mod tries;
mod updater;
mod wanted;
mod writes;

pub use admit::{Admitted, Which, admit, is_above_pod_limits};
pub use budget::{DisruptionBudget, Ground};
pub use check::{SizeRule, SizeViolation, check};
pub use held::{ContainerKind, ContainerResources};
pub use limit_range::{LimitRange, LimitRanges};
pub use pod::{Container, ContainerOom, Owner, Pod, RawPod, ResizeState};
pub use sized::{SIZED, SizedContainer, SizedPod};
pub use told::{Remark, Waiting, Why};
pub use tries::Tries;
pub use updater::{UpdatePlan, UpdaterSettings, plan};
pub use wanted::{Gates, Sizing, Unsized, Wanted, WantedContainer, pod_request, wanted};
pub use writes::{PodEviction, PodResize, RESIZED_AT, SizeAction, SizeChange};
