//! Which version of a file a new pod is to have: what was asked for its workload, put on the pod before its agent starts.
//!
//! A record of the workload wins over an annotation that the author of the pod wrote: the record is what was asked last,
//! and a template is older than that. Where there is no record, what the author wrote stays.

use std::collections::BTreeMap;

use pillion_agent_api::Wanted;
use pillion_agent_api::names::{ACCOUNT_PREFIX, WANTED};
use pillion_api::{HotUpdateSpec, Template};
use pillion_pod::{Editor, Step};
use serde_json::json;

use crate::workload::{Origins, Workload};

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
