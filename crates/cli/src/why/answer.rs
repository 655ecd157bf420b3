//! What is to be said about one pod or template, set by set.

use std::collections::BTreeMap;

use pillion_api::{PodRevisions, REVISIONS, Reason};
use pillion_inject::coverage::Standing;
use pillion_inject::{Decision, Origin, Outcome, Record, asked_for, marks, mismatch, pod_of};
use serde_json::{Value, json};

use super::recorded;
use super::standing::standing_of;
use crate::live::World;
use crate::preview::{Preview, Said, Subject, computed, filled_in, json_of_size};

/// An answer about one pod or template.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) origin: Origin,
    pub(crate) basis: Basis,
    /// The sets, in the order of their names.
    pub(crate) rows: Vec<Row>,
    /// How sidecars are ended, or why the pod cannot have what it asks for itself, each with its code.
    pub(crate) endings: Vec<(String, Reason)>,
    /// Whether the pod is refused whatever the sets say.
    pub(crate) is_refused: bool,
    /// What the API server fills in, where that was asked.
    pub(crate) filled: Vec<String>,
    pub(crate) notes: Vec<String>,
    /// What the pod asks for with and without, in lines; or that it is refused.
    pub(crate) conclusion: Option<String>,
}

/// Where an answer comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Basis {
    /// The record the pod carries.
    Record,
    /// The pod carries none, and was decided again.
    NoRecord,
    /// There is no pod yet.
    Template,
}

/// What is to be said about one set.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) set: String,
    pub(crate) verdict: &'static str,
    /// `None` for a code that a newer version wrote.
    pub(crate) reason: Option<Reason>,
    pub(crate) message: String,
    pub(crate) sizes: Vec<Sizing>,
    pub(crate) warnings: Vec<(Reason, Option<String>)>,
}

/// A computed amount, for people and for programs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sizing {
    pub(crate) text: String,
    pub(crate) json: Value,
}

/// The pod is without sidecars that it would have, were it created now.
pub(crate) const MISSED: &str = "missed";
/// The pod is older than the set.
pub(crate) const PREDATES: &str = "predates";

impl Row {
    pub(crate) fn new(set: &str, verdict: &'static str, reason: Reason, message: impl Into<String>) -> Self {
        let (set, message) = (set.to_owned(), message.into());
        Self { set, verdict, reason: Some(reason), message, sizes: Vec::new(), warnings: Vec::new() }
    }

    /// Whether the set does not ask for the pod at all.
    pub(crate) fn is_mismatch(&self) -> bool {
        matches!(self.reason, Some(Reason::SelectorMismatch | Reason::NamespaceMismatch))
    }
}

impl Answer {
    /// Whether somebody should do something about it.
    pub(crate) fn is_finding(&self) -> bool {
        self.is_refused || self.rows.iter().any(|row| row.verdict == MISSED || row.verdict == Outcome::Refused.word())
    }
}

/// Answers about objects of the cluster. The error is for objects that no API server would have.
pub(crate) fn answers(world: &World, objects: &[Value]) -> Result<Vec<Answer>, String> {
    objects.iter().map(|object| answer(world, object)).collect()
}

fn answer(world: &World, object: &Value) -> Result<Answer, String> {
    let workload = pod_of(object, "default").map_err(|error| error.to_string())?;
    let workload = workload.ok_or_else(|| format!("{} creates no pods", object["kind"]))?;
    let subject = Subject::new(&world.given, "", &workload);
    let preview = subject.preview()?;
    let annotation = |key: &str| object.pointer("/metadata/annotations").and_then(|all| all[key].as_str());
    let record = annotation(marks::DECISION).filter(|_| !workload.origin.is_template()).and_then(Record::parse);
    let standing = standing_of(world, object, &subject.namespace);
    let mut answer = Answer {
        origin: workload.origin.clone(),
        basis: if workload.origin.is_template() { Basis::Template } else { Basis::NoRecord },
        rows: Vec::new(),
        endings: Vec::new(),
        is_refused: false,
        filled: Vec::new(),
        notes: Vec::new(),
        conclusion: None,
    };
    if let Some(record) = record {
        answer.basis = Basis::Record;
        let revisions = annotation(REVISIONS).and_then(PodRevisions::parse).unwrap_or_default();
        answer.rows = recorded::rows(world, &record, &revisions);
        answer.notes.extend(recorded::note(&record));
        answer.notes.extend(recorded::sized(&record));
        answer.endings = recorded::endings(&record);
        answer.rows.extend(unrecorded(world, &preview, &record, &standing));
    } else {
        answer.rows = preview.all().iter().map(|(set, said)| evaluated(&preview, set, said)).collect();
        if answer.basis == Basis::NoRecord {
            answer.rows.iter_mut().for_each(|row| without_record(row, &standing));
        } else {
            answer.endings = endings(&preview.decision);
            answer.is_refused = preview.decision.refusal.is_some();
        }
        answer.notes = preview.notes();
        answer.filled = filled_in(&preview).into_iter().filter(|section| !section.is_empty()).collect();
        answer.conclusion = (answer.basis == Basis::Template).then(|| conclusion(&preview));
    }
    let invalid = world.invalid.iter().filter(|(set, _)| answer.rows.iter().all(|row| row.set != **set));
    let invalid: Vec<Row> = invalid
        .map(|(set, problem)| Row::new(set, Outcome::Skipped.word(), Reason::SetInvalid, problem.clone()))
        .collect();
    answer.rows.extend(invalid);
    answer.rows.sort_by(|one, other| one.set.cmp(&other.set));
    Ok(answer)
}

/// How sidecars would be ended.
fn endings(decision: &Decision<'_>) -> Vec<(String, Reason)> {
    let mut told = Vec::new();
    for ending in &decision.endings {
        told.push((format!("sidecar {}: {}", ending.container, ending.message), ending.reason));
        let warnings = ending.warnings.iter();
        told.extend(warnings.map(|it| (format!("warning: sidecar {}: {}", ending.container, it.message), it.reason)));
    }
    let refusal = decision.refusal.as_ref();
    told.extend(refusal.map(|it| (format!("the pod is refused: {}", it.message), it.reason)));
    told
}

/// What a set decides now.
fn evaluated(preview: &Preview<'_>, set: &str, said: &Said<'_, '_>) -> Row {
    let verdict = match said {
        Said::Mismatch(found) => {
            return Row::new(set, Outcome::Skipped.word(), found.reason, found.message.clone());
        }
        Said::Verdict(verdict) => verdict,
    };
    let message = match (verdict.reason, preview.set(set)) {
        (Reason::Injected, Some(set)) => format!("{}: {}", verdict.message, asked_for(set)),
        _ => verdict.message.clone(),
    };
    let sizes = verdict.sizes.iter();
    let warnings = verdict.warnings.iter().map(|warning| (warning.reason, Some(warning.message.clone())));
    Row {
        sizes: sizes.map(|size| Sizing { text: computed(set, size), json: json_of_size(size) }).collect(),
        warnings: warnings.collect(),
        ..Row::new(set, verdict.outcome.word(), verdict.reason, message)
    }
}

/// A pod that exists without a record was not reviewed, or not with this set.
fn without_record(row: &mut Row, standing: &BTreeMap<String, Standing>) {
    if row.verdict != Outcome::Applied.word() {
        return;
    }
    *row = if standing.get(&row.set) == Some(&Standing::Missed) {
        let message =
            "the selectors match now, and the pod has no record: it was not reviewed, or labels have changed since";
        Row::new(&row.set, MISSED, Reason::CreatedUnseen, message)
    } else {
        predates(&row.set)
    };
}

fn predates(set: &str) -> Row {
    Row::new(set, PREDATES, Reason::Predates, format!("the pod is older than what set {set} selects"))
}

/// Sets that a record does not have.
fn unrecorded(
    world: &World,
    preview: &Preview<'_>,
    record: &Record,
    standing: &BTreeMap<String, Standing>,
) -> Vec<Row> {
    let pod = &preview.subject.pod;
    let label = |key: &str| pod["metadata"]["labels"].get(key).and_then(Value::as_str);
    let sets = world.given.sets.sets().filter(|set| !record.sets.contains_key(&set.name));
    let rows = sets.map(|set| {
        let name = set.name.as_str();
        if let Some(found) = mismatch(set, label, &preview.subject.namespace) {
            return Row::new(name, Outcome::Skipped.word(), found.reason, found.message);
        }
        match standing.get(name) {
            Some(Standing::Missed) => {
                let message =
                    "the selectors match now, and did not when the pod was created: labels or the set have changed";
                Row::new(name, MISSED, Reason::Missed, message)
            }
            Some(Standing::Predates) => predates(name),
            Some(Standing::Excused(reason)) => {
                Row::new(name, Outcome::Skipped.word(), *reason, recorded::sentence(*reason))
            }
            Some(Standing::Carries | Standing::LeftOut(_)) => cut_off(preview, name),
            None => {
                let message = "the selectors match only with labels that other sets gave the pod";
                Row::new(name, Outcome::Skipped.word(), Reason::SelectorMismatch, message)
            }
        }
    });
    rows.collect()
}

/// A set that was cut off a record: the pod itself shows whether it has the sidecars.
fn cut_off(preview: &Preview<'_>, set: &str) -> Row {
    let kept = preview.present().find(|verdict| verdict.set == set && verdict.outcome == Outcome::Kept);
    if let Some(verdict) = kept {
        return evaluated(preview, set, &Said::Verdict(verdict));
    }
    let message = "the pod does not have the sidecars, and the record was cut before the reason";
    Row::new(set, Outcome::Skipped.word(), Reason::RecordTruncated, message)
}

fn conclusion(preview: &Preview<'_>) -> String {
    match &preview.effect {
        None => "the pod is refused: nothing is created".to_owned(),
        Some(Ok(effect)) => effect.to_string(),
        Some(Err(unreadable)) => format!("pod requests are not known: {unreadable}"),
    }
}

/// The same for programs.
pub(crate) fn json_of_row(row: &Row) -> Value {
    json!({
        "set": row.set,
        "verdict": row.verdict,
        "code": row.reason.map(Reason::code),
        "reason": row.reason.map(Reason::name),
        "message": row.message,
        "title": row.reason.map(Reason::title),
        "cause": row.reason.map(Reason::cause),
        "cure": row.reason.map(Reason::cure),
        "sizes": row.sizes.iter().map(|size| &size.json).collect::<Vec<_>>(),
        "warnings": row.warnings.iter().map(|(reason, message)| json!({
            "code": reason.code(), "reason": reason.name(), "message": message, "cure": reason.cure(),
        })).collect::<Vec<_>>(),
    })
}
