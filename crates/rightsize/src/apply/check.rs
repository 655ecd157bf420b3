//! Whether a plan of the updater keeps what is promised.
//!
//! Written apart from the planner on purpose: it counts anew, from the pods themselves.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use pillion_pod::qos_class;

use super::budget::{Ground, is_counted_by_pods, part};
use super::held::{ContainerKind, Held, skeleton};
use super::pod::Pod;
use super::updater::UpdatePlan;
use super::writes::{PodResize, SizeAction};
use crate::policy::Mode;

/// What is promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SizeRule {
    /// Only pods that are there are written, each once, and only if that changes something.
    OneWrite,
    /// Never more pods of a group disturbed than it can bear.
    Budget,
    /// A group that is too small is not disturbed.
    MinReplicas,
    /// No `PodDisruptionBudget` is spent beyond what it allows.
    DisruptionBudget,
    /// Pods are evicted only where the mode says so and a pod in their place would be sized.
    Eviction,
    /// Pods are resized only where the mode says so.
    InPlace,
    /// Only containers that the object sizes change; never a plain init container.
    OwnContainers,
    /// The quality-of-service class stays, and nothing is taken away.
    QosClass,
}

/// A write that must not be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SizeViolation {
    /// What it breaks.
    pub rule: SizeRule,
    /// The uid of the pod.
    pub pod: Box<str>,
    /// How.
    pub words: String,
}

impl fmt::Display for SizeViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pod {}: {}", self.pod, self.words)
    }
}

/// Whether the plan keeps every [`SizeRule`]; otherwise every write that does not.
pub fn check<P: Borrow<Pod>>(plan: &UpdatePlan, pods: &[P], ground: &Ground<'_>) -> Result<(), Vec<SizeViolation>> {
    let pods: Vec<&Pod> = pods.iter().map(Borrow::borrow).collect();
    let by_uid: BTreeMap<&str, &Pod> = pods.iter().map(|pod| (&*pod.uid, *pod)).collect();
    let mut walk = Walk { ground, violations: Vec::new() };
    let mut written = BTreeSet::new();
    for action in &plan.actions {
        let Some(pod) = by_uid.get(action.uid()) else {
            walk.broken(action.uid(), SizeRule::OneWrite, "is not there");
            continue;
        };
        if !written.insert(action.uid()) {
            walk.broken(&pod.uid, SizeRule::OneWrite, "is written twice");
        }
        walk.action(action, pod);
    }
    walk.groups(plan, &pods, &by_uid);
    walk.disruption_budgets(plan, &by_uid);
    if walk.violations.is_empty() { Ok(()) } else { Err(walk.violations) }
}

struct Walk<'g, 'a> {
    ground: &'g Ground<'a>,
    violations: Vec<SizeViolation>,
}

impl Walk<'_, '_> {
    fn broken(&mut self, pod: &str, rule: SizeRule, words: impl Into<String>) {
        self.violations.push(SizeViolation { rule, pod: pod.into(), words: words.into() });
    }

    fn action(&mut self, action: &SizeAction, pod: &Pod) {
        let mode = self.ground.sizing.mode;
        if pod.is_deleting || pod.is_ended || !pod.is_assigned {
            self.broken(&pod.uid, SizeRule::OneWrite, "does not run");
        }
        match action {
            SizeAction::Evict(_) => {
                if !matches!(mode, Mode::Recreate | Mode::InPlaceOrRecreate) {
                    self.broken(&pod.uid, SizeRule::Eviction, format!("is evicted in mode {mode:?}"));
                }
                if let Err(why) = self.ground.can_evict {
                    self.broken(&pod.uid, SizeRule::Eviction, format!("is evicted although {why}"));
                }
            }
            SizeAction::Resize(resize) => {
                if !matches!(mode, Mode::InPlace | Mode::InPlaceOrRecreate) {
                    self.broken(&pod.uid, SizeRule::InPlace, format!("is resized in mode {mode:?}"));
                }
                if resize.changes.is_empty() {
                    self.broken(&pod.uid, SizeRule::OneWrite, "is resized to what it has");
                }
                self.resize(resize, pod);
            }
            SizeAction::Unboost(resize) => {
                if resize.unboosted.iter().any(|name| pod.before_boost(name).is_none()) {
                    self.broken(&pod.uid, SizeRule::OneWrite, "loses a boost it does not have");
                }
                self.resize(resize, pod);
            }
        }
    }

    fn resize(&mut self, resize: &PodResize, pod: &Pod) {
        let sizing = &self.ground.sizing;
        for change in &resize.changes {
            let found = pod.containers.iter().find(|container| {
                (container.list, container.index, &container.name) == (change.list, change.index, &change.name)
            });
            let Some(container) = found else {
                self.broken(&pod.uid, SizeRule::OwnContainers, format!("has no container {} there", change.name));
                continue;
            };
            let is_sidecar_off = container.kind == ContainerKind::NativeSidecar && !sizing.gates.native_sidecar;
            if container.kind == ContainerKind::PlainInit || is_sidecar_off {
                let words = format!("container {} is none that is sized", change.name);
                self.broken(&pod.uid, SizeRule::OwnContainers, words);
            }
            if sizing.autoscaler.policy(&change.name).is_off {
                self.broken(&pod.uid, SizeRule::OwnContainers, format!("container {} is Off", change.name));
            }
            let sides = [(change.from.requests, change.to.requests), (change.from.limits, change.to.limits)];
            if sides.iter().any(|(from, to)| from.iter().any(|(resource, _)| to.get(resource).is_none())) {
                let words = format!("container {} would lose a request or limit", change.name);
                self.broken(&pod.uid, SizeRule::QosClass, words);
            }
        }
        let hold = |is_after: bool| -> Vec<Held<'_>> {
            let has = |container: &super::pod::Container| {
                let own = resize.changes.iter().find(|change| is_after && change.name == container.name);
                own.map_or(container.asked, |change| change.to)
            };
            let held = pod.containers.iter().map(|container| Held {
                list: container.list,
                index: container.index,
                name: &container.name,
                kind: container.kind,
                has: has(container),
            });
            held.collect()
        };
        let class = |is_after: bool| qos_class(&skeleton(&hold(is_after))).ok();
        let (before, after) = (class(false), class(true));
        if before != after {
            let words =
                |class: Option<_>| class.map_or_else(String::new, |class: pillion_pod::QosClass| class.to_string());
            let words = format!("its class would be {} instead of {}", words(after), words(before));
            self.broken(&pod.uid, SizeRule::QosClass, words);
        }
    }

    fn groups(&mut self, plan: &UpdatePlan, pods: &[&Pod], by_uid: &BTreeMap<&str, &Pod>) {
        let ground = self.ground;
        let mut live: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
        for pod in pods.iter().filter(|pod| !pod.is_deleting && !pod.is_ended) {
            if let Some(owner) = &pod.owner {
                let (all, running) = live.entry(&owner.uid).or_default();
                *all += 1;
                *running += u32::from(!pod.is_pending);
            }
        }
        let mut touched: BTreeMap<&str, u32> = BTreeMap::new();
        for action in &plan.actions {
            let Some(pod) = by_uid.get(action.uid()) else { continue };
            let is_disruptive = action.resize().is_none_or(|resize| resize.is_disruptive);
            let is_free = match action {
                SizeAction::Evict(_) => false,
                SizeAction::Resize(_) => !is_disruptive && ground.settings.in_place_skip_disruption_budget,
                SizeAction::Unboost(_) => !is_disruptive,
            };
            if is_free {
                continue;
            }
            let Some(owner) = &pod.owner else {
                self.broken(&pod.uid, SizeRule::Budget, "is of no group");
                continue;
            };
            let (all, running) = live.get(&*owner.uid).copied().unwrap_or_default();
            let least = ground.sizing.autoscaler.min_replicas.unwrap_or(ground.settings.min_replicas);
            if is_disruptive && all < least {
                self.broken(
                    &pod.uid,
                    SizeRule::MinReplicas,
                    format!("is disturbed, one of {all} where {least} must be"),
                );
            }
            let count = touched.entry(&owner.uid).or_default();
            *count += u32::from(!pod.is_pending);
            let configured =
                if is_counted_by_pods(owner) { Some(all) } else { ground.configured.get(&owner.uid).copied() };
            let configured = configured.unwrap_or_default();
            let tolerance = part(configured, ground.settings.eviction_tolerance);
            let spare = (running + tolerance).saturating_sub(configured);
            let allowed = if tolerance == 0 && running == configured { 1 } else { spare };
            if *count > allowed {
                let words = format!("is the {count}. of its group to be disturbed where {allowed} may be");
                self.broken(&pod.uid, SizeRule::Budget, words);
            }
        }
    }

    fn disruption_budgets(&mut self, plan: &UpdatePlan, by_uid: &BTreeMap<&str, &Pod>) {
        for budget in self.ground.budgets {
            let disturbing = plan.actions.iter().filter(|action| action.resize().is_none_or(|own| own.is_disruptive));
            let running = disturbing.filter(|action| by_uid.get(action.uid()).is_some_and(|pod| !pod.is_pending));
            let mut spent = running.filter(|action| budget.pods.contains(action.uid()));
            let allowed = usize::try_from(budget.allowed).unwrap_or(usize::MAX);
            if let Some(beyond) = spent.nth(allowed) {
                let words = format!("is disturbed beyond PodDisruptionBudget {}", budget.name);
                self.broken(beyond.uid(), SizeRule::DisruptionBudget, words);
            }
        }
    }
}

#[cfg(test)]
mod tests;
