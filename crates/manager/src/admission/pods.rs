//! What becomes of a pod that is about to be created.

use pillion_api::{Meaning, PodRevision, Reason};
use pillion_inject::{Candidate, Choice, Decision, Installation, Namespace, Outcome, PodHead, Verdict, inject};
use pillion_rollout::history::Pinned;
use serde_json::Value;

use super::review::{Request, Response, Unreadable};
use crate::view::Known;

/// What a review of a pod is answered from.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// All sets and their revisions.
    pub known: &'a Known,
    /// The pod's namespace.
    pub namespace: &'a Namespace,
    /// What holds for all pods.
    pub installation: Installation<'a>,
}

/// The answer, and what is counted and told of it.
#[derive(Debug)]
pub struct Answer {
    /// To the API server.
    pub response: Response,
    /// What came of each set that matched.
    pub outcomes: Vec<(Outcome, Reason)>,
    /// Why the pod was refused, for whoever made it.
    pub refusal: Option<Refused>,
}

/// A pod that will not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The set that refused it first.
    pub set: String,
    /// Why.
    pub reason: Reason,
    /// In words, with all sets that refused it.
    pub message: String,
    /// The object that would have owned the pod.
    pub owner: Option<Owner>,
}

/// An object that makes pods.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Owner {
    /// Group and version.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
}

impl From<&pillion_rollout::Owner> for Owner {
    fn from(owner: &pillion_rollout::Owner) -> Self {
        let pillion_rollout::Owner { api_version, kind, name, uid } = owner;
        let [api_version, kind, name, uid] = [api_version, kind, name, uid].map(ToString::to_string);
        Self { api_version, kind, name, uid }
    }
}

/// Whether a request is about a pod that is being created; anything else passes.
pub fn is_creation(request: &Request<'_>) -> bool {
    request.operation == "CREATE" && request.is_about("", "pods")
}

/// Decides about the pod of a request.
pub fn review(request: &Request<'_>, question: Question<'_>) -> Result<Answer, Unreadable> {
    let object = request.object()?;
    let head = PodHead::parse(object.as_bytes())?;
    let sets = question.known.sets.of_pod(&head, question.namespace);
    if sets.is_empty() && !head.is_marked() {
        return Ok(Answer { response: Response::allowed(), outcomes: Vec::new(), refusal: None });
    }
    let pod: Value = serde_json::from_str(object)?;
    let given = head.revisions();
    let candidates = sets.iter().map(|set| candidate(question.known, set, given.of(&set.name)));
    let decision = inject(&pod, question.namespace, candidates, question.installation);
    Ok(answer(&pod, &decision))
}

/// The revision of a set that a pod gets. One that is asked for is never replaced by another in silence.
fn candidate<'a>(known: &'a Known, set: &'a Meaning, given: Option<&PodRevision>) -> Candidate<'a> {
    // What a pod was given when it was reviewed before, it has.
    if let Some(given) = given {
        let before = known.revisions_of(&set.name).find(|revision| revision.name == given.is);
        if let Some((revision, template)) = before.and_then(|it| Some((it, it.template.as_ref()?))) {
            return Candidate { choice: Choice::Revision { name: &revision.name, template }, ..Candidate::latest(set) };
        }
    }
    let choice = match known.pinned(set) {
        Pinned::Nothing | Pinned::Newest => Choice::Latest,
        Pinned::Stored(revision, template) => Choice::Revision { name: &revision.name, template },
        Pinned::Missing(name) => Choice::Unavailable { name, reason: Reason::RevisionMissing },
        Pinned::Foreign(name) => Choice::Unavailable { name, reason: Reason::RevisionOfAnotherSet },
    };
    Candidate { choice, ..Candidate::latest(set) }
}

fn answer(pod: &Value, decision: &Decision<'_>) -> Answer {
    let outcomes = decision.verdicts.iter().map(|verdict| (verdict.outcome, verdict.reason)).collect();
    let audit = decision.verdicts.iter().map(audited).collect::<Vec<_>>().join(" ");
    let warnings = decision.verdicts.iter().flat_map(warnings);
    let refusal = refused(pod, decision);
    let response = match &refusal {
        Some(refusal) => Response::forbidden(&refusal.message),
        None => Response::allowed().with_patch(&decision.patch).with_warnings(warnings),
    };
    let response = if audit.is_empty() { response } else { response.with_audit("sets", &audit) };
    Answer { response, outcomes, refusal }
}

fn refused(pod: &Value, decision: &Decision<'_>) -> Option<Refused> {
    let first = decision.refusals().next()?;
    let lines: Vec<String> = decision.refusals().map(line).collect();
    let owners = pod["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    let owner = owners.into_iter().find(|owner| owner["controller"] == true);
    Some(Refused {
        set: first.set.to_owned(),
        reason: first.reason,
        message: lines.join("\n"),
        owner: owner.and_then(|owner| serde::Deserialize::deserialize(owner).ok()),
    })
}

/// `mesh=inject:PL201`
fn audited(verdict: &Verdict<'_>) -> String {
    format!("{}={}:{}", verdict.set, verdict.outcome.word(), verdict.reason.code())
}

fn line(verdict: &Verdict<'_>) -> String {
    let Verdict { set, reason, message, .. } = verdict;
    format!("SidecarSet {set}: {}: {message}: {}", reason.code(), reason.cure())
}

fn warnings<'a>(verdict: &'a Verdict<'_>) -> impl Iterator<Item = String> + use<'a> {
    let ignored = (verdict.outcome == Outcome::Ignored).then(|| line(verdict));
    let others = verdict.warnings.iter();
    let others =
        others.map(|warning| format!("SidecarSet {}: {}: {}", verdict.set, warning.reason.code(), warning.message));
    ignored.into_iter().chain(others)
}
