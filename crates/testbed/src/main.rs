//! `bed`: a real Kubernetes for a person (`just bed up`), or for one command (`bed run -- just e2e`).
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    pillion_testbed::cli::main()
}
