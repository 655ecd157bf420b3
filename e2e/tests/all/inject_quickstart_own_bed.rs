//! The README's five minutes, command by command: each prints what the README says.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use pillion_e2e::page::{self, Step};
use pillion_testbed::{Bed, Config};

/// The promise of the heading.
const PROMISED: Duration = Duration::from_mins(5);
const HEADING: &str = "## Five minutes: a sidecar in a real cluster";

/// The commands below the heading.
fn steps(readme: &str) -> Result<Vec<Step>> {
    let section = readme.split_once(HEADING).context("the README has no quickstart")?.1;
    page::steps(section.split("\n## ").next().unwrap_or_default())
}

#[tokio::test]
async fn ci_five_minutes_are_enough() -> Result<()> {
    let readme = fs::read_to_string(page::root().join("README.md"))?;
    let steps = steps(&readme)?;
    ensure!(steps.len() > 8, "found {} commands", steps.len());
    let bed = Bed::start(Config::control_plane("quickstart").with_node()).await?;
    let began = Instant::now();
    // The test has a cluster already.
    page::follow(bed.cluster(), steps.iter().filter(|step| !step.command.starts_with("just ")))?;
    println!("{} commands in {:?}", steps.len(), began.elapsed());
    ensure!(began.elapsed() < PROMISED, "it took {:?}", began.elapsed());
    bed.stop().await?;
    Ok(())
}
