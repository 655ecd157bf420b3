//! What becomes of a pod that is about to be created.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pillion_api::{Meaning, PodRevision, Proportion, Reason, SetMode};
use pillion_inject::{
    Candidate, Choice, Decision, Installation, Namespace, Outcome, PodHead, Sizer, Verdict, inject, marks,
    mentions_variable,
};
use pillion_pod::Operation;
use pillion_rightsize::{Admitted, Sizing, Which, admit, is_above_pod_limits};
use pillion_rollout::choice::{Choice as ByRule, Draw, choose, draws_pinned};
use pillion_rollout::history::Pinned;
use pillion_rollout::ledger::Member;
use serde_json::Value;

use super::reservation::{Ask, Reservation};
use super::review::{Request, Response, Unreadable};
use super::sizing::{Rightsizing, sized_containers};
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
    /// How many pods each set matched when it was last told, for those that draw.
    pub matched: &'a BTreeMap<String, usize>,
    /// What is drawn for this pod.
    pub draw: Draw,
    /// By what pods of this namespace are sized; `None` where none is.
    pub rightsizing: Option<Rightsizing<'a>>,
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
    /// The set that refused it first; `None` where the pod asked itself for what cannot be.
    pub set: Option<String>,
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

/// A review, as far as it is decided without a ledger.
pub enum Begun<'a> {
    /// Nothing is to be counted.
    Done(Answer),
    /// Revisions are to be reserved first.
    Asking(Asking<'a>),
}

/// A review that waits for reservations.
pub struct Asking<'a> {
    question: Question<'a>,
    sized: SizedReview<'a>,
    plans: Vec<Plan<'a>>,
    asks: Vec<Ask>,
}

/// A pod whose own containers have their sizes: those of sidecars may follow from them.
struct SizedReview<'a> {
    pod: Value,
    patch: Vec<Operation>,
    /// By what the containers of sets are sized in their turn.
    sizing: Option<Sizing<'a>>,
    /// Whether the pod's own containers wait for that, too.
    is_late: bool,
    /// Those that have a size.
    containers: BTreeSet<String>,
    /// Why nothing is sized, for whoever made the pod.
    warning: Option<String>,
}

/// What a pod is to get of one set.
struct Plan<'a> {
    candidate: Candidate<'a>,
    /// Whether it says itself that it was given this revision before.
    is_said: bool,
    /// Whether a ledger decides; the candidate is the pinned revision until it has.
    is_counted: bool,
}

/// Decides about the pod of a request, as far as no ledger is needed.
pub fn begin<'a>(request: &Request<'_>, question: Question<'a>) -> Result<Begun<'a>, Unreadable> {
    let object = request.object()?;
    let head = PodHead::parse(object.as_bytes())?;
    let sets = question.known.sets.of_pod(&head, question.namespace);
    let sizing = question.sizing(object);
    if sets.is_empty() && !head.is_marked() && !has_sidecars(&head, object, question.installation) && sizing.is_none() {
        return Ok(Begun::Done(Answer { response: Response::allowed(), outcomes: Vec::new(), refusal: None }));
    }
    let mut sized = SizedReview::own(serde_json::from_str(object)?, sizing);
    let said = head.revisions();
    let planned = |(at, set): (usize, &&'a Arc<Meaning>)| match said.of(&set.name) {
        Some(said) => Plan::said(question.known, set, said).unwrap_or_else(|| Plan::new(question, set, at, &head)),
        None => Plan::new(question, set, at, &head),
    };
    let mut plans: Vec<Plan<'a>> = sets.iter().enumerate().map(planned).collect();
    let mut decision = decide(&sized, question, &plans);
    // What a pod says of itself is true only of sidecars that are there.
    let is_kept = |set: &str| outcome(&decision, set) == Some(Outcome::Kept);
    let lies: Vec<usize> =
        (0..plans.len()).filter(|at| plans[*at].is_said && !is_kept(&plans[*at].candidate.set.name)).collect();
    if !lies.is_empty() {
        for at in lies {
            plans[at] = Plan::new(question, plans[at].candidate.set, at, &head);
        }
        decision = decide(&sized, question, &plans);
    }
    if sized.is_above_limits(&decision) {
        sized = SizedReview::all_at_once(serde_json::from_str(object)?, sized);
        decision = decide(&sized, question, &plans);
    }
    let is_asked =
        |plan: &&Plan<'_>| plan.is_counted && outcome(&decision, &plan.candidate.set.name) == Some(Outcome::Applied);
    let asked = plans.iter().filter(is_asked).filter(|_| !decision.is_refused());
    let asks: Vec<Ask> = asked.map(|plan| ask(question, &sized.pod, &plan.candidate)).collect();
    if asks.is_empty() {
        return Ok(Begun::Done(answer(&sized, &decision)));
    }
    drop(decision);
    Ok(Begun::Asking(Asking { question, sized, plans, asks }))
}

/// Whether a pod may have containers that are to be ended, whatever the sets say.
fn has_sidecars(head: &PodHead<'_>, object: &str, installation: Installation<'_>) -> bool {
    installation.finish.is_some() && (head.names_sidecars() || mentions_variable(object))
}

impl<'a> Question<'a> {
    /// How the pod is sized, where it is. Where nothing is injected, nothing is sized either.
    fn sizing(&self, object: &str) -> Option<Sizing<'a>> {
        let Installation { mode, is_off, own_namespace, .. } = self.installation;
        let is_left_alone = is_off || mode == SetMode::Observe || self.namespace.is_excluded(own_namespace);
        self.rightsizing.filter(|_| !is_left_alone)?.of_pod(&self.namespace.name, object)
    }
}

impl<'a> SizedReview<'a> {
    fn own(pod: Value, sizing: Option<Sizing<'a>>) -> Self {
        let Some(sizing) = sizing else {
            return Self {
                pod,
                patch: Vec::new(),
                sizing: None,
                is_late: false,
                containers: BTreeSet::new(),
                warning: None,
            };
        };
        let injected = marks::injected(&pod);
        let Admitted { pod, patch, skipped } = admit(pod, &sizing, Which::Own(&injected));
        let warning = skipped
            .as_ref()
            .map(|why| format!("VerticalPodAutoscaler {}: the pod is not sized: {why}", sizing.autoscaler.name));
        let sizing = Some(sizing).filter(|_| skipped.is_none());
        let containers = sizing.as_ref().map(sized_containers).unwrap_or_default();
        Self { pod, patch, sizing, is_late: false, containers, warning }
    }

    /// The same with nothing sized before sets have brought what they bring: then all share what a pod may have.
    fn all_at_once(pod: Value, own: Self) -> Self {
        Self { pod, patch: Vec::new(), is_late: true, ..own }
    }

    /// Whether the pod's own containers were given so much that, with what sets bring, the API server would refuse the pod.
    fn is_above_limits(&self, decision: &Decision<'_>) -> bool {
        let Some(sizing) = self.sizing.as_ref().filter(|_| !self.patch.is_empty()) else { return false };
        let injected = decision.pod.as_ref().filter(|_| !sizing.limits.pod.max.is_empty());
        injected.is_some_and(|pod| {
            let admitted = admit(pod.clone(), sizing, Which::Injected(&marks::injected(pod)));
            is_above_pod_limits(&admitted.pod, sizing.limits)
        })
    }

    /// All changes: of the pod's own containers, by sets, and of what these brought. Each follows from the one before.
    fn patch(&self, decision: &Decision<'_>) -> Vec<Operation> {
        let mut patch = self.patch.clone();
        patch.extend(decision.patch.iter().cloned());
        if let Some(sizing) = &self.sizing {
            let pod = decision.pod.as_ref().unwrap_or(&self.pod);
            let injected = marks::injected(pod);
            let which = if self.is_late { Which::All } else { Which::Injected(&injected) };
            if self.is_late || !injected.is_empty() {
                patch.extend(admit(pod.clone(), sizing, which).patch);
            }
        }
        patch
    }
}

impl Asking<'_> {
    /// What ledgers are to be asked; one of each set at most.
    pub fn asks(&self) -> &[Ask] {
        &self.asks
    }

    /// The answer with what was reserved, by set.
    pub fn finish(&self, reservations: &BTreeMap<String, Reservation>) -> Answer {
        let plans = self.plans.iter().map(|plan| {
            let reserved = reservations.get(&plan.candidate.set.name).filter(|_| plan.is_counted);
            let mut candidate = plan.candidate;
            if let Some(reserved) = reserved {
                candidate.choice = if reserved.is_newest { Choice::Latest } else { candidate.choice };
                candidate.reservation = reserved.id.as_deref();
                candidate.trouble = reserved.trouble.as_deref();
            }
            Plan { candidate, ..*plan }
        });
        let plans: Vec<Plan<'_>> = plans.collect();
        answer(&self.sized, &decide(&self.sized, self.question, &plans))
    }
}

impl<'a> Plan<'a> {
    /// What a pod was given when it was reviewed before, it has.
    fn said(known: &'a Known, set: &'a Meaning, said: &PodRevision) -> Option<Self> {
        let candidate = if said.is == set.revision {
            Candidate::latest(set)
        } else {
            let revision = known.revisions_of(&set.name).find(|revision| revision.name == said.is)?;
            let choice = Choice::Revision { name: &revision.name, template: revision.template.as_ref()? };
            Candidate { choice, ..Candidate::latest(set) }
        };
        Some(Self { candidate, is_said: true, is_counted: false })
    }

    /// The revision of a set that a pod gets. One that is asked for is never replaced by another in silence.
    fn new(question: Question<'a>, set: &'a Meaning, at: usize, head: &PodHead<'_>) -> Self {
        let label = |key: &str| head.labels().iter().find(|(own, _)| own == key).map(|(_, value)| &**value);
        let pinned = match question.known.pinned(set) {
            Pinned::Nothing | Pinned::Newest => return Self::of(Candidate::latest(set)),
            Pinned::Stored(revision, template) => Choice::Revision { name: &revision.name, template },
            Pinned::Missing(name) => Choice::Unavailable { name, reason: Reason::RevisionMissing },
            Pinned::Foreign(name) => Choice::Unavailable { name, reason: Reason::RevisionOfAnotherSet },
        };
        let pinned = Candidate { choice: pinned, ..Candidate::latest(set) };
        match (choose(set, label), set.injection.proportion) {
            // A pin to what is not there stops pods that would not have got it, too: it is a mistake in the set.
            (ByRule::Latest, _) if !matches!(pinned.choice, Choice::Unavailable { .. }) => {
                Self::of(Candidate::latest(set))
            }
            (ByRule::Latest | ByRule::Pinned, _) => Self::of(pinned),
            (ByRule::InProportion, Proportion::Exact) => Self { is_counted: true, ..Self::of(pinned) },
            (ByRule::InProportion, Proportion::Random) => {
                let matched = question.matched.get(&set.name).copied();
                let is_pinned = draws_pinned(set.update.partition, matched, question.draw.another(at));
                // Never silently the newest, where the other is gone.
                let is_pinned = is_pinned || matches!(pinned.choice, Choice::Unavailable { .. });
                Self::of(if is_pinned { pinned } else { Candidate::latest(set) })
            }
        }
    }

    fn of(candidate: Candidate<'a>) -> Self {
        Self { candidate, is_said: false, is_counted: false }
    }
}

fn decide<'p>(sized: &'p SizedReview<'_>, question: Question<'_>, plans: &[Plan<'p>]) -> Decision<'p> {
    let candidates = plans.iter().map(|plan| plan.candidate);
    let sizer = sized.sizing.as_ref().filter(|_| !sized.containers.is_empty()).map(|sizing| Sizer {
        name: &sizing.autoscaler.name,
        containers: &sized.containers,
        native: sizing.gates.native_sidecar,
    });
    inject(&sized.pod, question.namespace, candidates, Installation { sizer, ..question.installation })
}

fn outcome(decision: &Decision<'_>, set: &str) -> Option<Outcome> {
    decision.verdicts.iter().find(|verdict| verdict.set == set).map(|verdict| verdict.outcome)
}

fn ask(question: Question<'_>, pod: &Value, pinned: &Candidate<'_>) -> Ask {
    let set = pinned.set;
    let metadata = &pod["metadata"];
    let owners = metadata["ownerReferences"].as_array().into_iter().flatten();
    let owner = owners.into_iter().find(|owner| owner["controller"] == true);
    let member = owner.and_then(|owner| {
        let (kind, owner, name) = (owner["kind"].as_str()?, owner["name"].as_str()?, metadata["name"].as_str()?);
        Member::read(&question.namespace.name, kind, owner, name)
    });
    Ask {
        set: set.name.clone(),
        set_uid: question.known.judged.get(&set.name).map(|judged| judged.uid.clone()).unwrap_or_default(),
        newest: set.revision.clone(),
        pinned: pinned.revision().to_owned(),
        partition: set.update.partition,
        member: member.map(|member| (member.namespace.to_owned(), member.name.to_owned(), member.ordinal)),
    }
}

fn answer(sized: &SizedReview<'_>, decision: &Decision<'_>) -> Answer {
    let outcomes = decision.verdicts.iter().map(|verdict| (verdict.outcome, verdict.reason)).collect();
    let audit = decision.verdicts.iter().map(audited).collect::<Vec<_>>().join(" ");
    let of_endings = decision.endings.iter().flat_map(|ending| ending.warnings.iter().map(move |it| (ending, it)));
    let of_endings = of_endings.map(|(ending, warning)| {
        format!("container {}: {}: {}", ending.container, warning.reason.code(), warning.message)
    });
    let warnings = decision.verdicts.iter().flat_map(warnings).chain(of_endings).chain(sized.warning.clone());
    let refusal = refused(&sized.pod, decision);
    let response = match &refusal {
        Some(refusal) => Response::forbidden(&refusal.message),
        None => Response::allowed().with_patch(&sized.patch(decision)).with_warnings(warnings),
    };
    let response = if audit.is_empty() { response } else { response.with_audit("sets", &audit) };
    let response = match &sized.sizing {
        Some(sizing) => response.with_audit("autoscaler", &sizing.autoscaler.name),
        None => response,
    };
    Answer { response, outcomes, refusal }
}

fn refused(pod: &Value, decision: &Decision<'_>) -> Option<Refused> {
    let of_pod = decision.refusal.as_ref();
    let first = decision.refusals().next();
    let reason = first.map(|verdict| verdict.reason).or(of_pod.map(|refusal| refusal.reason))?;
    let of_pod = of_pod.map(|it| format!("{}: {}: {}", it.reason.code(), it.message, it.reason.cure()));
    let lines: Vec<String> = decision.refusals().map(line).chain(of_pod).collect();
    let owners = pod["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    let owner = owners.into_iter().find(|owner| owner["controller"] == true);
    Some(Refused {
        set: first.map(|verdict| verdict.set.to_owned()),
        reason,
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
