//! What sets mean and what is said about them, from manifests as people write them.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests that read the examples")]

mod advice;
mod clash;
mod cost;
mod examples;
mod laws;
mod sets;
mod spelling;
mod table;
mod templates;
