//! The whole of it: asks every set that matches, and makes one patch.

use std::collections::{BTreeMap, BTreeSet};

use pillion_api::{FailurePolicy, Meaning, Reason, SetMode, Template};
use serde_json::Value;

use crate::apply::{Changes, apply};
use crate::claims::Claims;
use crate::decision::{Decision, Outcome, Verdict};
use crate::evaluate::{Additions, Question, Refusal};
use crate::marks;
use crate::namespace::Namespace;
use crate::pod::{Pod, Unreadable};
use crate::record::Record;
use crate::security::Security;

/// A set that matches a pod, and the revision of it the pod is to get.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    /// The set.
    pub set: &'a Meaning,
    /// What the pod is to get of it.
    pub choice: Choice<'a>,
}

/// Which revision of a set a pod is to get.
#[derive(Clone, Copy, Debug)]
pub enum Choice<'a> {
    /// The set as it stands.
    Latest,
    /// A revision.
    Revision {
        /// Its name.
        name: &'a str,
        /// What it adds.
        template: &'a Template,
    },
    /// One that cannot be had, and why.
    Unavailable {
        /// Its name.
        name: &'a str,
        /// Why: [`Reason::RevisionMissing`] or [`Reason::RevisionOfAnotherSet`].
        reason: Reason,
    },
}

impl<'a> Candidate<'a> {
    /// A set as it stands.
    pub fn latest(set: &'a Meaning) -> Self {
        Self { set, choice: Choice::Latest }
    }
}

/// What holds for all pods of an installation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Installation<'a> {
    /// Whether pods are changed at all.
    pub mode: SetMode,
    /// Whether injection is switched off.
    pub is_off: bool,
    /// The namespace the product runs in, whose pods are left alone.
    pub own_namespace: Option<&'a str>,
}

/// Decides what becomes of a pod.
///
/// `candidates` are the sets that match it ([`SetIndex::matching`](crate::SetIndex::matching)), in any order. The pod is
/// the JSON the API server sends: fields unknown here stay as they are. Reviewing the result again changes nothing.
pub fn inject<'a>(
    pod: &'a Value,
    namespace: &Namespace,
    candidates: impl IntoIterator<Item = Candidate<'a>>,
    installation: Installation<'_>,
) -> Decision<'a> {
    let mut candidates: Vec<Candidate<'a>> = candidates.into_iter().collect();
    candidates.sort_by(|one, other| one.set.name.cmp(&other.set.name));
    let read = match Pod::read(pod) {
        Ok(read) => read,
        Err(Unreadable(message)) => {
            let refuse = |candidate| refused(candidate, Refusal::new(Reason::UnreadablePod, message.clone()));
            return Decision { verdicts: candidates.into_iter().map(refuse).collect(), patch: Vec::new(), pod: None };
        }
    };
    if let Some((reason, message)) = left_alone(&read, namespace, installation) {
        let skip = |candidate| verdict(candidate, Outcome::Skipped, reason, message.clone());
        return Decision { verdicts: candidates.into_iter().map(skip).collect(), patch: Vec::new(), pod: None };
    }
    let mut review = Review::new(&read, namespace, installation.mode);
    let verdicts: Vec<_> = candidates.into_iter().map(|candidate| review.ask(candidate)).collect();
    let mut decision = Decision { verdicts, patch: Vec::new(), pod: None };
    if installation.mode == SetMode::Observe || decision.is_refused() {
        return decision;
    }
    let earlier = read.annotations.get(marks::DECISION).and_then(|text| Record::parse(text));
    let is_recorded = decision.verdicts.iter().any(|verdict| verdict.outcome != Outcome::Observed);
    let record = is_recorded.then(|| Record::of(&decision.verdicts, earlier.as_ref()).render());
    let present = decision.verdicts.iter().filter(|verdict| verdict.outcome.is_present());
    let sets = present.map(|verdict| verdict.set.to_owned()).collect();
    let Review { additions, annotations, kept, .. } = review;
    let (changed, patch) = apply(pod, &read, Changes { additions, annotations, sets, kept, record });
    if !patch.is_empty() {
        decision.pod = Some(changed);
        decision.patch = patch;
    }
    decision
}

/// Why no set is asked about a pod.
fn left_alone(pod: &Pod<'_>, namespace: &Namespace, installation: Installation<'_>) -> Option<(Reason, String)> {
    if installation.is_off {
        return Some((Reason::SwitchedOff, "injection is switched off".to_owned()));
    }
    if namespace.is_excluded(installation.own_namespace) {
        return Some((Reason::NamespaceExcluded, format!("pods of namespace {} are never changed", namespace.name)));
    }
    let mirror = pod.annotations.contains_key(marks::MIRROR);
    mirror.then(|| (Reason::MirrorPod, "the pod only shows what a node runs from its own files".to_owned()))
}

fn verdict(candidate: Candidate<'_>, outcome: Outcome, reason: Reason, message: impl Into<String>) -> Verdict<'_> {
    let revision = match candidate.choice {
        Choice::Latest => None,
        Choice::Revision { name, .. } | Choice::Unavailable { name, .. } => Some(name),
    };
    let (sizes, warnings) = (Vec::new(), Vec::new());
    Verdict { set: &candidate.set.name, revision, outcome, reason, message: message.into(), sizes, warnings }
}

fn refused(candidate: Candidate<'_>, refusal: Refusal) -> Verdict<'_> {
    let outcome = match candidate.set.failure_policy {
        FailurePolicy::Fail => Outcome::Refused,
        FailurePolicy::Ignore => Outcome::Ignored,
    };
    verdict(candidate, outcome, refusal.reason, refusal.message)
}

/// One pod, and what the sets asked so far have decided about it.
struct Review<'a, 'p> {
    pod: &'p Pod<'a>,
    mode: SetMode,
    security: Security,
    claims: Claims<'a>,
    annotations: BTreeMap<&'a str, String>,
    additions: Vec<Additions<'a>>,
    /// Containers that were there from an earlier review, of sets that still have them.
    kept: BTreeSet<&'a str>,
    skipped: BTreeSet<String>,
    applied_before: BTreeSet<String>,
}

impl<'a, 'p> Review<'a, 'p> {
    fn new(pod: &'p Pod<'a>, namespace: &Namespace, mode: SetMode) -> Self {
        Self {
            pod,
            mode,
            security: Security::of(pod.json, namespace),
            claims: Claims::default(),
            annotations: BTreeMap::new(),
            additions: Vec::new(),
            kept: BTreeSet::new(),
            skipped: marks::names(pod.annotations.get(marks::SKIP)),
            applied_before: marks::names(pod.annotations.get(marks::INJECTED_SETS)),
        }
    }

    fn ask(&mut self, candidate: Candidate<'a>) -> Verdict<'a> {
        let set = candidate.set;
        if set.injection.paused {
            return verdict(candidate, Outcome::Skipped, Reason::InjectionPaused, "injection of the set is paused");
        }
        let wants_out = self.skipped.contains(&set.name);
        if wants_out && set.allow_opt_out {
            let message = format!("the pod's annotation {} names the set", marks::SKIP);
            return verdict(candidate, Outcome::Skipped, Reason::OptedOut, message);
        }
        let template = match candidate.choice {
            Choice::Latest => &set.template,
            Choice::Revision { template, .. } => template,
            Choice::Unavailable { name, reason } => {
                let refusal = Refusal::new(reason, format!("revision {name}"));
                return self.not_applied(candidate, refusal);
            }
        };
        let observes = self.mode == SetMode::Observe || set.mode == SetMode::Observe;
        let question = Question {
            pod: self.pod,
            template,
            claims: &self.claims,
            annotations: &self.annotations,
            was_applied: self.applied_before.contains(&set.name),
            observes,
            security: self.security,
        };
        if question.is_already_there() {
            let mounts = question.app_mounts().unwrap_or_default();
            self.claims.claim(set, template, mounts);
            self.kept.extend(template.init_containers.iter().chain(&template.containers).map(|it| it.name.as_str()));
            return verdict(candidate, Outcome::Kept, Reason::AlreadyInjected, "the pod has the sidecars of the set");
        }
        let mut additions = match question.evaluate() {
            Ok(additions) => additions,
            Err(refusal) => return self.not_applied(candidate, refusal),
        };
        let (outcome, reason, message) = if observes {
            (Outcome::Observed, Reason::Observed, "the set would be applied, but only observes".to_owned())
        } else if wants_out {
            let message = format!("the pod's annotation {} names the set, which does not allow it", marks::SKIP);
            (Outcome::Applied, Reason::OptOutNotAllowed, message)
        } else {
            (Outcome::Applied, Reason::Injected, "the selectors match".to_owned())
        };
        let (sizes, warnings) = (std::mem::take(&mut additions.sizes), std::mem::take(&mut additions.warnings));
        if !observes {
            self.claims.claim(set, template, additions.mounts.clone());
            self.annotations.extend(std::mem::take(&mut additions.annotations));
            self.additions.push(additions);
        }
        Verdict { sizes, warnings, ..verdict(candidate, outcome, reason, message) }
    }

    fn not_applied(&self, candidate: Candidate<'a>, refusal: Refusal) -> Verdict<'a> {
        if self.mode == SetMode::Observe || candidate.set.mode == SetMode::Observe {
            return verdict(candidate, Outcome::Observed, refusal.reason, refusal.message);
        }
        refused(candidate, refusal)
    }
}
