//! What is to be said about a set that is about to be stored.
//!
//! Only what the set itself shows, and the other sets there are: no pod is looked at. What the schema and its rules refuse
//! does not come this far where our own definition of the kind is installed.

use pillion_api::{FieldPath, Meaning, Problem, Reason, Review, advice, clashes, ratchet, validate_write};
use pillion_rollout::history::{Pinned, pinned};
use serde_json::Value;

use super::review::{Request, Response, Unreadable};
use crate::view::Known;

/// Whether a request is about a set that is written; anything else passes.
pub fn is_write(request: &Request<'_>) -> bool {
    matches!(&*request.operation, "CREATE" | "UPDATE") && request.is_about("apps.kruise.io", "sidecarsets")
}

/// Decides about the set of a request.
pub fn review(request: &Request<'_>, known: &Known) -> Result<Response, Unreadable> {
    let set: Value = serde_json::from_str(request.object()?)?;
    // Whoever removes its finalizers must be able to, whatever else it holds.
    if set["metadata"].get("deletionTimestamp").is_some() {
        return Ok(Response::allowed());
    }
    let mut validation = validate(&set, known);
    // A stored object may predate a rule. What an update does not touch is no reason to reject the update.
    if let Some(old) = request.old_object() {
        let old: Value = serde_json::from_str(old)?;
        let of_old = validate(&old, known).problems;
        validation.problems = ratchet((&set, validation.problems), (&old, &of_old));
    }
    let validation = validation.capped();
    let errors: Vec<String> = validation.errors().map(Problem::to_string).collect();
    if !errors.is_empty() {
        return Ok(Response::invalid(&errors.join("\n")));
    }
    Ok(Response::allowed().with_warnings(validation.problems.iter().map(Problem::to_string)))
}

/// Validates a `SidecarSet` by itself, its pinned revision, and its conflicts with other `SidecarSet`s.
fn validate(set: &Value, known: &Known) -> Review {
    let mut validation = validate_write(set);
    let uid = set["metadata"]["uid"].as_str().unwrap_or_default();
    let strategies = ["injectStrategy", "injectionStrategy"];
    let strategy = strategies.into_iter().find(|field| set["spec"].get(field).is_some()).unwrap_or_default();
    if let Some(meaning) = &validation.meaning {
        validation.problems.extend(wrong_pin(meaning, uid, known, strategy));
        validation.problems.extend(advice(meaning));
        let sets = known.sets.sets().map(AsRef::as_ref);
        validation.problems.extend(clashes(meaning, sets).into_iter().map(|clash| clash.problem));
    }
    validation
}

/// What is wrong with the revision a set pins. It must be there, and be one of this set, when the set is written.
fn wrong_pin(set: &Meaning, uid: &str, known: &Known, strategy: &str) -> Option<Problem> {
    let (reason, message) = match pinned(set, uid, known.all_revisions()) {
        Pinned::Nothing | Pinned::Newest | Pinned::Stored(..) => return None,
        Pinned::Missing(name) => (Reason::RevisionMissing, format!("{name} is no revision of this set")),
        Pinned::Foreign(name) => (Reason::RevisionOfAnotherSet, format!("{name} is a revision of another set")),
    };
    Some(Problem::error(reason, FieldPath::of("spec").field(strategy), message, reason.cure()))
}
