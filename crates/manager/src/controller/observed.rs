//! Since when pods of a selector are expected to carry the sidecars.
//!
//! The time is kept in the status, beside a hash of what was observed. A set that only observed so far, and injects from
//! now on, expects nothing of older pods; so the hash says also whether pods are changed.

use std::fmt::Write as _;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use pillion_api::{Condition, Meaning, Namespaces, Selector, SidecarSetStatus};
use sha2::{Digest as _, Sha256};

/// What is expected of pods, and since when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Observed {
    pub(super) hash: String,
    pub(super) since: Timestamp,
}

impl Observed {
    /// The same as before while what is expected is the same; from now on where it is not.
    pub(super) fn next(
        hash: String,
        remembered: Option<&Self>,
        stored: Option<&SidecarSetStatus>,
        now: Timestamp,
    ) -> Self {
        if let Some(remembered) = remembered.filter(|it| it.hash == hash) {
            return remembered.clone();
        }
        let stored = stored.filter(|status| status.selector_hash.as_deref() == Some(&hash));
        let since = stored.and_then(|status| status.selector_observed_time.as_ref()).map_or(now, |Time(since)| *since);
        Self { hash, since }
    }
}

/// A hash of what a set expects: of which pods, of which namespaces, and whether anything at all. It never changes with
/// the version of the product: every pod would predate its set.
pub(super) fn hash(set: &Meaning, observes: bool) -> String {
    let namespaces = match &set.namespaces {
        Namespaces::All => "all".to_owned(),
        Namespaces::Named(name) => format!("named\n{name}"),
        Namespaces::Selected(selector) => format!("selected\n{}", canonical(selector)),
    };
    let text = format!("1\n{}\n{namespaces}\n{observes}\n", canonical(&set.selector));
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().take(8).fold(String::new(), |mut hash, byte| {
        // Writing to a String cannot fail.
        let _ = write!(hash, "{byte:02x}");
        hash
    })
}

/// Requirements in an order of their own, as nobody means anything by theirs. Keys and values have no white space.
fn canonical(selector: &Selector) -> String {
    let requirement = |requirement: &pillion_api::Requirement| {
        let (word, values) = match &requirement.condition {
            Condition::In(values) => ("In", Some(values)),
            Condition::NotIn(values) => ("NotIn", Some(values)),
            Condition::Exists => ("Exists", None),
            Condition::DoesNotExist => ("DoesNotExist", None),
        };
        let values = values.into_iter().flatten().map(|value| format!(" {value:?}"));
        format!("{} {word}{}", requirement.key, values.collect::<String>())
    };
    let mut lines: Vec<String> = selector.requirements().iter().map(requirement).collect();
    lines.sort();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn set(selector: &Value, rest: &Value) -> Meaning {
        let mut spec = json!({"selector": selector, "containers": [{"name": "proxy", "image": "proxy:1"}]});
        spec.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        pillion_api::review(&json!({"metadata": {"name": "mesh"}, "spec": spec})).meaning.unwrap()
    }

    fn web() -> Value {
        json!({"matchLabels": {"app": "web"}})
    }

    #[test]
    fn the_hash_is_of_what_is_expected_and_of_nothing_else() {
        let plain = hash(&set(&web(), &json!({})), false);
        // Whoever changes this makes every pod of every cluster predate its set.
        assert_eq!(plain, "73704d1d8b9a8f46");
        let same = [
            set(&web(), &json!({"failurePolicy": "Ignore", "labels": {"a": "b"}, "injectStrategy": {"paused": true}})),
            set(&json!({"matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]}), &json!({})),
        ];
        for other in &same {
            assert_eq!(hash(other, false), plain);
        }
        let two = |first: Value, second: Value| set(&json!({"matchExpressions": [first, second]}), &json!({}));
        let (a, b) = (json!({"key": "a", "operator": "Exists"}), json!({"key": "b", "operator": "DoesNotExist"}));
        assert_eq!(hash(&two(a.clone(), b.clone()), false), hash(&two(b, a), false));
        let others = [
            hash(&set(&web(), &json!({})), true),
            hash(&set(&json!({"matchLabels": {"app": "api"}}), &json!({})), false),
            hash(
                &set(
                    &json!({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}),
                    &json!({}),
                ),
                false,
            ),
            hash(&set(&web(), &json!({"namespace": "shop"})), false),
            hash(&set(&web(), &json!({"namespaceSelector": {"matchLabels": {"app": "web"}}})), false),
        ];
        let distinct: std::collections::BTreeSet<&String> = others.iter().chain([&plain]).collect();
        assert_eq!(distinct.len(), others.len() + 1);
    }

    #[test]
    fn the_time_stays_while_the_hash_does() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let observed = |hash: &str, second| Observed { hash: hash.to_owned(), since: at(second) };
        let stored = |hash: &str, second| SidecarSetStatus {
            selector_hash: Some(hash.to_owned()),
            selector_observed_time: Some(Time(at(second))),
            ..SidecarSetStatus::default()
        };
        let next = |remembered: Option<Observed>, stored: Option<SidecarSetStatus>| {
            Observed::next("h".to_owned(), remembered.as_ref(), stored.as_ref(), at(9))
        };
        assert_eq!(next(None, None), observed("h", 9));
        assert_eq!(next(None, Some(stored("h", 3))), observed("h", 3));
        assert_eq!(next(None, Some(stored("other", 3))), observed("h", 9));
        // The status may not be written yet.
        assert_eq!(next(Some(observed("h", 5)), Some(stored("other", 3))), observed("h", 5));
        assert_eq!(next(Some(observed("other", 5)), Some(stored("h", 3))), observed("h", 3));
        assert_eq!(next(Some(observed("other", 5)), None), observed("h", 9));
    }
}
