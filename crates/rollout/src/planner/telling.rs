//! How the update stands, in numbers and words.

use std::collections::BTreeMap;

use jiff::Timestamp;
use pillion_api::Reason;

use super::allowance::{Spent, workload_max};
use super::gate::GateView;
use super::hold::{By, Holds, by_word};
use super::roster::{Member, Need, Roster};
use super::starts::{LEFT_ALONE_SECONDS, Proof, proof};
use crate::fleet::Fleet;
use crate::pod::Pod;
use crate::progress::{Blocked, Counts, Progress, RevisionCount, Stalled};
use crate::share::{effective_max_unavailable, pinned_target};
use crate::swap::{Swap, Trouble, wants_events};

/// So many pods at a time are worth asking events about; one alone usually tells.
const MOST_ASKED: usize = 3;

pub(super) fn progress<'a>(
    fleet: &Fleet<'a>,
    roster: &Roster<'a>,
    gate: &GateView,
    mut holds: Holds<'a>,
    starting: usize,
) -> Progress {
    let mut progress = Progress {
        pinned: pinned_target(fleet.set.update.partition, roster.members.len()),
        max_unavailable: effective_max_unavailable(fleet.set.update.max_unavailable, roster.members.len()),
        revisions: revisions(roster),
        gate: gate.told(),
        read_again: fleet.own_writes.overdue(fleet.now).map(Box::from).collect(),
        wake_at: fleet.own_writes.next_change(fleet.now),
        ..Progress::default()
    };
    progress.counts.starting = starting;
    for member in &roster.members {
        count(&mut progress.counts, member);
        if let Need::Recreate(obstacle) = member.need {
            holds.one(Reason::NeedsRecreate, By::Obstacle(obstacle), member);
        }
        let is_settled = member.swap.is_done() && member.need == Need::Nothing;
        if let Some(given) = member.given.filter(|_| !is_settled) {
            if progress.ask_events.len() < MOST_ASKED
                && wants_events(member.pod, given, member.swap, &fleet.set.revision, fleet.now)
            {
                progress.ask_events.push(member.pod.uid.clone());
            }
            wake(&mut progress.wake_at, member, fleet.now);
        }
    }
    if holds.of.keys().any(|(reason, _)| *reason == Reason::ProbeUnfinished)
        && let Proof::At(at) = proof(fleet, roster)
    {
        progress.wake_at = progress.wake_at.map_or(Some(at), |earlier| Some(earlier.min(at)));
    }
    progress.stalled = stalled(fleet, roster, gate);
    progress.blocked = blocked(fleet, roster, &holds);
    progress
}

fn revisions(roster: &Roster<'_>) -> BTreeMap<String, RevisionCount> {
    let there = roster.revisions.iter().filter(|(_, count)| count.pods > 0);
    there.map(|(name, count)| ((*name).to_owned(), *count)).collect()
}

fn count(counts: &mut Counts, member: &Member<'_>) {
    let is_available = member.is_available();
    counts.pods += 1;
    counts.ready += usize::from(is_available);
    counts.unavailable += usize::from(!is_available);
    counts.updating += usize::from(!member.swap.is_done());
    match member.need {
        Need::Nothing => {
            counts.updated += 1;
            counts.updated_ready += usize::from(is_available);
        }
        Need::InPlace(_) => counts.waiting += 1,
        Need::Recreate(_) => counts.needs_recreate += 1,
    }
}

/// The times at which a pod counts otherwise though nothing changes.
fn wake(wake_at: &mut Option<Timestamp>, member: &Member<'_>, now: Timestamp) {
    let mut at = |time: Timestamp| {
        if time > now && wake_at.is_none_or(|earlier| time < earlier) {
            *wake_at = Some(time);
        }
    };
    if let Swap::Settling(settled) = member.swap {
        at(settled);
    }
    for seconds in [LEFT_ALONE_SECONDS, 15, 30, 60] {
        if let Some(time) = member.since.and_then(|since| Timestamp::from_second(since + seconds).ok()) {
            at(time);
        }
    }
}

fn stalled(fleet: &Fleet<'_>, roster: &Roster<'_>, gate: &GateView) -> Option<Stalled> {
    let newest = &fleet.set.revision;
    let told = gate.told();
    let name = |member: &&Member<'_>| (member.pod.namespace.clone(), member.pod.name.clone());
    let first = roster.members.iter().filter(|member| failed(member).is_some()).min_by_key(name);
    let example = first.and_then(|member| Some(describe(member.pod, failed(member)?)));
    if told.is_closed && by_word(fleet).is_none() {
        let example = example.map(|words| format!(", such as {words}")).unwrap_or_default();
        return Some(if told.restored > 0 {
            let message = format!(
                "{} of {} pods were not well with {newest} and got their old revision back{example}: correct the set; {newest} is not tried again while they remember it",
                told.restored,
                roster.members.len()
            );
            Stalled { reason: Reason::GateRollback, message }
        } else {
            let message = format!(
                "{} of {} pods are not well with {newest}, and {} close the health gate{example}: correct the set, or go back with `pillion rollout undo`",
                told.unhealthy,
                roster.members.len(),
                told.limit
            );
            Stalled { reason: Reason::HealthGate, message }
        });
    }
    let reason = failed(first?)?.reason;
    let alike = roster.members.iter().filter(|member| failed(member).is_some_and(|it| it.reason == reason)).count();
    let cure = match reason {
        Reason::ImageUnavailable => "correct the image in the set, or mend the registry or the pull secret",
        Reason::ContainerFails => "look at the container's log and the pod's events, then correct the set",
        _ => "look at the container; its probe may not fit the new image",
    };
    let words = example.unwrap_or_default();
    let pods = if alike == 1 { "pod does not run what it was given" } else { "pods do not run what they were given" };
    Some(Stalled { reason, message: format!("{alike} {pods}: {words}: {cure}") })
}

fn failed<'a>(member: &Member<'a>) -> Option<Trouble<'a>> {
    match member.swap {
        Swap::Failed(trouble) => Some(trouble),
        _ => None,
    }
}

fn describe(pod: &Pod, trouble: Trouble<'_>) -> String {
    let Trouble { container, why, .. } = trouble;
    format!("pod {}/{}, container {}, image {}: {why}", pod.namespace, pod.name, container.name, container.image)
}

fn blocked(fleet: &Fleet<'_>, roster: &Roster<'_>, holds: &Holds<'_>) -> Vec<Blocked> {
    let mut blocked: Vec<Blocked> = holds
        .of
        .iter()
        .map(|((reason, by), (pods, example))| {
            let example =
                example.map(|pod| format!(", such as pod {}/{}", pod.namespace, pod.name)).unwrap_or_default();
            Blocked { reason: *reason, pods: *pods, words: format!("{}{example}", why(fleet, roster, *reason, *by)) }
        })
        .collect();
    blocked.sort_by(|a, b| b.pods.cmp(&a.pods).then_with(|| a.reason.cmp(&b.reason)));
    blocked
}

fn why(fleet: &Fleet<'_>, roster: &Roster<'_>, reason: Reason, by: By) -> String {
    let max = fleet.set.update.max_unavailable;
    match by {
        By::Obstacle(obstacle) => roster.obstacles[obstacle].clone(),
        By::Spent(Spent::Set) => {
            let max = effective_max_unavailable(max, roster.members.len());
            format!("{max} of {} pods may be unavailable at a time", roster.members.len())
        }
        By::Spent(Spent::Workload(place)) => {
            let (workload, pods) = &roster.workloads[place];
            let max = workload_max(max, *pods);
            format!(
                "{max} of {pods} pods of {} {}/{} may be unavailable at a time",
                workload.kind, workload.namespace, workload.name
            )
        }
        By::Spent(Spent::Budget(place)) => {
            let budget = &fleet.budgets[place];
            format!(
                "PodDisruptionBudget {}/{} allows {} disruptions now",
                budget.namespace, budget.name, budget.allowed
            )
        }
        By::Itself => match reason {
            Reason::SwitchedOff => "the whole installation is switched off".to_owned(),
            Reason::Observed => "the set only observes".to_owned(),
            Reason::UpdateSwitchedOff => "updateStrategy.type is NotUpdate".to_owned(),
            Reason::UpdatePaused => "updateStrategy.paused is true".to_owned(),
            Reason::HealthGate => "the health gate is closed".to_owned(),
            Reason::GateRollback => format!("pods were not well with {}", fleet.set.revision),
            Reason::PartitionKeeps => {
                let kept = pinned_target(fleet.set.update.partition, roster.members.len());
                format!("{kept} of {} pods stay as they are", roster.members.len())
            }
            Reason::OutsideUpdateSelector => "updateStrategy.selector does not select them".to_owned(),
            Reason::ProbeUnfinished => format!("one pod is tried with {} first", fleet.set.revision),
            Reason::JustUpdated => "they were updated a moment ago, or do not run yet what they were given".to_owned(),
            Reason::NamespaceExcluded => "nothing is changed in their namespace".to_owned(),
            _ => reason.title().to_owned(),
        },
    }
}
