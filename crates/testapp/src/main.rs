//! A program whose behaviour tests can command: it exits, ignores signals, reloads a file, burns CPU or holds memory
//! when told to, and tells over HTTP what has happened to it.
//!
//! It is the only program in the test bed's images, so its subcommands also stand in for the shell (`cat`,
//! `echo-exit`, `probe`, `signal`) and for the sandbox process (`pause`). It knows nothing of Kubernetes.

#![forbid(unsafe_code)]

mod app;
mod arguments;
mod burn;
mod cgroup;
mod event;
mod http_api;
mod pause;
mod probe;
mod processes;
mod run;
mod signals;
mod units;

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;

use crate::arguments::{Arguments, Command, RunArguments};

fn main() -> anyhow::Result<ExitCode> {
    let command = Arguments::parse().command;
    // A container without arguments is an app that simply runs.
    match command.unwrap_or_else(|| Command::Run(RunArguments::parse_from(["run"]))) {
        Command::Run(arguments) => runtime()?.block_on(run::run(arguments)),
        Command::Pause => runtime()?.block_on(pause::pause()),
        Command::Probe { url, contains, post } => probe::probe(&url, post.as_deref(), contains.as_deref()),
        Command::Signal { name, signal } => {
            let pid = processes::signal_the_one(Path::new("/proc"), &name, signal.into())?;
            event::emit(format_args!("{}", pid.as_raw_nonzero()));
            Ok(ExitCode::SUCCESS)
        }
        Command::EchoExit { code, text } => {
            if !text.is_empty() {
                event::emit(format_args!("{}", text.join(" ")));
            }
            Ok(ExitCode::from(code))
        }
        Command::Cat { path } => {
            let content = std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            io::stdout().write_all(&content)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}
