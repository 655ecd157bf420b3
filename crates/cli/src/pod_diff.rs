//! What differs between two pods, as a person would say it: containers, volumes and variables by name, not by line.

use std::collections::BTreeSet;

use pillion_api::FieldPath;
use serde_json::{Map, Value};

use crate::yaml_text::{self, MAPS};

/// Lists in which the order says who starts first.
const ORDERED_LISTS: [&str; 2] = ["containers", "initContainers"];
/// What tells the items of a list apart; the first that does is taken.
const IDENTITIES: [&str; 3] = ["mountPath", "devicePath", "name"];

/// One difference.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Change {
    /// Something is there that was not.
    Added { path: FieldPath, value: Value, place: Option<String> },
    /// Something is gone.
    Removed { path: FieldPath, value: Value },
    /// Something has another value.
    Changed { path: FieldPath, before: Value, after: Value },
    /// The same items in another order.
    Reordered { path: FieldPath, before: Vec<String>, after: Vec<String> },
}

/// The differences, in the order of the fields.
pub(crate) fn diff(before: &Value, after: &Value) -> Vec<Change> {
    let mut changes = Vec::new();
    compare(FieldPath::root(), "", before, after, &mut changes);
    changes
}

/// The differences as lines that begin with `+`, `-` or `~`.
pub(crate) fn lines(changes: &[Change]) -> Vec<String> {
    changes.iter().flat_map(told).collect()
}

/// A line in the colour of its sign.
pub(crate) fn painted(line: &str) -> String {
    let colour = match line.trim_start().as_bytes().first() {
        Some(b'+') => "32",
        Some(b'-') => "31",
        Some(b'~') => "33",
        _ => return line.to_owned(),
    };
    format!("\u{1b}[{colour}m{line}\u{1b}[0m")
}

fn told(change: &Change) -> Vec<String> {
    match change {
        Change::Added { path, value, place } => {
            let place = place.as_ref().map(|place| format!(" ({place})")).unwrap_or_default();
            block('+', &format!("{path}{place}"), value)
        }
        Change::Removed { path, value } => block('-', &path.to_string(), value),
        Change::Changed { path, before, after } => {
            vec![format!("~ {path}: {} → {}", yaml_text::scalar(before), yaml_text::scalar(after))]
        }
        Change::Reordered { path, before, after } => {
            vec![format!("~ {path}: order {} → {}", before.join(", "), after.join(", "))]
        }
    }
}

fn block(sign: char, head: &str, value: &Value) -> Vec<String> {
    let is_block = match value {
        Value::Object(fields) => !fields.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    };
    if !is_block {
        return vec![format!("{sign} {head}: {}", yaml_text::scalar(value))];
    }
    let mut lines = vec![format!("{sign} {head}:")];
    lines.extend(yaml_text::document(value).lines().map(|line| format!("{sign}     {line}")));
    lines
}

fn compare(path: FieldPath, name: &str, before: &Value, after: &Value, changes: &mut Vec<Change>) {
    match (before, after) {
        _ if before == after => {}
        (Value::Object(before), Value::Object(after)) => compare_objects(&path, name, before, after, changes),
        (Value::Array(one), Value::Array(other)) => match identity(one, other) {
            Some(key) => compare_named(&path, name, key, one, other, changes),
            None => compare_items(&path, one, other, changes),
        },
        _ => match (record(before), record(after)) {
            (Some(one), Some(other)) if one != other => compare(path, name, &one, &other, changes),
            _ => changes.push(Change::Changed { path, before: before.clone(), after: after.clone() }),
        },
    }
}

/// An object that is kept as text, as annotations do.
fn record(value: &Value) -> Option<Value> {
    let text = value.as_str().filter(|text| text.starts_with('{'))?;
    serde_json::from_str(text).ok()
}

fn compare_objects(
    path: &FieldPath,
    name: &str,
    before: &Map<String, Value>,
    after: &Map<String, Value>,
    changes: &mut Vec<Change>,
) {
    let names: BTreeSet<(usize, &str)> =
        before.keys().chain(after.keys()).map(|field| yaml_text::order(name, field)).collect();
    let is_map = MAPS.contains(&name);
    for (_, field) in names {
        let is_plain = field.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let path = if is_map || !is_plain { path.key(field) } else { path.field(field) };
        match (before.get(field), after.get(field)) {
            (Some(before), Some(after)) => compare(path, field, before, after, changes),
            (None, Some(after)) => one_sided(path, field, after, changes, true),
            (Some(before), None) => one_sided(path, field, before, changes, false),
            (None, None) => {}
        }
    }
}

/// A field of one side only; what people think of as single things is told one by one.
fn one_sided(path: FieldPath, name: &str, value: &Value, changes: &mut Vec<Change>, is_added: bool) {
    let empty = match value {
        Value::Object(fields) if MAPS.contains(&name) && !fields.is_empty() => Value::Object(Map::new()),
        Value::Array(items) if !items.is_empty() && path.segments().len() == 2 && identity(items, &[]).is_some() => {
            Value::Array(Vec::new())
        }
        value if is_added => return changes.push(Change::Added { path, value: value.clone(), place: None }),
        value => return changes.push(Change::Removed { path, value: value.clone() }),
    };
    if is_added { compare(path, name, &empty, value, changes) } else { compare(path, name, value, &empty, changes) }
}

/// The field that names every item of both lists, and none twice.
fn identity(one: &[Value], other: &[Value]) -> Option<&'static str> {
    let tells = |key: &str, items: &[Value]| {
        let names: BTreeSet<&str> = items.iter().filter_map(|item| item.get(key)?.as_str()).collect();
        names.len() == items.len()
    };
    IDENTITIES.into_iter().find(|key| tells(key, one) && tells(key, other))
}

fn compare_named(
    path: &FieldPath,
    list: &str,
    key: &str,
    before: &[Value],
    after: &[Value],
    changes: &mut Vec<Change>,
) {
    let name = |item: &Value| item.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let find = |items: &'_ [Value], wanted: &str| items.iter().position(|item| name(item) == wanted);
    for item in before.iter().filter(|item| find(after, &name(item)).is_none()) {
        changes.push(Change::Removed { path: path.key(&name(item)), value: item.clone() });
    }
    for (at, item) in after.iter().enumerate() {
        let own = name(item);
        if let Some(earlier) = find(before, &own) {
            compare(path.key(&own), "", &before[earlier], item, changes);
            continue;
        }
        let place = if ORDERED_LISTS.contains(&list) { place(after, at, name) } else { None };
        changes.push(Change::Added { path: path.key(&own), value: item.clone(), place });
    }
    let kept = |items: &[Value], others: &[Value]| -> Vec<String> {
        items.iter().map(name).filter(|own| find(others, own).is_some()).collect()
    };
    let (before, after) = (kept(before, after), kept(after, before));
    if before != after {
        changes.push(Change::Reordered { path: path.clone(), before, after });
    }
}

fn place(items: &[Value], at: usize, name: impl Fn(&Value) -> String) -> Option<String> {
    match (at.checked_sub(1).and_then(|at| items.get(at)), items.get(at + 1)) {
        (None, None) => None,
        (None, Some(next)) => Some(format!("before {}", name(next))),
        (Some(previous), _) => Some(format!("after {}", name(previous))),
    }
}

fn compare_items(path: &FieldPath, before: &[Value], after: &[Value], changes: &mut Vec<Change>) {
    for at in 0..before.len().max(after.len()) {
        let path = path.index(at);
        match (before.get(at), after.get(at)) {
            (Some(before), Some(after)) => compare(path, "", before, after, changes),
            (None, Some(after)) => changes.push(Change::Added { path, value: after.clone(), place: None }),
            (Some(before), None) => changes.push(Change::Removed { path, value: before.clone() }),
            (None, None) => {}
        }
    }
}

#[cfg(test)]
mod tests;
