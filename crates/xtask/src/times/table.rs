//! The times of a run as text: a page to commit, and the ten slowest entries for the end of the gate.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{Entry, Kind, Run};

/// Entries below this many seconds are summed up in one line.
const LEAST: f64 = 1.0;

/// The whole table of a run, in Markdown.
pub fn page(title: &str, run: &Run) -> String {
    let mut page = format!(
        "# {title}\n\nWritten by `just ci-times`. Seconds of wall time, and of CPU time where it is known (of an e2e test with its bed and \
         all its processes).\n\nCommit `{}`, command `{}`: {}.\n",
        run.commit,
        run.command,
        duration(run)
    );
    for (kind, heading) in [
        (Kind::Step, "Steps"),
        (Kind::Tool, "Outside programs"),
        (Kind::Compile, "Compilation by crate, target and profile"),
        (Kind::Test, "Tests without a cluster"),
        (Kind::E2e, "e2e tests"),
    ] {
        section(&mut page, heading, &of_kind(run, kind));
    }
    beds(&mut page, &of_kind(run, Kind::Bed));
    page
}

/// The duration of a run in words.
pub fn duration(run: &Run) -> String {
    format!(
        "{:.0} s, in which the host gave {:.0} % of the CPU time of this machine to others",
        run.wall,
        run.stolen * 100.0
    )
}

/// The slowest entries, without the steps that hold them.
pub fn slowest(run: &Run, count: usize) -> String {
    let mut entries: Vec<&Entry> =
        run.entries.iter().filter(|it| it.kind != Kind::Step && it.kind != Kind::Bed).collect();
    entries.sort_by(|a, b| b.wall.total_cmp(&a.wall));
    let mut text = String::new();
    for entry in entries.iter().take(count) {
        let _ = writeln!(text, "{:8.1} s{}  {}", entry.wall, cpu(entry, " of CPU"), entry.name);
    }
    text
}

fn of_kind(run: &Run, kind: Kind) -> Vec<&Entry> {
    let mut entries: Vec<&Entry> = run.entries.iter().filter(|entry| entry.kind == kind).collect();
    if kind != Kind::Step {
        entries.sort_by(|a, b| b.wall.total_cmp(&a.wall).then_with(|| a.name.cmp(&b.name)));
    }
    entries
}

fn section(page: &mut String, heading: &str, entries: &[&Entry]) {
    if entries.is_empty() {
        return;
    }
    let total: f64 = entries.iter().map(|entry| entry.wall).sum();
    let _ = writeln!(page, "\n## {heading}\n\n{} entries, {total:.0} s in all.\n", entries.len());
    page.push_str("| name | wall | CPU |\n|---|---:|---:|\n");
    let (shown, small): (Vec<&Entry>, Vec<&Entry>) =
        entries.iter().partition(|it| it.wall >= LEAST || it.kind == Kind::Step);
    for entry in shown {
        let _ = writeln!(page, "| {} | {:.1} | {} |", entry.name, entry.wall, cpu(entry, ""));
    }
    if !small.is_empty() {
        let seconds: f64 = small.iter().map(|entry| entry.wall).sum();
        let _ = writeln!(page, "| {} entries of less than {LEAST} s | {seconds:.1} | |", small.len());
    }
}

/// Median and range of starts and stops.
fn beds(page: &mut String, entries: &[&Entry]) {
    let mut of: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for entry in entries {
        let (what, _) = entry.name.split_once(' ').unwrap_or((&entry.name, ""));
        of.entry(what).or_default().push(entry.wall);
    }
    if of.is_empty() {
        return;
    }
    page.push_str("\n## Test beds\n\n| what | count | median | least | most | sum |\n|---|---:|---:|---:|---:|---:|\n");
    for (what, mut seconds) in of {
        seconds.sort_by(f64::total_cmp);
        let (least, most) = (seconds[0], seconds[seconds.len() - 1]);
        let (median, sum) = (seconds[seconds.len() / 2], seconds.iter().sum::<f64>());
        let _ = writeln!(page, "| {what} | {} | {median:.1} | {least:.1} | {most:.1} | {sum:.0} |", seconds.len());
    }
}

fn cpu(entry: &Entry, unit: &str) -> String {
    entry
        .cpu
        .map(|seconds| format!("{seconds:6.1}{unit}").trim_start().to_owned())
        .map_or_else(String::new, |it| if unit.is_empty() { it } else { format!(" ({it})") })
}
