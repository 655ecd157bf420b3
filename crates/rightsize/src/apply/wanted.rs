//! What each container of a pod should have: the recommendation, within every bound that holds for it.
//!
//! In this order, as users of upstream's autoscaler know it: the pod's `LimitRange` over the sum of the containers, the
//! container's `LimitRange` through the ratio of limit and request, the policy's bounds (which therefore win), and with
//! `RequestsOnly` the limit. Limits follow requests in proportion. What we add comes last: a native sidecar does not grow
//! so far that the moment of a plain init container goes beyond the pod's `LimitRange`.
//!
//! A container that is not sized counts with what it has, and is never changed to make room for the others.

use std::fmt;

use pillion_plan::List;
use pillion_pod::{QosClass, effective_requests, qos_class};
use pillion_quantity::Resource;
use serde_json::Value;

use super::held::{self, ContainerKind, ContainerResources, Held};
use super::limit_range::LimitRanges;
use super::pod::Pod;
use crate::amounts::Amounts;
use crate::policy::{Autoscaler, ContainerPolicy, Mode};

mod caps;
pub(crate) mod proportion;

/// What of right-sizing is switched on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gates {
    /// Native sidecars are sized.
    pub native_sidecar: bool,
    /// Containers may get more cpu for their start.
    pub startup_boost: bool,
}

/// By what a pod is sized.
#[derive(Clone, Copy, Debug)]
pub struct Sizing<'a> {
    /// Whose pod it is.
    pub autoscaler: &'a Autoscaler,
    /// The mode that we apply: [`Autoscaler::effective_mode`].
    pub mode: Mode,
    /// The bounds of the namespace.
    pub limits: &'a LimitRanges,
    /// What is switched on.
    pub gates: Gates,
    /// The most cpu a container gets for its start, in millicores.
    pub max_boost: Option<i64>,
}

/// What the containers of a pod should have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Those that are sized, in the order of the pod: init containers first.
    pub containers: Vec<WantedContainer>,
}

/// What a container should have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedContainer {
    /// In which list of the pod.
    pub list: List,
    /// At which place there.
    pub index: u16,
    /// Its name.
    pub name: String,
    /// What it is there.
    pub kind: ContainerKind,
    /// What it has.
    pub has: ContainerResources,
    /// What it should have; what is not said stays.
    pub to: ContainerResources,
    /// The target of each resource that is sized.
    pub target: Amounts,
    /// A request below is changed soon.
    pub lower: Amounts,
    /// A request above is changed soon.
    pub upper: Amounts,
    /// Which bounds were met, in the words of upstream.
    pub notes: Vec<String>,
}

/// Why a pod is not sized.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unsized {
    /// The object is only to recommend, and gives no cpu for a start either.
    Off,
    /// The pod has resources of its own beside those of its containers, which ours would contradict.
    PodLevelResources,
    /// It is the copy of a static pod.
    StaticPod,
    /// It has not the form of a pod.
    Unreadable(String),
}

impl fmt::Display for Unsized {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Off => "the mode is Off",
            Self::PodLevelResources => {
                "it has spec.resources, which sizing of containers would contradict: remove them from the template"
            }
            Self::StaticPod => "it is the copy of a static pod: size it in its file",
            Self::Unreadable(why) => why,
        })
    }
}

impl Sizing<'_> {
    /// Whether containers of this kind are sized at all.
    pub const fn sizes(&self, kind: ContainerKind) -> bool {
        match kind {
            ContainerKind::App => true,
            ContainerKind::NativeSidecar => self.gates.native_sidecar,
            ContainerKind::PlainInit => false,
        }
    }
}

impl Wanted {
    /// What is wanted of a container.
    pub fn of(&self, container: &str) -> Option<&WantedContainer> {
        self.containers.iter().find(|own| own.name == container)
    }
}

impl WantedContainer {
    /// Everything it will have: what it should have, and what stays.
    pub fn after(&self) -> ContainerResources {
        let mut after = self.has;
        for resource in Amounts::RESOURCES {
            if let Some(amount) = self.to.requests.get(resource) {
                after.requests.set(resource, Some(amount));
            }
            if let Some(amount) = self.to.limits.get(resource) {
                after.limits.set(resource, Some(amount));
            }
        }
        after
    }

    /// Whether that is something else than it has.
    pub fn differs(&self) -> bool {
        self.after() != self.has
    }
}

/// What the containers of a pod should have, as they are in its JSON.
pub fn wanted(pod: &Value, sizing: &Sizing<'_>) -> Result<Wanted, Unsized> {
    let containers = readable(pod)?;
    let qos = qos_class(pod).map_err(|error| Unsized::Unreadable(error.0))?;
    Ok(size(&containers, sizing, qos, |_| true))
}

/// What a node must have free for a pod when its containers have what is wanted.
pub fn pod_request(pod: &Pod, wanted: &Wanted) -> Amounts {
    request(&with(&pod.held(), wanted))
}

/// The containers of a pod that can be sized.
pub(crate) fn readable(pod: &Value) -> Result<Vec<Held<'_>>, Unsized> {
    let own = pod.pointer("/spec/resources").and_then(Value::as_object);
    if own.is_some_and(|own| !own.is_empty()) {
        return Err(Unsized::PodLevelResources);
    }
    let annotations = pod.pointer("/metadata/annotations");
    if annotations.is_some_and(|own| own.get(super::sized::MIRROR).is_some()) {
        return Err(Unsized::StaticPod);
    }
    held::read(pod).map_err(|error| Unsized::Unreadable(error.0))
}

/// The containers with what is wanted.
pub(crate) fn with<'a>(containers: &[Held<'a>], wanted: &Wanted) -> Vec<Held<'a>> {
    let after = |container: &Held<'a>| Held {
        has: wanted.of(container.name).map_or(container.has, WantedContainer::after),
        ..*container
    };
    containers.iter().map(after).collect()
}

pub(crate) fn request(containers: &[Held<'_>]) -> Amounts {
    let mut amounts = Amounts::default();
    for (resource, quantity) in effective_requests(&held::skeleton(containers)).unwrap_or_default() {
        let whole = match resource.as_str() {
            "cpu" => (Resource::Cpu, quantity.milli_value()),
            "memory" => (Resource::Memory, quantity.value()),
            _ => continue,
        };
        amounts.set(whole.0, whole.1.try_into().ok());
    }
    amounts
}

/// The three amounts that are bounded alike.
#[derive(Clone, Copy, Debug, Default)]
struct Bounded {
    target: Amounts,
    lower: Amounts,
    upper: Amounts,
}

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Target,
    Lower,
    Upper,
}

impl Field {
    const ALL: [Self; 3] = [Self::Lower, Self::Upper, Self::Target];
}

impl Bounded {
    fn get(&self, field: Field, resource: Resource) -> Option<i64> {
        match field {
            Field::Target => self.target.get(resource),
            Field::Lower => self.lower.get(resource),
            Field::Upper => self.upper.get(resource),
        }
    }

    fn set(&mut self, field: Field, resource: Resource, amount: Option<i64>) {
        match field {
            Field::Target => self.target.set(resource, amount),
            Field::Lower => self.lower.set(resource, amount),
            Field::Upper => self.upper.set(resource, amount),
        }
    }
}

/// A container that is being sized.
struct Candidate<'a> {
    held: Held<'a>,
    policy: ContainerPolicy,
    bounded: Bounded,
    notes: Vec<String>,
}

/// What the containers that `is_free` should have. The class of the pod stays Guaranteed where it is.
pub(crate) fn size(
    containers: &[Held<'_>],
    sizing: &Sizing<'_>,
    qos: QosClass,
    is_free: impl Fn(&Held<'_>) -> bool,
) -> Wanted {
    let Some(recommendation) = &sizing.autoscaler.recommendation else { return Wanted::default() };
    let mut candidates = Vec::new();
    for held in containers.iter().filter(|held| sizing.sizes(held.kind) && is_free(held)) {
        let policy = sizing.autoscaler.policy(held.name);
        let Some(own) = recommendation.of(held.name).filter(|_| !policy.is_off) else { continue };
        // Requests of a Guaranteed pod that leave its limits would make it Burstable, which nobody asked for.
        if policy.requests_only && qos == QosClass::Guaranteed {
            continue;
        }
        let mut bounded = Bounded { target: own.target, lower: own.lower, upper: own.upper };
        for (field, resource) in Field::ALL.into_iter().flat_map(|field| Amounts::RESOURCES.map(|own| (field, own))) {
            let amount = bounded.get(field, resource).filter(|amount| *amount > 0 && policy.sizes(resource));
            bounded.set(field, resource, amount);
        }
        if !bounded.target.is_empty() {
            candidates.push(Candidate { held: *held, policy, bounded, notes: Vec::new() });
        }
    }
    caps::apply(&mut candidates, containers, sizing.limits);
    let finish = candidates.into_iter().map(|candidate| candidate.finish(sizing.limits));
    Wanted { containers: finish.collect() }
}

impl Candidate<'_> {
    fn finish(mut self, limits: &LimitRanges) -> WantedContainer {
        let target = self.bounded.target;
        let mut to = ContainerResources { requests: target, limits: Amounts::default() };
        if !self.policy.requests_only {
            let mut notes = Vec::new();
            for resource in Amounts::RESOURCES {
                let (limit, note) = proportion::limit(&self.held, resource, target.get(resource), limits);
                to.limits.set(resource, limit);
                notes.extend(note);
            }
            if !to.limits.is_empty() {
                self.notes.append(&mut notes);
            }
        }
        let Held { list, index, name, kind, has } = self.held;
        WantedContainer {
            list,
            index,
            name: name.to_owned(),
            kind,
            has,
            to,
            target,
            lower: self.bounded.lower,
            upper: self.bounded.upper,
            notes: self.notes,
        }
    }
}

#[cfg(test)]
mod tests;
