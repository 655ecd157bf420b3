//! What the record on a pod says, with the arithmetic where the set still gives the same.

use std::str::FromStr as _;

use pillion_api::{Group, Meaning, PodRevision, PodRevisions, Reason};
use pillion_expr::{Explanation, Field, Input, Outcome as Computed, Program};
use pillion_inject::{Entry, Outcome, Record};
use pillion_quantity::Quantity;
use serde_json::json;

use super::answer::{Row, Sizing};
use crate::layout::indented;
use crate::live::World;

/// A line for every set of the record.
pub(crate) fn rows(world: &World, record: &Record, revisions: &PodRevisions) -> Vec<Row> {
    record.sets.iter().map(|(set, entry)| row(world, set, entry, revisions.of(set))).collect()
}

/// How sidecars are ended.
pub(crate) fn endings(record: &Record) -> Vec<(String, Reason)> {
    let all = record.finish.iter().flat_map(|(container, codes)| codes.iter().map(move |code| (container, code)));
    // A code that a newer version wrote is not known here.
    let known = all.filter_map(|(container, code)| Some((container, code.parse::<Reason>().ok()?)));
    known.map(|(container, reason)| (format!("sidecar {container}: {}", sentence(reason)), reason)).collect()
}

/// What is missing in a record.
pub(crate) fn note(record: &Record) -> Option<String> {
    let lost = match record.cut {
        0 => return None,
        1 => "sizes, words and warnings are",
        _ => "sizes, words, warnings, reservations and the last sets are",
    };
    Some(format!("{lost} not in the record, which would have been too long [{}]", Reason::RecordTruncated))
}

/// Whose sizes sidecars have, where they are not their set's.
pub(crate) fn sized(record: &Record) -> impl Iterator<Item = String> + '_ {
    record.sized_by.iter().map(|(container, autoscaler)| {
        format!("{container} has the size of VerticalPodAutoscaler {autoscaler}: pillion size explain vpa/{autoscaler}")
    })
}

fn row(world: &World, name: &str, entry: &Entry, revision: Option<&PodRevision>) -> Row {
    let set = world.given.sets.get(name).map(AsRef::as_ref);
    let Ok(reason) = Reason::from_str(&entry.code) else {
        // Its words are all there is.
        let words = entry.why.as_deref().unwrap_or("no words are recorded");
        let message = format!("{}, which only a newer version knows: {words}", entry.code);
        return Row { reason: None, ..Row::new(name, "unknown", Reason::Injected, message) };
    };
    let mut message = entry.why.clone().unwrap_or_else(|| sentence(reason));
    if let Some(PodRevision { is, from, .. }) = revision {
        let from = from.as_ref().map(|from| format!(", updated from {from}")).unwrap_or_default();
        message = format!("{message}; revision {is}{from}");
    }
    if set.is_none() && !world.invalid.contains_key(name) {
        message = format!("{message}; the set is not there any more");
    }
    let sizes = entry.sizes.iter().flat_map(|(container, fields)| {
        fields.iter().map(move |(field, (input, result))| size(name, set, container, field, input, result))
    });
    let warnings = entry.warnings.iter().filter_map(|code| Some((Reason::from_str(code).ok()?, None)));
    Row { sizes: sizes.collect(), warnings: warnings.collect(), ..Row::new(name, verdict(reason), reason, message) }
}

/// What came of a set, from its code.
fn verdict(reason: Reason) -> &'static str {
    let outcome = match reason {
        Reason::Injected | Reason::OptOutNotAllowed => Outcome::Applied,
        Reason::AlreadyInjected => Outcome::Kept,
        Reason::Observed => Outcome::Observed,
        _ if reason.group() == Group::Refusal => Outcome::Ignored,
        _ => Outcome::Skipped,
    };
    outcome.word()
}

/// A title within a line: `the set was applied to the pod`.
pub(super) fn sentence(reason: Reason) -> String {
    let mut letters = reason.title().trim_end_matches('.').chars();
    let first = letters.next().map(|letter| letter.to_ascii_lowercase());
    first.into_iter().chain(letters).collect()
}

fn size(name: &str, set: Option<&Meaning>, container: &str, field: &str, input: &str, result: &str) -> Sizing {
    let mut text = indented(2, &format!("{name}/{container}  {field} = {result}"));
    let mut json = json!({"container": container, "field": field, "input": input, "result": result});
    match set.and_then(|set| same(set, container, field, input, result)) {
        Some((program, explanation)) => {
            let source = program.source().trim();
            let steps = explanation.to_string();
            let steps: Vec<&str> = steps.lines().collect();
            if source != result {
                text.push_str(&indented(4, source));
                text.push_str(&indented(6, &format!("where the targets come to {input}")));
                // The last line says the result again.
                for step in steps.iter().take(steps.len().saturating_sub(1)) {
                    text.push_str(&indented(6, step));
                }
            }
            json["expression"] = json!(source);
            json["steps"] = json!(steps);
        }
        None => {
            text.push_str(&indented(4, &format!("from {input}, by an expression that the set does not have any more")));
        }
    }
    Sizing { text, json }
}

/// The expression of the set as it is now, if it gives what the record says.
fn same<'a>(
    set: &'a Meaning,
    container: &str,
    field: &str,
    input: &str,
    result: &str,
) -> Option<(&'a Program, Explanation)> {
    let field = Field::from_str(field).ok()?;
    let mut sidecars = set.template.init_containers.iter().chain(&set.template.containers);
    let sidecar = sidecars.find(|sidecar| sidecar.name == container)?;
    let program = sidecar.resources.as_ref()?.program(field)?;
    let input = if input == "unlimited" { Input::Unlimited } else { Input::Amount(Quantity::from_str(input).ok()?) };
    let explanation = program.explain(input).ok()?;
    let told = match explanation.result.ok()? {
        Computed::Amount(amount) => amount.human(field.resource).to_string(),
        Computed::Unlimited => "unlimited".to_owned(),
    };
    (told == result).then_some((program, explanation))
}
