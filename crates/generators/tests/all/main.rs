//! Whether what is drawn is valid, various, and worth a test.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "tests")]

mod laws;
mod shares;
