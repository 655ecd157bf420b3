//! `pillion rollout history`: the revisions of a set, and which pods have them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;

use clap::Args;
use jiff::{SignedDuration, Timestamp};
use pillion_rollout::Pod;
use pillion_rollout::history::Revision;
use serde_json::{Value, json};

use super::gather::Rollout;
use super::revisions::{Pin, images};
use crate::layout::indented;
use crate::live::kinds::set_named;
use crate::live::{Connection, run as run_live};
use crate::{Ending, Format, Streams};

#[derive(Args)]
pub(crate) struct Arguments {
    /// The set: scs/mesh, or mesh.
    #[arg(value_name = "SET", value_parser = set_named)]
    set: String,
    /// Format of the answer.
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
    #[command(flatten)]
    connection: Connection,
}

pub(super) fn run(arguments: &Arguments, streams: &mut Streams<'_>) -> io::Result<Ending> {
    run_live(&arguments.connection, streams, async |cluster, streams| {
        let rollout = match Rollout::gathered(cluster, &arguments.connection, &arguments.set, streams).await? {
            Ok(rollout) => rollout,
            Err(ending) => return Ok(ending),
        };
        match arguments.output {
            Format::Text => write!(streams.out, "{}", text(&rollout, Timestamp::now()))?,
            Format::Json => writeln!(streams.out, "{:#}", json(&rollout))?,
        }
        Ok(Ending::Fine)
    })
}

/// Pods by the revision they have; `None` for those that do not say.
pub(super) fn counts<'a>(set: &str, pods: &'a [Pod]) -> BTreeMap<Option<&'a str>, usize> {
    let mut counts = BTreeMap::new();
    for pod in pods {
        *counts.entry(pod.revisions.of(set).map(|it| it.is.as_str())).or_default() += 1;
    }
    counts
}

fn text(rollout: &Rollout, now: Timestamp) -> String {
    let (set, revisions) = (&rollout.meaning, &rollout.revisions);
    let mut counts = counts(&set.name, &rollout.pods);
    let mut rows = Vec::new();
    for revision in revisions.all() {
        rows.push(Row {
            cells: [
                revision.number.to_string(),
                revision.name.clone(),
                revision.custom_versions.join(", "),
                revisions.created(revision).map_or_else(|| "?".to_owned(), |created| age(now.duration_since(created))),
                counts.remove(&Some(revision.name.as_str())).unwrap_or(0).to_string(),
                marks(rollout, revision).join(", "),
            ],
            images: images_of(revision),
        });
    }
    let (all, pods) = (plural(rows.len(), "revision"), plural(rollout.pods.len(), "pod"));
    let mut text = format!("SidecarSet {}: {all}, {pods}\n", set.name);
    if !rows.is_empty() {
        // Writing to a String cannot fail.
        let _ = write!(text, "\n{}", table(&rows));
    }
    if revisions.newest().is_none() {
        counts.remove(&Some(set.revision.as_str()));
        let words = format!(
            "note: revision {} is the newest and not stored yet: the controller stores it when it sees the set, \
             `pillion check` tells whether it runs",
            set.revision
        );
        let _ = write!(text, "\n{}", indented(2, &words));
    }
    if let Pin::Unusable(word) = revisions.pin() {
        let words = format!("note: the set pins {word}, which is none of its revisions: new pods cannot have it");
        let _ = write!(text, "\n{}", indented(2, &words));
    }
    for (name, count) in counts {
        let words = match name {
            Some(name) => format!("note: {} with revision {name}, which is not kept any more", plural(count, "pod")),
            None => format!("note: {} without a word about the revision", plural(count, "pod")),
        };
        let _ = write!(text, "\n{}", indented(2, &words));
    }
    text
}

struct Row {
    cells: [String; 6],
    images: String,
}

fn table(rows: &[Row]) -> String {
    let head = ["#", "REVISION", "VERSIONS", "AGE", "PODS", ""].map(str::to_owned);
    let cells = || [&head].into_iter().chain(rows.iter().map(|row| &row.cells));
    let width = |column: usize| cells().map(|cells| cells[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..5).map(width).collect();
    let mut text = String::new();
    for (at, [number, name, versions, age, pods, marks]) in cells().enumerate() {
        let line = format!(
            "  {number:>0$}  {name:1$}  {versions:2$}  {age:>3$}  {pods:>4$}  {marks}",
            widths[0], widths[1], widths[2], widths[3], widths[4]
        );
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{}", line.trim_end());
        if let Some(row) = at.checked_sub(1).and_then(|at| rows.get(at)) {
            text.push_str(&indented(widths[0] + 4, &row.images));
        }
    }
    text
}

fn marks(rollout: &Rollout, revision: &Revision) -> Vec<&'static str> {
    let revisions = &rollout.revisions;
    let is_pinned = matches!(revisions.pin(), Pin::Revision(name) if *name == revision.name);
    let marks = [(revisions.is_newest(revision), "newest"), (is_pinned, "pinned")];
    marks.into_iter().filter(|(is_so, _)| *is_so).map(|(_, word)| word).collect()
}

fn images_of(revision: &Revision) -> String {
    images(revision).iter().map(|(container, image)| format!("{container}={image}")).collect::<Vec<_>>().join(", ")
}

/// The same. Fields may be added, and none changes its meaning.
fn json(rollout: &Rollout) -> Value {
    let (set, revisions) = (&rollout.meaning, &rollout.revisions);
    let counts = counts(&set.name, &rollout.pods);
    let listed = revisions.all().iter().map(|revision| {
        let images = images(revision).into_iter().map(|(container, image)| (container.to_owned(), json!(image)));
        let marks = marks(rollout, revision);
        json!({
            "number": revision.number,
            "name": revision.name,
            "customVersions": revision.custom_versions,
            "created": revisions.created(revision).map(|created| created.to_string()),
            "pods": counts.get(&Some(revision.name.as_str())).unwrap_or(&0),
            "images": images.collect::<serde_json::Map<_, _>>(),
            "isNewest": marks.contains(&"newest"),
            "isPinned": marks.contains(&"pinned"),
        })
    });
    let unknown = counts.iter().filter(|(name, _)| name.is_none_or(|name| revisions.named(name).is_none()));
    json!({
        "set": set.name,
        "newest": set.revision,
        "pods": rollout.pods.len(),
        "podsOfUnknownRevisions": unknown.map(|(_, count)| count).sum::<usize>(),
        "revisions": listed.collect::<Vec<_>>(),
    })
}

/// `1 pod`, `2 pods`
pub(crate) fn plural(count: usize, word: &str) -> String {
    if count == 1 { format!("1 {word}") } else { format!("{count} {word}s") }
}

/// As kubectl tells it: the largest unit that is not zero.
pub(crate) fn age(since: SignedDuration) -> String {
    let seconds = since.as_secs().max(0);
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7_200 => format!("{}m", seconds / 60),
        7_200..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture;
    use super::*;

    #[test]
    fn ages_are_told_in_their_largest_unit() {
        for (seconds, told) in [
            (-5, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (7_199, "119m"),
            (7_200, "2h"),
            (172_799, "47h"),
            (172_800, "2d"),
        ] {
            assert_eq!(age(SignedDuration::from_secs(seconds)), told, "{seconds}");
        }
    }

    #[test]
    fn revisions_are_listed_with_their_pods() {
        let rollout = fixture::canary();
        let now = fixture::now();
        insta::assert_snapshot!("history", text(&rollout, now));
        insta::assert_snapshot!("history_json", format!("{:#}", json(&rollout)));
    }

    #[test]
    fn what_is_not_stored_is_said() {
        let rollout = fixture::without_revisions();
        insta::assert_snapshot!("history_of_a_set_without_a_controller", text(&rollout, fixture::now()));
    }
}
