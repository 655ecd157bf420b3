//! What a plan is made from: a set, its pods, and what is known of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use pillion_api::{LabelSelector, Meaning, Selector, Template};
use serde::Deserialize as _;
use serde_json::Value;

use crate::own_writes::OwnWrites;
use crate::pod::Pod;
use crate::sizers::Sizers;

/// One set and its pods, at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Fleet<'a> {
    /// The set.
    pub set: &'a Meaning,
    /// The revisions that are stored, by name; the newest may be missing.
    pub templates: &'a BTreeMap<String, Arc<Template>>,
    /// The pods the set selects that carry it and are alive, each once.
    pub pods: &'a [&'a Pod],
    /// The `PodDisruptionBudget`s of their namespaces.
    pub budgets: &'a [DisruptionBudget],
    /// What events say of pods whose status does not tell why they are not done, by uid. To be forgotten when the pod is
    /// written.
    pub troubles: &'a BTreeMap<Box<str>, String>,
    /// What we have written and the watch has not shown yet.
    pub own_writes: &'a OwnWrites,
    /// What sizes pods beside the set.
    pub sizers: &'a Sizers,
    /// Namespaces in which nothing is ever changed.
    pub left_alone: &'a [&'a str],
    /// The time.
    pub now: Timestamp,
    /// Whether the whole installation is switched off.
    pub is_off: bool,
}

/// A `PodDisruptionBudget`, as far as an update looks at it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DisruptionBudget {
    /// Its namespace.
    pub namespace: Box<str>,
    /// Its name.
    pub name: Box<str>,
    /// The pods; `None` for all of the namespace. One without a selector selects nothing and is left out.
    pub selector: Option<Selector>,
    /// `status.disruptionsAllowed`: how many of them may be disrupted now.
    pub allowed: usize,
}

impl DisruptionBudget {
    /// Reads one; `None` for one that selects nothing.
    pub fn read(object: &Value) -> Option<Self> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().into();
        let selector = LabelSelector::deserialize(object.pointer("/spec/selector")?).ok()?;
        let allowed = object.pointer("/status/disruptionsAllowed").and_then(Value::as_u64).unwrap_or(0);
        Some(Self {
            namespace: text("/metadata/namespace"),
            name: text("/metadata/name"),
            selector: Selector::compile(&selector),
            allowed: usize::try_from(allowed).unwrap_or(usize::MAX),
        })
    }

    /// Whether a pod is one of its.
    pub fn selects(&self, pod: &Pod) -> bool {
        self.namespace == pod.namespace
            && self.selector.as_ref().is_none_or(|selector| selector.matches(|key| pod.label(key)))
    }
}
