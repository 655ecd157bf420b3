//! What an expression does over all pods, in words: shared by `check` and `plot`.

use pillion_expr::{Analysis, Direction, Extreme, Growth, Program, Ratio};
use pillion_quantity::Resource;
use serde_json::{Value, json};

/// Lines of `name  words`, in the order people ask.
pub(super) fn lines(program: &Program, from: Ratio, to: Option<Ratio>) -> Vec<(&'static str, String)> {
    let analysis = program.analysis();
    let resource = program.field().resource;
    let shown = |value: Ratio| value.human(resource);
    let knees: Vec<String> = analysis
        .knees()
        .map(|knee| format!("{} → {}", shown(knee.at), knee.value.map_or_else(|| "?".to_owned(), shown)))
        .collect();
    let slopes: Vec<String> = analysis.segments().map(|segment| segment.slope.to_string()).collect();
    vec![
        ("knees", if knees.is_empty() { "none".to_owned() } else { knees.join(", ") }),
        ("slopes", slopes.join(" / ")),
        ("range", range(&analysis, from, to, resource)),
        ("sign", sign(&analysis, resource)),
        ("direction", direction(&analysis).to_owned()),
        ("unlimited", growth(&analysis, resource)),
    ]
}

/// The same for programs. Exact numbers are texts: JSON's own would be rounded by many readers.
pub(super) fn json(program: &Program) -> Value {
    let analysis = program.analysis();
    let text = |value: Option<Ratio>| value.map(|value| value.to_string());
    json!({
        "segments": analysis.segments().map(|segment| json!({
            "from": segment.from.to_string(), "to": text(segment.to),
            "offset": segment.offset.to_string(), "slope": segment.slope.to_string(),
        })).collect::<Vec<_>>(),
        "knees": analysis.knees().map(|knee| json!({
            "at": knee.at.to_string(), "value": text(knee.value),
        })).collect::<Vec<_>>(),
        "negative": analysis.negative().iter().map(|interval| json!({
            "from": interval.from.to_string(), "fromIncluded": interval.from_included, "to": text(interval.to),
        })).collect::<Vec<_>>(),
        "direction": direction(&analysis),
        "unlimited": growth(&analysis, program.field().resource),
    })
}

fn range(analysis: &Analysis<'_>, from: Ratio, to: Option<Ratio>, resource: Resource) -> String {
    let domain = match to {
        Some(to) => format!("[{}, {}]", from.human(resource), to.human(resource)),
        None => format!("[{}, ∞)", from.human(resource)),
    };
    let Some(range) = analysis.range(from, to) else {
        return format!("too long to be written down, for {resource} in {domain}");
    };
    let end = |extreme, unbounded: &str| match extreme {
        Extreme::Finite { value, .. } => value.human(resource),
        Extreme::Unbounded => unbounded.to_owned(),
    };
    format!("{} … {} for {resource} in {domain}", end(range.low, "-∞"), end(range.high, "∞"))
}

fn sign(analysis: &Analysis<'_>, resource: Resource) -> String {
    let intervals: Vec<String> = analysis.negative().iter().map(|found| found.human(resource)).collect();
    if intervals.is_empty() {
        return "never negative, proven for every amount".to_owned();
    }
    format!("negative for {}", intervals.join(" and "))
}

fn direction(analysis: &Analysis<'_>) -> &'static str {
    match analysis.direction() {
        Direction::Constant => "constant",
        Direction::Rising => "never falls",
        Direction::Falling => "never rises",
        Direction::Mixed => "rises and falls",
    }
}

fn growth(analysis: &Analysis<'_>, resource: Resource) -> String {
    match analysis.growth() {
        Growth::Unlimited => "unlimited in, unlimited out".to_owned(),
        Growth::Settles(value) => format!("unlimited in, {} out", value.human(resource)),
        Growth::Falls => "unlimited in is refused: the result is negative".to_owned(),
    }
}
