//! From the bytes of an `AdmissionReview` to the bytes of its answer, with no cluster in sight.
//!
//! - [`Request`] and [`Response`]: what comes in and goes out.
//! - [`pods::begin`]: what becomes of a pod; where a ledger must be asked first, [`Ask`] and [`Reservation`].
//! - [`Autoscalers`], [`Rightsizing`]: which autoscaler sizes a pod.
//! - [`memory_of`]: how much memory a review needs.
//! - [`sets::review`]: what is to be said about a set.

mod memory;
pub mod pods;
mod reservation;
mod review;
pub mod sets;
mod sizing;

pub use memory::memory_of;
pub use reservation::{Ask, Reservation};
pub use review::{Request, Response, Unreadable};
pub use sizing::{Autoscalers, Rightsizing};
