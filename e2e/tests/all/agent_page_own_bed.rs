//! The commands of the game server page, as they are printed, on a fresh cluster up to a pod with an agent.

use std::fs;

use anyhow::{Result, ensure};
use pillion_e2e::page::{self, Step, matches, run};
use pillion_testbed::{Bed, Config};

/// The page goes on with files for running pods, which need a file server.
const LAST: &str = "\n## 3.";

#[tokio::test]
async fn ci_the_game_server_page_brings_an_agent_into_a_pod() -> Result<()> {
    let text = fs::read_to_string(page::root().join("docs/agent/game-server.md"))?;
    let steps = page::steps(text.split(LAST).next().unwrap_or_default())?;
    assert_eq!(steps.len(), 9, "commands of the page");
    let bed = Bed::start(Config::control_plane("agent-page").with_node()).await?;
    for Step { command, promised } in &steps {
        // Runs until it is interrupted, against an app on the reader's machine.
        if command.contains("pillion agent run --local") {
            continue;
        }
        let (is_well, printed) = run(bed.cluster(), command)?;
        let lines: Vec<&str> = printed.lines().collect();
        ensure!(matches(promised, &lines), "$ {command}\n{printed}--- promised:\n{}", promised.join("\n"));
        ensure!(is_well, "$ {command}\nfailed:\n{printed}");
    }
    bed.stop().await?;
    Ok(())
}
