//! What files, or its API server, say of a cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fmt::{Display, Write as _};
use std::path::Path;

use pillion_api::FieldPath;
use pillion_inject::{LimitRange, Namespace, SetIndex, WorkloadPod, pod_of};
use pillion_rollout::history::Revision;
use serde_json::Value;

use super::branch::Revisions;
use crate::installation::{AGENT_IMAGE, Facts};
use crate::manifest::Manifest;
use crate::sidecar_sets::{is_set, judged};
use crate::test::SUITE;

const NAMESPACE: (&str, &str) = ("", "Namespace");
const LIMIT_RANGE: (&str, &str) = ("", "LimitRange");
const REVISION: (&str, &str) = ("apps", "ControllerRevision");

/// Everything that decides what becomes of the workloads.
#[derive(Default)]
pub(crate) struct Given {
    /// What creates pods, each with its file, in the order given.
    pub(crate) workloads: Vec<(String, WorkloadPod)>,
    /// The sets.
    pub(crate) sets: SetIndex,
    /// What a person should know about the files.
    pub(crate) notes: Vec<String>,
    /// What holds for all pods.
    pub(crate) facts: Facts,
    /// Older revisions of the sets.
    pub(crate) revisions: Revisions,
    namespaces: BTreeMap<String, BTreeMap<String, String>>,
    /// Labels of all namespaces, whatever else they have.
    labels: BTreeMap<String, String>,
    limit_ranges: Vec<LimitRange>,
    files_of_sets: BTreeMap<String, String>,
}

/// Why files cannot be used.
pub(crate) enum Trouble {
    /// They are not what was asked for.
    Usage(String),
    /// Sets have errors: a line for each.
    InvalidSets(Vec<String>),
}

/// Which objects of some files are of use.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Workloads, and whatever else there is.
    Anything,
    /// Sets, namespaces and limit ranges.
    Surroundings,
}

impl Given {
    /// Sorts objects by what they are for. Objects that name no namespace are in `namespace`.
    pub(crate) fn sort(sources: &[(&[Manifest], Role)], namespace: &str) -> Result<Self, Trouble> {
        let mut given = Self { facts: Facts::offline(AGENT_IMAGE), ..Self::default() };
        let mut errors = Vec::new();
        for (manifests, role) in sources {
            let mut left_out = BTreeMap::<&str, usize>::new();
            for manifest in *manifests {
                given.take(manifest, *role, namespace, &mut left_out, &mut errors).map_err(Trouble::Usage)?;
            }
            given.notes.extend(left_out_note(&left_out, *role));
        }
        if errors.is_empty() { Ok(given) } else { Err(Trouble::InvalidSets(errors)) }
    }

    /// What a cluster has.
    pub(crate) fn of_cluster(
        sets: SetIndex,
        namespaces: BTreeMap<String, BTreeMap<String, String>>,
        limit_ranges: Vec<LimitRange>,
        facts: Facts,
    ) -> Self {
        Self { sets, facts, namespaces, limit_ranges, ..Self::default() }
    }

    /// Gives every namespace these labels besides its own.
    pub(crate) fn add_labels(&mut self, labels: impl IntoIterator<Item = (String, String)>) {
        self.labels.extend(labels);
    }

    /// A namespace with all labels that are known of it.
    pub(crate) fn namespace(&self, name: &str) -> Namespace {
        let mut labels = self.namespaces.get(name).cloned().unwrap_or_default();
        labels.extend(self.labels.clone());
        Namespace { name: name.to_owned(), labels }
    }

    /// The limit ranges that hold in a namespace: its own, and those that name none.
    pub(crate) fn limit_ranges(&self, namespace: &str) -> impl Iterator<Item = &LimitRange> {
        self.limit_ranges.iter().filter(move |range| range.namespace.as_deref().is_none_or(|own| own == namespace))
    }

    fn take<'m>(
        &mut self,
        manifest: &'m Manifest,
        role: Role,
        namespace: &str,
        left_out: &mut BTreeMap<&'m str, usize>,
        errors: &mut Vec<String>,
    ) -> Result<(), String> {
        let group = manifest.api_version().split_once('/').map_or("", |(group, _)| group);
        let title = format!("{} {}", manifest.kind(), manifest.name());
        let at_fault = |what: &dyn Display| format!("{}: {}: {what}", manifest.file, title.trim_end());
        match (group, manifest.kind()) {
            // A suite may lie beside the sets it tests.
            (_, "") if Path::new(&manifest.file).file_name() == Some(OsStr::new(SUITE)) => {}
            (_, "") => {
                let place = manifest.place(&FieldPath::root());
                return Err(format!("{}:{}:{}: an object without kind", manifest.file, place.line, place.column));
            }
            _ if is_set(manifest) => self.take_set(manifest, errors),
            NAMESPACE => self.take_namespace(manifest).map_err(|what| at_fault(&what))?,
            LIMIT_RANGE => {
                let range = LimitRange::read(&manifest.value).map_err(|what| at_fault(&what))?;
                self.limit_ranges.push(range);
            }
            REVISION => match Revision::read(&manifest.value) {
                Some(revision) => self.revisions.insert(revision),
                // Workloads have such objects, too.
                None => *left_out.entry(manifest.kind()).or_default() += 1,
            },
            (_, kind) if role == Role::Surroundings => *left_out.entry(kind).or_default() += 1,
            (_, kind) => match pod_of(&manifest.value, namespace).map_err(|what| at_fault(&what))? {
                Some(workload) => self.workloads.push((manifest.file.clone(), workload)),
                None => *left_out.entry(kind).or_default() += 1,
            },
        }
        Ok(())
    }

    fn take_set(&mut self, manifest: &Manifest, errors: &mut Vec<String>) {
        let review = judged(manifest);
        for problem in review.errors() {
            let place = manifest.place(&problem.path);
            errors.push(format!("{}:{}:{}: {problem}", manifest.file, place.line, place.column));
        }
        let Some(set) = review.meaning else { return };
        let earlier = self.files_of_sets.insert(set.name.clone(), manifest.file.clone());
        let is_same = self.sets.get(&set.name).is_some_and(|earlier| **earlier == set);
        if let Some(earlier) = earlier.filter(|_| !is_same) {
            let (name, file) = (&set.name, &manifest.file);
            self.notes.push(format!("set {name} is given twice, in {earlier} and {file}: the later counts"));
        }
        self.sets.insert(set);
    }

    fn take_namespace(&mut self, manifest: &Manifest) -> Result<(), String> {
        let mut labels = BTreeMap::new();
        let written = manifest.value.pointer("/metadata/labels").and_then(Value::as_object);
        for (key, value) in written.into_iter().flatten() {
            let value = value.as_str().ok_or_else(|| format!("label {key} is no text: put it in quotes"))?;
            labels.insert(key.clone(), value.to_owned());
        }
        self.namespaces.insert(manifest.name().to_owned(), labels);
        Ok(())
    }

    /// Namespaces of the limit ranges that no workload is in.
    pub(crate) fn unused_limit_ranges(&self) -> Vec<String> {
        let used: BTreeSet<&str> = self.workloads.iter().map(|(_, it)| it.origin.namespace.as_str()).collect();
        let unused = self.limit_ranges.iter().filter_map(|range| {
            let namespace = range.namespace.as_deref().filter(|namespace| !used.contains(namespace))?;
            Some(format!("LimitRange {namespace}/{} concerns no workload that is given", range.name))
        });
        unused.collect()
    }
}

fn left_out_note(left_out: &BTreeMap<&str, usize>, role: Role) -> Option<String> {
    if left_out.is_empty() {
        return None;
    }
    let mut note = match role {
        Role::Anything => "left out, as they create no pods: ".to_owned(),
        Role::Surroundings => "left out of -s, as they are no sets, namespaces or limit ranges: ".to_owned(),
    };
    for (at, (kind, count)) in left_out.iter().enumerate() {
        // Writing to a String cannot fail.
        let _ = write!(note, "{}{count} {kind}", if at == 0 { "" } else { ", " });
    }
    Some(note)
}
