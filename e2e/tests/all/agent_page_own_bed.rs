//! The commands of the game server page, as they are printed, on a fresh cluster up to a pod with an agent.

use std::fs;

use anyhow::Result;
use pillion_e2e::page::{self, Step};
use pillion_testbed::{Bed, Config};

/// The page goes on with files for running pods, which need a file server.
const LAST: &str = "\n## 3.";

#[tokio::test]
async fn ci_the_game_server_page_brings_an_agent_into_a_pod() -> Result<()> {
    let text = fs::read_to_string(page::root().join("docs/agent/game-server.md"))?;
    let steps = page::steps(text.split(LAST).next().unwrap_or_default())?;
    assert_eq!(steps.len(), 9, "commands of the page");
    let bed = Bed::start(Config::control_plane("agent-page").with_node()).await?;
    // It runs until it is interrupted, against an app on the reader's machine.
    let is_local = |step: &&Step| step.command.contains("pillion agent run --local");
    page::follow(bed.cluster(), steps.iter().filter(|step| !is_local(step)))?;
    bed.stop().await?;
    Ok(())
}
