//! Kubernetes quantities (`300m`, `1.5Gi`, `2e3`), exact.
//!
//! Decides what a quantity text means, how a quantity is written, and how a computed amount of
//! cpu or memory is rounded. What it accepts and prints is what the Go library
//! `k8s.io/apimachinery/pkg/api/resource` accepts and prints; the tests run that library.
//!
//! - [`Quantity`]: a value in nano-units and the notation it was written in.
//! - [`Format`]: the three notations of Kubernetes.
//! - [`Resource`]: cpu or memory, with the step each is rounded to.
//! - [`Human`]: the spelling a person would write, never `13421772800m`.
//!
//! Where Kubernetes loses the value, this crate does not follow:
//!
//! - a magnitude above `i128::MAX` nano-units (1.7e29) is refused as too large;
//! - an exponent outside 32 bits is refused, where Kubernetes wraps it (`1e4294967299` is 1000 there);
//! - `1000E` prints as `1000E`, where Kubernetes, having no larger suffix, prints `1`;
//! - [`Quantity::value`] and [`Quantity::milli_value`] neither overflow nor misround negatives.
//!
//! It knows nothing of pods, expressions or the API server, and uses no floating point.
#![forbid(unsafe_code)]

mod human;
mod parse;
mod print;
mod quantity;
mod resource;
#[cfg(feature = "serde")]
mod serde;

pub use human::Human;
pub use parse::ParseError;
pub use quantity::{Format, Quantity};
pub use resource::{Resource, UnknownResource};
