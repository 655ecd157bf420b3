//! `pillion lint`: everything that can be said about sets and autoscalers before a cluster sees them.

use std::io;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::{Ending, Streams, manifest};

mod finding;
mod github;
mod json;

use finding::Report;
pub(crate) use finding::counted;

#[derive(Args)]
pub(crate) struct Arguments {
    /// Files and folders with manifests, or - for stdin. Objects of other kinds are left out.
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// Format of the output.
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
    /// End with status 1 for warnings too.
    #[arg(long)]
    strict: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
    /// Annotations of GitHub Actions.
    Github,
}

pub(crate) fn run(arguments: &Arguments, streams: &mut Streams<'_>) -> io::Result<Ending> {
    let manifests = manifest::read(&arguments.paths)?;
    let report = Report::of(&manifests);
    match arguments.output {
        Output::Text => {
            for finding in &report.findings {
                writeln!(streams.out, "{}", finding.diagnostic().draw())?;
            }
        }
        Output::Json => writeln!(streams.out, "{:#}", json::report(&report))?,
        Output::Github => {
            for finding in &report.findings {
                writeln!(streams.out, "{}", github::command(finding))?;
            }
        }
    }
    writeln!(streams.err, "{}", report.summary())?;
    let ends_badly = report.errors() > 0 || (arguments.strict && report.warnings() > 0);
    Ok(if ends_badly { Ending::Finding } else { Ending::Fine })
}
