//! The language as its users meet it: what is read, what is refused, what is decided otherwise than elsewhere.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a test")]

mod asking;
mod decisions;
mod rules;
