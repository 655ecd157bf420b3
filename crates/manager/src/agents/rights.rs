//! What the agents of a configuration need, and whether this installation gives it.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use pillion_agent_api::names::{CONFIG_LABEL, FENCE, RESULTS};
use pillion_api::Reason;
use serde_json::{Value, json};

use crate::names;

/// Names a configuration cannot have: its copy would be in the way of something else.
const TAKEN: [&str; 4] = [FENCE, RESULTS, names::SWITCH, "kube-root-ca.crt"];

/// A field of objects that agents may write, as the chart's `agent.targets` lists it: `group/version/resource/pointer`, with
/// nothing before the first `/` for the core.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AllowedTarget {
    /// Its group; empty for the core.
    pub group: String,
    /// Its version.
    pub version: String,
    /// The plural.
    pub resource: String,
    /// JSON pointer of the field.
    pub pointer: String,
}

/// What the agents of a configuration need.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Needs {
    /// Labels of their pods they write.
    pub(super) labels: BTreeSet<String>,
    /// Annotations of their pods they write.
    pub(super) annotations: BTreeSet<String>,
    /// Conditions of their pods they write.
    pub(super) conditions: BTreeSet<String>,
    /// What they write to another object.
    pub(super) values: BTreeSet<String>,
    /// The fields they write it to.
    pub(super) targets: BTreeSet<AllowedTarget>,
    /// `ConfigMaps` of their namespace they read.
    pub(super) config_maps: BTreeSet<String>,
}

/// Why a configuration is not given to anybody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) reason: Reason,
    pub(super) message: String,
}

impl Refused {
    pub(super) fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }
}

impl FromStr for AllowedTarget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "{text:?} is no target: write group/version/resource and a JSON pointer, as game.kruise.io/v1alpha1/gameservers/spec/opsState"
            )
        };
        let mut parts = text.splitn(4, '/');
        let mut next = || parts.next().map(str::to_owned).ok_or_else(wrong);
        let (group, version, resource, pointer) = (next()?, next()?, next()?, next()?);
        if [&version, &resource, &pointer].iter().any(|part| part.is_empty()) {
            return Err(wrong());
        }
        Ok(Self { group, version, resource, pointer: format!("/{pointer}") })
    }
}

impl Needs {
    /// The rules of the role they get in their namespace.
    pub(super) fn rules(&self) -> Value {
        let mut rules = vec![json!({"apiGroups": [""], "resources": ["pods/status"], "verbs": ["patch"]})];
        if !self.config_maps.is_empty() {
            rules.push(json!({"apiGroups": [""], "resources": ["configmaps"], "resourceNames": self.config_maps,
                "verbs": ["get", "watch"]}));
        }
        let resources: BTreeSet<_> = self.targets.iter().map(|it| (&it.group, &it.resource)).collect();
        for (group, resource) in resources {
            rules.push(json!({"apiGroups": [group], "resources": [resource], "verbs": ["patch"]}));
        }
        Value::Array(rules)
    }

    /// What the fence is told of them.
    pub(super) fn fence(&self, config: &str) -> BTreeMap<String, String> {
        let lines = |lines: &BTreeSet<String>| lines.iter().map(String::as_str).collect::<Vec<_>>().join("\n");
        let targets = self.targets.iter().map(|it| format!("{}/{}", it.group, it.resource)).collect();
        [
            ("labels", lines(&self.labels)),
            ("annotations", lines(&self.annotations)),
            ("conditions", lines(&self.conditions)),
            ("values", lines(&self.values)),
            ("target", lines(&targets)),
        ]
        .into_iter()
        .map(|(what, lines)| (format!("{config}.{what}"), lines))
        .collect()
    }
}

/// What the agents of a configuration get, if it can be given.
pub(super) fn judge(config: &str, text: Option<&str>, allowed: &[AllowedTarget]) -> Result<Needs, Refused> {
    if TAKEN.contains(&config) {
        let message = format!("a configuration cannot be called {config}");
        return Err(Refused::new(Reason::AgentConfigInvalid, message));
    }
    let Some(text) = text else {
        let message =
            format!("there is no ConfigMap {config} with label {CONFIG_LABEL}=true and a configuration in it");
        return Err(Refused::new(Reason::AgentConfigMissing, message));
    };
    let needs =
        read(text).map_err(|why| Refused::new(Reason::AgentConfigInvalid, format!("configuration {config}: {why}")))?;
    match needs.targets.iter().find(|target| !allowed.contains(target)) {
        None => Ok(needs),
        Some(AllowedTarget { group, version, resource, pointer }) => {
            let what = format!("{resource}.{group} of version {version} at {pointer}");
            let message = format!("configuration {config} writes {what}, which agent.targets does not list");
            Err(Refused::new(Reason::AgentTargetNotAllowed, message))
        }
    }
}

/// The rights that a configuration needs, from its own keys.
fn read(text: &str) -> Result<Needs, String> {
    let read: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let list = |key: &str| -> BTreeSet<String> {
        read[key].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let targets = list("targets").iter().map(|text| text.parse()).collect::<Result<_, String>>()?;
    let (labels, annotations, conditions) = (list("labels"), list("annotations"), list("conditions"));
    Ok(Needs { labels, annotations, conditions, values: list("values"), targets, config_maps: list("configMaps") })
}
