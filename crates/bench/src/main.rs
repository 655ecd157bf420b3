//! `bench`: measures every published figure, arms interleaved in one run, and writes the samples beside the table.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Parser;

mod cluster;
mod cost;
mod hook;
mod output;
mod policies;
mod recommender;
mod rollout;
mod samples;
mod webhook;

/// Measure what is published.
#[derive(Parser)]
#[command(name = "bench")]
enum Verb {
    /// What a review costs: no webhook, one that does nothing, one with a constant patch, and ours.
    Webhook(webhook::Arguments),
    /// What a rollout costs: its rate, how soon the next pod follows, and memory.
    Rollout(rollout::Arguments),
    /// What a pass of a recommender costs: upstream's, and ours.
    Recommender(recommender::Arguments),
    /// CPU time of the API server for an update of a pod's status, with and without the policies of the chart.
    Policies(policies::Arguments),
    /// A pass over a large cluster that is not there.
    Learn(recommender::synthetic::Arguments),
    /// A webhook that does nothing, or gives a constant patch: the arms beside ours.
    #[command(hide = true)]
    Hook(hook::Arguments),
}

#[tokio::main]
async fn main() -> ExitCode {
    let done = match Verb::parse() {
        Verb::Webhook(arguments) => webhook::run(&arguments).await,
        Verb::Rollout(arguments) => rollout::run(&arguments).await,
        Verb::Recommender(arguments) => recommender::run(&arguments).await,
        Verb::Policies(arguments) => policies::run(&arguments).await,
        Verb::Learn(arguments) => recommender::synthetic::run(&arguments),
        Verb::Hook(arguments) => hook::run(&arguments).await,
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            #[expect(clippy::print_stderr, reason = "a program for people")]
            {
                eprintln!("bench: {error:#}");
            }
            ExitCode::FAILURE
        }
    }
}
