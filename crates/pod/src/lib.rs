//! What any decider must know of a pod that is JSON: how it is edited, and what it asks of a node.
//!
//! - [`Editor`]: a pod that is being edited, and the JSON patch ([`Operation`]) that does the same to the original.
//! - [`container_requests`], [`effective_requests`], [`qos_class`]: what a pod asks of a node as a whole, as the scheduler and the kubelet count it.
//! - [`Metadata`], [`Owner`]: what stands above the content of a pod that exists.
//! - [`object`], [`list`], [`Unreadable`]: reading what may not have the form of a pod.
//!
//! The crate knows Kubernetes' rules and nothing of ours.
#![forbid(unsafe_code)]

mod metadata;
mod patch;
mod read;
mod resources;

pub use metadata::{Metadata, Owner};
pub use patch::{Editor, Operation, Step};
pub use read::{Unreadable, list, object};
pub use resources::{QosClass, container_requests, effective_requests, qos_class};
