//! The reasons of a preview, for people.

use std::fmt::Write as _;

use pillion_api::{Reason, Segment};
use pillion_expr::{Mode, Operation, Outcome as Computed, Side, Step};
use pillion_inject::{Decision, Filled, FilledBy, Outcome, Size, Verdict, asked_for};
use pillion_quantity::Quantity;

use super::{Preview, Said};
use crate::layout::{hanging, indented};

/// The verdict of every set, the arithmetic, and whatever else there is to know.
pub(crate) fn why(preview: &Preview<'_>) -> String {
    let rows: Vec<[String; 4]> = preview.all().iter().map(|(set, said)| row(preview, set, said)).collect();
    let mut text = table(&rows);
    let mut sections = vec![arithmetic(preview), endings(&preview.decision)];
    sections.extend(filled_in(preview));
    sections.push(problems(preview));
    sections.push(preview.notes().iter().map(|note| indented(2, &format!("note: {note}"))).collect());
    for section in sections.into_iter().filter(|section| !section.is_empty()) {
        text.push('\n');
        text.push_str(&section);
    }
    text
}

/// How sidecars are ended, and whatever there is to know about it; or why the pod cannot have what it asks for.
fn endings(decision: &Decision<'_>) -> String {
    let mut text = String::new();
    for ending in &decision.endings {
        text.push_str(&indented(2, &format!("sidecar {}: {} [{}]", ending.container, ending.message, ending.reason)));
        for warning in &ending.warnings {
            text.push_str(&indented(4, &format!("warning: {} [{}]", warning.message, warning.reason)));
        }
    }
    if let Some(refusal) = &decision.refusal {
        text.push_str(&explained(&format!("the pod is refused: {}", refusal.message), refusal.reason));
    }
    text
}

/// What the API server fills in before and after the webhook.
pub(crate) fn filled_in(preview: &Preview<'_>) -> [String; 2] {
    [
        filled("the API server first fills in", &told(preview)),
        filled("the API server then fills in", &preview.filled_after.iter().collect::<Vec<_>>()),
    ]
}

/// Sets with verdict, code and words. Columns are as wide as their widest word.
pub(crate) fn table(rows: &[[String; 4]]) -> String {
    let head = ["SET", "VERDICT", "CODE", "WHY"].map(str::to_owned);
    let width = |column: usize| rows.iter().chain([&head]).map(|row| row[column].chars().count()).max().unwrap_or(0);
    let (first, second, third) = (width(0), width(1), width(2));
    let mut text = String::new();
    for row in [&head].into_iter().chain(rows) {
        let [set, verdict, code, why] = row;
        let begin = format!("  {set:first$}  {verdict:second$}  {code:third$}  ");
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{begin}{}", hanging(begin.chars().count(), why));
    }
    text
}

fn row(preview: &Preview<'_>, set: &str, said: &Said<'_, '_>) -> [String; 4] {
    let (verdict, code, why) = match said {
        Said::Mismatch(found) => (Outcome::Skipped.word(), found.reason, found.message.clone()),
        Said::Verdict(verdict) => {
            let why = match (verdict.reason, preview.set(set)) {
                (Reason::Injected, Some(set)) => format!("{}: {}", verdict.message, asked_for(set)),
                _ => verdict.message.clone(),
            };
            (verdict.outcome.word(), verdict.reason, why)
        }
    };
    [set.to_owned(), verdict.to_owned(), code.to_string(), why]
}

fn arithmetic(preview: &Preview<'_>) -> String {
    let sizes = preview.decision.verdicts.iter().flat_map(|it| it.sizes.iter().map(move |size| (it.set, size)));
    sizes.map(|(set, size)| computed(set, size)).collect()
}

/// An amount, and how it came about.
pub(crate) fn computed(set: &str, size: &Size<'_>) -> String {
    let resource = size.field.resource;
    let result = size.result.human(resource).to_string();
    let none = if size.result == Computed::Unlimited { ": no limit is written" } else { "" };
    let mut text = indented(2, &format!("{set}/{}  {} = {result}{none}", size.container, size.field));
    let source = size.program.source().trim();
    if source == result {
        return text;
    }
    text.push_str(&indented(4, source));
    // Where a part is too long to be written down, the result stands alone.
    let Ok(explanation) = size.program.explain(size.input) else { return text };
    if has_variable(&explanation.root) {
        text.push_str(&indented(6, &aggregate(size)));
    }
    let steps = explanation.to_string();
    let steps: Vec<&str> = steps.lines().collect();
    // The last line says the result again.
    for step in steps.iter().take(steps.len().saturating_sub(1)) {
        text.push_str(&indented(6, step));
    }
    text
}

fn has_variable(step: &Step) -> bool {
    step.operation == Operation::Variable || step.children.iter().any(has_variable)
}

/// `sum of limits.cpu: large-engine-v4 200m + large-engine-v8 400m`
fn aggregate(size: &Size<'_>) -> String {
    let shown: Vec<String> =
        size.targets.iter().map(|(name, amount)| format!("{name} {}", seen(size, *amount))).collect();
    match (shown.as_slice(), size.mode) {
        ([only], _) => format!("{} of {only}", size.field),
        (shown, Mode::Sum) => format!("sum of {}: {}", size.field, shown.join(" + ")),
        (shown, Mode::Max) => format!("max of {}: {}", size.field, shown.join(", ")),
    }
}

/// What a target counts as.
fn seen(size: &Size<'_>, amount: Option<Quantity>) -> String {
    match (amount, size.field.side) {
        (Some(amount), _) => amount.human(size.field.resource).to_string(),
        (None, Side::Limits) => "unlimited".to_owned(),
        (None, Side::Requests) => "0".to_owned(),
    }
}

/// Every pod has an account in the end; that is worth a word only where a set has one to give.
fn told<'p>(preview: &'p Preview<'_>) -> Vec<&'p Filled> {
    let mut sets = preview.decision.verdicts.iter().filter_map(|verdict| preview.set(verdict.set));
    let is_account_given = sets.any(|set| set.template.service_account_name.is_some());
    preview.subject.filled.iter().filter(|filled| filled.by != FilledBy::Account || is_account_given).collect()
}

fn filled(title: &str, filled: &[&Filled]) -> String {
    if filled.is_empty() {
        return String::new();
    }
    let mut text = indented(2, title);
    for field in filled {
        text.push_str(&indented(4, &format!("{} = {}, {}", place(field), field.value, field.by)));
    }
    text
}

/// `app requests.cpu`: of a container, its name says enough.
fn place(filled: &Filled) -> String {
    match filled.path.segments() {
        [.., Segment::Key(container), Segment::Field(_), Segment::Field(side), Segment::Key(resource)] => {
            format!("{container} {side}.{resource}")
        }
        _ => filled.path.to_string(),
    }
}

/// Why sets could not be applied, and what to know besides, each with its way out.
fn problems(preview: &Preview<'_>) -> String {
    let mut text = String::new();
    for verdict in preview.decision.verdicts.iter().filter(|verdict| is_problem(verdict)) {
        let follows = match verdict.outcome {
            Outcome::Refused => "refuses the pod",
            Outcome::Observed => "would not be applied",
            _ => "is left out, as its failurePolicy is Ignore",
        };
        text.push_str(&explained(&format!("set {} {follows}", verdict.set), verdict.reason));
    }
    for verdict in &preview.decision.verdicts {
        for warning in &verdict.warnings {
            let head = format!("warning: set {}: {}", verdict.set, warning.message);
            text.push_str(&explained(&head, warning.reason));
        }
    }
    text
}

fn is_problem(verdict: &Verdict<'_>) -> bool {
    match verdict.outcome {
        Outcome::Refused | Outcome::Ignored => true,
        Outcome::Observed => verdict.reason != Reason::Observed,
        Outcome::Applied | Outcome::Kept | Outcome::Skipped => false,
    }
}

/// A sentence with its code, how that comes about, and the way out.
pub(crate) fn explained(head: &str, reason: Reason) -> String {
    let mut text = indented(2, &format!("{head} [{reason}]"));
    for (name, words) in [("cause", reason.cause()), ("cure", reason.cure())] {
        let begin = format!("    {name:5}  ");
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{begin}{}", hanging(begin.len(), words));
    }
    text
}
