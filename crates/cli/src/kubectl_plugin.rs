//! `kubectl pillion`: the same program under the name kubectl looks for.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    pillion_cli::main()
}
