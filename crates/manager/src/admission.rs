//! From the bytes of an `AdmissionReview` to the bytes of its answer, with no cluster in sight.
//!
//! - [`Request`] and [`Response`]: what comes in and goes out.
//! - [`pods::review`]: what becomes of a pod.
//! - [`sets::review`]: what is to be said about a set.

pub mod pods;
mod review;
pub mod sets;

pub use review::{Request, Response, Unreadable};
