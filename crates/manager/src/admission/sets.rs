//! What is to be said about a set that is about to be stored.
//!
//! Only what the set itself shows, and the other sets there are: no pod is looked at. What the schema and its rules refuse
//! does not come this far where our own definition of the kind is installed.

use pillion_api::{Problem, advice, clashes, review as judge};
use pillion_inject::SetIndex;
use serde_json::Value;

use super::review::{Request, Response, Unreadable};

/// Whether a request is about a set that is written; anything else passes.
pub fn is_write(request: &Request<'_>) -> bool {
    matches!(&*request.operation, "CREATE" | "UPDATE") && request.is_about("apps.kruise.io", "sidecarsets")
}

/// Decides about the set of a request.
pub fn review(request: &Request<'_>, others: &SetIndex) -> Result<Response, Unreadable> {
    let set: Value = serde_json::from_str(request.object()?)?;
    // Whoever removes its finalizers must be able to, whatever else it holds.
    if set["metadata"].get("deletionTimestamp").is_some() {
        return Ok(Response::allowed());
    }
    let judged = judge(&set);
    let errors: Vec<String> = judged.errors().map(Problem::to_string).collect();
    if !errors.is_empty() {
        return Ok(Response::invalid(&errors.join("\n")));
    }
    let mut problems = judged.problems;
    if let Some(meaning) = &judged.meaning {
        problems.extend(advice(meaning));
        let sets = others.sets().map(AsRef::as_ref);
        problems.extend(clashes(meaning, sets).into_iter().map(|clash| clash.problem));
    }
    Ok(Response::allowed().with_warnings(problems.iter().map(Problem::to_string)))
}
