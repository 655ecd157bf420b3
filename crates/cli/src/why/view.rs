//! Answers for people and for programs.

use std::collections::{BTreeMap, BTreeSet};

use pillion_api::Reason;
use serde_json::{Value, json};

use super::answer::{Answer, Basis, Row, json_of_row};
use crate::layout::indented;
use crate::preview::{explained, table};

/// So many sets that do not match are told without being asked for.
const FEW: usize = 10;
/// So many of the pods that have the same answer are named.
const NAMED: usize = 3;

/// How much is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    /// Many sets that do not match are only counted.
    Short,
    /// Every set is told.
    Full,
}

/// All answers, those that are the same once.
pub(crate) fn text(answers: &[Answer], detail: Detail) -> String {
    let mut bodies: Vec<String> = Vec::new();
    let mut groups: BTreeMap<(String, usize), Vec<&Answer>> = BTreeMap::new();
    for answer in answers {
        let body = body(answer, detail);
        let at = bodies.iter().position(|known| *known == body).unwrap_or_else(|| {
            bodies.push(body);
            bodies.len() - 1
        });
        let place = format!("{} {}", answer.origin.kind, answer.origin.namespace);
        groups.entry((place, at)).or_default().push(answer);
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|((_, at), _)| *at);
    let texts = groups.iter().map(|((_, at), group)| format!("{}\n\n{}", title(group), bodies[*at]));
    texts.collect::<Vec<_>>().join("\n")
}

fn title(group: &[&Answer]) -> String {
    let Some(first) = group.first() else { return String::new() };
    let (kind, namespace) = (&first.origin.kind, &first.origin.namespace);
    let names: Vec<String> = group.iter().take(NAMED).map(|it| format!("{namespace}/{}", it.origin.name)).collect();
    let more = group.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{kind} {}{more}: {}", names.join(", "), basis(first.basis))
}

fn basis(basis: Basis) -> &'static str {
    match basis {
        Basis::Record => "decided at creation",
        Basis::NoRecord => "without a record, so decided as if created now",
        Basis::Template => "decided as if created now",
    }
}

fn body(answer: &Answer, detail: Detail) -> String {
    let mismatches = answer.rows.iter().filter(|row| row.is_mismatch()).count();
    let is_told = |row: &&Row| detail == Detail::Full || mismatches <= FEW || !row.is_mismatch();
    let rows: Vec<&Row> = answer.rows.iter().filter(is_told).collect();
    let mut sections = Vec::new();
    if rows.is_empty() && mismatches == 0 {
        sections.push(indented(2, "no set has anything to say: the cluster has none"));
    } else if !rows.is_empty() {
        let cells: Vec<[String; 4]> = rows
            .iter()
            .map(|row| {
                [
                    row.set.clone(),
                    row.verdict.to_owned(),
                    row.reason.map_or_else(String::new, |it| it.to_string()),
                    row.message.clone(),
                ]
            })
            .collect();
        sections.push(table(&cells));
    }
    if rows.len() < answer.rows.len() {
        let hidden = answer.rows.len() - rows.len();
        sections.push(indented(2, &format!("{hidden} sets do not match; -o wide lists them, --set NAME asks for one")));
    }
    sections.push(rows.iter().flat_map(|row| &row.sizes).map(|size| size.text.as_str()).collect());
    sections.extend(answer.filled.iter().cloned());
    sections.push(answer.endings.iter().map(|(sentence, reason)| explained(sentence, *reason)).collect());
    sections.push(warnings(&rows));
    sections.push(legend(&rows));
    sections.push(answer.notes.iter().map(|note| indented(2, &format!("note: {note}"))).collect());
    sections.push(answer.conclusion.iter().flat_map(|it| it.lines()).map(|line| indented(2, line)).collect());
    sections.retain(|section| !section.is_empty());
    sections.join("\n")
}

fn warnings(rows: &[&Row]) -> String {
    let all = rows.iter().flat_map(|row| row.warnings.iter().map(move |warning| (row, warning)));
    all.map(|(row, (reason, message))| {
        let message = message.as_deref().unwrap_or(reason.title());
        explained(&format!("warning: set {}: {message}", row.set), *reason)
    })
    .collect()
}

/// Every code that was told, with its way out.
fn legend(rows: &[&Row]) -> String {
    let codes: BTreeSet<Reason> = rows.iter().filter_map(|row| row.reason).collect();
    codes.into_iter().map(|reason| explained(reason.title(), reason)).collect()
}

/// One answer. Fields may be added, and none changes its meaning.
pub(crate) fn json(answer: &Answer) -> Value {
    let origin = &answer.origin;
    let basis = match answer.basis {
        Basis::Record => "record",
        Basis::NoRecord => "evaluation",
        Basis::Template => "template",
    };
    json!({
        "kind": origin.kind,
        "namespace": origin.namespace,
        "name": origin.name,
        "basis": basis,
        "sets": answer.rows.iter().map(json_of_row).collect::<Vec<_>>(),
        "endings": answer.endings.iter().map(|(sentence, reason)| json!({
            "code": reason.code(), "reason": reason.name(), "message": sentence, "cure": reason.cure(),
        })).collect::<Vec<_>>(),
        "notes": answer.notes,
    })
}
