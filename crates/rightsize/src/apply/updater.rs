//! Which pods are changed now, and how.

use std::borrow::Borrow;
use std::collections::BTreeMap;

use jiff::SignedDuration;
use pillion_pod::QosClass;

use super::boost;
use super::budget::{Ground, Groups};
use super::held::{ContainerResources, Held};
use super::pod::{Pod, ResizeState};
use super::priority::{Priority, may_evict};
use super::resize::{self, Decision};
use super::told::{Remark, Waiting, Why};
use super::wanted::{Unsized, Wanted, size};
use super::writes::{PodEviction, SizeAction};
use crate::policy::Mode;

/// How careful pods are changed; the names and defaults are upstream's where it has them.
#[derive(Clone, Debug, PartialEq)]
pub struct UpdaterSettings {
    /// The fewest pods a group has that is disturbed.
    pub min_replicas: u32,
    /// The part of a group that may be missing.
    pub eviction_tolerance: f64,
    /// Pods that are evicted in a second; none or less is without bound. Whoever carries out the plan keeps it.
    pub eviction_rate_limit: f64,
    /// How many at once beyond that.
    pub eviction_rate_burst: u32,
    /// A resize that restarts nothing is not counted as a disturbance.
    pub in_place_skip_disruption_budget: bool,
    /// Smaller differences are not worth a change.
    pub pod_update_threshold: f64,
    /// How long a pod stays as it is while its requests are within the bounds.
    pub in_recommendation_bounds_eviction_lifetime_threshold: SignedDuration,
    /// How soon after its start a container is ended for want of memory to count as quick, and how long that counts.
    pub evict_after_oom_threshold: SignedDuration,
    /// How long a node may have no room for a resize before the pod is evicted.
    pub deferred_timeout: SignedDuration,
    /// How long a resize may take before the pod is evicted.
    pub in_progress_timeout: SignedDuration,
    /// How often others may take back what we gave before we stop.
    pub max_resets: u32,
}

impl Default for UpdaterSettings {
    fn default() -> Self {
        Self {
            min_replicas: 2,
            eviction_tolerance: 0.5,
            eviction_rate_limit: -1.0,
            eviction_rate_burst: 1,
            in_place_skip_disruption_budget: false,
            pod_update_threshold: 0.1,
            in_recommendation_bounds_eviction_lifetime_threshold: SignedDuration::from_hours(12),
            evict_after_oom_threshold: SignedDuration::from_mins(10),
            deferred_timeout: SignedDuration::from_mins(5),
            in_progress_timeout: SignedDuration::from_hours(1),
            max_resets: 3,
        }
    }
}

/// What is to be written, and what waits.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UpdatePlan {
    /// The writes, each to another pod, the most urgent first.
    pub actions: Vec<SizeAction>,
    /// Pods that are due, and why they stay as they are.
    pub waiting: Vec<Waiting>,
    /// What the object's conditions should say.
    pub remarks: Vec<Remark>,
}

/// Which pods of a `VerticalPodAutoscaler` are changed now, and how.
pub fn plan<P: Borrow<Pod>>(pods: &[P], ground: &Ground<'_>) -> UpdatePlan {
    let pods: Vec<&Pod> = pods.iter().map(Borrow::borrow).collect();
    let mut planner = Planner { ground, groups: Groups::new(&pods, ground), plan: UpdatePlan::default() };
    let mut due = Vec::new();
    for pod in pods.iter().copied().filter(|pod| is_live(pod)) {
        if ground.sizing.gates.startup_boost && pod.is_boosted() {
            planner.unboost(pod);
        } else if let Some((priority, wanted)) = planner.due(pod) {
            due.push((priority, pod, wanted));
        }
    }
    due.sort_by(|(one, first, _), (other, second, _)| one.order(other).then_with(|| first.name.cmp(&second.name)));
    for (_, pod, wanted) in &due {
        planner.step(pod, wanted);
    }
    planner.plan
}

fn is_live(pod: &Pod) -> bool {
    pod.is_assigned && !pod.is_deleting && !pod.is_ended && !pod.is_finishing()
}

struct Planner<'g, 'a> {
    ground: &'g Ground<'a>,
    groups: Groups<'a>,
    plan: UpdatePlan,
}

impl Planner<'_, '_> {
    /// What is wanted of a pod that is to be changed now.
    fn due(&mut self, pod: &Pod) -> Option<(Priority, Wanted)> {
        let sizing = &self.ground.sizing;
        if matches!(sizing.mode, Mode::Off | Mode::Initial) {
            return None;
        }
        if pod.has_pod_level_resources {
            self.waits(pod, Why::Unsized(Unsized::PodLevelResources));
            self.remark_pod_level();
            return None;
        }
        let qos = pod.qos.unwrap_or(QosClass::Burstable);
        let mut wanted = size(&pod.held(), sizing, qos, |held| pod.is_observed(held.name));
        let is_due = |wanted: &Wanted| {
            let priority = Priority::of(pod, wanted, self.ground);
            priority.is_due(pod, self.ground).then_some(priority)
        };
        let before = is_due(&wanted)?;
        let reset = self.reset_by_others(pod, &wanted);
        if reset.is_empty() {
            return Some((before, wanted));
        }
        wanted.containers.retain(|own| !reset.iter().any(|(name, _)| **name == *own.name));
        let after = is_due(&wanted);
        let first = reset.first().map(|(name, _)| name.clone()).unwrap_or_default();
        for (container, times) in reset {
            let remark = Remark::OthersReset { container, times };
            if !self.plan.remarks.contains(&remark) {
                self.plan.remarks.push(remark);
            }
        }
        if after.is_none() {
            self.waits(pod, Why::OthersReset(first));
        }
        Some((after?, wanted))
    }

    /// The containers that differ and that we have given up.
    fn reset_by_others(&self, pod: &Pod, wanted: &Wanted) -> Vec<(Box<str>, u32)> {
        let Some(owner) = &pod.owner else { return Vec::new() };
        let differing = wanted.containers.iter().filter(|own| own.differs());
        let counted = differing.map(|own| (own.name.as_str().into(), self.ground.tries.resets(&owner.uid, &own.name)));
        counted.filter(|(_, times)| *times >= self.ground.settings.max_resets).collect()
    }

    fn step(&mut self, pod: &Pod, wanted: &Wanted) {
        let mode = self.ground.sizing.mode;
        if mode == Mode::Recreate {
            return self.evict(pod, wanted, None);
        }
        match resize::decide(pod, wanted, self.ground, &self.groups) {
            Decision::Approved(resize) => {
                let is_free = !resize.is_disruptive && self.ground.settings.in_place_skip_disruption_budget;
                if !is_free {
                    self.groups.touch(pod, resize.is_disruptive);
                }
                self.plan.actions.push(SizeAction::Resize(resize));
            }
            Decision::Evict(why) if mode == Mode::InPlaceOrRecreate => self.evict(pod, wanted, Some(why)),
            Decision::Evict(why) | Decision::Waits(why) => self.waits(pod, why),
        }
    }

    /// Evicts a pod, because the mode is to or because of what came in the way of a resize.
    fn evict(&mut self, pod: &Pod, wanted: &Wanted, because: Option<Why>) {
        if let Err(why) = self.ground.can_evict {
            return self.waits(pod, Why::CannotEvict(why.into()));
        }
        if let Some(why) = self.must_stay(pod, wanted) {
            return self.waits(pod, why);
        }
        self.groups.touch(pod, true);
        let differing = wanted.containers.iter().filter(|own| own.differs());
        let had =
            differing.filter_map(|own| Some((own.name.as_str().into(), pod.container(&own.name)?.asked.requests)));
        self.plan.actions.push(SizeAction::Evict(PodEviction {
            namespace: pod.namespace.clone(),
            name: pod.name.clone(),
            uid: pod.uid.clone(),
            owner: pod.owner.as_ref().map(|owner| owner.uid.clone()),
            why: because.map_or_else(|| "its requests are not as recommended".to_owned(), |why| why.to_string()),
            had: had.collect(),
        }));
    }

    /// Why a pod must not be evicted now.
    fn must_stay(&self, pod: &Pod, wanted: &Wanted) -> Option<Why> {
        if !may_evict(wanted, self.ground) {
            return Some(Why::EvictionRequirements);
        }
        let Some(group) = self.groups.of(pod) else { return Some(Why::NoGroup) };
        if !group.is_large_enough {
            return Some(Why::TooFewReplicas(group.live));
        }
        // One that has not started is missed by nobody.
        if pod.is_pending {
            return None;
        }
        if !group.has_room() {
            return Some(Why::Budget);
        }
        self.groups.exhausted(pod).map(|name| Why::DisruptionBudget(name.into()))
    }

    /// Takes back the cpu that containers had for a start that is over.
    fn unboost(&mut self, pod: &Pod) {
        let sizing = &self.ground.sizing;
        let boosted = pod.containers.iter().filter(|container| sizing.sizes(container.kind));
        let mut over = boosted.filter_map(|container| Some((container, pod.before_boost(&container.name)?)));
        let over: Vec<_> =
            over.by_ref().filter(|(container, _)| boost::is_over(pod, container, sizing, self.ground.now)).collect();
        if over.is_empty() || pod.is_pending || pod.resize != ResizeState::None {
            return;
        }
        let before: BTreeMap<&str, ContainerResources> =
            over.iter().map(|(container, before)| (&*container.name, *before)).collect();
        let mut held = pod.held();
        for own in &mut held {
            if let Some(before) = before.get(own.name) {
                own.has.requests.cpu = before.requests.cpu;
                own.has.limits.cpu = before.limits.cpu;
            }
        }
        let is_over = |held: &Held<'_>| before.contains_key(held.name);
        let wanted = match sizing.mode {
            Mode::Off => Wanted::default(),
            _ => size(&held, sizing, pod.qos.unwrap_or(QosClass::Burstable), is_over),
        };
        let mut changes = Vec::new();
        for (container, before) in &over {
            let wanted = wanted.of(&container.name).map(|own| own.to).filter(|to| to.requests.cpu.is_some());
            let cpu = wanted.unwrap_or(*before);
            let mut to = container.asked;
            // The API server does not let a resize take a request or limit away.
            to.requests.cpu = cpu.requests.cpu.or(to.requests.cpu);
            to.limits.cpu = cpu.limits.cpu.or(before.limits.cpu).or(to.limits.cpu);
            changes.extend(resize::change(container, to));
        }
        let names = over.iter().map(|(container, _)| container.name.clone()).collect();
        let resize = resize::resize(pod, changes, names, self.ground);
        if resize.is_disruptive {
            if let Some(why) = resize::budget(pod, &resize, self.ground, &self.groups) {
                return self.waits(pod, why);
            }
            self.groups.touch(pod, true);
        }
        self.plan.actions.push(SizeAction::Unboost(resize));
    }

    fn waits(&mut self, pod: &Pod, why: Why) {
        let Pod { namespace, name, uid, .. } = pod;
        let (namespace, name, uid) = (namespace.clone(), name.clone(), uid.clone());
        self.plan.waiting.push(Waiting { namespace, name, uid, why });
    }

    fn remark_pod_level(&mut self) {
        for remark in &mut self.plan.remarks {
            if let Remark::PodLevelResources(pods) = remark {
                *pods += 1;
                return;
            }
        }
        self.plan.remarks.push(Remark::PodLevelResources(1));
    }
}

#[cfg(test)]
mod tests;
