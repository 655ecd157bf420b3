//! `just tools`: builds or installs every tool of a group that is not there yet, with progress.
//!
//! Safe to interrupt: a tool's folder appears whole or not at all, and the next run goes on from the
//! compilers' own caches. On a machine that has everything it takes a fraction of a second.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Parser, ValueEnum};
use pillion_tools::{CATALOGUE, Cache, Group, Tool, debian_packages};

mod install;
mod talk;

/// Build or install the outside programs that tests and gates use.
#[derive(Parser)]
struct Arguments {
    /// What the tools are for.
    #[arg(value_enum, default_values_t = [Purpose::Gates, Purpose::Bed])]
    purpose: Vec<Purpose>,
    /// Print the folders of the programs, joined by ':', for PATH; build nothing.
    #[arg(long)]
    path: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Purpose {
    /// cargo-nextest, cargo-deny, typos.
    Gates,
    /// Kubernetes, etcd, containerd, KWOK, metrics-server, and Debian's runc and CNI plugins.
    Bed,
    /// Helm.
    Chart,
    /// cargo-fuzz.
    Fuzz,
    /// The recommender of the upstream Vertical Pod Autoscaler.
    Bench,
}

impl From<Purpose> for Group {
    fn from(purpose: Purpose) -> Self {
        match purpose {
            Purpose::Gates => Group::Gates,
            Purpose::Bed => Group::Bed,
            Purpose::Chart => Group::Chart,
            Purpose::Fuzz => Group::Fuzz,
            Purpose::Bench => Group::Bench,
        }
    }
}

fn main() -> ExitCode {
    match prepare(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            talk::say(&format!("tools: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn prepare(arguments: &Arguments) -> Result<()> {
    let groups: Vec<Group> = arguments.purpose.iter().map(|purpose| (*purpose).into()).collect();
    let cache = Cache::of_user();
    let tools: Vec<&Tool> = CATALOGUE.iter().filter(|tool| groups.contains(&tool.group)).collect();
    if arguments.path {
        return print_path(&cache, &tools);
    }

    install::debian::install(groups.iter().flat_map(|group| debian_packages(*group)))?;
    let _alone = install::lock(&cache)?;
    for (index, tool) in tools.iter().enumerate() {
        let place = format!("[{}/{}]", index + 1, tools.len());
        install::tool(&cache, tool, &place).with_context(|| format!("{} could not be installed", tool.name))?;
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the path is this command's data")]
fn print_path(cache: &Cache, tools: &[&Tool]) -> Result<()> {
    let folders: Vec<String> =
        tools.iter().map(|tool| Ok(cache.folder(tool)?.join("bin").display().to_string())).collect::<Result<_>>()?;
    println!("{}", folders.join(":"));
    Ok(())
}
