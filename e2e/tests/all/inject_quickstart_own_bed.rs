//! The README's five minutes, command by command: each prints what the README says.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use pillion_e2e::programs;
use pillion_testbed::{Bed, Cluster, Config};

/// The promise of the heading.
const PROMISED: Duration = Duration::from_mins(5);
const HEADING: &str = "## Five minutes: a sidecar in a real cluster";

/// The commands below the heading, each with what stands below it.
fn steps(readme: &str) -> Result<Vec<(String, Vec<String>)>> {
    let section = readme.split_once(HEADING).context("the README has no quickstart")?.1;
    let section = section.split("\n## ").next().unwrap_or_default();
    let mut steps: Vec<(String, Vec<String>)> = Vec::new();
    let mut inside = false;
    for line in section.lines() {
        match line.strip_prefix("$ ") {
            _ if line.starts_with("```") => inside = line == "```console",
            _ if !inside => {}
            Some(command) => steps.push((command.to_owned(), Vec::new())),
            None => steps.last_mut().context("output without a command")?.1.push(line.to_owned()),
        }
    }
    Ok(steps)
}

/// Whether lines are as promised. `…` stands for what differs from run to run: the rest of a line, or any number of lines.
fn matches(promised: &[String], printed: &[&str]) -> bool {
    match (promised.split_first(), printed.split_first()) {
        (None, None) => true,
        (Some((any, rest)), _) if any == "…" => (0..=printed.len()).any(|skipped| matches(rest, &printed[skipped..])),
        (Some((line, rest)), Some((own, others))) => {
            let is_same = match line.split_once('…') {
                Some((start, _)) => own.starts_with(start),
                None => line.trim_end() == own.trim_end(),
            };
            is_same && matches(rest, others)
        }
        _ => false,
    }
}

fn run(cluster: &Cluster, command: &str) -> Result<(bool, String)> {
    let folder = |program: &Path| program.parent().map(|folder| folder.display().to_string()).unwrap_or_default();
    let kubectl = cluster.kubectl([""; 0])?;
    let helm = cluster.helm([""; 0])?;
    let pillion = programs::path("pillion")?;
    let folders = [folder(Path::new(kubectl.get_program())), folder(Path::new(helm.get_program())), folder(&pillion)];
    let path = format!("{}:{}", folders.join(":"), std::env::var("PATH").unwrap_or_default());
    let output = Command::new("sh")
        .args(["-c", &format!("{{ {command}\n}} 2>&1")])
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."))
        .env("PATH", path)
        .env("KUBECONFIG", cluster.kubeconfig())
        .env("HELM_CACHE_HOME", cluster.logs().join("helm"))
        .output()?;
    Ok((output.status.success(), String::from_utf8(output.stdout)?))
}

#[tokio::test]
async fn five_minutes_are_enough() -> Result<()> {
    let readme = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md"))?;
    let steps = steps(&readme)?;
    ensure!(steps.len() > 8, "found {} commands", steps.len());
    let bed = Bed::start(Config::control_plane("quickstart").with_node()).await?;
    let began = Instant::now();
    for (command, promised) in &steps {
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
