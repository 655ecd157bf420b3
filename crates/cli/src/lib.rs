//! The command line: how people ask what Pillion would do, and why.
//!
//! - [`main`]: reads the command line, runs the verb, turns its [`Ending`] into an exit status.
//! - `expr`: the workbench for resource expressions.
//! - `render`: the pods that workloads would become, and why.
//! - `lint`: what is wrong with sets and autoscalers, with the place in the file.
//! - `test`: whether they become what is expected.
//! - `why`: why a pod of a cluster is as it is.
//! - `diff`: what applying sets would do to the pods of a cluster.
//! - `rollout`: how a change reaches the pods that run, and the hand on it.
//! - `convert`: manifests with `sidecar: true` as Kubernetes takes them.
//! - `size`: what containers ask for against what they use, and why they are sized as they are.
//! - `check`: whether the installation is well.
//! - `agent`: configurations of the in-pod agent, and what it takes to run one.
//! - `off`, `on`: stop and start injection.
//!
//! stdout is data and stderr is talk. Verbs write to what they are given and decide nothing: the deciding
//! is in the pure crates, the same functions the webhook calls.
#![forbid(unsafe_code)]

use std::error::Error;
use std::io::{self, ErrorKind, Write};
use std::iter;
use std::process::ExitCode;

use anstream::AutoStream;
use clap::{Parser, Subcommand, ValueEnum};

mod agent;
mod autoscalers;
mod check;
mod convert;
mod diagnostic;
mod diff;
mod drawing;
mod expr;
mod installation;
mod layout;
mod lint;
mod live;
mod manifest;
mod pod_diff;
mod preview;
mod render;
mod rollout;
mod sidecar_sets;
mod size;
mod switch;
mod test;
mod why;
mod yaml_text;

/// Look after the sidecars of a Kubernetes cluster.
#[derive(Parser)]
#[command(name = "pillion", version, about, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Try, explain, check and draw resource expressions.
    #[command(subcommand, arg_required_else_help = true)]
    Expr(expr::Verb),
    /// Show the pods that workloads would become, and why, without a cluster.
    Render(render::Arguments),
    #[command(about = "Check SidecarSets in files, and whether they can live together")]
    Lint(lint::Arguments),
    /// Compare the pods that workloads would become with those that are expected.
    Test(test::Arguments),
    /// Explain why pods of a cluster have or lack their sidecars.
    Why(why::Arguments),
    #[command(about = "Show what applying SidecarSets would do to the pods of a cluster")]
    Diff(diff::Arguments),
    #[command(subcommand, arg_required_else_help = true)]
    #[command(about = "Follow how a change of a SidecarSet reaches running pods; pause, promote or undo it")]
    Rollout(rollout::Verb),
    #[command(about = "Turn manifests with sidecar: true into ones that Kubernetes takes")]
    Convert(convert::Arguments),
    #[command(subcommand, arg_required_else_help = true)]
    #[command(about = "Check configurations of the in-pod agent, make the SidecarSet that brings it, update files")]
    Agent(agent::Verb),
    /// Check the installation in a cluster: certificates, registration, reachability, versions.
    Check(check::Arguments),
    #[command(subcommand, arg_required_else_help = true)]
    #[command(about = "Compare what sidecars ask for with what they use; explain and take back sizes")]
    Size(size::Verb),
    /// Stop injection at once, also while nothing of the product runs.
    Off(switch::Arguments),
    /// Start injection again.
    On(switch::Arguments),
}

/// How results are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
}

/// How a verb ended, where it ended in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// Nothing to complain about: status 0.
    Fine,
    /// Something was found, and said: status 1.
    Finding,
    /// There is no cluster, and that was said: status 3.
    NoCluster,
}

/// Where a verb writes.
struct Streams<'a> {
    /// Data.
    out: &'a mut dyn Write,
    /// Talk.
    err: &'a mut dyn Write,
}

/// The program: 0 fine, 1 a finding, 2 wrong usage, 3 no cluster.
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    // Takes colours out unless a person looks at them and wants them.
    let mut out = AutoStream::auto(io::stdout()).lock();
    let mut err = io::stderr().lock();
    let mut streams = Streams { out: &mut out, err: &mut err };
    let ending = match arguments.verb {
        Verb::Expr(verb) => expr::run(&verb, &mut streams),
        Verb::Render(arguments) => render::run(&arguments, &mut streams),
        Verb::Lint(arguments) => lint::run(&arguments, &mut streams),
        Verb::Test(arguments) => test::run(&arguments, &mut streams),
        Verb::Why(arguments) => why::run(&arguments, &mut streams),
        Verb::Diff(arguments) => diff::run(&arguments, &mut streams),
        Verb::Rollout(verb) => rollout::run(&verb, &mut streams),
        Verb::Convert(arguments) => convert::run(&arguments, &mut streams),
        Verb::Agent(verb) => agent::run(&verb, &mut streams),
        Verb::Check(arguments) => check::run(&arguments, &mut streams),
        Verb::Size(verb) => size::run(&verb, &mut streams),
        Verb::Off(arguments) => switch::off(&arguments, &mut streams),
        Verb::On(arguments) => switch::on(&arguments, &mut streams),
    };
    match ending {
        Ok(Ending::Fine) => ExitCode::SUCCESS,
        Ok(Ending::Finding) => ExitCode::from(1),
        Ok(Ending::NoCluster) => ExitCode::from(3),
        // `pillion … | head`: whoever reads has enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(streams.err, "error: {}", chain(&error));
            ExitCode::from(2)
        }
    }
}

/// An error with all that led to it.
fn chain(error: &dyn Error) -> String {
    let causes = iter::successors(Some(error), |&error| error.source()).map(ToString::to_string);
    causes.fold(String::new(), |told, cause| match told.as_str() {
        "" => cause,
        // Errors of others repeat what led to them.
        before if before.contains(&cause) => told,
        before => format!("{before}: {cause}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Arguments::command().debug_assert();
    }
}
