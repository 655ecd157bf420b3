//! Container and volume templates drawn from the schema of Kubernetes: every field, valid and broken.
//!
//! Each field of the schema is drawn with a value that the API server accepts in most places, and then with values that
//! break a rule: of another type, out of range, empty, or together with a field that excludes it.

mod samples;

use std::collections::BTreeSet;

use pillion_api::TEMPLATE_SCHEMA;
use serde_json::{Map, Value, json};

use crate::random::Random;
use samples::{base, sample};

/// The list of a pod that a template is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TemplateTarget {
    /// The containers.
    Container,
    /// The init containers, with `restartPolicy: Always`.
    NativeSidecar,
    /// The init containers, without it.
    RegularInit,
    /// The volumes.
    Volume,
}

/// One template.
#[derive(Clone, Debug)]
pub struct DrawnTemplate {
    /// The list of the pod that it is for.
    pub target: TemplateTarget,
    /// The container or volume.
    pub template: Value,
    /// The field it was drawn for, such as `.ports[].hostPort`.
    pub field: String,
}

/// Values that most text fields cannot have.
const ODD_TEXTS: [&str; 12] = [
    "",
    "a b",
    "A=B",
    "../a",
    "/a",
    "Upper_case",
    "-a",
    "a/b/c",
    "a..b",
    "Always",
    "Localhost",
    "metadata.labels['a']",
];
const ODD_NUMBERS: [i64; 9] = [0, -1, 1, 255, 512, 600, 70_000, 1 << 31, 1 << 40];
const ODD_QUANTITIES: [&str; 7] = ["0", "-1", "1 GB", "1e3", "1Ki", "1m", ""];

/// Templates for every field of containers and volumes, with `variants` broken or odd values for each.
pub fn templates(seed: u64, variants: usize) -> Vec<DrawnTemplate> {
    let schemas: Value = serde_json::from_str(TEMPLATE_SCHEMA).expect("the schema is JSON");
    let mut random = Random::new(seed);
    let mut drawn = Vec::new();
    for (kind, schema) in schemas.as_object().into_iter().flatten() {
        for path in paths(schema) {
            let field = path.concat();
            let own = schema_at(schema, &path);
            let valid = sample(own, &field);
            let targets: &[TemplateTarget] = match kind.as_str() {
                "container" => &[TemplateTarget::Container, TemplateTarget::NativeSidecar, TemplateTarget::RegularInit],
                _ => &[TemplateTarget::Volume],
            };
            let whole = DrawnTemplate { target: targets[0], template: built(schema, "", &path, valid), field };
            for _ in 0..variants {
                let template = broken(schema, own, &path, &whole, &mut random);
                drawn.push(DrawnTemplate { target: random.one_of(targets), template, field: whole.field.clone() });
            }
            drawn.push(whole);
        }
    }
    for drawn in &mut drawn {
        let is_native = drawn.target == TemplateTarget::NativeSidecar;
        if let Some(fields) = drawn.template.as_object_mut().filter(|_| is_native) {
            fields.insert("restartPolicy".to_owned(), json!("Always"));
        }
    }
    drawn
}

/// The paths of all fields of a schema. Steps are `.name`, `[]` for items and `{}` for entries.
fn paths(schema: &Value) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut open: Vec<(Vec<String>, &Value)> = vec![(Vec::new(), schema)];
    while let Some((path, schema)) = open.pop() {
        let further = |step: &str| [path.as_slice(), &[step.to_owned()]].concat();
        for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
            open.push((further(&format!(".{name}")), schema));
        }
        open.extend(schema.get("items").map(|schema| (further("[]"), schema)));
        open.extend(schema.get("additionalProperties").map(|schema| (further("{}"), schema)));
        if !path.is_empty() {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn schema_at<'a>(schema: &'a Value, path: &[String]) -> &'a Value {
    path.iter().fold(schema, |schema, step| match step.as_str() {
        "[]" => &schema["items"],
        "{}" => &schema["additionalProperties"],
        name => &schema["properties"][&name[1..]],
    })
}

/// An object with a value at a path, and with the fields beside it that the API server needs.
fn built(schema: &Value, place: &str, path: &[String], value: Value) -> Value {
    let Some((step, rest)) = path.split_first() else { return value };
    let below = format!("{place}{step}");
    let inner = |schema: &Value| built(schema, &below, rest, value);
    match step.as_str() {
        "[]" => json!([inner(&schema["items"])]),
        "{}" => json!({samples::key(place): inner(&schema["additionalProperties"])}),
        name => {
            let name = &name[1..];
            let mut fields = base(schema, place, Some(name));
            fields.insert(name.to_owned(), inner(&schema["properties"][name]));
            fields.into()
        }
    }
}

/// The template with another value for its field, or with a field added to or removed from the object around it.
fn broken(schema: &Value, own: &Value, path: &[String], whole: &DrawnTemplate, random: &mut Random) -> Value {
    let parent = &path[..path.len() - 1];
    match random.below(8) {
        0 => changed(schema, parent, whole, |fields| {
            fields.insert("zzUnknown".to_owned(), json!(1));
        }),
        1 => changed(schema, parent, whole, |fields| {
            let name = path.last().map(|step| step.trim_start_matches('.')).unwrap_or_default();
            if let Some(value) = fields.remove(name) {
                fields.insert(format!("{name}x"), value);
            }
        }),
        2 | 3 => {
            let siblings: BTreeSet<&str> = schema_at(schema, parent)["properties"]
                .as_object()
                .into_iter()
                .flat_map(|fields| fields.keys().map(String::as_str))
                .collect();
            let siblings: Vec<&str> = siblings.into_iter().collect();
            if siblings.is_empty() {
                return built(schema, "", path, odd(own, &whole.field, random));
            }
            let name = random.one_of(&siblings);
            let place = format!("{}.{name}", parent.concat());
            let is_added = random.chance(60);
            let value = sample(schema_at(schema, &[parent, &[format!(".{name}")]].concat()), &place);
            changed(schema, parent, whole, |fields| {
                if is_added {
                    fields.insert(name.to_owned(), value);
                } else {
                    fields.remove(name);
                }
            })
        }
        _ => built(schema, "", path, odd(own, &whole.field, random)),
    }
}

/// The template with a change of the object at a path.
fn changed(
    schema: &Value,
    path: &[String],
    whole: &DrawnTemplate,
    change: impl FnOnce(&mut Map<String, Value>),
) -> Value {
    let mut template = whole.template.clone();
    let mut place = String::new();
    let target = path.iter().try_fold(&mut template, |value, step| {
        let next = match step.as_str() {
            "[]" => value.get_mut(0),
            "{}" => value.get_mut(samples::key(&place)),
            name => value.get_mut(&name[1..]),
        };
        place.push_str(step);
        next
    });
    // Only fields of the schema are changed, and never a map that users choose the keys of.
    if let Some(fields) =
        target.and_then(Value::as_object_mut).filter(|_| schema_at(schema, path)["properties"].is_object())
    {
        change(fields);
    }
    template
}

fn odd(schema: &Value, field: &str, random: &mut Random) -> Value {
    if schema["format"] == "quantity" {
        return match random.below(8) {
            0 => json!(true),
            1 => json!(0.5),
            _ => json!(random.one_of(&ODD_QUANTITIES)),
        };
    }
    let valid = sample(schema, field);
    match schema["type"].as_str() {
        _ if random.chance(8) => Value::Null,
        _ if random.chance(8) => random.one_of(&[&json!("a"), &json!(7), &json!({}), &json!(true)]).clone(),
        Some("string") if random.chance(8) => json!("x".repeat(300)),
        Some("integer") => json!(random.one_of(&ODD_NUMBERS)),
        Some("boolean") => json!(random.chance(50)),
        Some("array") if random.chance(50) => json!([]),
        Some("array") => json!([valid[0], valid[0]]),
        Some("object") if random.chance(60) => json!({}),
        // A port by number or by name.
        None if random.chance(50) => json!(random.one_of(&ODD_NUMBERS)),
        Some("string") | None => json!(random.one_of(&ODD_TEXTS)),
        _ => valid,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field_paths::{declared_fields, given_fields};

    #[test]
    fn every_field_of_the_schema_is_drawn_and_a_seed_gives_the_same_templates() {
        let drawn = templates(1, 4);
        assert!(drawn.len() >= 2000, "{}", drawn.len());
        let schemas: Value = serde_json::from_str(TEMPLATE_SCHEMA).unwrap();
        for (kind, schema) in schemas.as_object().unwrap() {
            let of_kind = drawn.iter().filter(|it| (it.target == TemplateTarget::Volume) == (kind == "volume"));
            let given: BTreeSet<String> = of_kind.flat_map(|it| given_fields(&it.template)).collect();
            let missing: Vec<String> = declared_fields(schema).difference(&given).cloned().collect();
            assert_eq!(missing, Vec::<String>::new());
        }
        let again = templates(1, 4);
        assert!(drawn.iter().zip(&again).all(|(one, other)| one.template == other.template));
    }
}
