//! `pillion-agent`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    pillion_agent::agent()
}
