//! Random pods, namespaces and sets for tests, and the way to run a law on them.
//!
//! Decides what tests are tried on. Everything is JSON as it comes over the wire, drawn through proptest, the same for the
//! same seed:
//!
//! - [`pod`], [`namespace`], [`sidecar_set`], [`sidecar_sets`], and [`admission`] for all of them together. A [`Shape`] says
//!   how large and how odd.
//! - [`expression`]: resource expressions that compile.
//! - [`mutated`]: any of them with one break; [`any_json`]: not even that.
//! - [`templates`]: containers and volumes with every field of Kubernetes' schema, valid and broken.
//! - [`law`]: runs a law on so many cases, prints the seed, and shows the smallest case that breaks it.
//!
//! All names come from a small pool, so that things meet. Of 100 pods with five sets each, about 64 are selected by at
//! least one set and 24 by two or more. Of 100 sets that select a pod, about 35 have nothing against them; the others clash
//! by a name, have no target, are paused, only observe, or compute what cannot be. `tests/all/shares.rs` holds these shares,
//! coarsely, and that everything a test of injection wants to meet is met.
//!
//! A failing case becomes smaller by leaving fields out, while a pod stays a pod and a set stays without errors. Only
//! integration tests can use this crate for a crate that it imports itself: in unit tests its types would be of another
//! build. It knows nothing of injection.
#![forbid(unsafe_code)]

mod admission;
mod amount;
mod draw;
mod drawn;
mod expression;
mod field_paths;
mod json;
mod law;
mod mutated;
mod namespace;
mod pod;
mod pool;
mod random;
pub mod settings;
mod shape;
mod sidecar_set;
mod template;

pub use admission::{Admission, admission, admission_of};
pub use expression::{Tree, expression};
pub use field_paths::{declared_fields, given_fields};
pub use json::any_json;
pub use law::law;
pub use mutated::mutated;
pub use namespace::{Namespace, namespace};
pub use pod::{pod, pod_of};
pub use random::Random;
pub use shape::{Form, Shape};
pub use sidecar_set::{sidecar_set, sidecar_set_of, sidecar_sets, sidecar_sets_of};
pub use template::{DrawnTemplate, TemplateTarget, templates};
