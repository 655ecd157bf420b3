//! `bed run -- COMMAND`: a bed for the length of one command.

use std::env;
use std::process::ExitCode;

use anyhow::{Context, Result};
use tokio::process::Command;

use super::Content;
use crate::bed::Bed;
use crate::cluster::Cluster;
use crate::keeper::PROGRAM_VARIABLE;

#[expect(clippy::print_stderr, reason = "progress is talk")]
pub(super) async fn run(content: &Content, command: &[String]) -> Result<ExitCode> {
    let bed = Bed::start_with(content.config("run"), |line| eprintln!("bed: {line}")).await?;
    let (program, arguments) = command.split_first().context("a command is needed after \"--\"")?;
    let status = Command::new(program)
        .args(arguments)
        .env(Cluster::VARIABLE, bed.cluster().to_environment())
        .env("KUBECONFIG", bed.cluster().kubeconfig())
        .env(PROGRAM_VARIABLE, env::current_exe()?)
        .status()
        .await
        .with_context(|| format!("cannot run {program}"))?;
    if status.success() {
        bed.stop().await?;
        return Ok(ExitCode::SUCCESS);
    }
    // Dropped, not stopped: the logs stay.
    drop(bed);
    Ok(ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)))
}
