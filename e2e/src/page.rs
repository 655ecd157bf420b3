//! Pages for people whose commands are run: each must print what the page says.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use pillion_testbed::Cluster;

use crate::programs;

/// A command of a page, and what stands below it.
#[derive(Clone, Debug)]
pub struct Step {
    /// Without the `$ ` before it.
    pub command: String,
    /// `…` stands for what differs from run to run: the rest of a line, or any number of lines.
    pub promised: Vec<String>,
}

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The commands in the `console` blocks of a text. A command goes on in the next line after a backslash.
pub fn steps(text: &str) -> Result<Vec<Step>> {
    let mut steps: Vec<Step> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        match line.strip_prefix("$ ") {
            _ if line.starts_with("```") => inside = line == "```console",
            _ if !inside => {}
            _ if steps.last().is_some_and(|step| step.command.ends_with('\\')) => {
                let step = steps.last_mut().context("a command that goes on")?;
                step.command = format!("{}\n{line}", step.command);
            }
            Some(command) => steps.push(Step { command: command.to_owned(), promised: Vec::new() }),
            None => steps.last_mut().context("output without a command")?.promised.push(line.to_owned()),
        }
    }
    Ok(steps)
}

/// The same text with what its commands printed, in their order.
pub fn filled(text: &str, printed: &[String]) -> String {
    let mut printed = printed.iter();
    let (mut inside, mut is_output) = (false, false);
    let mut filled = String::new();
    for line in text.lines() {
        if line.starts_with("```") {
            (inside, is_output) = (line == "```console", false);
        }
        let goes_on = inside && filled.ends_with("\\\n");
        let is_command = inside && (line.starts_with("$ ") || goes_on);
        if is_output && !is_command {
            continue;
        }
        filled.extend([line, "\n"]);
        if is_command && !line.ends_with('\\') {
            is_output = true;
            filled.extend(printed.next().cloned());
        }
    }
    filled
}

/// Whether lines are as promised.
pub fn matches(promised: &[String], printed: &[&str]) -> bool {
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

/// Runs the commands of a page: each must succeed and print what the page says.
pub fn follow<'s>(cluster: &Cluster, steps: impl IntoIterator<Item = &'s Step>) -> Result<()> {
    for Step { command, promised } in steps {
        let (is_well, printed) = run(cluster, command)?;
        let lines: Vec<&str> = printed.lines().collect();
        ensure!(matches(promised, &lines), "$ {command}\n{printed}--- promised:\n{}", promised.join("\n"));
        ensure!(is_well, "$ {command}\nfailed:\n{printed}");
    }
    Ok(())
}

/// Runs a command as a reader would, in the root of the repository: whether it went well, and all it printed.
pub fn run(cluster: &Cluster, command: &str) -> Result<(bool, String)> {
    let folder = |program: &Path| program.parent().map(|folder| folder.display().to_string()).unwrap_or_default();
    let kubectl = cluster.kubectl([""; 0])?;
    let helm = cluster.helm([""; 0])?;
    let pillion = programs::path("pillion")?;
    let folders = [folder(Path::new(kubectl.get_program())), folder(Path::new(helm.get_program())), folder(&pillion)];
    let path = format!("{}:{}", folders.join(":"), std::env::var("PATH").unwrap_or_default());
    let output = Command::new("sh")
        .args(["-c", &format!("{{ {command}\n}} 2>&1")])
        .current_dir(root())
        .env("PATH", path)
        .env("KUBECONFIG", cluster.kubeconfig())
        .env("HELM_CACHE_HOME", cluster.logs().join("helm"))
        .output()?;
    Ok((output.status.success(), String::from_utf8(output.stdout)?))
}
