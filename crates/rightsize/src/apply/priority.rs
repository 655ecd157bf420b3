//! Which pods are worth a change, and which of them come first.
//!
//! A pod is changed soon when a request is outside the recommended bounds, or a container was ended for want of memory soon
//! after its start; otherwise only when it has been as it is for long and the difference is worth it. A resize starts that
//! time anew. Differences of containers add up whichever way they go: one that needs more and one that needs less do not
//! make a pod that is right.

use super::budget::Ground;
use super::held::ContainerKind;
use super::pod::Pod;
use super::wanted::Wanted;
use crate::amounts::Amounts;

/// How much a pod is in need of a change.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Priority {
    /// Whether a request is outside the bounds, or missing.
    pub is_outside: bool,
    /// Whether a container is to get more.
    pub is_growth: bool,
    /// Whether a container was ended for want of memory soon after its start.
    pub is_quick_oom: bool,
    /// The sum over the resources of what is to change, as a part of what is asked for.
    pub difference: f64,
}

impl Priority {
    /// Of what is wanted. Containers that were not there at admission are left out, as what sets them may come after us.
    pub(super) fn of(pod: &Pod, wanted: &Wanted, ground: &Ground<'_>) -> Self {
        let mut own = Self { is_quick_oom: is_quick_oom(pod, ground), ..Self::default() };
        for resource in Amounts::RESOURCES {
            let (mut asked, mut change) = (0_i64, 0_i64);
            for container in wanted.containers.iter().filter(|container| pod.is_observed(&container.name)) {
                let Some(target) = container.target.get(resource) else { continue };
                let request = container.has.requests.get(resource);
                let has = request.unwrap_or_default();
                asked = asked.saturating_add(has);
                change = change.saturating_add((target - has).abs());
                own.is_growth |= target > has;
                own.is_outside |= request.is_none()
                    || container.lower.get(resource).is_some_and(|lower| has < lower)
                    || container.upper.get(resource).is_some_and(|upper| has > upper);
            }
            #[expect(clippy::cast_precision_loss, reason = "only compared with a threshold")]
            let part = change as f64 / asked.max(1) as f64;
            own.difference += part;
        }
        own
    }

    /// Whether the pod is to be changed now.
    pub(super) fn is_due(&self, pod: &Pod, ground: &Ground<'_>) -> bool {
        // What is at its target needs nothing, whatever its bounds say.
        if self.difference <= 0.0 {
            return false;
        }
        if self.is_outside || self.is_quick_oom {
            return true;
        }
        let resized = pod.resized.max(ground.tries.resized_at(&pod.uid));
        let Some(since) = pod.started.max(resized) else { return false };
        let long = ground.settings.in_recommendation_bounds_eviction_lifetime_threshold;
        ground.now.duration_since(since) >= long && self.difference >= ground.settings.pod_update_threshold
    }

    /// Pods that are to grow come first, then those with the larger difference.
    pub(super) fn order(&self, other: &Self) -> std::cmp::Ordering {
        other.is_growth.cmp(&self.is_growth).then(other.difference.total_cmp(&self.difference))
    }
}

fn is_quick_oom(pod: &Pod, ground: &Ground<'_>) -> bool {
    let quick = ground.settings.evict_after_oom_threshold;
    pod.containers.iter().any(|container| {
        let is_sized = container.kind != ContainerKind::PlainInit
            && ground.sizing.sizes(container.kind)
            && pod.is_observed(&container.name)
            && !ground.sizing.autoscaler.policy(&container.name).is_off;
        let is_quick = container.oom.is_some_and(|oom| {
            oom.ended.duration_since(oom.started) < quick && ground.now.duration_since(oom.ended) < quick
        });
        is_sized && is_quick
    })
}

/// Whether the object's requirements for an eviction hold: all of them, for one container.
pub(crate) fn may_evict(wanted: &Wanted, ground: &Ground<'_>) -> bool {
    let requirements = &ground.sizing.autoscaler.eviction_requirements;
    requirements.is_empty()
        || wanted.containers.iter().any(|container| {
            let asked = container.has.requests;
            let all = || {
                requirements.iter().all(|requirement| {
                    requirement.resources.iter().any(|resource| {
                        let (has, target) = (asked.get(*resource), container.target.get(*resource));
                        match (target, requirement.is_higher) {
                            (Some(target), true) => target > has.unwrap_or_default(),
                            (Some(target), false) => target < has.unwrap_or_default(),
                            (None, _) => false,
                        }
                    })
                })
            };
            asked.cpu.is_none() || asked.memory.is_none() || all()
        })
}
