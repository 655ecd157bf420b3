//! How many pods of a group may be disturbed at once.
//!
//! A group is the pods of one owner, such as a `ReplicaSet`. Of so many replicas as it is to have, a part may be missing
//! ([`UpdaterSettings::eviction_tolerance`]); where that part is less than one pod, one may be, while none is missing.
//! A group with fewer pods than [`UpdaterSettings::min_replicas`] is not disturbed at all. A resize that restarts nothing
//! disturbs nobody, so this last rule does not hold for it: a single replica is resized in place.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::pod::{Owner, Pod};
use super::tries::Tries;
use super::updater::UpdaterSettings;
use super::wanted::Sizing;

/// What is known when pods are updated.
#[derive(Clone, Copy)]
pub struct Ground<'a> {
    /// By what the pods are sized.
    pub sizing: Sizing<'a>,
    /// How many pods each owner is to have, by its uid. A Job says none: its live pods count.
    pub configured: &'a BTreeMap<Box<str>, u32>,
    /// The `PodDisruptionBudget`s of these pods.
    pub budgets: &'a [DisruptionBudget],
    /// Whether pods may be evicted: whether one that comes anew would be sized; else why not.
    pub can_evict: Result<(), &'a str>,
    /// What was tried before.
    pub tries: &'a Tries,
    /// How careful to be.
    pub settings: &'a UpdaterSettings,
    /// The memory a container of a pod used last, by the pod's uid and the container's name.
    pub memory_used: &'a dyn Fn(&str, &str) -> Option<i64>,
    /// The time.
    pub now: Timestamp,
}

/// A `PodDisruptionBudget`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DisruptionBudget {
    /// Its name.
    pub name: Box<str>,
    /// How many pods it allows to be disturbed now.
    pub allowed: u32,
    /// The pods it is about, by uid.
    pub pods: BTreeSet<Box<str>>,
}

/// The pods of one owner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Group {
    pub configured: u32,
    pub tolerance: u32,
    pub live: u32,
    pub running: u32,
    pub touched: u32,
    /// Whether it has at least as many pods as the settings want.
    pub is_large_enough: bool,
}

/// All groups, and what of their budgets is spent.
pub(crate) struct Groups<'a> {
    by_owner: BTreeMap<&'a str, Group>,
    budgets: &'a [DisruptionBudget],
    spent: Vec<u32>,
}

impl Group {
    /// Whether one more pod may be disturbed.
    pub(super) const fn has_room(&self) -> bool {
        let must_run = self.configured.saturating_sub(self.tolerance);
        let runs = self.running.saturating_sub(self.touched);
        runs > must_run || (self.tolerance == 0 && self.touched == 0 && self.running == self.configured)
    }
}

impl<'a> Groups<'a> {
    pub(super) fn new(pods: &[&'a Pod], ground: &Ground<'a>) -> Self {
        let mut groups: BTreeMap<&str, Group> = BTreeMap::new();
        for pod in pods.iter().filter(|pod| !pod.is_deleting && !pod.is_ended) {
            let Some(owner) = &pod.owner else { continue };
            let group = groups.entry(&owner.uid).or_default();
            group.live += 1;
            group.running += u32::from(!pod.is_pending);
            if group.configured == 0 {
                group.configured = ground.configured.get(&owner.uid).copied().unwrap_or_default();
            }
        }
        for owner in pods.iter().filter_map(|pod| pod.owner.as_ref()) {
            let Some(group) = groups.get_mut(&*owner.uid) else { continue };
            if is_counted_by_pods(owner) {
                group.configured = group.live;
            }
            group.tolerance = part(group.configured, ground.settings.eviction_tolerance);
            let least = ground.sizing.autoscaler.min_replicas.unwrap_or(ground.settings.min_replicas);
            group.is_large_enough = group.live >= least;
        }
        let budgets = ground.budgets;
        Self { by_owner: groups, budgets, spent: vec![0; budgets.len()] }
    }

    /// The group of a pod, if it is known how many pods it is to have.
    pub(super) fn of(&self, pod: &Pod) -> Option<&Group> {
        self.by_owner.get(&*pod.owner.as_ref()?.uid).filter(|group| group.configured > 0)
    }

    /// The `PodDisruptionBudget` that allows no more, if there is one.
    pub(super) fn exhausted(&self, pod: &Pod) -> Option<&'a str> {
        let budgets = self.budgets.iter().zip(&self.spent);
        let mut full = budgets.filter(|(budget, spent)| budget.pods.contains(&pod.uid) && budget.allowed <= **spent);
        full.next().map(|(budget, _)| &*budget.name)
    }

    /// A pod is resized, or with `is_disrupted` restarted or evicted. A pending pod was of no use to its group.
    pub(super) fn touch(&mut self, pod: &Pod, is_disrupted: bool) {
        if let Some(group) = pod.owner.as_ref().and_then(|owner| self.by_owner.get_mut(&*owner.uid)) {
            group.touched += u32::from(!pod.is_pending);
        }
        if is_disrupted {
            for (budget, spent) in self.budgets.iter().zip(&mut self.spent) {
                *spent += u32::from(budget.pods.contains(&pod.uid));
            }
        }
    }
}

/// A Job has no count of replicas that stays the same.
pub(crate) fn is_counted_by_pods(owner: &Owner) -> bool {
    &*owner.kind == "Job"
}

/// A part of some pods, rounded down.
pub(crate) fn part(of: u32, fraction: f64) -> u32 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a part of a u32, clamped to it")]
    let part = (f64::from(of) * fraction.clamp(0.0, 1.0)) as u32;
    part
}
