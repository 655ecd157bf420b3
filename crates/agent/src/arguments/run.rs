//! The command line of the agent, and the flags of `run`. People may write them too, so they are taken with a blank or with `=` before the value.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use pillion_agent_api::names;

const USAGE: &str = "write `pillion-agent version`, `pillion-agent run --config FILE`, or `pillion-agent ready`";

/// What is asked of the agent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AgentRequest {
    /// Tell the version.
    Version,
    /// Run the plugins.
    Run(Run),
    /// Say whether the wanted version is in place.
    Ready(Run),
}

/// How to run the plugins.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// The file with the configuration.
    pub(crate) config: PathBuf,
    /// Whether patches are printed and sent nowhere.
    pub(crate) is_local: bool,
    /// The folder with what is needed to ask the API server.
    pub(crate) token_dir: PathBuf,
    /// The folder in which the node tells the pod's annotations.
    pub(crate) pod_dir: PathBuf,
}

impl Default for Run {
    fn default() -> Self {
        Self {
            config: Path::new(names::CONFIG_DIR).join(names::CONFIG_KEY),
            is_local: false,
            token_dir: names::TOKEN_DIR.into(),
            pod_dir: names::POD_DIR.into(),
        }
    }
}

pub(super) fn read_request(mut arguments: impl Iterator<Item = OsString>) -> anyhow::Result<AgentRequest> {
    let word = arguments.next().with_context(|| format!("nothing is asked: {USAGE}"))?;
    match word.to_str() {
        Some("version") => super::nothing_more(&word, arguments).map(|()| AgentRequest::Version),
        Some("run") => read(arguments).map(AgentRequest::Run),
        Some("ready") => read_ready(arguments).map(AgentRequest::Ready),
        _ => bail!("{} is nothing this program does: {USAGE}", word.display()),
    }
}

/// What `ready` is told: where the files are that `run` has.
fn read_ready(arguments: impl Iterator<Item = OsString>) -> anyhow::Result<Run> {
    let run = read(arguments).context("ready")?;
    ensure!(!run.is_local, "ready: --local is for run");
    Ok(run)
}

fn read(mut arguments: impl Iterator<Item = OsString>) -> anyhow::Result<Run> {
    let mut run = Run::default();
    let mut seen: Vec<String> = Vec::new();
    while let Some(argument) = arguments.next() {
        let text = argument.to_str().with_context(|| format!("run: {} is not UTF-8", argument.display()))?;
        let (flag, value) = text.split_once('=').map_or((text, None), |(flag, value)| (flag, Some(value)));
        ensure!(!seen.iter().any(|before| before == flag), "run: {flag} is given twice");
        seen.push(flag.to_owned());
        if (flag, value) == ("--local", None) {
            run.is_local = true;
            continue;
        }
        let place = match flag {
            "--config" => &mut run.config,
            "--token-dir" => &mut run.token_dir,
            "--pod-dir" => &mut run.pod_dir,
            _ => bail!("run: {text} is no flag: write `run --config FILE [--local] [--token-dir DIR] [--pod-dir DIR]`"),
        };
        let value = match value {
            Some(value) => Some(value.into()),
            None => arguments.next(),
        };
        *place = value.with_context(|| format!("run: {flag} has no value"))?.into();
    }
    Ok(run)
}
