//! What pods get, decided by the function the webhook calls.
#![forbid(unsafe_code)]
#![expect(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "tests, in which JSON is written where it is used"
)]

mod api_server;
mod app_mounts;
mod asking;
mod clashes;
mod coverage;
mod defects;
mod failure_policy;
mod finish;
mod finish_laws;
mod forged;
mod hot_update;
mod impact;
mod index;
mod laws;
mod marks;
mod metadata;
mod observe;
mod opt_out;
mod reasons;
mod record;
mod revisions;
mod scenarios;
mod service_account;
mod sharing;
mod sizes;
mod special_pods;
mod stories;
mod undo;
