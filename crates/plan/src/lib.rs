//! Which writes exist, and which of them are never allowed.
//!
//! - [`Plan`]: what is to be written, as values: one [`Action`] per pod, of which [`PodUpdate::patch`] is the bytes.
//! - [`check`]: whether a plan keeps what is promised, recomputed from a [`Ground`] of simple facts, without asking whoever
//!   made the plan. Nothing is carried out that it finds a [`Violation`] in.
//!
//! The crate decides nothing: it knows no strategy and no order, only what must hold whichever pods were chosen.
#![forbid(unsafe_code)]

mod check;
mod ground;
mod update;

pub use check::{Rule, Violation, check};
pub use ground::{Budget, Facts, Ground, Ours};
pub use update::{Action, Adoption, ImageChange, List, Plan, PodUpdate, ResourceChange, annotation_path};
