//! What was tried before, and what came of it.
//!
//! Kept by the uid of a pod, not by its name: a pod of a `StatefulSet` comes back under the same name and starts anew.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::held::ContainerResources;
use super::pod::{Pod, ResizeState};
use super::writes::{PodEviction, PodResize};
use crate::amounts::Amounts;

/// What was tried before.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tries {
    pods: BTreeMap<Box<str>, PodTries>,
    /// By the owner of pods.
    owners: BTreeMap<Box<str>, OwnerTries>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct PodTries {
    /// The requests that no room could be made for, by container.
    infeasible: Vec<(Box<str>, Amounts)>,
    /// Since when a resize is not done.
    waits_since: Option<Timestamp>,
    resized_at: Option<Timestamp>,
    /// What our last resize gave: the pod's annotation says so only later.
    gave: Vec<(Box<str>, ContainerResources)>,
    /// Containers of it that were counted as reset.
    counted: BTreeSet<Box<str>>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct OwnerTries {
    /// How often others took back what we gave, by container.
    resets: BTreeMap<Box<str>, u32>,
    /// When a pod of it was evicted last.
    evicted_at: Option<Timestamp>,
    /// What the containers of that pod had.
    had: Vec<(Box<str>, Amounts)>,
}

impl Tries {
    /// Learns from all pods that are there; before each plan.
    pub fn observe<P: Borrow<Pod>>(&mut self, pods: &[P], now: Timestamp) {
        for pod in pods.iter().map(Borrow::borrow) {
            self.wait(pod, now);
            self.resets_of(pod);
        }
    }

    /// Forgets pods that are gone, and owners of pods; both by uid.
    pub fn retain(&mut self, is_pod: impl Fn(&str) -> bool, is_owner: impl Fn(&str) -> bool) {
        self.pods.retain(|uid, _| is_pod(uid));
        self.owners.retain(|uid, _| is_owner(uid));
    }

    /// A resize was accepted.
    pub fn resized(&mut self, resize: &PodResize) {
        let own = self.pods.entry(resize.uid.clone()).or_default();
        own.resized_at = Some(resize.at);
        own.waits_since = None;
        own.gave = resize.changes.iter().map(|change| (change.name.clone(), change.to)).collect();
        for change in &resize.changes {
            own.counted.remove(&change.name);
        }
    }

    /// A resize was refused because the node has no such room, ever.
    pub fn refused(&mut self, resize: &PodResize) {
        let own = self.pods.entry(resize.uid.clone()).or_default();
        own.infeasible = resize.changes.iter().map(|change| (change.name.clone(), change.to.requests)).collect();
    }

    /// A pod was evicted.
    pub fn evicted(&mut self, eviction: &PodEviction, now: Timestamp) {
        if let Some(owner) = &eviction.owner {
            let own = self.owners.entry(owner.clone()).or_default();
            own.evicted_at = Some(now);
            own.had.clone_from(&eviction.had);
        }
    }

    /// The requests that no room could be made for.
    pub(crate) fn infeasible(&self, uid: &str) -> &[(Box<str>, Amounts)] {
        self.pods.get(uid).map_or(&[], |own| &own.infeasible)
    }

    /// Since when a resize of a pod is not done.
    pub(crate) fn waits_since(&self, uid: &str) -> Option<Timestamp> {
        self.pods.get(uid)?.waits_since
    }

    /// When a pod was resized last.
    pub(crate) fn resized_at(&self, uid: &str) -> Option<Timestamp> {
        self.pods.get(uid)?.resized_at
    }

    /// How often others took back what we gave a container.
    pub fn resets(&self, owner: &str, container: &str) -> u32 {
        self.owners.get(owner).and_then(|own| own.resets.get(container)).copied().unwrap_or_default()
    }

    fn wait(&mut self, pod: &Pod, now: Timestamp) {
        if pod.resize == ResizeState::None {
            if let Some(own) = self.pods.get_mut(&pod.uid) {
                own.waits_since = None;
            }
            return;
        }
        let own = self.pods.entry(pod.uid.clone()).or_default();
        own.waits_since.get_or_insert(pod.resize_since.unwrap_or(now));
        if pod.resize == ResizeState::Infeasible {
            let asked = pod.containers.iter().map(|container| (container.name.clone(), container.asked.requests));
            own.infeasible = asked.collect();
        }
    }

    /// A container that says something else than we gave it was changed by another; so was one that comes, after an
    /// eviction, with what it had before.
    fn resets_of(&mut self, pod: &Pod) {
        let Some(owner) = &pod.owner else { return };
        let evicted = self.owners.get(&owner.uid).filter(|own| own.evicted_at.is_some_and(|at| pod.created > at));
        let before = evicted.map_or(&[][..], |own| &own.had);
        let ours = self.pods.get(&pod.uid).map_or(&[][..], |own| &own.gave);
        let mut reset: Vec<Box<str>> = Vec::new();
        for container in &pod.containers {
            let is_reset = match pod.sized(&container.name) {
                Some(gave) => {
                    let last = (container.name.clone(), container.asked);
                    gave != container.asked && !ours.contains(&last)
                }
                None => before.iter().any(|(name, had)| *name == container.name && *had == container.asked.requests),
            };
            if is_reset {
                reset.push(container.name.clone());
            }
        }
        for name in reset {
            if self.pods.entry(pod.uid.clone()).or_default().counted.insert(name.clone()) {
                *self.owners.entry(owner.uid.clone()).or_default().resets.entry(name).or_default() += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests;
