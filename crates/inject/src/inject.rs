//! The whole of it: asks every set that matches, and makes one patch.

use std::collections::{BTreeMap, BTreeSet};

use pillion_api::{FailurePolicy, Meaning, PodRevision, PodRevisions, REVISIONS, Reason, SetMode, Template};
use serde_json::Value;

use crate::apply::{Marks, add, mark, remove_forged};
use crate::checked::Checked;
use crate::claims::Claims;
use crate::decision::{Decision, Ending, Outcome, Refusal, Verdict, Warning};
use crate::evaluate::{Additions, Question, sidecars};
use crate::finish::{Failed, Finishing, Present, Source, asks, finish};
use crate::hot_update::{self, HotUpdates, agent_config};
use crate::marks;
use crate::namespace::Namespace;
use crate::pod::Pod;
use crate::pod_resources::exceeding;
use crate::record::Record;
use crate::security::Security;
use crate::workload::Origins;
use pillion_pod::Editor;
use pillion_pod::Unreadable;

/// A set that matches a pod, and the revision of it the pod is to get.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    /// The set.
    pub set: &'a Meaning,
    /// What the pod is to get of it.
    pub choice: Choice<'a>,
    /// The reservation by which it was chosen, if it was by one.
    pub reservation: Option<&'a str>,
    /// Why it was chosen without one, where it should have been by one.
    pub trouble: Option<&'a str>,
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
        Self { set, choice: Choice::Latest, reservation: None, trouble: None }
    }

    /// The name of the revision.
    pub fn revision(&self) -> &'a str {
        match self.choice {
            Choice::Latest => &self.set.revision,
            Choice::Revision { name, .. } | Choice::Unavailable { name, .. } => name,
        }
    }

    /// The template of the revision, or the reason for which there is none.
    pub(crate) fn template(&self) -> Result<&'a Template, Reason> {
        match self.choice {
            Choice::Latest => Ok(&self.set.template),
            Choice::Revision { template, .. } => Ok(template),
            Choice::Unavailable { reason, .. } => Err(reason),
        }
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
    /// How sidecars are ended when all others have ended; `None` where that is switched off.
    pub finish: Option<Finishing<'a>>,
    /// Which versions of files were asked for workloads; `None` where agents are switched off.
    pub hot_updates: Option<&'a HotUpdates>,
    /// Who sizes this pod after us; `None` where nobody does.
    pub sizer: Option<Sizer<'a>>,
}

/// An autoscaler that gives containers their sizes, those of sets too. It is only named in the record.
#[derive(Clone, Copy, Debug)]
pub struct Sizer<'a> {
    /// Its name.
    pub name: &'a str,
    /// The containers it has a size for.
    pub containers: &'a BTreeSet<String>,
    /// Whether native sidecars are sized as well.
    pub native: bool,
}

impl Sizer<'_> {
    /// The containers that it sizes of those that are meant, each with its name.
    fn sized(self, pod: &Value, is_meant: impl Fn(&str) -> bool) -> BTreeMap<String, String> {
        let list = |list: &str| pod["spec"][list].as_array().into_iter().flatten();
        let native = list("initContainers").filter(|it| self.native && it["restartPolicy"] == "Always");
        let names = list("containers").chain(native).filter_map(|container| container["name"].as_str());
        let names = names.filter(|name| self.containers.contains(*name) && is_meant(name));
        names.map(|name| (name.to_owned(), self.name.to_owned())).collect()
    }
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
    let unchanged = |verdicts| Decision { verdicts, endings: Vec::new(), refusal: None, patch: Vec::new(), pod: None };
    // Before the pod is read: what is left alone need not be understood.
    if let Some((reason, message)) = left_alone(namespace, installation) {
        let skip = |candidate| verdict(candidate, Outcome::Skipped, reason, message.clone());
        return unchanged(candidates.into_iter().map(skip).collect());
    }
    let mut read = match Pod::read(pod) {
        Ok(read) => read,
        Err(Unreadable(message)) => {
            let refuse = |candidate| {
                let refusal = || Refusal::new(Reason::UnreadablePod, message.clone());
                paused(candidate).unwrap_or_else(|| not_applied(candidate, installation.mode, refusal()))
            };
            return unchanged(candidates.into_iter().map(refuse).collect());
        }
    };
    if read.annotations.contains_key(marks::MIRROR) {
        let message = "the pod only shows what a node runs from its own files";
        let skip = |candidate| verdict(candidate, Outcome::Skipped, Reason::MirrorPod, message);
        return unchanged(candidates.into_iter().map(skip).collect());
    }
    let checked = Checked::of(&read, &candidates, installation.finish.is_some());
    read.forget(&checked.forged);
    // Whether a set's sidecars can be ended, and whether they fit into the pod's own resources, is known when all sets have been
    // applied. A set whose sidecars cannot is not applied, and the others are asked again as if it had never matched.
    let mut failed = BTreeMap::new();
    loop {
        let mut review = Review::new(&read, &checked, namespace, installation, &failed);
        for candidate in &candidates {
            review.keep(*candidate);
        }
        let mut decision = unchanged(candidates.iter().map(|candidate| review.ask(*candidate)).collect());
        let observes = installation.mode == SetMode::Observe;
        if decision.is_refused() || (observes && installation.finish.is_none()) {
            return decision;
        }
        let mut editor = Editor::new(pod.clone());
        remove_forged(&mut editor, &review.additions, &checked.forged);
        add(&mut editor, &read, &review.additions, &review.annotations);
        match review.finish(&mut editor, installation.finish) {
            Err(Failed { source: Source::Set(set), refusal }) => {
                failed.insert(set, refusal);
                continue;
            }
            // An installation that observes refuses nothing.
            Ok(_) | Err(_) if observes => {}
            Err(Failed { source: Source::Pod, refusal }) => decision.refusal = Some(refusal),
            Ok(endings) => {
                if let Some((set, refusal)) = exceeding(editor.pod(), &review.additions) {
                    failed.insert(set, refusal);
                    continue;
                }
                decision.endings = endings;
                if let Some(wanted) = review.wanted(namespace, installation.hot_updates) {
                    hot_update::ask(&mut editor, wanted);
                }
                review.write_marks(&mut editor, &decision, installation.sizer);
                let (changed, patch) = editor.finish();
                if !patch.is_empty() {
                    decision.pod = Some(changed);
                    decision.patch = patch;
                }
            }
        }
        return decision;
    }
}

fn present<'v, 'a>(verdicts: &'v [Verdict<'a>]) -> impl Iterator<Item = &'v Verdict<'a>> {
    verdicts.iter().filter(|verdict| verdict.outcome.is_present())
}

/// The revisions that the pod has. Nothing but the name is taken from what the pod says itself, and of a set that nobody could check it
/// counts for nothing.
fn revisions(
    verdicts: &[Verdict<'_>],
    sets: &BTreeSet<String>,
    earlier: PodRevisions,
    checked: &Checked<'_>,
) -> PodRevisions {
    let earlier = earlier.0.into_iter().filter(|(set, _)| sets.contains(set));
    let mut revisions: BTreeMap<String, PodRevision> =
        earlier.map(|(set, revision)| (set, PodRevision::altered(revision.is))).collect();
    let of_checked = checked.present.iter().filter(|(set, _)| sets.contains(**set));
    revisions.extend(of_checked.map(|(set, present)| ((*set).to_owned(), present.revision())));
    let added = present(verdicts).filter(|verdict| !checked.present.contains_key(verdict.set));
    revisions.extend(added.map(|verdict| (verdict.set.to_owned(), PodRevision::new(verdict.revision))));
    PodRevisions(revisions)
}

/// Why no set is asked about any pod of a namespace.
fn left_alone(namespace: &Namespace, installation: Installation<'_>) -> Option<(Reason, String)> {
    if installation.is_off {
        return Some((Reason::SwitchedOff, "injection is switched off".to_owned()));
    }
    let message = || format!("pods of namespace {} are never changed", namespace.name);
    namespace.is_excluded(installation.own_namespace).then(|| (Reason::NamespaceExcluded, message()))
}

fn verdict(candidate: Candidate<'_>, outcome: Outcome, reason: Reason, message: impl Into<String>) -> Verdict<'_> {
    Verdict {
        set: &candidate.set.name,
        revision: candidate.revision(),
        reservation: candidate.reservation,
        outcome,
        reason,
        message: message.into(),
        sizes: Vec::new(),
        warnings: Vec::new(),
    }
}

fn paused(candidate: Candidate<'_>) -> Option<Verdict<'_>> {
    let message = "injection of the set is paused";
    let is_paused = candidate.set.injection.paused;
    is_paused.then(|| verdict(candidate, Outcome::Skipped, Reason::InjectionPaused, message))
}

/// A set that only observes stands in nobody's way; what becomes of the others is their own policy.
fn not_applied(candidate: Candidate<'_>, mode: SetMode, refusal: Refusal) -> Verdict<'_> {
    let outcome = match candidate.set.failure_policy {
        _ if observes(candidate, mode) => Outcome::Observed,
        FailurePolicy::Fail => Outcome::Refused,
        FailurePolicy::Ignore => Outcome::Ignored,
    };
    verdict(candidate, outcome, refusal.reason, refusal.message)
}

fn observes(candidate: Candidate<'_>, mode: SetMode) -> bool {
    mode == SetMode::Observe || candidate.set.mode == SetMode::Observe
}

/// One pod, and what the sets asked so far have decided about it.
struct Review<'a, 'p> {
    pod: &'p Pod<'a>,
    checked: &'p Checked<'a>,
    mode: SetMode,
    finishes: bool,
    /// Sets that cannot be applied beside the others, and why.
    failed: &'p BTreeMap<&'a str, Refusal>,
    security: Security,
    claims: Claims<'a>,
    annotations: BTreeMap<&'a str, String>,
    additions: Vec<Additions<'a>>,
    /// Sets whose sidecars are there from an earlier review.
    kept: BTreeMap<&'a str, &'a Template>,
    /// Sets whose sidecars the pod has, those of an earlier review too, and whose may be ended.
    present: Vec<Present<'a>>,
    skipped: BTreeSet<String>,
    applied_before: BTreeSet<String>,
}

impl<'a, 'p> Review<'a, 'p> {
    fn new(
        pod: &'p Pod<'a>,
        checked: &'p Checked<'a>,
        namespace: &Namespace,
        installation: Installation<'_>,
        failed: &'p BTreeMap<&'a str, Refusal>,
    ) -> Self {
        Self {
            pod,
            checked,
            mode: installation.mode,
            finishes: installation.finish.is_some(),
            failed,
            present: Vec::new(),
            security: Security::of(pod.json, namespace),
            claims: Claims::default(),
            annotations: BTreeMap::new(),
            additions: Vec::new(),
            kept: BTreeMap::new(),
            skipped: marks::names(pod.annotations.get(marks::SKIP).copied()),
            applied_before: marks::names(pod.annotations.get(marks::INJECTED_SETS).copied()),
        }
    }

    /// What the pod is to get of a set, or why the set is not asked.
    fn template(&self, candidate: Candidate<'a>) -> Result<&'a Template, Box<Verdict<'a>>> {
        let set = candidate.set;
        if let Some(verdict) = paused(candidate) {
            return Err(Box::new(verdict));
        }
        if set.allow_opt_out && self.skipped.contains(&set.name) {
            let message = format!("the pod's annotation {} names the set", marks::SKIP);
            return Err(Box::new(verdict(candidate, Outcome::Skipped, Reason::OptedOut, message)));
        }
        candidate.template().map_err(|reason| {
            let why = match reason {
                Reason::RevisionOfAnotherSet => "belongs to another set",
                _ => "does not exist",
            };
            let refusal = Refusal::new(reason, format!("revision {} {why}", candidate.revision()));
            Box::new(not_applied(candidate, self.mode, refusal))
        })
    }

    fn question(&self, candidate: Candidate<'a>, template: &'a Template) -> Question<'a, '_> {
        // A list of names alone proves nothing: something of the set must be there.
        let mut present = sidecars(template).filter_map(|sidecar| self.pod.container(&sidecar.name));
        Question {
            pod: self.pod,
            set: &candidate.set.name,
            template,
            claims: &self.claims,
            annotations: &self.annotations,
            was_applied: self.applied_before.contains(&candidate.set.name) && present.any(|it| it.is_injected),
            observes: observes(candidate, self.mode),
            security: self.security,
        }
    }

    /// Lets a set keep what the pod has of it. All such sets come first: what one of them could not have had the first
    /// time because of another, it cannot have now.
    fn keep(&mut self, candidate: Candidate<'a>) {
        let Ok(template) = self.template(candidate) else { return };
        let question = self.question(candidate, template);
        if question.is_already_there() {
            let mounts = question.app_mounts().unwrap_or_default();
            self.claims.claim(candidate.set, template, mounts);
            self.kept.insert(&candidate.set.name, template);
        }
    }

    fn ask(&mut self, candidate: Candidate<'a>) -> Verdict<'a> {
        let set = candidate.set;
        let template = match self.template(candidate) {
            Ok(template) => template,
            Err(verdict) => return *verdict,
        };
        let failed = self.failed.get(set.name.as_str());
        let present = Present { name: &set.name, finish: set.finish, template };
        if self.kept.contains_key(set.name.as_str()) {
            match failed {
                Some(refusal) if set.failure_policy == FailurePolicy::Fail => {
                    return not_applied(candidate, self.mode, refusal.clone());
                }
                // What is there stays, and is not ended.
                Some(_) => {}
                None => self.present.push(present),
            }
            let message = match self.checked.present.get(set.name.as_str()) {
                Some(present) if present.is_altered => "the pod has the sidecars of the set, with changes of others",
                _ => "the pod has the sidecars of the set",
            };
            return verdict(candidate, Outcome::Kept, Reason::AlreadyInjected, message);
        }
        let evaluated = match failed {
            Some(refusal) => Err(refusal.clone()),
            None => self.question(candidate, template).evaluate(),
        };
        let mut additions = match evaluated {
            Ok(additions) => additions,
            Err(refusal) => return not_applied(candidate, self.mode, refusal),
        };
        let (outcome, reason, message) = if observes(candidate, self.mode) {
            (Outcome::Observed, Reason::Observed, "the set would be applied, but only observes".to_owned())
        } else if self.skipped.contains(&set.name) {
            let message = format!("the pod's annotation {} names the set, which does not allow it", marks::SKIP);
            (Outcome::Applied, Reason::OptOutNotAllowed, message)
        } else {
            (Outcome::Applied, Reason::Injected, "the selectors match".to_owned())
        };
        let (sizes, mut warnings) = (std::mem::take(&mut additions.sizes), std::mem::take(&mut additions.warnings));
        warnings.extend(additions.replaced(&self.checked.forged).map(|name| {
            let message =
                format!("container {name} is not what revision {} gives, and is replaced", candidate.revision());
            Warning { reason: Reason::ContainerReplaced, message }
        }));
        if let Some(trouble) = candidate.trouble {
            let message = format!("the pod gets revision {}: {trouble}", candidate.revision());
            warnings.push(Warning { reason: Reason::LedgerUnavailable, message });
        }
        if !self.finishes && asks(template) {
            let message = "containers with sidecar: true keep running when all others have ended".to_owned();
            warnings.push(Warning { reason: Reason::FinishSwitchedOff, message });
        }
        // Where the whole installation observes, a set stands in the way of others as it will when all of them inject.
        if set.mode != SetMode::Observe {
            self.claims.claim(set, template, additions.mounts.clone());
            self.annotations.extend(std::mem::take(&mut additions.annotations));
            self.additions.push(additions);
            self.present.push(present);
        }
        Verdict { sizes, warnings, ..verdict(candidate, outcome, reason, message) }
    }

    /// Sees to it that sidecars end.
    fn finish(&self, editor: &mut Editor, finishing: Option<Finishing<'_>>) -> Result<Vec<Ending>, Failed<'a>> {
        finishing.map_or_else(|| Ok(Vec::new()), |finishing| finish(editor, &self.present, finishing))
    }

    /// The version of a file that was asked for the workload of a pod that has an agent.
    fn wanted<'u>(&self, namespace: &Namespace, hot_updates: Option<&'u HotUpdates>) -> Option<&'u str> {
        let has_agent = self.present.iter().any(|present| agent_config(present.template).is_some());
        let hot_updates = hot_updates.filter(|_| has_agent)?;
        hot_updates.wanted(&namespace.name, Origins::of_pod(self.pod.json))
    }

    /// Says on the pod what was decided, and what is ours.
    fn write_marks(self, editor: &mut Editor, decision: &Decision<'a>, sizer: Option<Sizer<'_>>) {
        let Decision { verdicts, endings, .. } = decision;
        let annotations = &self.pod.annotations;
        // A record is believed only beside something we did.
        let ours = marks::ours(self.pod);
        let has_ours = !ours.is_empty() || !self.kept.is_empty();
        let earlier = annotations.get(marks::DECISION).and_then(|text| Record::parse(text));
        let ends_the_same = |earlier: &Record| !endings.is_empty() && !earlier.finish.is_empty();
        let believed = earlier.filter(|earlier| has_ours || ends_the_same(earlier));
        let is_recorded = !endings.is_empty() || verdicts.iter().any(|verdict| verdict.outcome != Outcome::Observed);
        let mut sets: BTreeSet<String> = present(verdicts).map(|verdict| verdict.set.to_owned()).collect();
        if !ours.is_empty() {
            sets.extend(self.applied_before.iter().cloned());
        }
        let earlier = annotations.get(REVISIONS).filter(|_| has_ours);
        let earlier = earlier.and_then(|text| PodRevisions::parse(text)).unwrap_or_default();
        let revisions = revisions(verdicts, &sets, earlier, self.checked).render();
        let templates = self.kept.values().flat_map(|template| sidecars(template));
        let kept: BTreeSet<&str> = templates.map(|sidecar| sidecar.name.as_str()).collect();
        let additions = self.additions.iter().flat_map(|it| it.init_containers.iter().chain(&it.containers));
        let added: BTreeSet<&str> = additions.map(|addition| addition.name).collect();
        let record = is_recorded.then(|| {
            let of_sets = |name: &str| added.contains(name) || kept.contains(name);
            let sized = sizer.map(|sizer| sizer.sized(editor.pod(), of_sets)).unwrap_or_default();
            Record::of(verdicts, endings, believed.as_ref()).with_sized(sized, believed.as_ref()).render()
        });
        mark(editor, Marks { added, sets, kept, ours, record, revisions });
    }
}
