//! What a pod asks of a node as a whole: its requests as the scheduler counts them, and its quality-of-service class.
//!
//! These are Kubernetes' rules and know nothing of sets. Defaults that the API server has not filled in yet are not seen.

use std::collections::BTreeMap;
use std::fmt;

use pillion_quantity::Quantity;
use serde_json::Value;

use crate::read::{Unreadable, list, object};

/// By the name of the resource.
type Amounts = BTreeMap<String, Quantity>;

/// Which pods a node ends first when memory is short: [`Self::BestEffort`] before [`Self::Burstable`] before the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QosClass {
    /// Every container has limits for cpu and memory, and requests that are equal.
    Guaranteed,
    /// Something is asked for, but not that.
    Burstable,
    /// No container asks for cpu or memory.
    BestEffort,
}

impl fmt::Display for QosClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Guaranteed => "Guaranteed",
            Self::Burstable => "Burstable",
            Self::BestEffort => "BestEffort",
        })
    }
}

/// The requests of all containers of a pod together.
///
/// Containers and native sidecars run together, so theirs add up. A plain init container runs alone with the native
/// sidecars before it; the largest such moment counts where it is above the rest.
pub fn container_requests(pod: &Value) -> Result<BTreeMap<String, Quantity>, Unreadable> {
    let mut total = Amounts::new();
    for container in containers(pod, "containers")? {
        add(&mut total, &container.amounts("requests")?)?;
    }
    let (mut native, mut starting) = (Amounts::new(), Amounts::new());
    for container in containers(pod, "initContainers")? {
        let requests = container.amounts("requests")?;
        let mut moment = native.clone();
        add(&mut moment, &requests)?;
        if container.is_native_sidecar() {
            add(&mut total, &requests)?;
            native.clone_from(&moment);
        }
        raise(&mut starting, &moment);
    }
    raise(&mut total, &starting);
    Ok(total)
}

/// The amounts that a node must have free for a pod: the requests of its containers, or its own where it has them, and its overhead.
pub fn effective_requests(pod: &Value) -> Result<BTreeMap<String, Quantity>, Unreadable> {
    let mut total = container_requests(pod)?;
    let place = "spec.resources.requests";
    for (resource, amount) in amounts(pod.pointer("/spec/resources/requests"), place)? {
        if is_pod_level(&resource) {
            total.insert(resource, amount);
        }
    }
    add(&mut total, &amounts(pod.pointer("/spec/overhead"), "spec.overhead")?)?;
    Ok(total)
}

/// The class the API server writes into the pod's status.
pub fn qos_class(pod: &Value) -> Result<QosClass, Unreadable> {
    let (mut requests, mut limits) = (Amounts::new(), Amounts::new());
    let mut all_limited = true;
    let pod_level = pod.pointer("/spec/resources").filter(|resources| !resources.is_null());
    if let Some(resources) = pod_level {
        add(&mut requests, &counted(amounts(resources.get("requests"), "spec.resources.requests")?))?;
        let own = counted(amounts(resources.get("limits"), "spec.resources.limits")?);
        all_limited = own.len() == 2;
        add(&mut limits, &own)?;
    } else {
        for container in containers(pod, "containers")?.into_iter().chain(containers(pod, "initContainers")?) {
            add(&mut requests, &counted(container.amounts("requests")?))?;
            let own = counted(container.amounts("limits")?);
            all_limited &= own.len() == 2;
            add(&mut limits, &own)?;
        }
    }
    Ok(match (requests.is_empty() && limits.is_empty(), all_limited && requests == limits) {
        (true, _) => QosClass::BestEffort,
        (_, true) => QosClass::Guaranteed,
        (_, false) => QosClass::Burstable,
    })
}

/// Only cpu and memory above zero count for the class.
fn counted(mut amounts: Amounts) -> Amounts {
    amounts.retain(|resource, amount| ["cpu", "memory"].contains(&resource.as_str()) && *amount > Quantity::ZERO);
    amounts
}

fn is_pod_level(resource: &str) -> bool {
    resource == "cpu" || resource == "memory" || resource.starts_with("hugepages-")
}

struct Container<'a> {
    path: String,
    json: &'a Value,
}

impl Container<'_> {
    fn is_native_sidecar(&self) -> bool {
        self.json.get("restartPolicy").and_then(Value::as_str) == Some("Always")
    }

    fn amounts(&self, side: &str) -> Result<Amounts, Unreadable> {
        let list = self.json.get("resources").and_then(|resources| resources.get(side));
        amounts(list, &format!("{}.resources.{side}", self.path))
    }
}

fn containers<'a>(pod: &'a Value, field: &str) -> Result<Vec<Container<'a>>, Unreadable> {
    let place = format!("spec.{field}");
    let items = list(pod.get("spec").and_then(|spec| spec.get(field)), &place)?.iter().enumerate();
    let path = |at: usize, json: &Value| match json.get("name").and_then(Value::as_str) {
        Some(name) => format!("{place}[{name}]"),
        None => format!("{place}[{at}]"),
    };
    Ok(items.map(|(at, json)| Container { path: path(at, json), json }).collect())
}

fn amounts(written: Option<&Value>, place: &str) -> Result<Amounts, Unreadable> {
    let mut found = Amounts::new();
    for (resource, amount) in object(written, place)?.into_iter().flatten() {
        let written = amount.as_str().map_or_else(|| amount.to_string(), str::to_owned);
        let unreadable = |error: &dyn fmt::Display| Unreadable(format!("{place}[{resource}] is {written:?}: {error}"));
        found.insert(resource.clone(), written.parse().map_err(|error| unreadable(&error))?);
    }
    Ok(found)
}

fn add(total: &mut Amounts, more: &Amounts) -> Result<(), Unreadable> {
    for (resource, amount) in more {
        let sum = total.entry(resource.clone()).or_insert_with(|| Quantity::ZERO.with_format(amount.format()));
        *sum = sum.checked_add(*amount).ok_or_else(|| Unreadable(format!("the sum of {resource} is too large")))?;
    }
    Ok(())
}

fn raise(total: &mut Amounts, least: &Amounts) {
    for (resource, amount) in least {
        let most = total.entry(resource.clone()).or_insert(*amount);
        *most = (*most).max(*amount);
    }
}

#[cfg(test)]
mod tests;
