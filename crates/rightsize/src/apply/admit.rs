//! Sizing a pod when it is created.
//!
//! A review may be repeated, after other webhooks or ourselves have changed the pod, and must then change nothing. What we
//! gave is kept on the pod ([`SizedPod`]): a container that still has it is done, whatever is recommended by then, and
//! counts for the others with what it has. One that has something else was changed after us and is sized again.

use std::collections::BTreeSet;

use pillion_pod::{Editor, Operation, QosClass, Step, qos_class};
use pillion_quantity::Resource;
use serde_json::{Map, Value, json};

use super::boost;
use super::held::{ContainerKind, ContainerResources, Held};
use super::limit_range::LimitRanges;
use super::sized::{BOOST_PREFIX, OBSERVED, SIZED, SizedContainer, SizedPod, UPDATES};
use super::wanted::{Sizing, Unsized, readable, size};
use crate::amounts::Amounts;
use crate::policy::Mode;

const ANNOTATIONS: &[Step<'_>] = &[Step::Key("metadata"), Step::Key("annotations")];

/// Which containers are sized in this call. One review makes two: the pod's own containers before sidecars are injected,
/// whose amounts may follow from theirs, and the injected ones after.
#[derive(Clone, Copy, Debug)]
pub enum Which<'a> {
    /// All.
    All,
    /// All but these, which were injected.
    Own(&'a BTreeSet<String>),
    /// These, which were injected.
    Injected(&'a BTreeSet<String>),
}

/// A pod that was sized.
#[derive(Debug)]
pub struct Admitted {
    /// The pod with the changes.
    pub pod: Value,
    /// The changes.
    pub patch: Vec<Operation>,
    /// Why nothing was sized, where that is so.
    pub skipped: Option<Unsized>,
}

impl Which<'_> {
    fn takes(self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Own(injected) => !injected.contains(name),
            Self::Injected(injected) => injected.contains(name),
        }
    }
}

/// What a container gets.
struct Given {
    place: Vec<Step<'static>>,
    name: String,
    to: ContainerResources,
    has: ContainerResources,
    notes: Vec<Box<str>>,
    is_boosted: bool,
}

/// Sizes a pod that is being created. A pod that cannot be sized stays as it is: sizing never refuses one.
pub fn admit(pod: Value, sizing: &Sizing<'_>, which: Which<'_>) -> Admitted {
    match decide(&pod, sizing, which) {
        Err(skipped) => Admitted { pod, patch: Vec::new(), skipped: Some(skipped) },
        Ok((given, sized, observed)) => {
            let (pod, patch) = write(pod, &given, &sized, &observed);
            Admitted { pod, patch, skipped: None }
        }
    }
}

/// Whether the containers of a pod come to more than the `LimitRange`s of its namespace allow a pod; the API server would
/// refuse it. One without a limit counts with its request.
pub fn is_above_pod_limits(pod: &Value, limits: &LimitRanges) -> bool {
    let Ok(containers) = readable(pod) else { return false };
    let lasting = || containers.iter().filter(|held| held.kind != ContainerKind::PlainInit);
    let counts = |held: &Held<'_>, resource| held.has.limits.get(resource).or(held.has.requests.get(resource));
    limits.pod.max.iter().any(|(resource, most)| {
        let all = lasting().filter_map(|held| counts(held, resource));
        all.fold(0, i64::saturating_add) > most
    })
}

fn decide(pod: &Value, sizing: &Sizing<'_>, which: Which<'_>) -> Result<(Vec<Given>, SizedPod, String), Unsized> {
    if sizing.mode == Mode::Off && !(sizing.gates.startup_boost && boost::is_given(sizing.autoscaler)) {
        return Err(Unsized::Off);
    }
    let containers = readable(pod)?;
    let qos = qos_class(pod).map_err(|error| Unsized::Unreadable(error.0))?;
    let mut sized = record(pod, &containers);
    let is_free = |held: &Held<'_>| which.takes(held.name) && !sized.holds(held.name, held.has);
    let given = give(&containers, sizing, qos, is_free);
    for own in &given {
        sized.by = sizing.autoscaler.name.as_str().into();
        let gave = SizedContainer { gave: over(own.has, own.to), notes: own.notes.clone() };
        sized.containers.insert(own.name.as_str().into(), gave);
    }
    let names = containers.iter().filter(|held| sizing.sizes(held.kind));
    let mut names: Vec<&Held<'_>> = names.collect();
    names.sort_by_key(|held| held.kind != ContainerKind::App);
    let observed = names.iter().map(|held| held.name).collect::<Vec<_>>().join(", ");
    Ok((given, sized, observed))
}

/// What earlier calls gave the containers that are there.
fn record(pod: &Value, containers: &[Held<'_>]) -> SizedPod {
    let text = pod.pointer("/metadata/annotations").and_then(|annotations| annotations.get(SIZED)?.as_str());
    let uid: Option<Box<str>> = pod.pointer("/metadata/uid").and_then(Value::as_str).map(Box::from);
    let mut sized = text.and_then(SizedPod::parse).filter(|own| own.uid == uid).unwrap_or_default();
    sized.uid = uid;
    sized.containers.retain(|name, _| containers.iter().any(|held| *held.name == **name));
    sized
}

fn give(
    containers: &[Held<'_>],
    sizing: &Sizing<'_>,
    qos: QosClass,
    is_free: impl Fn(&Held<'_>) -> bool,
) -> Vec<Given> {
    // A recommendation is only applied in a mode that applies it; a boost is in all of them.
    let wanted = if sizing.mode == Mode::Off { <_>::default() } else { size(containers, sizing, qos, &is_free) };
    let mut given = Vec::new();
    for held in containers.iter().filter(|held| sizing.sizes(held.kind) && is_free(held)) {
        let own = wanted.of(held.name);
        let mut to = own.map(|own| own.to).unwrap_or_default();
        let boosted = boost::begin(held, to, sizing, qos);
        if let Some(boosted) = boosted {
            to = boosted;
        }
        if to == ContainerResources::default() {
            continue;
        }
        let mut notes: Vec<Box<str>> =
            own.into_iter().flat_map(|own| &own.notes).map(|note| note.as_str().into()).collect();
        for (side, amounts) in [("request", to.requests), ("limit", to.limits)] {
            notes.extend(amounts.iter().map(|(resource, _)| format!("{resource} {side}").into()));
        }
        given.push(Given {
            place: vec![Step::Key("spec"), Step::Key(held.list.field()), Step::At(held.index.into())],
            name: held.name.to_owned(),
            to,
            has: held.has,
            notes,
            is_boosted: boosted.is_some(),
        });
    }
    given
}

/// What is said of the second in the place of the first.
fn over(has: ContainerResources, to: ContainerResources) -> ContainerResources {
    let mut after = has;
    for (resource, amount) in to.requests.iter() {
        after.requests.set(resource, Some(amount));
    }
    for (resource, amount) in to.limits.iter() {
        after.limits.set(resource, Some(amount));
    }
    after
}

fn write(pod: Value, given: &[Given], sized: &SizedPod, observed: &str) -> (Value, Vec<Operation>) {
    let mut editor = Editor::new(pod);
    for own in given {
        if own.is_boosted {
            editor.set(ANNOTATIONS, &format!("{BOOST_PREFIX}{}", own.name), boost::before(own.has).into());
        }
        for (side, has, to) in
            [("requests", own.has.requests, own.to.requests), ("limits", own.has.limits, own.to.limits)]
        {
            fill(&mut editor, &own.place, side, has, to);
        }
    }
    if !sized.containers.is_empty() {
        editor.set(ANNOTATIONS, UPDATES, words(editor.pod(), sized).into());
        editor.set(ANNOTATIONS, SIZED, sized.write().into());
    }
    editor.set(ANNOTATIONS, OBSERVED, observed.into());
    editor.finish()
}

/// Writes what differs. An amount that is the same in another spelling stays as it is written.
fn fill(editor: &mut Editor, place: &[Step<'_>], side: &str, has: Amounts, to: Amounts) {
    let changes: Vec<(Resource, i64)> =
        to.iter().filter(|(resource, amount)| has.get(*resource) != Some(*amount)).collect();
    let resources = [place, &[Step::Key("resources")]].concat();
    let list = [&resources[..], &[Step::Key(side)]].concat();
    if editor.get(&list).is_some_and(Value::is_object) {
        for (resource, amount) in changes {
            editor.set(&list, resource.name(), Amounts::write(resource, amount).into());
        }
    } else if !changes.is_empty() {
        let write = |(resource, amount): (Resource, i64)| {
            (resource.name().to_owned(), Value::String(Amounts::write(resource, amount)))
        };
        let all: Map<String, Value> = changes.into_iter().map(write).collect();
        editor.set(&resources, side, json!(all));
    }
}

/// What was done, as upstream writes it. A native sidecar is told from a container, whose numbers start at 0 as well.
fn words(pod: &Value, sized: &SizedPod) -> String {
    let containers = super::held::read(pod).unwrap_or_default();
    let entry = |kind: ContainerKind, word: &str| -> Vec<String> {
        let own = containers.iter().filter(|held| held.kind == kind);
        let own = own.filter_map(|held| Some((held.index, sized.containers.get(held.name)?)));
        own.map(|(index, gave)| format!("{word} {index}: {}", gave.notes.join(", "))).collect()
    };
    let all = [entry(ContainerKind::App, "container"), entry(ContainerKind::NativeSidecar, "init-sidecar")].concat();
    format!("Pod resources updated by {}: {}", sized.by, all.join("; "))
}

#[cfg(test)]
mod laws;
#[cfg(test)]
mod tests;
