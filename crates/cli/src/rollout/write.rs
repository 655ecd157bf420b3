//! The verbs that edit a set: what was read is tested, what is written is shown, and what will happen is said.

use std::io;

use clap::Args;
use jiff::Timestamp;
use pillion_api::PodCount;
use serde_json::{Value, json};

use super::edits::{Edit, Edited, Refused, count};
use super::gather::Rollout;
use super::picture::Picture;
use super::status::outlook;
use crate::live::kinds::{SIDECAR_SET, set_named};
use crate::live::{Cluster, Connection, DryRun, Failure, Patched, run as run_live};
use crate::{Ending, Streams, pod_diff};

#[derive(Args)]
pub(crate) struct Arguments {
    /// The set: scs/mesh, or mesh.
    #[arg(value_name = "SET", value_parser = set_named)]
    set: String,
    /// Let the API server try it without storing anything.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    connection: Connection,
}

#[derive(Args)]
pub(crate) struct PromoteArguments {
    /// How many pods stay at the old revision: a number, or a percentage. Without it none do, and new pods get the newest
    /// revision as well: the pin of the set is taken away.
    #[arg(long, value_name = "COUNT", value_parser = count)]
    to: Option<PodCount>,
    #[command(flatten)]
    arguments: Arguments,
}

#[derive(Args)]
pub(crate) struct UndoArguments {
    /// The revision: its name, number, or custom version. Without it the one before the newest.
    #[arg(long, value_name = "REVISION")]
    to: Option<String>,
    #[command(flatten)]
    arguments: Arguments,
}

pub(super) fn pause(arguments: &Arguments, streams: &mut Streams<'_>) -> io::Result<Ending> {
    run(arguments, streams, |rollout| Ok(edited(rollout).pause()))
}

pub(super) fn resume(arguments: &Arguments, streams: &mut Streams<'_>) -> io::Result<Ending> {
    run(arguments, streams, |rollout| Ok(edited(rollout).resume()))
}

pub(super) fn promote(arguments: &PromoteArguments, streams: &mut Streams<'_>) -> io::Result<Ending> {
    run(&arguments.arguments, streams, |rollout| Ok(edited(rollout).promote(arguments.to)))
}

pub(super) fn undo(arguments: &UndoArguments, streams: &mut Streams<'_>) -> io::Result<Ending> {
    run(&arguments.arguments, streams, |rollout| {
        let called = |word: &String| rollout.revisions.called(&rollout.meaning.name, word);
        let to = arguments.to.as_ref().map(called).transpose().map_err(Failure::Usage)?;
        Ok(edited(rollout).undo(&rollout.revisions, to))
    })
}

fn edited(rollout: &Rollout) -> Edited<'_> {
    Edited { set: &rollout.set, meaning: &rollout.meaning, pods: rollout.pods.len() }
}

fn run(
    arguments: &Arguments,
    streams: &mut Streams<'_>,
    plan: impl FnOnce(&Rollout) -> Result<Result<Edit, Refused>, Failure>,
) -> io::Result<Ending> {
    let Arguments { set, connection, .. } = arguments;
    run_live(connection, streams, async |cluster, streams| {
        let rollout = match Rollout::gathered(cluster, connection, set, streams).await? {
            Ok(rollout) => rollout,
            Err(ending) => return Ok(ending),
        };
        match plan(&rollout)? {
            Ok(edit) => carry_out(cluster, arguments, rollout, &edit, streams).await,
            Err(Refused(why)) => {
                writeln!(streams.err, "error: {why}")?;
                Ok(Ending::Finding)
            }
        }
    })
}

async fn carry_out(
    cluster: &Cluster,
    arguments: &Arguments,
    rollout: Rollout,
    edit: &Edit,
    streams: &mut Streams<'_>,
) -> Result<Ending, Failure> {
    let Arguments { set, dry_run, connection } = arguments;
    let command = edit.patch.kubectl(SIDECAR_SET, set, &connection.flags());
    let tried = if *dry_run { DryRun::Yes } else { DryRun::No };
    let operations = serde_json::from_value(edit.patch.json()).expect("what is written here is a JSON patch");
    let after = match cluster.patch(SIDECAR_SET, set, operations, tried).await? {
        Patched::Done(after) => after,
        Patched::Outdated => {
            writeln!(
                streams.err,
                "error: set {set} was changed meanwhile, and nothing is written: look, and try again"
            )?;
            return Ok(Ending::Finding);
        }
    };
    write!(streams.out, "{}", result(set, &rollout.set, &after, tried))?;
    for note in &edit.notes {
        writeln!(streams.err, "note: {note}")?;
    }
    if let Ok(edited) = rollout.with_set(after) {
        // The controller has not seen it yet, of course.
        writeln!(streams.err, "then: {}", outlook(&Picture::of(&edited, Timestamp::now())))?;
    }
    writeln!(streams.err, "the same by hand:\n  {command}")?;
    Ok(Ending::Fine)
}

/// What became of the set, field by field.
fn result(name: &str, before: &Value, after: &Value, dry_run: DryRun) -> String {
    // The rest is the API server's own book-keeping.
    let words = |set: &Value| json!({"metadata": {"labels": set["metadata"]["labels"]}, "spec": set["spec"]});
    let tried = if dry_run == DryRun::Yes { " (dry run)" } else { "" };
    let lines = pod_diff::lines(&pod_diff::diff(&words(before), &words(after)));
    let head = format!("sidecarset/{name} patched{tried}");
    [head].into_iter().chain(lines.iter().map(|line| format!("  {line}"))).collect::<Vec<_>>().join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rollout::fixture::{canary, now};

    /// The rollout after a promotion, as the API server would give it back.
    #[test]
    fn what_became_of_the_set_is_shown_and_what_comes_of_it_said() {
        let rollout = canary();
        let before = rollout.set.clone();
        let mut after = before.clone();
        after["spec"]["updateStrategy"]["partition"] = json!(0);
        after["spec"]["injectStrategy"] = json!({});
        after["metadata"]["resourceVersion"] = json!("7");
        assert_eq!(
            result("mesh", &before, &after, DryRun::Yes),
            "sidecarset/mesh patched (dry run)\n  \
             - spec.injectStrategy.revision: mesh-gg8qt9pq2g\n  \
             ~ spec.updateStrategy.partition: 50% → 0\n"
        );
        assert_eq!(result("mesh", &before, &before, DryRun::No), "sidecarset/mesh patched\n");
        let Ok(promoted) = rollout.with_set(after) else { panic!("the set is in order") };
        assert_eq!(
            outlook(&Picture::of(&promoted, now())),
            "mesh: progressing, 2 of 10 pods done, 10 ready, 0 under way; next: 2 pods, such as search/api-6d4b75cb6d-00000"
        );
    }
}
