//! Which pods are updated now.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use jiff::Timestamp;
use pillion_api::Reason;
use pillion_plan::PodUpdate;

use super::allowance::{Allowance, Direction, Spent};
use super::gate::{self, GateView};
use super::hold::{By, Holds};
use super::roster::{Member, Need, Roster};
use super::write::{self, Change};
use crate::difference::Difference;
use crate::fleet::Fleet;
use crate::order::{Rank, scatter};
use crate::share::pinned_target;

/// Within this time a node may hold back a container that is changed again.
pub(super) const LEFT_ALONE_SECONDS: i64 = 10;

/// So far the clock of a node may be ahead before it is not believed.
const CLOCKS_APART_SECONDS: i64 = 30;

/// A pod that could be updated now, if there is room.
#[derive(Clone, Copy)]
struct Candidate<'a> {
    member: Member<'a>,
    change: usize,
}

/// The updates to the newest revision; what is held is told to `holds`.
pub(super) fn starts<'a>(fleet: &Fleet<'a>, roster: &Roster<'a>, holds: &mut Holds<'a>) -> Vec<PodUpdate> {
    let mut candidates = candidates(fleet, roster, holds);
    if candidates.is_empty() {
        return Vec::new();
    }
    let mut allowance = Allowance::of(fleet, roster);
    let updated = roster.members.iter().filter(|member| member.need == Need::Nothing).count();
    let all = roster.members.len();
    let room = (all - pinned_target(fleet.set.update.partition, all)).saturating_sub(updated);
    let hold_all = |holds: &mut Holds<'a>, reason, held: &[Candidate<'a>]| {
        for candidate in held {
            holds.one(reason, By::Itself, &candidate.member);
        }
        Vec::new()
    };
    if room == 0 {
        return hold_all(holds, Reason::PartitionKeeps, &candidates);
    }
    let proof = if fleet.set.update.probe { proof(fleet, roster) } else { Proof::Given };
    let is_tried = proof != Proof::Given;
    let is_under_way = |member: &Member<'_>| !member.swap.is_done() && member.has_newest();
    if is_tried && (proof != Proof::None || roster.members.iter().any(is_under_way)) {
        return hold_all(holds, Reason::ProbeUnfinished, &candidates);
    }
    if allowance.is_spent_for_ready_pods() {
        // Most pods are ready, and need not be put in order for nothing.
        candidates.retain(|it| {
            let is_held = it.member.is_available();
            if is_held {
                holds.spent(Spent::Set, &it.member);
            }
            !is_held
        });
    }
    let mut chosen = Vec::new();
    let most = if is_tried { 1 } else { room };
    let why_no_more = if is_tried && room > 1 { Reason::ProbeUnfinished } else { Reason::PartitionKeeps };
    let mut queue = Queue::of(fleet, candidates, is_tried);
    while let Some(candidate) = queue.next() {
        if chosen.len() == most {
            holds.one(why_no_more, By::Itself, &candidate.member);
            continue;
        }
        match allowance.take(&candidate.member, Direction::Newest) {
            Ok(()) => chosen.push(candidate),
            Err(spent) => holds.spent(spent, &candidate.member),
        }
        if chosen.len() == most || (allowance.is_spent_for_ready_pods() && !queue.has_unready) {
            let reason = if chosen.len() == most { why_no_more } else { Reason::BudgetSpent };
            let by = if chosen.len() == most { By::Itself } else { By::Spent(Spent::Set) };
            queue.rest().for_each(|it| holds.one(reason, by, &it.member));
            break;
        }
    }
    let newest = (fleet.set.revision.as_str(), &fleet.set.template);
    chosen.iter().map(|it| write::update(fleet, &it.member, newest, roster.change(it.change), None)).collect()
}

/// The writes that give pods that are not well the revision back that they had.
pub(super) fn restores<'a>(fleet: &Fleet<'a>, roster: &Roster<'a>, gate: &GateView) -> Vec<PodUpdate> {
    if !fleet.set.update.gate.rollback {
        return Vec::new();
    }
    let mut allowance = Allowance::of(fleet, roster);
    let mut restored = Vec::new();
    for member in gate.unhealthy.iter().map(|place| &roster.members[*place]) {
        let Some((revision, template)) = gate::way_back(fleet, member) else { continue };
        let mut difference = Difference::between(&fleet.set.template, template);
        if let Some(sizer) = fleet.sizers.of(member.pod) {
            sizer.take_out(&mut difference);
        }
        let change = Change::between(&fleet.set.template, template, &difference);
        if !difference.recreate.is_empty() || allowance.take(member, Direction::Back).is_err() {
            continue;
        }
        let failed = Some(fleet.set.revision.as_str());
        restored.push(write::update(fleet, member, (revision, template), &change, failed));
    }
    restored
}

/// Pods that can follow in place and that nothing of their own holds.
fn candidates<'a>(fleet: &Fleet<'a>, roster: &Roster<'a>, holds: &mut Holds<'a>) -> Vec<Candidate<'a>> {
    let mut candidates = Vec::new();
    for member in &roster.members {
        let Need::InPlace(change) = member.need else { continue };
        if let Some(reason) = held_by_itself(fleet, member) {
            holds.one(reason, By::Itself, member);
        } else {
            candidates.push(Candidate { member: *member, change });
        }
    }
    candidates
}

fn held_by_itself(fleet: &Fleet<'_>, member: &Member<'_>) -> Option<Reason> {
    let selector = fleet.set.update.selector.as_ref();
    if fleet.left_alone.contains(&&*member.pod.namespace) {
        Some(Reason::NamespaceExcluded)
    } else if selector.is_some_and(|selector| !selector.matches(|key| member.pod.label(key))) {
        Some(Reason::OutsideUpdateSelector)
    } else if member.is_unseen || !(write::has_failed(member) || (member.swap.is_done() && !is_recent(fleet, member))) {
        Some(Reason::JustUpdated)
    } else {
        None
    }
}

/// Whether a pod was updated a few seconds ago.
pub(super) fn is_recent(fleet: &Fleet<'_>, member: &Member<'_>) -> bool {
    member.since.is_some_and(|since| fleet.now.as_second() < since + LEFT_ALONE_SECONDS)
}

/// Whether the newest revision is known to run well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Proof {
    /// No pod runs it well.
    None,
    /// One does, and will have done for long enough at this time: a program that crashes runs for a moment, too.
    At(Timestamp),
    Given,
}

pub(super) fn proof(fleet: &Fleet<'_>, roster: &Roster<'_>) -> Proof {
    let mut proof = Proof::None;
    for member in &roster.members {
        let is_well = !member.is_unseen && member.is_available() && member.has_newest() && roster.runs_well(member.pod);
        if !is_well {
            continue;
        }
        match (proves_at(fleet, roster, member).filter(|at| *at > fleet.now), proof) {
            (None, _) => return Proof::Given,
            (Some(at), Proof::At(earlier)) if earlier <= at => {}
            (Some(at), _) => proof = Proof::At(at),
        }
    }
    proof
}

/// When a pod that runs well has done so for as long as the set asks for.
fn proves_at(fleet: &Fleet<'_>, roster: &Roster<'_>, member: &Member<'_>) -> Option<Timestamp> {
    let settle = i64::from(fleet.set.update.settle_seconds);
    let started = roster.started(member.pod).filter(|_| settle > 0)?.as_second();
    // Nodes tell whole seconds. Their clocks may be wrong, and ours is not worse.
    let given = member.since.unwrap_or_else(|| member.pod.created.as_second());
    Timestamp::from_second((started + settle + 1).min(given + settle + CLOCKS_APART_SECONDS)).ok()
}

/// Candidates, the first to be updated first. Only as many are put in order as are asked for.
struct Queue<'a> {
    order: Order<'a>,
    has_unready: bool,
}

enum Order<'a> {
    Heap(BinaryHeap<Reverse<Ranked<'a>>>),
    List(std::vec::IntoIter<Candidate<'a>>),
}

#[derive(Clone, Copy)]
struct Ranked<'a> {
    rank: Rank<'a>,
    candidate: Candidate<'a>,
}

impl PartialEq for Ranked<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.rank == other.rank
    }
}

impl Eq for Ranked<'_> {}

impl PartialOrd for Ranked<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ranked<'_> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.rank.cmp(&other.rank)
    }
}

impl<'a> Queue<'a> {
    fn of(fleet: &Fleet<'a>, candidates: Vec<Candidate<'a>>, ready_first: bool) -> Self {
        let update = &fleet.set.update;
        let has_unready = candidates.iter().any(|it| !it.member.is_available());
        let ranked = candidates
            .into_iter()
            .map(|candidate| Ranked { rank: Rank::of(candidate.member.pod, &update.priority), candidate });
        if update.scatter.is_empty() && !ready_first {
            return Self { order: Order::Heap(ranked.map(Reverse).collect()), has_unready };
        }
        let mut ranked: Vec<Ranked<'a>> = ranked.collect();
        ranked.sort_unstable();
        let mut list = ranked.into_iter().map(|it| it.candidate).collect::<Vec<_>>();
        list = scatter(list, &update.scatter, |it| it.member.pod);
        if ready_first {
            list.sort_by_key(|it| !it.member.is_available());
        }
        Self { order: Order::List(list.into_iter()), has_unready }
    }

    fn next(&mut self) -> Option<Candidate<'a>> {
        match &mut self.order {
            Order::Heap(heap) => heap.pop().map(|Reverse(it)| it.candidate),
            Order::List(list) => list.next(),
        }
    }

    /// Those that are left, in any order.
    fn rest(self) -> impl Iterator<Item = Candidate<'a>> {
        let (heap, list) = match self.order {
            Order::Heap(heap) => (Some(heap), None),
            Order::List(list) => (None, Some(list)),
        };
        heap.into_iter().flatten().map(|Reverse(it)| it.candidate).chain(list.into_iter().flatten())
    }
}
