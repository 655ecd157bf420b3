//! Whether a pod is resized in place, waits, or is to be evicted instead.

use jiff::SignedDuration;
use pillion_pod::{QosClass, qos_class};
use pillion_quantity::Resource;

use super::budget::{Ground, Groups};
use super::held::{self, ContainerResources, Held};
use super::pod::{Container, Pod, ResizeState};
use super::sized::{SizedContainer, SizedPod};
use super::told::Why;
use super::wanted::{Wanted, WantedContainer};
use super::writes::{PodResize, SizeChange};
use crate::amounts::Amounts;

/// What becomes of a pod that is due.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Decision {
    /// It is resized.
    Approved(PodResize),
    /// It stays as it is for now.
    Waits(Why),
    /// It cannot be resized; where the mode allows it, it is evicted.
    Evict(Why),
}

/// What becomes of a pod that is due, as far as resizing goes.
pub(crate) fn decide(pod: &Pod, wanted: &Wanted, ground: &Ground<'_>, groups: &Groups<'_>) -> Decision {
    if pod.cannot_resize {
        return Decision::Evict(Why::CannotResize);
    }
    if pod.is_pending {
        return Decision::Waits(Why::Pending);
    }
    if let Some(decision) = under_way(pod, wanted, ground) {
        return decision;
    }
    let (changes, why) = changes(pod, wanted, ground);
    if changes.is_empty() {
        return Decision::Waits(why.unwrap_or(Why::AsAsked));
    }
    let Some(changes) = in_class(pod, changes) else { return Decision::Evict(Why::QosClass) };
    let resize = resize(pod, changes, Vec::new(), ground);
    match budget(pod, &resize, ground, groups) {
        Some(why) => Decision::Waits(why),
        None => Decision::Approved(resize),
    }
}

/// What an earlier resize that is not done, or was refused, means for the next one.
fn under_way(pod: &Pod, wanted: &Wanted, ground: &Ground<'_>) -> Option<Decision> {
    // We do not know for which resource there is no room, so less of any is worth another try.
    let is_less_than = |tried: &dyn Fn(&str) -> Option<Amounts>| {
        wanted.containers.iter().any(|own| {
            let Some(tried) = tried(&own.name) else { return false };
            own.target.iter().any(|(resource, target)| tried.get(resource).is_some_and(|tried| target < tried))
        })
    };
    let asked = |name: &str| pod.container(name).map(|container| container.asked.requests);
    let since = ground.tries.waits_since(&pod.uid).or(pod.resize_since).unwrap_or(ground.now);
    let since = since.max(ground.tries.resized_at(&pod.uid).unwrap_or(since));
    let is_over = |timeout: SignedDuration| ground.now.duration_since(since) > timeout;
    let settings = ground.settings;
    Some(match &pod.resize {
        ResizeState::None => {
            let tried = ground.tries.infeasible(&pod.uid);
            let find = |name: &str| tried.iter().find(|(own, _)| **own == *name).map(|(_, amounts)| *amounts);
            if tried.is_empty() || is_less_than(&find) {
                return None;
            }
            Decision::Evict(Why::Infeasible)
        }
        ResizeState::Infeasible | ResizeState::Deferred if is_less_than(&asked) => return None,
        ResizeState::Infeasible => Decision::Evict(Why::Infeasible),
        ResizeState::Deferred if is_over(settings.deferred_timeout) => Decision::Evict(Why::Deferred),
        ResizeState::Failing if is_over(settings.deferred_timeout) => Decision::Evict(Why::Failing),
        ResizeState::InProgress | ResizeState::Unknown(_) if is_over(settings.in_progress_timeout) => {
            Decision::Evict(Why::InProgress)
        }
        ResizeState::Deferred => Decision::Waits(Why::Deferred),
        ResizeState::Failing => Decision::Waits(Why::Failing),
        ResizeState::InProgress | ResizeState::Unknown(_) => Decision::Waits(Why::InProgress),
    })
}

/// The containers that get something else, and why one of them does not.
fn changes(pod: &Pod, wanted: &Wanted, ground: &Ground<'_>) -> (Vec<SizeChange>, Option<Why>) {
    let (mut changes, mut why) = (Vec::new(), None);
    for own in &wanted.containers {
        let Some(container) = pod.container(&own.name) else { continue };
        let mut to = asked_with(container, own);
        let limit = (container.asked.limits.memory, to.limits.memory);
        let used = (ground.memory_used)(&pod.uid, &own.name);
        // The kubelet would try it again and again, and the pod would never be done.
        if let ((Some(from), Some(less)), Some(used)) = (limit, used)
            && less < from
            && less < used
        {
            to.requests.memory = container.asked.requests.memory;
            to.limits.memory = container.asked.limits.memory;
            why = Some(Why::MemoryInUse(own.name.as_str().into()));
        }
        changes.extend(change(container, to));
    }
    (changes, why)
}

/// What the pod says of a container, with what is wanted.
fn asked_with(container: &Container, own: &WantedContainer) -> ContainerResources {
    let mut to = container.asked;
    for (resource, amount) in own.to.requests.iter() {
        to.requests.set(resource, Some(amount));
    }
    for (resource, amount) in own.to.limits.iter() {
        to.limits.set(resource, Some(amount));
    }
    to
}

/// The change of a container, if it is one.
pub(crate) fn change(container: &Container, to: ContainerResources) -> Option<SizeChange> {
    (to != container.asked).then(|| SizeChange {
        list: container.list,
        index: container.index,
        name: container.name.clone(),
        kind: container.kind,
        from: container.asked,
        to,
        has_requests: container.has_requests,
        has_limits: container.has_limits,
    })
}

/// The changes, such that the class of the pod stays: the API server refuses a resize otherwise. `None` where no change
/// of ours can keep it.
fn in_class(pod: &Pod, mut changes: Vec<SizeChange>) -> Option<Vec<SizeChange>> {
    let class = |changes: &[SizeChange]| {
        let after = |container: &Container| {
            let own = changes.iter().find(|change| change.name == container.name);
            own.map_or(container.asked, |change| change.to)
        };
        let held = pod.containers.iter().map(|container| Held {
            list: container.list,
            index: container.index,
            name: &container.name,
            kind: container.kind,
            has: after(container),
        });
        qos_class(&held::skeleton(&held.collect::<Vec<_>>())).ok()
    };
    let before = pod.qos.or_else(|| class(&[]))?;
    let after = class(&changes)?;
    if before == after {
        return Some(changes);
    }
    if (before, after) == (QosClass::Burstable, QosClass::Guaranteed) {
        // Requests have come to equal limits. One that is the least bit below keeps the pod Burstable.
        let below = |change: &mut SizeChange| {
            Amounts::RESOURCES.into_iter().any(|resource: Resource| {
                let request = change.to.requests.get(resource).filter(|request| *request > 1);
                let is_new = request.is_some() && change.from.requests.get(resource) != request;
                if is_new {
                    change.to.requests.set(resource, request.map(|request| request - 1));
                }
                is_new
            })
        };
        if changes.iter_mut().any(below) {
            changes.retain(|change| change.to != change.from);
            return (class(&changes) == Some(before)).then_some(changes);
        }
    }
    None
}

/// A resize of these containers.
pub(crate) fn resize(pod: &Pod, changes: Vec<SizeChange>, unboosted: Vec<Box<str>>, ground: &Ground<'_>) -> PodResize {
    let restarts = |change: &SizeChange| {
        let container = pod.container(&change.name);
        change.amounts().any(|(_, resource, _)| {
            container.is_some_and(|container| match resource {
                Resource::Cpu => container.restarts_for_cpu,
                Resource::Memory => container.restarts_for_memory,
            })
        })
    };
    let autoscaler: Box<str> = ground.sizing.autoscaler.name.as_str().into();
    let mut sized = SizedPod { by: autoscaler.clone(), uid: Some(pod.uid.clone()), ..SizedPod::default() };
    let gave = |gave: ContainerResources| SizedContainer { gave, notes: Vec::new() };
    sized.containers.extend(pod.sized.iter().map(|(name, own)| (name.clone(), gave(*own))));
    sized.containers.extend(changes.iter().map(|change| (change.name.clone(), gave(change.to))));
    PodResize {
        namespace: pod.namespace.clone(),
        name: pod.name.clone(),
        uid: pod.uid.clone(),
        owner: pod.owner.as_ref().map(|owner| owner.uid.clone()),
        autoscaler,
        is_disruptive: changes.iter().any(restarts),
        changes,
        unboosted,
        at: ground.now,
        sized,
    }
}

/// Why a resize must wait, if it must. One that restarts a container, be it a native sidecar, is a disturbance like any.
pub(crate) fn budget(pod: &Pod, resize: &PodResize, ground: &Ground<'_>, groups: &Groups<'_>) -> Option<Why> {
    if !resize.is_disruptive && ground.settings.in_place_skip_disruption_budget {
        return None;
    }
    let Some(group) = groups.of(pod) else { return Some(Why::NoGroup) };
    if resize.is_disruptive && !group.is_large_enough {
        return Some(Why::TooFewReplicas(group.live));
    }
    if !group.has_room() {
        return Some(Why::Budget);
    }
    groups.exhausted(pod).filter(|_| resize.is_disruptive).map(|name| Why::DisruptionBudget(name.into()))
}

#[cfg(test)]
mod tests;
