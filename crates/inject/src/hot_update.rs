//! Which version of a file a new pod is to have: what was asked for its workload, put on the pod before its agent starts.
//!
//! A record of the workload wins over an annotation that the author of the pod wrote: the record is what was asked last,
//! and a template is older than that. Where there is no record, what the author wrote stays.

use std::collections::BTreeMap;

use pillion_agent_api::Wanted;
use pillion_agent_api::names::{ACCOUNT_PREFIX, WANTED};
use pillion_api::{HotUpdateSpec, Template};
use serde_json::{Value, json};

use crate::patch::{Editor, Step};

/// Label of the pods of a Deployment, which ends the name of their `ReplicaSet`.
const TEMPLATE_HASH: &str = "pod-template-hash";
/// Label of the pods of a `GameServerSet`, which are owned by a workload that it makes.
const GAME_SERVER_SET: &str = "game.kruise.io/owner-gss";

/// What was asked for workloads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HotUpdates(BTreeMap<Asked, (Age, String)>);

/// A workload that something was asked for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Asked {
    namespace: String,
    workload: Workload,
}

/// Orders the records of one workload: the one created last holds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Age {
    created: i64,
    name: String,
}

/// A workload, of whichever version of its group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Workload {
    group: String,
    kind: String,
    name: String,
}

/// What is read of a pod to find its workload.
#[derive(Clone, Copy, Debug)]
pub struct Origins<'a> {
    /// `apiVersion`, kind and name of its controlling owner.
    pub owner: Option<(&'a str, &'a str, &'a str)>,
    /// Its label `pod-template-hash`.
    pub template_hash: Option<&'a str>,
    /// Its label `game.kruise.io/owner-gss`.
    pub game_server_set: Option<&'a str>,
}

impl HotUpdates {
    /// Takes in a record. Where two name the same workload, the one that was created last holds; of two of the same
    /// second, the one that comes last by name.
    pub fn insert(&mut self, namespace: &str, name: &str, created: i64, spec: &HotUpdateSpec) {
        let asked = Asked { namespace: namespace.to_owned(), workload: Workload::of_record(spec) };
        let age = Age { created, name: name.to_owned() };
        if self.0.get(&asked).is_none_or(|(other, _)| *other < age) {
            self.0.insert(asked, (age, wanted(spec)));
        }
    }

    /// Whether this record is the one that holds for its workload.
    pub fn holds(&self, namespace: &str, name: &str, spec: &HotUpdateSpec) -> bool {
        let asked = Asked { namespace: namespace.to_owned(), workload: Workload::of_record(spec) };
        self.0.get(&asked).is_some_and(|(age, _)| age.name == name)
    }

    /// What pods of these origins are to have, as the annotation says it.
    pub fn wanted(&self, namespace: &str, origins: Origins<'_>) -> Option<&str> {
        let asked = |workload| Asked { namespace: namespace.to_owned(), workload };
        let found = origins.workloads().into_iter().find_map(|workload| self.0.get(&asked(workload)));
        found.map(|(_, wanted)| wanted.as_str())
    }
}

impl Workload {
    /// The workload of a record.
    pub fn of_record(spec: &HotUpdateSpec) -> Self {
        Self::new(spec.workload.group(), &spec.workload.kind, &spec.workload.name)
    }

    fn new(group: &str, kind: &str, name: &str) -> Self {
        Self { group: group.to_owned(), kind: kind.to_owned(), name: name.to_owned() }
    }
}

impl<'a> Origins<'a> {
    /// What a pod says of itself.
    pub fn of_pod(pod: &'a Value) -> Self {
        let metadata = &pod["metadata"];
        let owners = metadata["ownerReferences"].as_array().into_iter().flatten();
        let owner = owners.into_iter().find(|owner| owner["controller"] == true);
        let owner = owner
            .and_then(|owner| Some((owner["apiVersion"].as_str()?, owner["kind"].as_str()?, owner["name"].as_str()?)));
        let label = |key: &str| metadata["labels"][key].as_str();
        Self { owner, template_hash: label(TEMPLATE_HASH), game_server_set: label(GAME_SERVER_SET) }
    }

    /// The same, from its labels and its controlling owner.
    pub fn new(owner: Option<(&'a str, &'a str, &'a str)>, label: impl Fn(&str) -> Option<&'a str>) -> Self {
        Self { owner, template_hash: label(TEMPLATE_HASH), game_server_set: label(GAME_SERVER_SET) }
    }

    /// The workloads a pod belongs to, the nearest first.
    pub fn workloads(self) -> Vec<Workload> {
        let mut found = Vec::new();
        if let Some((api_version, kind, name)) = self.owner {
            let group = api_version.split_once('/').map_or("", |(group, _)| group);
            found.push(Workload::new(group, kind, name));
            let hash = self.template_hash.filter(|_| (group, kind) == ("apps", "ReplicaSet"));
            let deployment = hash.and_then(|hash| name.strip_suffix(hash)?.strip_suffix('-'));
            found.extend(deployment.map(|name| Workload::new("apps", "Deployment", name)));
        }
        found.extend(self.game_server_set.map(|name| Workload::new("game.kruise.io", "GameServerSet", name)));
        found
    }
}

/// What a record asks for, as the annotation of a pod says it.
pub fn wanted(spec: &HotUpdateSpec) -> String {
    let HotUpdateSpec { version, url, sha256, .. } = spec;
    json!(Wanted { version: version.clone(), url: url.clone(), sha256: Some(sha256.clone()) }).to_string()
}

/// The configuration of the agent that a template adds, if it adds one.
pub fn agent_config(template: &Template) -> Option<&str> {
    let account = template.service_account_name.as_deref()?;
    account.strip_prefix(ACCOUNT_PREFIX).filter(|config| !config.is_empty())
}

/// Says on a pod with an agent what was asked for its workload.
pub(crate) fn ask(editor: &mut Editor, wanted: &str) {
    editor.set(&[Step::Key("metadata"), Step::Key("annotations")], WANTED, json!(wanted));
}
