//! A pod's own `spec.resources`. The API server rejects a pod whose containers exceed them, whoever added the containers.

use std::collections::BTreeSet;

use pillion_api::Reason;
use pillion_pod::container_requests;
use pillion_quantity::Quantity;
use serde_json::{Map, Value};

use crate::decision::Refusal;
use crate::evaluate::{Addition, Additions};
use crate::server_defaults::fill_in;

const LISTS: [&str; 2] = ["initContainers", "containers"];

/// The set whose containers exceed `spec.resources` of a pod with all additions, and what exceeds them. Of several, the last set
/// in the order of names that adds something of the resource.
pub(crate) fn exceeding<'a>(pod: &Value, additions: &[Additions<'a>]) -> Option<(&'a str, Refusal)> {
    pod.pointer("/spec/resources")?;
    let mut pod = pod.clone();
    fill_in(&mut pod, "", &[]);
    over_a_limit(&pod, additions).or_else(|| over_the_requests(&pod, additions))
}

/// The API server compares limits of containers, and not those of init containers.
fn over_a_limit<'a>(pod: &Value, additions: &[Additions<'a>]) -> Option<(&'a str, Refusal)> {
    for (resource, bound) in bounds(pod, "limits") {
        for set in additions {
            for (container, limit) in amounts(pod, set, &["containers"], "limits", resource) {
                if limit > bound {
                    let message = format!(
                        "container {container}: limits.{resource} is {limit}, more than spec.resources.limits.{resource} \
                         of the pod with {bound}"
                    );
                    return Some((set.set, Refusal::new(Reason::PodResourcesExceeded, message)));
                }
            }
        }
    }
    None
}

fn over_the_requests<'a>(pod: &Value, additions: &[Additions<'a>]) -> Option<(&'a str, Refusal)> {
    // What is no amount is left to the API server.
    let sums = container_requests(pod).ok()?;
    for (resource, bound) in bounds(pod, "requests") {
        let Some(sum) = sums.get(resource).filter(|sum| **sum > bound) else { continue };
        let requests =
            |set: &&Additions<'a>| amounts(pod, set, &LISTS, "requests", resource).any(|(_, it)| it > Quantity::ZERO);
        if let Some(set) = additions.iter().rev().find(requests) {
            let message = format!(
                "requests.{resource} of all containers come to {sum}, more than spec.resources.requests.{resource} of the \
                 pod with {bound}"
            );
            return Some((set.set, Refusal::new(Reason::PodResourcesExceeded, message)));
        }
    }
    None
}

/// The bounds of a pod for all its containers.
fn bounds<'p>(pod: &'p Value, side: &str) -> impl Iterator<Item = (&'p str, Quantity)> {
    let bounds = pod["spec"]["resources"][side].as_object().into_iter().flat_map(Map::iter);
    bounds.filter_map(|(resource, bound)| Some((resource.as_str(), quantity(bound)?)))
}

/// The amounts of a resource of the containers that a set adds, with their names.
fn amounts<'p>(
    pod: &'p Value,
    set: &Additions<'_>,
    lists: &[&str],
    side: &str,
    resource: &str,
) -> impl Iterator<Item = (&'p str, Quantity)> {
    let added = set.init_containers.iter().chain(&set.containers);
    let added: BTreeSet<&str> = added.filter(|it| it.container.is_some()).map(|Addition { name, .. }| *name).collect();
    let containers = lists.iter().filter_map(|list| pod["spec"][list].as_array()).flatten();
    containers.filter_map(move |container| {
        let name = container["name"].as_str().filter(|name| added.contains(name))?;
        Some((name, quantity(&container["resources"][side][resource])?))
    })
}

fn quantity(value: &Value) -> Option<Quantity> {
    match value {
        Value::String(text) => text.parse().ok(),
        Value::Number(number) => number.to_string().parse().ok(),
        _ => None,
    }
}
