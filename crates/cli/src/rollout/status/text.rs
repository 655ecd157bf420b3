//! How a rollout stands, for people: numbers, a tree with bars, and what pods wait for.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use pillion_api::{PodCount, Reason};
use pillion_rollout::{Blocked, Counts};

use super::pace::Estimate;
use crate::layout::{hanging, indented, shortened};
use crate::preview::explained;
use crate::rollout::edits::written;
use crate::rollout::history::plural;
use crate::rollout::picture::{Picture, State, WorkloadPicture};

/// Columns of a name in the tree, its indentation included.
const TITLE: usize = 34;
/// Columns of a bar.
const BAR: usize = 16;
/// So many lines of the tree are enough for a page.
pub(super) const PAGE: usize = 60;
/// So many workloads are named of a list.
const NAMED: usize = 3;

/// How much is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Detail {
    /// With the cause and the cure of everything.
    Full,
    /// What changes, in so many lines.
    Lines(usize),
}

/// The whole of it.
pub(super) fn text(picture: &Picture, estimate: Option<&Estimate>, detail: Detail) -> String {
    let head = head(picture, estimate);
    let waiting = waiting(picture);
    let taken = head.lines().count() + waiting.lines().count() + 2;
    let room = match detail {
        Detail::Full => PAGE,
        Detail::Lines(lines) => lines.saturating_sub(taken).max(1),
    };
    let mut sections = vec![head, tree(&picture.workloads, room), waiting];
    if detail == Detail::Full {
        sections.push(legend(picture));
    }
    sections.retain(|section| !section.is_empty());
    let text = sections.join("\n");
    match detail {
        Detail::Full => text,
        Detail::Lines(lines) => text.split_inclusive('\n').take(lines).collect(),
    }
}

/// One line, for those who read what has happened.
pub(super) fn line(picture: &Picture) -> String {
    let counts = &picture.progress.counts;
    // Writing to a String cannot fail.
    let mut words = format!(
        "{}: {}, {} of {} done, {} ready, {} under way",
        picture.set,
        picture.state.word(),
        done(counts),
        plural(counts.pods, "pod"),
        counts.ready,
        counts.updating
    );
    if let Some(stalled) = &picture.progress.stalled {
        let _ = write!(words, "; {} [{}]", stalled.message, stalled.reason);
    } else if let (State::Held(_) | State::Resting(_), Some(blocked)) =
        (picture.state, picture.progress.blocked.first())
    {
        let _ = write!(words, "; {}", held(blocked));
    }
    words
}

/// What comes of an edit, in one line.
pub(in crate::rollout) fn outlook(picture: &Picture) -> String {
    let next = match picture.next.len() {
        0 => String::new(),
        count => format!("; next: {}", named(count, &picture.next)),
    };
    format!("{}{next}", line(picture))
}

fn head(picture: &Picture, estimate: Option<&Estimate>) -> String {
    let Picture { progress, .. } = picture;
    let counts = &progress.counts;
    let state = if counts.pods == 0 { "no pod carries it".to_owned() } else { told(picture.state) };
    let mut text = format!("SidecarSet {}: {state}\n\n", picture.set);
    let from = picture.from.as_ref().map(|from| format!(", from {from}")).unwrap_or_default();
    let mut row = |name: &str, words: String| {
        let _ = writeln!(text, "  {name:14}  {}", hanging(18, &words));
    };
    row("revision", format!("{}{from}", picture.newest));
    let percent = (done(counts) * 100).checked_div(counts.pods);
    let percent = percent.map(|percent| format!(" {} {percent} %", bar(counts))).unwrap_or_default();
    row("done", format!("{} of {}{percent}", done(counts), counts.pods));
    row("ready", format!("{} of {}", counts.ready, counts.pods));
    if counts.updating > 0 {
        let probe = if picture.is_probing { "; the others follow when it runs well" } else { "" };
        row("under way", format!("{}{probe}", named(counts.updating, &picture.under_way)));
    }
    if counts.needs_recreate > 0 {
        row("recreate", format!("{} only when created again", plural(counts.needs_recreate, "pod")));
    }
    row("maxUnavailable", effective(picture.max_unavailable, counts.pods, progress.max_unavailable, "at a time"));
    if picture.partition != PodCount::Pods(0) {
        row("partition", effective(picture.partition, counts.pods, progress.pinned, "stay"));
    }
    if !picture.next.is_empty() {
        row("next", named(picture.next.len(), &picture.next));
    }
    if let Some(estimate) = estimate {
        row("eta", estimate.to_string());
    }
    for note in &picture.controller {
        text.push_str(&indented(2, &format!("note: {note}")));
    }
    text
}

fn told(state: State) -> String {
    match state {
        State::Done => "done, all pods have the newest revision".to_owned(),
        State::Moving => "progressing".to_owned(),
        State::Resting(reason) => format!("resting, all pods follow that may [{reason}]"),
        State::Held(reason) => format!("waiting [{reason}]"),
        State::Stalled(reason) => format!("stalled [{reason}]"),
    }
}

/// `20% of 12 -> 3 at a time`
fn effective(given: PodCount, pods: usize, is: usize, what: &str) -> String {
    match given {
        PodCount::Percent(_) => format!("{} of {pods} -> {is} {what}", written(given)),
        PodCount::Pods(_) => format!("{is} {what}"),
    }
}

fn named(count: usize, names: &[String]) -> String {
    match names {
        [] => plural(count, "pod"),
        [name] => format!("pod {name}"),
        [name, ..] => format!("{}, such as {name}", plural(count, "pod")),
    }
}

/// Bars by namespace and workload, in at most so many lines; what there is no room for is counted.
fn tree(workloads: &[WorkloadPicture], room: usize) -> String {
    let mut namespaces: BTreeMap<&str, Vec<&WorkloadPicture>> = BTreeMap::new();
    for workload in workloads {
        namespaces.entry(&workload.namespace).or_default().push(workload);
    }
    for workloads in namespaces.values_mut() {
        // What is not done is what people look for.
        workloads.sort_by_key(|it| (rank(&it.counts, it.stalled.is_some()), &it.kind, &it.name));
    }
    let longest = namespaces.values().map(Vec::len).max().unwrap_or(0);
    let lines = |most: usize| -> usize { namespaces.values().map(|all| 1 + all.len().min(most + 1)).sum() };
    // One that is left out is told in a line of its own, so it may as well be shown.
    let most = (0..=longest).rev().find(|most| lines(*most) <= room).unwrap_or(0);
    let has_room = lines(0) <= room;
    let mut text = String::new();
    let shown = if namespaces.len() <= room { namespaces.len() } else { room.saturating_sub(1) };
    let mut ranked: Vec<(&str, &Vec<&WorkloadPicture>)> = namespaces.iter().map(|(name, all)| (*name, all)).collect();
    if !has_room {
        ranked.sort_by_key(|(name, all)| (rank(&sum(all), is_stalled(all)), *name));
    }
    for (name, all) in &ranked[..shown] {
        text.push_str(&branch(2, name, &sum(all), is_stalled(all)));
        if !has_room {
            continue;
        }
        let shown = if all.len() <= most + 1 { all.len() } else { most };
        for workload in &all[..shown] {
            let title = format!("{} {}", workload.kind, workload.name);
            text.push_str(&branch(4, &title, &workload.counts, workload.stalled.is_some()));
        }
        if shown < all.len() {
            let rest = &all[shown..];
            text.push_str(&branch(4, &format!("and {} more", rest.len()), &sum(rest), is_stalled(rest)));
        }
    }
    if shown < ranked.len() {
        let rest: Vec<&WorkloadPicture> = ranked[shown..].iter().flat_map(|(_, all)| all.iter().copied()).collect();
        let title = format!("and {} more namespaces", ranked.len() - shown);
        text.push_str(&branch(2, &title, &sum(&rest), is_stalled(&rest)));
    }
    text
}

fn branch(indent: usize, title: &str, counts: &Counts, is_stalled: bool) -> String {
    let room = TITLE - indent;
    let title = shortened(title, room);
    let share = format!("{}/{}", done(counts), counts.pods);
    let line = format!("{:indent$}{title:room$} {share:>11} {} {}", "", bar(counts), note(counts, is_stalled));
    format!("{}\n", line.trim_end())
}

fn note(counts: &Counts, is_stalled: bool) -> String {
    let unready = counts.pods - counts.ready;
    if is_stalled {
        "stalled".to_owned()
    } else if counts.updating > 0 {
        format!("{} under way", counts.updating)
    } else if counts.needs_recreate > 0 {
        format!("{} recreate", counts.needs_recreate)
    } else if unready > 0 {
        format!("{unready} not ready")
    } else if done(counts) == counts.pods {
        "done".to_owned()
    } else {
        String::new()
    }
}

/// What is looked for first comes first.
fn rank(counts: &Counts, is_stalled: bool) -> u8 {
    match note(counts, is_stalled).as_str() {
        "stalled" => 0,
        "done" => 3,
        "" => 2,
        _ => 1,
    }
}

fn is_stalled(all: &[&WorkloadPicture]) -> bool {
    all.iter().any(|workload| workload.stalled.is_some())
}

fn sum(all: &[&WorkloadPicture]) -> Counts {
    all.iter().fold(Counts::default(), |sum, workload| {
        let counts = &workload.counts;
        Counts {
            pods: sum.pods + counts.pods,
            ready: sum.ready + counts.ready,
            updated: sum.updated + counts.updated,
            updated_ready: sum.updated_ready + counts.updated_ready,
            updating: sum.updating + counts.updating,
            needs_recreate: sum.needs_recreate + counts.needs_recreate,
            waiting: sum.waiting + counts.waiting,
            unavailable: sum.unavailable + counts.unavailable,
            starting: sum.starting + counts.starting,
        }
    })
}

/// Pods that run the newest revision: one that was given it and does not run it yet is not done.
fn done(counts: &Counts) -> usize {
    counts.updated.saturating_sub(counts.updating)
}

/// Full only where all are done, and not empty where one is.
fn bar(counts: &Counts) -> String {
    let (done, pods) = (done(counts), counts.pods);
    let filled = match pods {
        0 => 0,
        _ if done == pods => BAR,
        _ => (done * BAR / pods).clamp(usize::from(done > 0), BAR - 1),
    };
    format!("{}{}", "█".repeat(filled), "░".repeat(BAR - filled))
}

/// What pods wait for, the most first, and what does not go on by itself.
fn waiting(picture: &Picture) -> String {
    let progress = &picture.progress;
    let mut text = String::new();
    if let Some(stalled) = &progress.stalled {
        text.push_str(&indented(2, &format!("stalled: {} [{}]", stalled.message, stalled.reason)));
        let others: Vec<String> = picture.workloads.iter().filter_map(stalled_workload).collect();
        if others.len() > 1 {
            let named = others.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
            let more = others.len().saturating_sub(NAMED);
            let more = if more > 0 { format!(" and {}", plural(more, "other workload")) } else { String::new() };
            text.push_str(&indented(4, &format!("in {named}{more}")));
        }
    }
    for blocked in &progress.blocked {
        text.push_str(&indented(2, &held(blocked)));
    }
    text
}

fn stalled_workload(workload: &WorkloadPicture) -> Option<String> {
    let reason = workload.stalled.as_ref()?.reason;
    Some(format!("{} {}/{} [{reason}]", workload.kind, workload.namespace, workload.name))
}

/// `3 pods wait: updateStrategy.paused is true [PL403]`
fn held(blocked: &Blocked) -> String {
    let Blocked { reason, pods, words } = blocked;
    let wait = match (reason, pods) {
        (Reason::NeedsRecreate, 1) => "1 pod follows only when it is created again".to_owned(),
        (Reason::NeedsRecreate, _) => format!("{pods} pods follow only when they are created again"),
        (_, 1) => "1 pod waits".to_owned(),
        _ => format!("{pods} pods wait"),
    };
    format!("{wait}: {words} [{reason}]")
}

/// Every code that was told, with its way out.
fn legend(picture: &Picture) -> String {
    let blocked = picture.progress.blocked.iter().map(|blocked| blocked.reason);
    let codes: BTreeSet<Reason> = blocked.chain(picture.progress.stalled.as_ref().map(|it| it.reason)).collect();
    codes.into_iter().map(|reason| explained(reason.title(), reason)).collect()
}
