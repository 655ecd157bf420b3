//! What an edit does, for people and for programs.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use pillion_api::Reason;
use pillion_inject::{Cause, Counts, Effect, Example, Impact};
use serde_json::{Value, json};

use super::change::Change;
use crate::layout::indented;
use crate::preview::explained;

/// The effects in the order of examples: words for a line of the table, words for a program, and their number.
type Line = (&'static str, &'static str, fn(&Counts) -> usize);

const LINES: [Line; 8] = [
    ("would be refused", "refused", |counts| counts.refused),
    ("are refused already", "stillRefused", |counts| counts.still_refused),
    ("would go without the set", "leftOut", |counts| counts.left_out),
    ("would lose the sidecars", "loses", |counts| counts.loses),
    ("would change", "changes", |counts| counts.changes),
    ("would get the sidecars", "gains", |counts| counts.gains),
    ("would not be refused any more", "admitted", |counts| counts.admitted),
    ("not affected", "unaffected", |counts| counts.unaffected),
];

fn word(effect: &Effect) -> &'static str {
    match effect {
        Effect::Refused(_) => "refused",
        Effect::StillRefused(_) => "stillRefused",
        Effect::LeftOut(_) => "leftOut",
        Effect::Loses => "loses",
        Effect::Changes => "changes",
        Effect::Gains => "gains",
        Effect::Admitted => "admitted",
        Effect::Unaffected => "unaffected",
    }
}

fn cause(effect: &Effect) -> Option<&Cause> {
    match effect {
        Effect::Refused(cause) | Effect::StillRefused(cause) | Effect::LeftOut(cause) => Some(cause),
        Effect::Unaffected | Effect::Gains | Effect::Loses | Effect::Changes | Effect::Admitted => None,
    }
}

/// A table of counts, then some of those concerned by name, then the way out of refusals.
pub(super) fn text(change: &Change<'_>, impact: &Impact) -> String {
    let state = match change.state() {
        "new" => "new",
        "same" => "as the cluster has it",
        _ => "changed",
    };
    let mut text = format!("SidecarSet {}: {state}\n\n", change.after.name);
    let told: Vec<&Line> = LINES
        .iter()
        .filter(|(_, word, count)| *word == "unaffected" || count(&impact.pods) + count(&impact.templates) > 0)
        .collect();
    let width = told.iter().map(|(words, ..)| words.chars().count()).max().unwrap_or(0);
    // Writing to a String cannot fail.
    let _ = writeln!(text, "  {:width$}  {:>9}  {:>9}", "", "PODS", "TEMPLATES");
    for (words, _, count) in told {
        let _ = writeln!(text, "  {words:width$}  {:>9}  {:>9}", count(&impact.pods), count(&impact.templates));
    }
    for (words, effect, count) in LINES {
        let named: Vec<Example<'_>> = impact.examples().filter(|example| word(example.effect) == effect).collect();
        if named.is_empty() {
            continue;
        }
        let _ = writeln!(text, "\n  {words}");
        for example in &named {
            text.push_str(&indented(4, &line(&change.after.name, example)));
        }
        let more = count(&impact.pods) + count(&impact.templates) - named.len();
        if more > 0 {
            let _ = writeln!(text, "    and {more} more");
        }
    }
    let codes: BTreeSet<Reason> =
        impact.examples().filter_map(|example| cause(example.effect)).map(|cause| cause.reason).collect();
    if !codes.is_empty() {
        text.push('\n');
    }
    for reason in codes {
        text.push_str(&explained(reason.title(), reason));
    }
    text
}

fn line(edited: &str, example: &Example<'_>) -> String {
    let subject = example.subject;
    let name = format!("{} {}/{}", subject.kind, subject.namespace, subject.name);
    match cause(example.effect) {
        None => name,
        Some(cause) if cause.set == edited => format!("{name}: {} [{}]", cause.message, cause.reason),
        Some(cause) => format!("{name}: set {}: {} [{}]", cause.set, cause.message, cause.reason),
    }
}

/// The same. Fields may be added, and none changes its meaning.
pub(super) fn json(change: &Change<'_>, impact: &Impact) -> Value {
    let counts = |of: &Counts| -> Value {
        LINES
            .iter()
            .map(|(_, word, count)| ((*word).to_owned(), json!(count(of))))
            .collect::<serde_json::Map<_, _>>()
            .into()
    };
    let examples = impact.examples().map(|example| {
        let cause = cause(example.effect);
        json!({
            "kind": example.subject.kind, "namespace": example.subject.namespace, "name": example.subject.name,
            "effect": word(example.effect), "set": cause.map(|cause| &cause.set),
            "code": cause.map(|cause| cause.reason.code()), "message": cause.map(|cause| &cause.message),
        })
    });
    json!({
        "set": change.after.name,
        "state": change.state(),
        "pods": counts(&impact.pods),
        "templates": counts(&impact.templates),
        "examples": examples.collect::<Vec<_>>(),
        "warnings": change.warnings,
    })
}
