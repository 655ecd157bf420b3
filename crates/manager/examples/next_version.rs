//! The manager as a build of another version: to see what an upgrade does by itself.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Parser as _;
use pillion_manager::{Settings, run};
use pillion_runtime::telemetry::start_logs;

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let settings = Settings::parse();
    start_logs(settings.log_format, &settings.log_level)?;
    run(settings, "99.0.0-next").await
}
