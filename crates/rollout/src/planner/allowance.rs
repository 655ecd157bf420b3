//! How many more pods may be updated: of the set, of each workload, of each `PodDisruptionBudget`.

use std::collections::BTreeMap;

use pillion_api::PodCount;

use super::roster::{Member, Roster};
use crate::fleet::Fleet;
use crate::pod::Pod;
use crate::share::effective_max_unavailable;

/// What is left, while pods take their part one after the other.
pub(super) struct Allowance<'a> {
    fleet: Fleet<'a>,
    set: Share,
    workloads: Vec<Share>,
    /// Places in [`Fleet::budgets`], by namespace.
    by_namespace: BTreeMap<&'a str, Vec<usize>>,
    /// How many pods of each budget are under way.
    in_flight: Vec<usize>,
}

/// What has none left for a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Spent {
    Set,
    Workload(usize),
    Budget(usize),
}

/// Where a pod goes to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Newest,
    Back,
}

/// What some pods may be and are.
#[derive(Clone, Copy, Default)]
struct Share {
    max: usize,
    unavailable: usize,
    /// Those that do not run yet what they were given, by where they go.
    to_newest: usize,
    elsewhere: usize,
}

impl Share {
    fn has_room_for(&self, member: &Member<'_>, direction: Direction) -> bool {
        let is_under_way = !member.swap.is_done();
        let others = if member.pod.is_ready {
            self.unavailable - usize::from(is_under_way)
        } else if is_under_way {
            let goes_there = member.has_newest() == (direction == Direction::Newest);
            let there = if direction == Direction::Newest { self.to_newest } else { self.elsewhere };
            there - usize::from(goes_there)
        } else {
            self.to_newest + self.elsewhere
        };
        others < self.max
    }

    fn add(&mut self, member: &Member<'_>) {
        self.unavailable += usize::from(!member.is_available());
        if !member.swap.is_done() {
            *self.toward(member.has_newest()) += 1;
        }
    }

    /// A pod for which there was room is under way now.
    fn take(&mut self, member: &Member<'_>, direction: Direction) {
        self.unavailable += usize::from(member.is_available());
        if !member.swap.is_done() {
            *self.toward(member.has_newest()) -= 1;
        }
        *self.toward(direction == Direction::Newest) += 1;
    }

    fn toward(&mut self, is_newest: bool) -> &mut usize {
        if is_newest { &mut self.to_newest } else { &mut self.elsewhere }
    }
}

impl<'a> Allowance<'a> {
    pub(super) fn of(fleet: &Fleet<'a>, roster: &Roster<'a>) -> Self {
        let given = fleet.set.update.max_unavailable;
        let mut by_namespace: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (place, budget) in fleet.budgets.iter().enumerate() {
            by_namespace.entry(&budget.namespace).or_default().push(place);
        }
        let share = |max| Share { max, ..Share::default() };
        let mut allowance = Self {
            fleet: *fleet,
            set: share(effective_max_unavailable(given, roster.members.len())),
            workloads: roster.workloads.iter().map(|(_, pods)| share(workload_max(given, *pods))).collect(),
            by_namespace,
            in_flight: vec![0; fleet.budgets.len()],
        };
        for member in &roster.members {
            allowance.set.add(member);
            allowance.workloads[member.workload].add(member);
            if !member.swap.is_done() {
                allowance.fly(member.pod);
            }
        }
        allowance
    }

    /// Whether no pod that is ready can be updated any more.
    pub(super) fn is_spent_for_ready_pods(&self) -> bool {
        self.set.unavailable >= self.set.max
    }

    /// A pod takes its part, if there is one for it.
    pub(super) fn take(&mut self, member: &Member<'_>, direction: Direction) -> Result<(), Spent> {
        if !self.set.has_room_for(member, direction) {
            return Err(Spent::Set);
        }
        if !self.workloads[member.workload].has_room_for(member, direction) {
            return Err(Spent::Workload(member.workload));
        }
        if member.is_available() {
            let spent = |place: &usize| self.in_flight[*place] >= self.fleet.budgets[*place].allowed;
            if let Some(place) = self.budgets_of(member.pod).find(spent) {
                return Err(Spent::Budget(place));
            }
        }
        self.set.take(member, direction);
        self.workloads[member.workload].take(member, direction);
        if member.swap.is_done() {
            self.fly(member.pod);
        }
        Ok(())
    }

    fn fly(&mut self, pod: &Pod) {
        let places: Vec<usize> = self.budgets_of(pod).collect();
        for place in places {
            self.in_flight[place] += 1;
        }
    }

    fn budgets_of<'s>(&'s self, pod: &'s Pod) -> impl Iterator<Item = usize> + 's {
        let places = self.by_namespace.get(&*pod.namespace).into_iter().flatten().copied();
        places.filter(move |place| self.fleet.budgets[*place].selects(pod))
    }
}

/// How many of a workload's pods may be unavailable. Whatever the set as a whole could bear, a workload of several pods keeps
/// one, unless all at once was asked for.
pub(super) fn workload_max(given: PodCount, pods: usize) -> usize {
    let max = effective_max_unavailable(given, pods);
    if given == PodCount::Percent(100) || pods <= 1 { max } else { max.min(pods - 1) }
}
