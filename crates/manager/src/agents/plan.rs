//! Which objects namespaces are to have so that the agents in their pods can work: everything follows from the sets there
//! are and from the central configurations, and nothing from what a namespace holds.

use std::collections::{BTreeMap, BTreeSet};

use pillion_agent_api::Rights;
use pillion_agent_api::names::{ACCOUNT_PREFIX, CONFIG_KEY, CONFIG_LABEL, POLICY_PARAMS};
use pillion_api::names::NEVER_REVIEWED;
use serde_json::{Value, json};

use super::rights::{AllowedTarget, Refused, judge};

/// All there is that a plan is made from.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// Where the central configurations are.
    pub(super) own_namespace: String,
    /// What agents may write besides their pods.
    pub(super) targets: Vec<AllowedTarget>,
    /// The sets that add agents.
    pub(super) sets: Vec<AgentSet>,
    /// The central configurations, by name; `None` where one has no text.
    pub(super) configs: BTreeMap<String, Option<String>>,
    /// What is there of ours, copies of configurations too.
    pub(super) objects: BTreeMap<Place, Stored>,
    /// The stored data of the `ConfigMap` with the parameters of the policies on agents; `None` if it is missing.
    pub(super) policy_params: Option<BTreeMap<String, String>>,
}

/// A set that adds agents to pods.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct AgentSet {
    pub(super) name: String,
    /// The configurations of its agents: that of the set as it stands, and those of revisions it has.
    pub(super) configs: BTreeSet<String>,
    /// The namespaces it means.
    pub(super) namespaces: BTreeSet<String>,
}

/// The kinds of objects a namespace gets, in the order they are removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Binding,
    Role,
    Account,
    ConfigMap,
}

/// Where an object is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) kind: Kind,
    pub(super) namespace: String,
    pub(super) name: String,
}

/// An object as it is stored, as far as it is ours to write.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Stored {
    pub(super) uid: String,
    /// The fields that [`Write::Apply`] has.
    pub(super) body: Value,
}

/// One write.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Write {
    /// Gives an object these fields, whoever wrote them before.
    Apply {
        place: Place,
        labels: Value,
        body: Value,
        /// Keys of its data that somebody else added.
        extra: Vec<String>,
    },
    /// Removes this very object.
    Delete { place: Place, uid: String },
}

/// What is to be done, and what cannot be.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Plan {
    pub(super) writes: Vec<Write>,
    /// Why configurations of sets are given to nobody, by set.
    pub(super) refused: Vec<(String, Refused)>,
}

/// The labels of all that is made.
fn labels() -> Value {
    json!({CONFIG_LABEL: "true", "app.kubernetes.io/part-of": "pillion"})
}

/// What is to be done. A configuration that cannot be given changes nothing: what was given before stays.
pub(super) fn plan(seen: &Seen) -> Plan {
    let mut plan = Plan::default();
    let mut given: BTreeMap<&str, Rights> = BTreeMap::new();
    let mut refused: BTreeMap<&str, Refused> = BTreeMap::new();
    for config in seen.sets.iter().flat_map(|set| &set.configs) {
        let text = seen.configs.get(config).and_then(Option::as_deref);
        match judge(config, text, &seen.targets) {
            Ok(rights) => drop(given.insert(config, rights)),
            Err(why) => drop(refused.insert(config, why)),
        }
    }
    for set in &seen.sets {
        let of_set = set.configs.iter().filter_map(|config| refused.get(config.as_str()));
        plan.refused.extend(of_set.map(|why| (set.name.clone(), why.clone())));
    }
    plan.writes.extend(write_policy_params(seen, &given, &refused));
    let mut needed: BTreeSet<Place> = BTreeSet::new();
    for (config, namespace) in matched(seen) {
        let places = places(config, namespace);
        if let Some(rights) = given.get(config) {
            let text = seen.configs.get(config).cloned().flatten().unwrap_or_default();
            for place in &places {
                plan.writes.extend(apply(seen, place, body(place, &text, rights)));
            }
        }
        needed.extend(places);
    }
    let left = seen.objects.keys().filter(|place| !needed.contains(place) && is_ours(place, &seen.own_namespace));
    plan.writes.extend(left.map(|place| Write::Delete { place: place.clone(), uid: seen.objects[place].uid.clone() }));
    plan
}

/// Anybody can write our label on something.
fn is_ours(place: &Place, own_namespace: &str) -> bool {
    let is_there = place.namespace != own_namespace && place.namespace != NEVER_REVIEWED;
    is_there && (place.kind == Kind::ConfigMap || place.name.starts_with(ACCOUNT_PREFIX))
}

/// Every configuration with every namespace that a set of it means.
fn matched(seen: &Seen) -> BTreeSet<(&str, &str)> {
    let configs = seen.sets.iter().flat_map(|set| set.configs.iter().map(move |config| (set, config)));
    configs.flat_map(|(set, config)| set.namespaces.iter().map(move |it| (config.as_str(), it.as_str()))).collect()
}

/// In the order they are made.
fn places(config: &str, namespace: &str) -> [Place; 4] {
    let account = format!("{ACCOUNT_PREFIX}{config}");
    let place = |kind, name: &str| Place { kind, namespace: namespace.to_owned(), name: name.to_owned() };
    [
        place(Kind::ConfigMap, config),
        place(Kind::Account, &account),
        place(Kind::Role, &account),
        place(Kind::Binding, &account),
    ]
}

fn body(place: &Place, text: &str, rights: &Rights) -> Value {
    let Place { kind, namespace, name } = place;
    match kind {
        Kind::ConfigMap => json!({"data": {CONFIG_KEY: text}}),
        Kind::Account => json!({"automountServiceAccountToken": false}),
        Kind::Role => json!({"rules": rights.role_rules()}),
        Kind::Binding => json!({
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
        }),
    }
}

/// Nothing, where it is so already.
fn apply(seen: &Seen, place: &Place, body: Value) -> Option<Write> {
    let stored = seen.objects.get(place).map(|stored| &stored.body);
    if stored == Some(&body) {
        return None;
    }
    let extra = stored.map(|stored| extra(stored, &body)).unwrap_or_default();
    Some(Write::Apply { place: place.clone(), labels: labels(), body, extra })
}

/// Keys of data that are not wanted. Whoever applies owns only what he wrote, and would leave those of others.
pub(super) fn extra(stored: &Value, wanted: &Value) -> Vec<String> {
    let keys = stored["data"].as_object().into_iter().flatten().map(|(key, _)| key);
    keys.filter(|key| wanted["data"].get(key.as_str()).is_none()).cloned().collect()
}

/// Returns the write that brings the parameters of the policies on agents up to date. A configuration that is refused keeps
/// its stored parameters. A missing `ConfigMap` is created even if it is empty: without it the policies check no keys.
fn write_policy_params(
    seen: &Seen,
    given: &BTreeMap<&str, Rights>,
    refused: &BTreeMap<&str, Refused>,
) -> Option<Write> {
    let before = seen.policy_params.clone().unwrap_or_default();
    let config = |key: &str| key.rsplit_once('.').map(|(config, _)| config.to_owned()).unwrap_or_default();
    let mut data: BTreeMap<String, String> = before
        .iter()
        .filter(|(key, _)| refused.contains_key(&*config(key)))
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect();
    data.extend(given.iter().flat_map(|(config, rights)| rights.policy_params(config)));
    if seen.policy_params.as_ref() == Some(&data) {
        return None;
    }
    let place = Place { kind: Kind::ConfigMap, namespace: seen.own_namespace.clone(), name: POLICY_PARAMS.to_owned() };
    let body = json!({"data": data});
    let extra = extra(&json!({"data": before}), &body);
    Some(Write::Apply { place, labels: json!({"app.kubernetes.io/part-of": "pillion"}), body, extra })
}

#[cfg(test)]
mod tests;
