//! `pillion-manager`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Parser as _;
use pillion_manager::{Settings, run};
use pillion_runtime::telemetry::start_logs;

#[tokio::main]
async fn main() -> ExitCode {
    let settings = Settings::parse();
    #[expect(clippy::print_stderr, reason = "there are no logs yet, or no more")]
    let failed = |error: &dyn std::fmt::Display| {
        eprintln!("pillion-manager: {error}");
        ExitCode::FAILURE
    };
    if let Err(error) = start_logs(settings.log_format, &settings.log_level) {
        return failed(&error);
    }
    match run(settings, env!("CARGO_PKG_VERSION")).await {
        Ok(code) => code,
        Err(error) => failed(&format!("{error:#}")),
    }
}
