//! Whether the resources of a running container can become others.
//!
//! The API server refuses what would change the pod's quality-of-service class or take a request away. The class of the pod
//! depends on containers that are not ours and not known here; it surely stays if each changed container stays in its class.

use std::collections::BTreeMap;

use pillion_quantity::Quantity;
use serde_json::{Map, Value, json};

/// What can be changed while a container runs.
const RESIZABLE: [&str; 2] = ["cpu", "memory"];
const LIMITS: &str = "limits";
const REQUESTS: &str = "requests";

/// What a container adds to the class of its pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Guaranteed,
    Burstable,
    BestEffort,
}

/// What a container gets when its set changes from the old to the new resources: the new ones, and of what the container has
/// all that the set never spoke of.
pub(crate) fn given(has: Option<&Value>, old: Option<&Value>, new: &Value) -> Value {
    let has = has.cloned().unwrap_or_else(|| json!({}));
    let (old, mut new) = (old.cloned().unwrap_or_else(|| json!({})), new.clone());
    let old = filled(old);
    new = filled(new);
    let mut given = has.as_object().cloned().unwrap_or_default();
    for kind in [LIMITS, REQUESTS] {
        let foreign = amounts(&has, kind).filter(|(key, _)| old[kind].get(*key).is_none());
        let mut merged: Map<String, Value> = foreign.map(|(key, value)| (key.clone(), value.clone())).collect();
        merged.extend(amounts(&new, kind).map(|(key, value)| (key.clone(), value.clone())));
        given.remove(kind);
        if !merged.is_empty() {
            given.insert(kind.to_owned(), merged.into());
        }
    }
    given.into()
}

/// Whether a container has these resources already, however they are spelt.
pub(crate) fn are_equal(has: Option<&Value>, wanted: &Value) -> bool {
    let has = has.cloned().unwrap_or_else(|| json!({}));
    [LIMITS, REQUESTS].iter().all(|kind| quantities(&has, kind) == quantities(wanted, kind))
}

/// Why a running container cannot get these resources instead of those it has.
pub(crate) fn cannot_become(has: Option<&Value>, wanted: &Value) -> Option<String> {
    let has = has.cloned().unwrap_or_else(|| json!({}));
    for kind in [LIMITS, REQUESTS] {
        let (before, Some(after)) = (quantities(&has, kind).unwrap_or_default(), quantities(wanted, kind)) else {
            return Some(format!("{kind} cannot be read"));
        };
        if let Some(gone) = before.keys().find(|key| !after.contains_key(*key)) {
            return Some(format!("{gone} would be taken from {kind}"));
        }
        let other =
            after.iter().find(|(key, amount)| !RESIZABLE.contains(&key.as_str()) && before.get(*key) != Some(amount));
        if let Some((key, _)) = other {
            return Some(format!("{key} cannot be changed while it runs"));
        }
    }
    (class(&has) != class(wanted)).then(|| "the quality-of-service class of the pod may change".to_owned())
}

/// What the API server makes of resources: a limit without a request is both.
fn filled(mut resources: Value) -> Value {
    let limits: Vec<(String, Value)> =
        amounts(&resources, LIMITS).map(|(key, value)| (key.clone(), value.clone())).collect();
    if let Some(fields) = resources.as_object_mut().filter(|_| !limits.is_empty()) {
        let requests = fields.entry(REQUESTS).or_insert_with(|| json!({}));
        for (key, value) in limits {
            if let Some(requests) = requests.as_object_mut() {
                requests.entry(key).or_insert(value);
            }
        }
    }
    resources
}

fn amounts<'a>(resources: &'a Value, kind: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    resources.get(kind).and_then(Value::as_object).into_iter().flatten()
}

/// `None` where one cannot be read.
fn quantities(resources: &Value, kind: &str) -> Option<BTreeMap<String, Quantity>> {
    let read = |value: &Value| match value {
        Value::String(text) => text.parse().ok(),
        Value::Number(number) => number.to_string().parse().ok(),
        _ => None,
    };
    amounts(resources, kind).map(|(key, value)| Some((key.clone(), read(value)?))).collect()
}

fn class(resources: &Value) -> Option<Class> {
    let (limits, requests) = (quantities(resources, LIMITS)?, quantities(resources, REQUESTS)?);
    let asks = |of: &BTreeMap<String, Quantity>| RESIZABLE.iter().any(|key| of.contains_key(*key));
    let is_fixed =
        |key: &&str| limits.get(*key).is_some_and(|limit| requests.get(*key).is_none_or(|request| request == limit));
    Some(if !asks(&limits) && !asks(&requests) {
        Class::BestEffort
    } else if RESIZABLE.iter().all(is_fixed) {
        Class::Guaranteed
    } else {
        Class::Burstable
    })
}
