//! What is to be written so that the pod shows what is wanted. Nothing, where it does.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::shown::Shown;
use super::{Content, Place, Wanted};
use crate::timestamp::Timestamp;

/// How old the time of a condition may become while nothing changes; those who read it take an older one for dead.
pub(crate) const HEARTBEAT: Duration = Duration::from_mins(10);

/// What differs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Difference {
    /// What these places are to hold.
    pub(crate) changes: BTreeMap<Place, Option<Content>>,
    /// Conditions that hold it already, and only need a new time.
    pub(crate) heartbeats: BTreeMap<Place, Option<Content>>,
    /// Conditions that are wanted and are not ours to write, with whose they are.
    pub(crate) foreign: BTreeMap<String, String>,
}

impl Difference {
    /// Compares. `claimed` are conditions that this agent has written: once written, they are defended.
    pub(crate) fn of(wanted: &Wanted, shown: &Shown, claimed: &BTreeSet<String>, now: Timestamp) -> Self {
        let mut difference = Self::default();
        let mut is_heartbeat_due = false;
        for (place, content) in wanted {
            if let Place::Condition(kind) = place
                && !claimed.contains(kind)
                && let Some(owner) = shown.foreign_owner(kind)
            {
                if content.is_some() {
                    difference.foreign.insert(kind.clone(), owner.to_owned());
                }
                continue;
            }
            if !shown.holds(place, content.as_ref()) {
                difference.changes.insert(place.clone(), content.clone());
            } else if let (Place::Condition(kind), Some(_)) = (place, content) {
                let probed = shown.condition(kind).and_then(|condition| condition.last_probe_time.as_deref());
                is_heartbeat_due |=
                    probed.and_then(Timestamp::parse).is_none_or(|probed| probed.age_at(now) >= HEARTBEAT);
                difference.heartbeats.insert(place.clone(), content.clone());
            }
        }
        // All of them with the first that is due: one write for many conditions.
        if !is_heartbeat_due {
            difference.heartbeats.clear();
        }
        difference
    }
}

/// The strategic merge patch of `pods/status` that brings these contents into their places.
pub(crate) fn patch_of<'a>(
    places: impl IntoIterator<Item = (&'a Place, &'a Option<Content>)>,
    shown: &Shown,
    now: Timestamp,
) -> Value {
    let (mut labels, mut annotations, mut conditions) = (Map::new(), Map::new(), Vec::new());
    for (place, content) in places {
        match (place, content) {
            (Place::Label(key), Some(Content::Text(text))) => drop(labels.insert(key.clone(), json!(text))),
            (Place::Label(key), _) => drop(labels.insert(key.clone(), Value::Null)),
            (Place::Annotation(key), Some(Content::Text(text))) => drop(annotations.insert(key.clone(), json!(text))),
            (Place::Annotation(key), _) => drop(annotations.insert(key.clone(), Value::Null)),
            (Place::Condition(kind), Some(Content::Condition(condition))) => {
                let mut entry = json!({
                    "type": kind,
                    "status": condition.status.as_str(),
                    "reason": condition.reason,
                    "message": condition.message,
                    "lastProbeTime": now.to_string(),
                });
                let before = shown.condition(kind);
                let has_stayed = before.is_some_and(|before| {
                    before.status == condition.status.as_str() && before.last_transition_time.is_some()
                });
                if !has_stayed {
                    entry["lastTransitionTime"] = json!(now.to_string());
                }
                conditions.push(entry);
            }
            (Place::Condition(kind), _) => conditions.push(json!({"$patch": "delete", "type": kind})),
        }
    }
    let mut metadata = Map::new();
    for (key, map) in [("labels", labels), ("annotations", annotations)] {
        if !map.is_empty() {
            metadata.insert(key.to_owned(), Value::Object(map));
        }
    }
    let mut patch = Map::new();
    if !metadata.is_empty() {
        patch.insert("metadata".to_owned(), Value::Object(metadata));
    }
    if !conditions.is_empty() {
        patch.insert("status".to_owned(), json!({"conditions": conditions}));
    }
    Value::Object(patch)
}

#[cfg(test)]
mod tests;
