//! `pillion lint` as people see it: every output as it is printed, with its exit status.
//!
//! A changed snapshot is a change users see: look at it, then `cargo insta accept`, and say why in the commit.
#![forbid(unsafe_code)]

mod asking;
mod autoscalers;
mod drawing;
mod formats;
mod reading;
#[expect(dead_code, reason = "what is only the API server's and the crate's own to compare")]
#[path = "../../../api/tests/all/sets.rs"]
mod sets;
mod table;
mod templates;
