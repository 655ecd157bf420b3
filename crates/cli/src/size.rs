//! `pillion size`: what containers ask for against what they use, and why they are sized as they are.
//!
//! - `report`: what sidecars cost, summed over the cluster.
//! - `explain`: how the numbers of an autoscaler came about.
//! - `revert`: the amounts of a template back into the pods that run.

use std::io;

use clap::Subcommand;

use crate::{Ending, Streams};

mod amount;
mod explain;
mod report;
mod revert;

#[derive(Subcommand)]
pub(crate) enum Verb {
    /// Compare what the sidecars of a cluster ask for with what they use.
    Report(report::Arguments),
    #[command(about = "Show which samples, steps and bounds gave the numbers of a VerticalPodAutoscaler")]
    Explain(explain::Arguments),
    /// Give running pods the amounts of their template again, in place.
    Revert(revert::Arguments),
}

pub(crate) fn run(verb: &Verb, streams: &mut Streams<'_>) -> io::Result<Ending> {
    match verb {
        Verb::Report(arguments) => report::run(arguments, streams),
        Verb::Explain(arguments) => explain::run(arguments, streams),
        Verb::Revert(arguments) => revert::run(arguments, streams),
    }
}
