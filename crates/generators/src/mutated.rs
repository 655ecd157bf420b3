//! Objects with one thing wrong, or at least odd, in a random place.

use proptest::arbitrary::any;
use proptest::strategy::Strategy;
use serde_json::{Map, Value};

use crate::json;
use crate::random::Random;

/// A field that is there, and one that must not stand beside it, with a value.
const COMPANIONS: [(&str, &str, &str); 15] = [
    ("targetContainerMode", "targetContainersMode", r#""sum""#),
    ("targetContainersMode", "targetContainerMode", r#""max""#),
    ("resourceExpr", "resourcesExpr", r#"{"limits": {"cpu": "cpu"}}"#),
    ("resourcesExpr", "resourceExpr", r#"{"requests": {"cpu": "cpu"}}"#),
    ("injectStrategy", "injectionStrategy", r#"{"paused": true}"#),
    ("namespace", "namespaceSelector", r#"{"matchLabels": {"env": "prod"}}"#),
    ("namespaceSelector", "namespace", r#""shop""#),
    ("controllerRevision", "revision", r#""a-1""#),
    ("revisionName", "customVersion", r#""v1""#),
    ("weightPriority", "orderPriority", r#"[{"orderedKey": "app"}]"#),
    ("orderPriority", "weightPriority", "[]"),
    ("sourceContainerName", "sourceContainerNameFrom", r#"{"fieldRef": {"fieldPath": "metadata.name"}}"#),
    ("resources", "resourcesPolicy", r#"{"targetContainerMode": "sum", "resourceExpr": {"limits": {"cpu": "cpu"}}}"#),
    ("example.com/owner", "pillion.dev/owner", r#""mine""#),
    // Wrong on a plain init container only.
    ("image", "sidecar", "true"),
];

/// Texts that are wrong in most places.
const ODD_TEXTS: [&str; 13] =
    ["", " ", "a b", "Always", "(", "200MB", "-1", "101%", "cpu - 100000", "[", "\n", "-", "\u{1F4A5}\u{0}"];

/// What is drawn, with one break: a part removed, replaced, renamed, given twice, or added.
pub fn mutated(whole: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    (whole, any::<u64>().no_shrink()).prop_map(|(mut object, seed)| {
        mutate(&mut object, &mut Random::new(seed));
        object
    })
}

fn mutate(object: &mut Value, random: &mut Random) {
    let at = random.up_to(parts(object) - 1);
    let Some(part) = part_mut(object, &mut at.clone()) else { return };
    match part {
        Value::Object(fields) => mutate_fields(fields, random),
        Value::Array(items) => mutate_items(items, random),
        Value::String(text) if random.chance(70) => {
            *text = match random.below(8) {
                0 => "x".repeat(70),
                1 => "x".repeat(5000),
                _ => random.one_of(&ODD_TEXTS).to_owned(),
            };
        }
        Value::Number(_) if random.chance(50) => *part = random.one_of(&[-1, 101, i64::MAX]).into(),
        other => *other = json::value(random),
    }
}

fn mutate_fields(fields: &mut Map<String, Value>, random: &mut Random) {
    let keys: Vec<String> = fields.keys().cloned().collect();
    let Some(key) = (!keys.is_empty()).then(|| &keys[random.up_to(keys.len() - 1)]) else {
        return json::add_unknown(fields, random);
    };
    let companion = COMPANIONS.iter().find(|(there, ..)| there == key);
    match (companion, random.below(6)) {
        (Some((_, name, value)), 0..=2) => {
            let value = serde_json::from_str(value).expect("the table holds JSON");
            fields.insert((*name).to_owned(), value);
        }
        (_, 0) => drop(fields.remove(key)),
        (_, 1) => drop(fields.insert(key.clone(), json::value(random))),
        (_, 2) => json::add_unknown(fields, random),
        (_, 3) => {
            if let Some(value) = fields.remove(key) {
                fields.insert(misspelt(key, random), value);
            }
        }
        (_, 4) => fields.clear(),
        _ => drop(fields.insert(key.clone(), Value::Null)),
    }
}

/// A slip of the finger, or of the mind.
fn misspelt(key: &str, random: &mut Random) -> String {
    let letters = key.chars().count();
    match random.below(3) {
        0 => key.chars().take(letters.saturating_sub(1)).collect(),
        1 => key.chars().take(1).flat_map(char::to_uppercase).chain(key.chars().skip(1)).collect(),
        _ => random.one_of(&ODD_TEXTS).to_owned(),
    }
}

fn mutate_items(items: &mut Vec<Value>, random: &mut Random) {
    if items.is_empty() {
        return items.push(json::value(random));
    }
    let at = random.up_to(items.len() - 1);
    match random.below(4) {
        0 => drop(items.remove(at)),
        1 => items.push(items[at].clone()),
        2 => items.resize(65, items[at].clone()),
        _ => items[at] = json::value(random),
    }
}

/// How many parts a value has, itself included.
fn parts(value: &Value) -> usize {
    1 + match value {
        Value::Object(fields) => fields.values().map(parts).sum(),
        Value::Array(items) => items.iter().map(parts).sum(),
        _ => 0,
    }
}

/// A part of a value, counted as a walk meets them.
fn part_mut<'a>(value: &'a mut Value, number: &mut usize) -> Option<&'a mut Value> {
    if *number == 0 {
        return Some(value);
    }
    *number -= 1;
    match value {
        Value::Object(fields) => fields.values_mut().find_map(|field| part_mut(field, number)),
        Value::Array(items) => items.iter_mut().find_map(|item| part_mut(item, number)),
        _ => None,
    }
}
