//! Whether a plan keeps what is promised, whoever made it and from whatever.
//!
//! This is written apart from the planner on purpose: it walks through the plan, one write after the other, and counts anew
//! what the writes before it have made of the pods.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use pillion_api::PodRevisions;

use crate::ground::{Facts, Ground};
use crate::update::{Action, Plan, PodUpdate};

/// A revision that is not the newest; which one does not matter here.
const ANOTHER: &str = "";

/// What is promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// Never more pods unavailable than the set allows.
    Availability,
    /// Never more pods of one workload unavailable than it can bear.
    WorkloadAvailability,
    /// As many pods as the partition says stay as they are.
    Partition,
    /// A set that is held updates nothing.
    Held,
    /// A container is changed at most once in a write.
    OneChange,
    /// Only pods of the set are written, and none in a namespace that is left alone.
    Membership,
    /// A write changes only what is ours.
    OwnFields,
    /// A pod is written once, and only if that changes something.
    OneWrite,
    /// No `PodDisruptionBudget` is spent beyond what it allows.
    DisruptionBudget,
    /// An update is to the newest revision, and only bringing back is not.
    Target,
}

/// A write that must not be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// What it breaks.
    pub rule: Rule,
    /// Namespace and name of the pod.
    pub pod: String,
    /// How.
    pub words: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pod {}: {}", self.pod, self.words)
    }
}

/// Whether the plan keeps every [`Rule`]; otherwise every write that does not.
pub fn check(plan: &Plan, ground: &Ground<'_>) -> Result<(), Vec<Violation>> {
    let mut walk = Walk::new(ground);
    for action in &plan.actions {
        walk.step(action);
    }
    if walk.violations.is_empty() { Ok(()) } else { Err(walk.violations) }
}

/// The pods, as the writes so far leave them.
struct Walk<'g, 'a> {
    ground: &'g Ground<'a>,
    /// Those that were written.
    written: BTreeMap<&'a str, Facts<'a>>,
    /// Of all pods, and of those of each workload.
    tally: Tally,
    workloads: BTreeMap<usize, Tally>,
    newest: usize,
    violations: Vec<Violation>,
}

/// How many pods there are of each kind that availability is about.
#[derive(Clone, Copy, Default)]
struct Tally {
    unavailable: usize,
    swapping: usize,
    swapping_to_newest: usize,
}

impl Tally {
    fn of(facts: &Facts<'_>, newest: &str) -> Self {
        let is_swapping = facts.swaps_to.is_some();
        Self {
            unavailable: usize::from(is_swapping || !facts.is_ready),
            swapping: usize::from(is_swapping),
            swapping_to_newest: usize::from(facts.swaps_to == Some(newest)),
        }
    }

    fn plus(self, one: Self) -> Self {
        Self {
            unavailable: self.unavailable + one.unavailable,
            swapping: self.swapping + one.swapping,
            swapping_to_newest: self.swapping_to_newest + one.swapping_to_newest,
        }
    }

    fn minus(self, one: Self) -> Self {
        Self {
            unavailable: self.unavailable - one.unavailable,
            swapping: self.swapping - one.swapping,
            swapping_to_newest: self.swapping_to_newest - one.swapping_to_newest,
        }
    }
}

impl<'g, 'a> Walk<'g, 'a> {
    fn new(ground: &'g Ground<'a>) -> Self {
        let mut tally = Tally::default();
        let mut workloads: BTreeMap<usize, Tally> = BTreeMap::new();
        for facts in ground.pods.values() {
            let one = Tally::of(facts, ground.newest);
            tally = tally.plus(one);
            let workload = workloads.entry(facts.workload).or_default();
            *workload = workload.plus(one);
        }
        let newest = ground.pods.values().filter(|facts| facts.is_newest).count();
        Self { ground, written: BTreeMap::new(), tally, workloads, newest, violations: Vec::new() }
    }

    fn step(&mut self, action: &Action) {
        let update = action.update();
        let Some((uid, facts)) = self.ground.pods.get_key_value(&*update.uid).map(|(uid, facts)| (*uid, *facts)) else {
            self.broken(update, Rule::Membership, "does not carry the set, or is gone");
            return;
        };
        let (is_written, facts) = match self.written.get(uid) {
            Some(written) => (true, *written),
            None => (false, facts),
        };
        if is_written {
            self.broken(update, Rule::OneWrite, "is written twice");
        }
        self.membership(update, facts);
        self.target(action, facts);
        self.one_write(update, facts);
        self.own_fields(update, uid, facts);
        self.availability(update, facts);
        self.disruption_budgets(update, uid, facts);
        self.partition(update, facts);
        let is_newest = update.to == self.ground.newest;
        let swaps_to = if is_newest { self.ground.newest } else { ANOTHER };
        self.becomes(uid, facts, Facts { is_newest, swaps_to: Some(swaps_to), ..facts });
    }

    fn becomes(&mut self, uid: &'a str, before: Facts<'a>, after: Facts<'a>) {
        let (old, new) = (Tally::of(&before, self.ground.newest), Tally::of(&after, self.ground.newest));
        self.tally = self.tally.minus(old).plus(new);
        let workload = self.workloads.entry(before.workload).or_default();
        *workload = workload.minus(old).plus(new);
        self.newest = self.newest - usize::from(before.is_newest) + usize::from(after.is_newest);
        self.written.insert(uid, after);
    }

    fn facts(&self, uid: &str) -> Option<&Facts<'a>> {
        self.written.get(uid).or_else(|| self.ground.pods.get(uid))
    }

    fn broken(&mut self, update: &PodUpdate, rule: Rule, words: impl Into<String>) {
        let pod = format!("{}/{}", update.namespace, update.name);
        self.violations.push(Violation { rule, pod, words: words.into() });
    }

    fn membership(&mut self, update: &PodUpdate, facts: Facts<'_>) {
        if (facts.namespace, facts.name) != (&*update.namespace, &*update.name) {
            self.broken(update, Rule::Membership, format!("is {}/{} by its uid", facts.namespace, facts.name));
        }
        if facts.is_excluded {
            self.broken(update, Rule::Membership, format!("is in namespace {}, which is left alone", facts.namespace));
        }
    }

    fn target(&mut self, action: &Action, facts: Facts<'_>) {
        let (update, newest) = (action.update(), self.ground.newest);
        if update.set != self.ground.set {
            self.broken(update, Rule::Target, format!("is updated for set {}, not {}", update.set, self.ground.set));
        }
        match action {
            Action::Update(_) => {
                if self.ground.is_held {
                    self.broken(update, Rule::Held, "is updated although the set is held");
                }
                if !facts.is_selected {
                    self.broken(update, Rule::Held, "is updated although the strategy does not select it");
                }
                if update.to != newest {
                    self.broken(update, Rule::Target, format!("is updated to {}, and {newest} is newer", update.to));
                }
            }
            Action::Restore(_) => {
                if !self.ground.may_restore {
                    self.broken(update, Rule::Held, "gets its old revision back, which the set does not ask for");
                }
                if update.to == newest {
                    self.broken(update, Rule::Target, format!("gets {newest} back, which is what it is not well with"));
                }
            }
        }
    }

    fn one_write(&mut self, update: &PodUpdate, facts: Facts<'_>) {
        if facts.is_newest && update.to == self.ground.newest {
            self.broken(update, Rule::OneWrite, format!("has {} already", update.to));
        }
    }

    /// For a ready pod all that is unavailable counts, whoever made it so. One that is not ready becomes no worse by a write,
    /// but is in motion then: of those, too, there are never more at a time.
    fn availability(&mut self, update: &PodUpdate, facts: Facts<'_>) {
        let own = Tally::of(&facts, self.ground.newest);
        let in_the_way = |all: Tally| {
            let others = all.minus(own);
            if facts.is_ready {
                others.unavailable
            } else if facts.swaps_to.is_some() {
                let to_newest = others.swapping_to_newest;
                if update.to == self.ground.newest { to_newest } else { others.swapping - to_newest }
            } else {
                others.swapping
            }
        };
        let all = in_the_way(self.tally);
        let workload = in_the_way(self.workloads.get(&facts.workload).copied().unwrap_or_default());
        let max = self.ground.max_unavailable;
        if all >= max {
            let words = format!("is updated although {all} others are unavailable or under way, of at most {max}");
            self.broken(update, Rule::Availability, words);
        }
        let max = self.ground.workloads.get(facts.workload).copied().unwrap_or_default();
        if workload >= max {
            let words = format!("is updated although {workload} others of its workload are, of at most {max}");
            self.broken(update, Rule::WorkloadAvailability, words);
        }
    }

    fn disruption_budgets(&mut self, update: &PodUpdate, uid: &str, facts: Facts<'_>) {
        if !facts.is_ready || facts.swaps_to.is_some() {
            return;
        }
        for budget in self.ground.budgets.iter().filter(|budget| budget.pods.contains(&uid)) {
            let others = budget.pods.iter().filter(|other| **other != uid);
            let swapping = others.filter(|other| self.facts(other).is_some_and(|it| it.swaps_to.is_some())).count();
            if swapping >= budget.allowed {
                let words = format!(
                    "is updated although PodDisruptionBudget {} allows {} and {swapping} are under way",
                    budget.name, budget.allowed
                );
                self.broken(update, Rule::DisruptionBudget, words);
            }
        }
    }

    fn partition(&mut self, update: &PodUpdate, facts: Facts<'_>) {
        let most = self.ground.pods.len().saturating_sub(self.ground.pinned);
        if update.to == self.ground.newest && !facts.is_newest && self.newest >= most {
            let words = format!("is updated although {} pods have {}, of at most {most}", self.newest, update.to);
            self.broken(update, Rule::Partition, words);
        }
    }

    fn own_fields(&mut self, update: &PodUpdate, uid: &str, facts: Facts<'_>) {
        let none = Vec::new();
        let ours = self.ground.ours.get(uid).unwrap_or(&none);
        let mut seen = BTreeSet::new();
        for change in &update.images {
            let found =
                ours.iter().find(|own| (own.list, own.index, own.name) == (change.list, change.index, &*change.name));
            match found {
                None => self.broken(update, Rule::OwnFields, format!("container {} is not ours", change.name)),
                Some(own) if own.image != change.from => {
                    self.broken(update, Rule::OwnFields, format!("container {} has image {}", change.name, own.image));
                }
                Some(_) if change.from == change.to => {
                    self.broken(update, Rule::OneWrite, format!("container {} has that image", change.name));
                }
                Some(_) => {}
            }
            if !seen.insert((change.list, change.index)) {
                self.broken(update, Rule::OneChange, format!("container {} is changed twice", change.name));
            }
        }
        for change in &update.resources {
            if !ours.iter().any(|own| (own.list, own.index, own.name) == (change.list, change.index, &*change.name)) {
                self.broken(update, Rule::OwnFields, format!("container {} is not ours", change.name));
            }
        }
        if let Some(wrong) = wrong_record(update, facts.record) {
            self.broken(update, Rule::OwnFields, wrong);
        }
    }
}

/// The record tells the new revision of this set, and of other sets what it told before.
fn wrong_record(update: &PodUpdate, record: Option<&str>) -> Option<String> {
    if update.record_before.as_deref() != record {
        return Some("the write does not test the record the pod has".to_owned());
    }
    let mut before = record.and_then(PodRevisions::parse).unwrap_or_default();
    let Some(mut after) = PodRevisions::parse(&update.record_after) else {
        return Some("the record that is written cannot be read".to_owned());
    };
    before.0.remove(&update.set);
    let own = after.0.remove(&update.set);
    if own.is_none_or(|own| own.is != update.to) {
        return Some(format!("the record that is written does not tell {}", update.to));
    }
    (before != after).then(|| "the record that is written tells something else of another set".to_owned())
}

#[cfg(test)]
mod tests;
