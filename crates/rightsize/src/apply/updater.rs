//! Which pods are changed now, and how.

use std::collections::BTreeMap;
use std::fmt;

use jiff::SignedDuration;
use pillion_pod::QosClass;

use super::boost;
use super::budget::{Ground, Groups};
use super::held::{ContainerResources, Held};
use super::pod::{Pod, ResizeState};
use super::priority::{Priority, may_evict};
use super::resize::{self, Decision};
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

/// A pod that is due and stays as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Its namespace.
    pub namespace: Box<str>,
    /// Its name.
    pub name: Box<str>,
    /// Its uid.
    pub uid: Box<str>,
    /// Why.
    pub why: Why,
}

/// Why a pod stays as it is, or is not resized.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// It has not started.
    Pending,
    /// It is the copy of a static pod, or runs on Windows.
    CannotResize,
    /// It has no controller, or it is not known how many pods that is to have.
    NoGroup,
    /// There are too few of its kind; so many.
    TooFewReplicas(u32),
    /// Too many of its kind are missing or being changed.
    Budget,
    /// A `PodDisruptionBudget` allows no more.
    DisruptionBudget(Box<str>),
    /// Its node has no room now.
    Deferred,
    /// Its node never has room.
    Infeasible,
    /// Its node is at it.
    InProgress,
    /// Its node tries it again and again.
    Failing,
    /// It says already what is wanted.
    AsAsked,
    /// A container uses more memory than its limit would be.
    MemoryInUse(Box<str>),
    /// It would change its quality-of-service class.
    QosClass,
    /// A pod in its place would not be sized.
    CannotEvict(Box<str>),
    /// The object's requirements for an eviction do not hold.
    EvictionRequirements,
    /// Others take back what a container gets.
    OthersReset(Box<str>),
    /// It cannot be sized at all.
    Unsized(Unsized),
}

/// What a condition of the object should say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remark {
    /// So many pods have resources of their own.
    PodLevelResources(u32),
    /// Others took back what we gave this container so many times.
    OthersReset {
        /// The container.
        container: Box<str>,
        /// How often.
        times: u32,
    },
    /// So many pods would be evicted, and are not.
    CannotEvict {
        /// How many.
        pods: u32,
        /// Why not.
        why: Box<str>,
    },
}

impl Remark {
    /// The reason of the condition, in one word.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::PodLevelResources(_) => "PodLevelResources",
            Self::OthersReset { .. } => "OthersResetResources",
            Self::CannotEvict { .. } => "EvictionNotPossible",
        }
    }
}

/// Which pods of a `VerticalPodAutoscaler` are changed now, and how.
pub fn plan(pods: &[Pod], ground: &Ground<'_>) -> UpdatePlan {
    let mut planner = Planner { ground, groups: Groups::new(pods, ground), plan: UpdatePlan::default() };
    let mut due = Vec::new();
    for pod in pods.iter().filter(|pod| is_live(pod)) {
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
            self.waits(pod, Why::CannotEvict(why.into()));
            return self.remark_cannot_evict(why);
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

    fn remark_cannot_evict(&mut self, because: &str) {
        for remark in &mut self.plan.remarks {
            if let Remark::CannotEvict { pods, .. } = remark {
                *pods += 1;
                return;
            }
        }
        self.plan.remarks.push(Remark::CannotEvict { pods: 1, why: because.into() });
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pending => f.write_str("it has not started"),
            Self::CannotResize => f.write_str("it is a static pod or runs on Windows, which cannot be resized"),
            Self::NoGroup => f.write_str("it has no controller that says how many pods there are to be"),
            Self::TooFewReplicas(live) => {
                write!(f, "there are only {live} of its kind: set spec.updatePolicy.minReplicas to allow it")
            }
            Self::Budget => f.write_str("enough of its kind are missing or being changed"),
            Self::DisruptionBudget(name) => write!(f, "PodDisruptionBudget {name} allows no more"),
            Self::Deferred => f.write_str("its node has no room now"),
            Self::Infeasible => f.write_str("its node has no such room at all"),
            Self::InProgress => f.write_str("its node is still at the last resize"),
            Self::Failing => f.write_str("its node fails to do the last resize and tries again"),
            Self::AsAsked => f.write_str("it says already what is wanted"),
            Self::MemoryInUse(container) => {
                write!(f, "container {container} uses more memory than its limit would be")
            }
            Self::QosClass => f.write_str("a resize would change its quality-of-service class"),
            Self::CannotEvict(why) => write!(f, "it is not evicted: {why}"),
            Self::EvictionRequirements => f.write_str("spec.updatePolicy.evictionRequirements do not hold"),
            Self::OthersReset(container) => write!(f, "others take back what container {container} gets"),
            Self::Unsized(why) => why.fmt(f),
        }
    }
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PodLevelResources(pods) => {
                write!(f, "{pods} pods have spec.resources and are left alone: remove them from the template")
            }
            Self::OthersReset { container, times } => write!(
                f,
                "others took back what container {container} got, {times} times: set its policy to mode Off, or take the \
                 resources out of whatever injects it"
            ),
            Self::CannotEvict { pods, why } => write!(f, "{pods} pods would be evicted and are not: {why}"),
        }
    }
}

#[cfg(test)]
mod tests;
