//! What an edit of a set would do to pods: each is decided as the sets stand and as they would stand, by [`inject`].
//!
//! A pod that exists is judged as the pod its workload would create again; what it has of an earlier edit says nothing
//! about this one.

use pillion_api::{Meaning, REVISIONS, Reason};
use serde_json::{Map, Value};

use crate::decision::{Decision, Outcome, Refusal, Verdict};
use crate::inject::{Candidate, Installation, inject};
use crate::marks;
use crate::matching::mismatch;
use crate::namespace::Namespace;
use crate::set_index::SetIndex;
use crate::uninjected::uninjected;

mod summary;

pub use summary::{Counts, Example, Impact, Subject};

/// An edit of one set: made where it was not before, deleted where it is not after.
#[derive(Clone, Copy, Debug)]
pub struct Edit<'a> {
    name: &'a str,
    before: Option<&'a Meaning>,
    after: Option<&'a Meaning>,
    others: &'a SetIndex,
}

/// What an edit does to one pod, were it created after it and not before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    Unaffected,
    /// It gets the sidecars of the set, which it does not get now.
    Gains,
    /// It does not get the sidecars of the set any more.
    Loses,
    /// It gets something else.
    Changes,
    /// The set cannot be applied to it any more, and is left out as its failurePolicy is Ignore.
    LeftOut(Cause),
    /// It is refused, and would not be without the edit.
    Refused(Cause),
    /// It is refused with the edit as without.
    StillRefused(Cause),
    /// It is not refused any more.
    Admitted,
}

/// Why a pod is refused, or a set left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// Name of the set that says so; with two sets that clash it need not be the one that is edited.
    pub set: String,
    /// The code.
    pub reason: Reason,
    /// In words.
    pub message: String,
}

impl Cause {
    fn of(verdict: &Verdict<'_>) -> Self {
        Self { set: verdict.set.to_owned(), reason: verdict.reason, message: verdict.message.clone() }
    }
}

impl<'a> Edit<'a> {
    /// An edit of the set of this name. Whatever `others` has of this name is not looked at.
    pub fn new(name: &'a str, before: Option<&'a Meaning>, after: Option<&'a Meaning>, others: &'a SetIndex) -> Self {
        Self { name, before, after, others }
    }

    /// What the edit does to a pod that is to be created, such as the one of a workload's template.
    pub fn effect(&self, pod: &Value, namespace: &Namespace, installation: Installation<'_>) -> Effect {
        let labels = labels(pod);
        let label = |key: &str| labels.iter().find(|(own, _)| *own == key).map(|(_, value)| *value);
        let matched = |set: Option<&'a Meaning>| set.filter(|set| mismatch(set, label, namespace).is_none());
        let (before, after) = (matched(self.before), matched(self.after));
        if before.is_none() && after.is_none() {
            return Effect::Unaffected;
        }
        let others = self.others.matching(&labels, namespace);
        let others: Vec<&Meaning> = others.into_iter().map(AsRef::as_ref).filter(|it| it.name != self.name).collect();
        let decide = |set: Option<&'a Meaning>| {
            let sets = others.iter().copied().chain(set).map(Candidate::latest);
            inject(pod, namespace, sets, installation)
        };
        let after = decide(after);
        let before = if self.before == self.after { after.clone() } else { decide(before) };
        self.compare(pod, before, after)
    }

    /// What the edit does to a pod that exists, were it created again.
    ///
    /// Where the workload of the pod is at hand, asking about its template is better: a pod does not tell what a set
    /// has overwritten.
    pub fn effect_on_existing(&self, pod: &Value, namespace: &Namespace, installation: Installation<'_>) -> Effect {
        let known = |name: &str| {
            if name == self.name { self.before } else { self.others.get(name).map(AsRef::as_ref) }
        };
        self.effect(&uninjected(pod, known), namespace, installation)
    }

    /// What a pod asks for itself is refused or not by the edit of this set.
    fn cause(&self, refusal: &Refusal) -> Cause {
        Cause { set: self.name.to_owned(), reason: refusal.reason, message: refusal.message.clone() }
    }

    fn compare(&self, pod: &Value, before: Decision<'_>, after: Decision<'_>) -> Effect {
        let refusal = |decision: &Decision<'_>| {
            let of_pod = decision.refusal.as_ref().map(|refusal| self.cause(refusal));
            decision.refusals().next().map(Cause::of).or(of_pod)
        };
        match (refusal(&before), refusal(&after)) {
            (Some(_), Some(cause)) => return Effect::StillRefused(cause),
            (None, Some(cause)) => return Effect::Refused(cause),
            (Some(_), None) => return Effect::Admitted,
            (None, None) => {}
        }
        let said = |decision: &Decision<'_>| {
            let own = decision.verdicts.iter().find(|verdict| verdict.set == self.name)?;
            Some((own.outcome, Cause::of(own)))
        };
        let (was, is) = (said(&before), said(&after));
        let outcome = |said: &Option<(Outcome, Cause)>| said.as_ref().map(|(outcome, _)| *outcome);
        let is_present = |said: &Option<(Outcome, Cause)>| outcome(said).is_some_and(Outcome::is_present);
        if let Some((Outcome::Ignored, cause)) = &is
            && outcome(&was) != Some(Outcome::Ignored)
        {
            return Effect::LeftOut(cause.clone());
        }
        match (is_present(&was), is_present(&is)) {
            (false, true) => Effect::Gains,
            (true, false) => Effect::Loses,
            _ if result(pod, before) == result(pod, after) => Effect::Unaffected,
            _ => Effect::Changes,
        }
    }
}

fn labels(pod: &Value) -> Vec<(&str, &str)> {
    let labels = pod.pointer("/metadata/labels").and_then(Value::as_object);
    labels.into_iter().flatten().filter_map(|(key, value)| Some((key.as_str(), value.as_str()?))).collect()
}

/// The pod that comes of a decision, without the record of how and of which revision.
fn result(pod: &Value, decision: Decision<'_>) -> Value {
    let mut pod = decision.pod.unwrap_or_else(|| pod.clone());
    let Some(metadata) = pod.get_mut("metadata").and_then(Value::as_object_mut) else { return pod };
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.remove(marks::DECISION);
        annotations.remove(REVISIONS);
    }
    // No annotations are no annotations, whether or not there is an object for them.
    if metadata.get("annotations").is_some_and(|it| it.as_object().is_none_or(Map::is_empty)) {
        metadata.remove("annotations");
    }
    pod
}
