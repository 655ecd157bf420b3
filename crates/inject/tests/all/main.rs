//! What pods get, decided by the function the webhook calls.
#![forbid(unsafe_code)]

mod stories;
