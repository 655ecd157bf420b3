//! `pillion agent`: configurations of the in-pod agent, and what it takes to run one.
//!
//! - `lint`: what is wrong with a configuration, and what its agents may do.
//! - `run`: an agent on this machine, which prints what it would write.
//! - `sidecarset`: the `ConfigMap` and the `SidecarSet` that bring an agent with a configuration into pods.
//! - `update`: the record that says which version of a file the pods of a workload are to have.

use std::io::{self, Read as _};
use std::path::Path;
use std::{fs, str};

use clap::Subcommand;
use pillion_agent_api::{Config, PARSE_STACK, Reading};
use pillion_yaml::STACK_PER_LEVEL;

use crate::manifest::{ReadError, with_stack};
use crate::{Ending, Streams};

mod lint;
mod rights;
mod run;
mod sidecar_set;
mod update;

#[derive(Subcommand)]
pub(crate) enum Verb {
    /// Check configurations of the agent, and show what agents with them may do.
    Lint(lint::Arguments),
    /// Run a configuration on this machine, and print each patch that an agent would send.
    Run(run::Arguments),
    #[command(name = "sidecarset", about = "Print the ConfigMap and the SidecarSet that bring an agent into pods")]
    SidecarSet(sidecar_set::Arguments),
    /// Have the pods of a workload load a new version of a file, without a restart.
    Update(update::Arguments),
}

pub(crate) fn run(verb: &Verb, streams: &mut Streams<'_>) -> io::Result<Ending> {
    match verb {
        Verb::Lint(arguments) => lint::run(arguments, streams),
        Verb::Run(arguments) => Ok(run::run(arguments)),
        Verb::SidecarSet(arguments) => sidecar_set::run(arguments, streams),
        Verb::Update(arguments) => update::run(arguments, streams),
    }
}

/// The text of one file, or of stdin for `-`, and how it is shown to people.
fn text_of(path: &Path) -> Result<(String, String), ReadError> {
    let mut bytes = Vec::new();
    let is_stdin = path == Path::new("-");
    let file = if is_stdin { "<stdin>".to_owned() } else { path.display().to_string() };
    let read = if is_stdin { io::stdin().read_to_end(&mut bytes).map(|_| bytes) } else { fs::read(path) };
    let bytes = read.map_err(|source| ReadError::Unreadable { file: file.clone(), source })?;
    let text = String::from_utf8(bytes).map_err(|_| ReadError::NotText { file: file.clone() })?;
    Ok((file, text))
}

/// Reads a configuration as one that is not in a pod yet.
fn reading_of(text: &str) -> Reading {
    with_stack(PARSE_STACK / STACK_PER_LEVEL, || Config::read(text, None))
}
