//! How many pods and templates an edit concerns, with a few of them by name.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::impact::Effect;

/// What an edit does to all pods and templates together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Impact {
    /// Of pods that exist.
    pub pods: Counts,
    /// Of templates of workloads.
    pub templates: Counts,
    examples: BTreeMap<usize, BTreeMap<Subject, Effect>>,
    most: usize,
}

/// How many have which effect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// [`Effect::Unaffected`]
    pub unaffected: usize,
    /// [`Effect::Gains`]
    pub gains: usize,
    /// [`Effect::Loses`]
    pub loses: usize,
    /// [`Effect::Changes`]
    pub changes: usize,
    /// [`Effect::LeftOut`]
    pub left_out: usize,
    /// [`Effect::Refused`]
    pub refused: usize,
    /// [`Effect::StillRefused`]
    pub still_refused: usize,
    /// [`Effect::Admitted`]
    pub admitted: usize,
}

/// A pod, or an object with a template for pods. Templates come before pods: one of them tells more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// Its namespace.
    pub namespace: String,
    /// Its kind; `Pod` for a pod.
    pub kind: String,
    /// Its name.
    pub name: String,
}

/// One that an edit concerns, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Example<'a> {
    /// Which one.
    pub subject: &'a Subject,
    /// What the edit does to it.
    pub effect: &'a Effect,
}

impl Subject {
    fn is_pod(&self) -> bool {
        self.kind == "Pod"
    }
}

impl Ord for Subject {
    fn cmp(&self, other: &Self) -> Ordering {
        fn key(it: &Subject) -> (bool, &str, &str, &str) {
            (it.is_pod(), &it.namespace, &it.kind, &it.name)
        }
        key(self).cmp(&key(other))
    }
}

impl PartialOrd for Subject {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Counts {
    /// How many were looked at.
    pub const fn total(&self) -> usize {
        self.unaffected + self.affected()
    }

    /// How many the edit concerns; those that are refused either way count.
    pub const fn affected(&self) -> usize {
        self.gains + self.loses + self.changes + self.left_out + self.refused + self.still_refused + self.admitted
    }

    fn of(&mut self, effect: &Effect) -> &mut usize {
        match effect {
            Effect::Unaffected => &mut self.unaffected,
            Effect::Gains => &mut self.gains,
            Effect::Loses => &mut self.loses,
            Effect::Changes => &mut self.changes,
            Effect::LeftOut(_) => &mut self.left_out,
            Effect::Refused(_) => &mut self.refused,
            Effect::StillRefused(_) => &mut self.still_refused,
            Effect::Admitted => &mut self.admitted,
        }
    }
}

impl Impact {
    /// Nothing yet; of every effect at most so many will be named.
    pub fn new(examples_per_effect: usize) -> Self {
        Self { most: examples_per_effect, ..Self::default() }
    }

    /// Adds what the edit does to one pod or template. In which order they come makes no difference.
    pub fn add(&mut self, subject: Subject, effect: Effect) {
        let counts = if subject.is_pod() { &mut self.pods } else { &mut self.templates };
        *counts.of(&effect) += 1;
        if effect == Effect::Unaffected {
            return;
        }
        let named = self.examples.entry(urgency(&effect)).or_default();
        named.insert(subject, effect);
        if named.len() > self.most {
            named.pop_last();
        }
    }

    /// Some of those the edit concerns, the first of each effect, templates before pods; what hurts most is first.
    pub fn examples(&self) -> impl Iterator<Item = Example<'_>> {
        self.examples.values().flatten().map(|(subject, effect)| Example { subject, effect })
    }

    /// Whether a pod would be refused that is not refused now.
    pub const fn refuses(&self) -> bool {
        self.pods.refused + self.templates.refused > 0
    }
}

fn urgency(effect: &Effect) -> usize {
    match effect {
        Effect::Refused(_) => 0,
        Effect::StillRefused(_) => 1,
        Effect::LeftOut(_) => 2,
        Effect::Loses => 3,
        Effect::Changes => 4,
        Effect::Gains => 5,
        Effect::Admitted => 6,
        Effect::Unaffected => 7,
    }
}
