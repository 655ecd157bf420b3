//! What would become of a pod: the functions of the webhook on what the API server would show it.
//!
//! - [`Given`]: what is known of a cluster: workloads, sets, namespaces, limit ranges.
//! - [`Subject`]: a pod as the webhook would see it.
//! - [`Preview`]: what each set decides about it, and what follows.

use pillion_api::{Meaning, RevisionReference};
use pillion_inject::{
    Candidate, Decision, Filled, LimitRange, Mismatch, Namespace, Origin, Outcome, PodHead, Verdict, WorkloadPod,
    fill_in, inject, mismatch,
};
use pillion_pod::Unreadable;
use serde_json::Value;

mod branch;
mod effect;
mod given;
mod json;
mod why;

pub(crate) use branch::Branch;
pub(crate) use effect::Effect;
pub(crate) use given::{Given, Role, Trouble};
pub(crate) use json::json;
pub(crate) use json::size as json_of_size;
pub(crate) use why::{computed, explained, filled_in, table, why};

/// A pod before any set is asked, as the API server would send it.
pub(crate) struct Subject<'g> {
    pub(crate) file: &'g str,
    pub(crate) workload: &'g WorkloadPod,
    pub(crate) namespace: Namespace,
    pub(crate) pod: Value,
    /// What the API server has filled in.
    pub(crate) filled: Vec<Filled>,
    given: &'g Given,
    limit_ranges: Vec<&'g LimitRange>,
}

/// What each set says of a pod.
pub(crate) struct Preview<'a> {
    pub(crate) subject: &'a Subject<'a>,
    /// Which of the pods it is that may come of the workload, in words; empty where there is one.
    pub(crate) branch: String,
    pub(crate) decision: Decision<'a>,
    /// The sets that do not match, in the order of their names.
    pub(crate) mismatches: Vec<(&'a Meaning, Mismatch)>,
    /// What the API server fills in in what was added.
    pub(crate) filled_after: Vec<Filled>,
    /// What changes for the node; `None` where the pod is refused.
    pub(crate) effect: Option<Result<Effect, Unreadable>>,
}

/// One set and its verdict.
pub(crate) enum Said<'p, 'a> {
    /// It matched.
    Verdict(&'p Verdict<'a>),
    /// It did not.
    Mismatch(&'p Mismatch),
}

impl<'g> Subject<'g> {
    pub(crate) fn new(given: &'g Given, file: &'g str, workload: &'g WorkloadPod) -> Self {
        let namespace = given.namespace(&workload.origin.namespace);
        let limit_ranges = given.limit_ranges(&namespace.name).collect::<Vec<_>>();
        let mut pod = workload.pod.clone();
        let filled = fill_in(&mut pod, &namespace.name, &limit_ranges);
        Self { file, workload, namespace, pod, filled, given, limit_ranges }
    }

    pub(crate) fn origin(&self) -> &'g Origin {
        &self.workload.origin
    }

    /// `Deployment shop/checkout`
    pub(crate) fn title(&self) -> String {
        let Origin { kind, namespace, name } = self.origin();
        format!("{kind} {namespace}/{name}")
    }

    /// The pods that may come of it: with the pinned revisions first, where a set keeps a proportion. The error is for
    /// pods whose labels no API server would take.
    pub(crate) fn previews(&'g self) -> Result<Vec<Preview<'g>>, String> {
        let preview = self.preview()?;
        if preview.branch.is_empty() {
            return Ok(vec![preview]);
        }
        Ok(vec![preview, self.preview_of(Branch::Newest)?])
    }

    /// Asks every set, as the webhook would where nothing is counted: what would be, is pinned.
    pub(crate) fn preview(&'g self) -> Result<Preview<'g>, String> {
        self.preview_of(Branch::Pinned)
    }

    /// Asks every set about this revision.
    pub(crate) fn preview_of(&'g self, branch: Branch<'_>) -> Result<Preview<'g>, String> {
        let bytes = serde_json::to_vec(&self.pod).expect("JSON can be written");
        let head = PodHead::parse(&bytes).map_err(|error| {
            let told = error.to_string();
            let what = told.split_once(" at line ").map_or(told.as_str(), |(what, _)| what);
            format!("{}: {}: the labels cannot be read: {what}", self.file, self.title())
        })?;
        let matching = self.given.sets.of_pod(&head, &self.namespace);
        let label = |key: &str| self.pod["metadata"]["labels"].get(key).and_then(Value::as_str);
        let revisions = &self.given.revisions;
        let candidates: Vec<Candidate<'_>> =
            matching.into_iter().map(|set| revisions.candidate(set, branch, label)).collect();
        let split = candidates.iter().filter(|_| !matches!(branch, Branch::Asked(_)));
        let split = split.filter(|candidate| revisions.splits(candidate.set, label)).map(|candidate| {
            let share = branch::share(candidate.set.update.partition, branch);
            format!("{share} get {}", candidate.revision())
        });
        let words = split.collect::<Vec<_>>().join(", ");
        let decision = inject(&self.pod, &self.namespace, candidates, self.given.facts.installation());
        let others = self.given.sets.sets().map(AsRef::as_ref);
        let mismatches =
            others.filter_map(|set| Some((set, mismatch(set, label, &self.namespace)?))).collect::<Vec<_>>();
        let mut after = decision.pod.as_ref().unwrap_or(&self.pod).clone();
        let filled_after = fill_in(&mut after, &self.namespace.name, &self.limit_ranges);
        let effect = (!decision.is_refused()).then(|| Effect::between(&self.pod, &after));
        Ok(Preview { subject: self, branch: words, decision, mismatches, filled_after, effect })
    }
}

impl<'a> Preview<'a> {
    /// `Deployment shop/checkout, 90 % of pods get mesh-n2b6j8xzfv`
    pub(crate) fn title(&self) -> String {
        let title = self.subject.title();
        if self.branch.is_empty() { title } else { format!("{title}, {}", self.branch) }
    }

    /// The pod as it would be created; `None` if it is refused.
    pub(crate) fn pod(&self) -> Option<&Value> {
        (!self.decision.is_refused()).then(|| self.decision.pod.as_ref().unwrap_or(&self.subject.pod))
    }

    /// What every set says, in the order of their names.
    pub(crate) fn all(&self) -> Vec<(&'a str, Said<'_, 'a>)> {
        let verdicts = self.decision.verdicts.iter().map(|verdict| (verdict.set, Said::Verdict(verdict)));
        let mismatches = self.mismatches.iter().map(|(set, found)| (set.name.as_str(), Said::Mismatch(found)));
        let mut all: Vec<_> = verdicts.chain(mismatches).collect();
        all.sort_by_key(|(set, _)| *set);
        all
    }

    pub(crate) fn set(&self, name: &str) -> Option<&'a Meaning> {
        self.subject.given.sets.get(name).map(AsRef::as_ref)
    }

    /// Sets whose sidecars the pod has.
    pub(crate) fn present(&self) -> impl Iterator<Item = &Verdict<'a>> {
        self.decision.verdicts.iter().filter(|verdict| verdict.outcome.is_present())
    }

    /// Things that are so only because this is not a cluster.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let asked = self.decision.verdicts.iter().filter(|verdict| verdict.outcome != Outcome::Skipped);
        for set in asked.filter_map(|verdict| self.set(verdict.set)) {
            if let Some(pin) = set.injection.pin.as_ref().filter(|_| self.subject.given.revisions.lack_pin(set)) {
                let revision = match &pin.revision {
                    RevisionReference::Name(name) => format!("revision {name}"),
                    RevisionReference::CustomVersion(version) => format!("custom version {version}"),
                };
                notes.push(format!(
                    "set {} pins {revision}, which is kept in a cluster: this is the set as it is written; give its \
                     ControllerRevision to see it",
                    set.name
                ));
            }
        }
        for set in self.subject.given.sets.sets() {
            for label in self.subject.workload.unknown_labels {
                if set.selector.requirements().iter().any(|requirement| requirement.key == *label) {
                    notes.push(format!(
                        "set {} asks for label {label}, which only a cluster gives: here the pod does not have it",
                        set.name
                    ));
                }
            }
        }
        notes
    }
}
