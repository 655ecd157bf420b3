//! `pillion rollout`: how a change of a set reaches the pods that run, and the hand on it.
//!
//! - `status`: how far it is, and what it waits for. The planner of the controller is asked, on what the cluster has.
//! - `history`, `diff`: the revisions of a set, and what one changes against another.
//! - `pause`, `resume`, `promote`, `undo`: edits of the set. Nothing here writes to a pod.

use std::io;

use clap::Subcommand;

use crate::{Ending, Streams};

mod compare;
mod edits;
#[cfg(test)]
mod fixture;
mod gather;
mod history;
mod patch;
mod picture;
mod revisions;
mod status;
mod write;

pub(crate) use history::{age, plural};

#[derive(Subcommand)]
pub(crate) enum Verb {
    /// Show how far a change of a set has come, what happens next, and what pods wait for.
    Status(status::Arguments),
    /// List the revisions of a set: number, name, custom versions, age, pods and images.
    History(history::Arguments),
    /// Show what one revision changes against another, in the set and in the pods there are.
    Diff(compare::Arguments),
    /// Start no further pod; those under way are finished.
    Pause(write::Arguments),
    /// Go on after a pause.
    Resume(write::Arguments),
    /// Let more pods follow: lower the partition, or end the canary.
    Promote(write::PromoteArguments),
    /// Give the set the words of an earlier revision again.
    Undo(write::UndoArguments),
}

pub(crate) fn run(verb: &Verb, streams: &mut Streams<'_>) -> io::Result<Ending> {
    match verb {
        Verb::Status(arguments) => status::run(arguments, streams),
        Verb::History(arguments) => history::run(arguments, streams),
        Verb::Diff(arguments) => compare::run(arguments, streams),
        Verb::Pause(arguments) => write::pause(arguments, streams),
        Verb::Resume(arguments) => write::resume(arguments, streams),
        Verb::Promote(arguments) => write::promote(arguments, streams),
        Verb::Undo(arguments) => write::undo(arguments, streams),
    }
}
