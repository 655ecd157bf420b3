//! The README's five minutes, command by command: each prints what the README says.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use pillion_e2e::page::{self, Step, matches, run};
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
    for Step { command, promised } in &steps {
        // The test has a cluster already.
        if command.starts_with("just ") {
            continue;
        }
        let (is_well, printed) = run(bed.cluster(), command)?;
        let lines: Vec<&str> = printed.lines().collect();
        ensure!(matches(promised, &lines), "$ {command}\n{printed}--- promised:\n{}", promised.join("\n"));
        ensure!(is_well, "$ {command}\nfailed:\n{printed}");
    }
    println!("{} commands in {:?}", steps.len(), began.elapsed());
    ensure!(began.elapsed() < PROMISED, "it took {:?}", began.elapsed());
    bed.stop().await?;
    Ok(())
}
