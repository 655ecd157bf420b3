//! The simple facts that a plan is checked against.

use std::collections::BTreeMap;

use crate::update::List;

/// One set and its pods, in facts.
#[derive(Clone, Debug, Default)]
pub struct Ground<'a> {
    /// Name of the set.
    pub set: &'a str,
    /// Its newest revision.
    pub newest: &'a str,
    /// Whether no pod may be updated: the set is paused, only observes, never updates, or everything is switched off.
    pub is_held: bool,
    /// Whether pods that are not well may get the revision back that they had.
    pub may_restore: bool,
    /// How many pods may be unavailable at a time.
    pub max_unavailable: usize,
    /// How many pods must stay as they are.
    pub pinned: usize,
    /// How many pods of each workload may be unavailable at a time.
    pub workloads: Vec<usize>,
    /// The pods that carry the set and are alive, by uid.
    pub pods: BTreeMap<&'a str, Facts<'a>>,
    /// What the plan's pods have of ours, by uid.
    pub ours: BTreeMap<&'a str, Vec<Ours<'a>>>,
    /// The `PodDisruptionBudget`s that concern them.
    pub budgets: Vec<Budget<'a>>,
}

/// A pod, in facts.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "facts do not depend on one another")]
pub struct Facts<'a> {
    /// Its namespace.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Whether nothing may be changed in its namespace.
    pub is_excluded: bool,
    /// Whether it is one of those that the strategy updates.
    pub is_selected: bool,
    /// Whether it is ready.
    pub is_ready: bool,
    /// The revision that it was given and does not run yet, if there is one.
    pub swaps_to: Option<&'a str>,
    /// Whether it has the newest revision, or all of it that a running pod can see.
    pub is_newest: bool,
    /// Its record of revisions, as it is.
    pub record: Option<&'a str>,
    /// Its workload: a place in [`Ground::workloads`].
    pub workload: usize,
}

/// A container of ours, in facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ours<'a> {
    /// The list it is in.
    pub list: List,
    /// Its place there.
    pub index: u16,
    /// Its name.
    pub name: &'a str,
    /// Its image.
    pub image: &'a str,
}

/// A `PodDisruptionBudget`, in facts.
#[derive(Clone, Debug, Default)]
pub struct Budget<'a> {
    /// Its namespace and name.
    pub name: String,
    /// How many of its pods may be disrupted now.
    pub allowed: usize,
    /// The pods it selects that the plan changes, or that do not run yet what they were given, by uid.
    pub pods: Vec<&'a str>,
}
