//! Which pods are updated when, decided by the function the manager calls. Every plan made here is checked.
#![forbid(unsafe_code)]
#![expect(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "tests, in which JSON is written where it is used"
)]

mod adoption;
mod availability;
mod defects;
mod gate;
mod numbers;
mod order;
mod probe;
mod resize;
mod scenarios;
mod scene;
mod telling;
