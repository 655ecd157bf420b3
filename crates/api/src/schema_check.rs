//! What the API server would say about an object before any webhook: the schema and its rules, walked once.
//!
//! Unlike the API server it also tells about fields that would be dropped, and it never stops at the first problem.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use pillion_quantity::Quantity;
use regex::Regex;
use serde_json::{Map, Value};

use crate::crd::sidecar_set_schema;
use crate::problem::{Collected, FieldPath, Problem};
use crate::rule::{RULES, Rule};
use crate::vertical_pod_autoscaler::vertical_pod_autoscaler_schema;
use crate::{Reason, template_check};

static SIDECAR_SETS: LazyLock<Definition> = LazyLock::new(|| Definition::new(sidecar_set_schema(), RULES));
static AUTOSCALERS: LazyLock<Definition> = LazyLock::new(|| Definition::new(vertical_pod_autoscaler_schema(), &[]));
static CONTAINERS: LazyLock<Definition> = LazyLock::new(|| Definition::of_template("container"));
static VOLUMES: LazyLock<Definition> = LazyLock::new(|| Definition::of_template("volume"));

/// Required fields of Kubernetes' schema that its API server does not require: absent means empty or 0.
const NOT_REQUIRED: [&str; 4] = ["httpHeaders[].value", "sleep.seconds", "iscsi.lun", "scaleIO.secretRef"];

/// Everything the schema and its rules have against a `SidecarSet`.
pub(crate) fn check(object: &Value) -> Vec<Problem> {
    SIDECAR_SETS.check(object)
}

/// Everything the schema has against a `VerticalPodAutoscaler`.
pub fn check_autoscaler(object: &Value) -> Vec<Problem> {
    AUTOSCALERS.check(object)
}

/// Returns everything that the schema of Kubernetes rejects in a container at a path.
pub(crate) fn check_container(container: &Value, path: &FieldPath) -> Vec<Problem> {
    CONTAINERS.check_at(container, path)
}

/// Returns everything that the schema of Kubernetes rejects in a volume at a path.
pub(crate) fn check_volume(volume: &Value, path: &FieldPath) -> Vec<Problem> {
    VOLUMES.check_at(volume, path)
}

/// Returns true for a field of Kubernetes' volume.
pub(crate) fn is_volume_field(name: &str) -> bool {
    VOLUMES.schema.get("properties").is_some_and(|known| known.get(name).is_some())
}

/// The origin of a schema, which decides how the API server reads objects.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// A CustomResourceDefinition: the API server checks the schema and drops unknown fields.
    Definition,
    /// A type of Kubernetes: absent and empty fields are the same, and unknown fields may be those of a newer version.
    Kubernetes,
}

/// What objects of a kind are checked against.
struct Definition {
    schema: Value,
    origin: Origin,
    /// The patterns of the schema, by their text: to compile one takes far longer than to use it.
    patterns: BTreeMap<String, Regex>,
    rules: Vec<(String, &'static Rule)>,
}

impl Definition {
    fn new(schema: Value, rules: &'static [Rule]) -> Self {
        let mut patterns = BTreeMap::new();
        collect_patterns(&schema, &mut patterns);
        let rules = rules.iter().flat_map(|rule| rule.places().into_iter().map(move |place| (place, rule))).collect();
        Self { schema, origin: Origin::Definition, patterns, rules }
    }

    fn of_template(kind: &str) -> Self {
        Self { origin: Origin::Kubernetes, ..Self::new(template_check::schema(kind), &[]) }
    }

    fn check(&self, object: &Value) -> Vec<Problem> {
        self.check_at(object, &FieldPath::root())
    }

    fn check_at(&self, object: &Value, path: &FieldPath) -> Vec<Problem> {
        let mut walk = Walk { definition: self, problems: Collected::default() };
        walk.node(&self.schema, object, path, "");
        walk.problems.into_vec()
    }
}

struct Walk<'a> {
    definition: &'a Definition,
    problems: Collected,
}

impl Walk<'_> {
    fn violation(&mut self, path: &FieldPath, message: String, help: impl Into<String>) {
        let reason = match self.definition.origin {
            Origin::Definition => Reason::SchemaViolation,
            Origin::Kubernetes => Reason::InvalidContainer,
        };
        self.problems.push(Problem::error(reason, path.clone(), message, help));
    }

    fn node(&mut self, schema: &Value, value: &Value, path: &FieldPath, place: &str) {
        let before = self.problems.as_slice().len();
        if !self.typed(schema, value, path) {
            return;
        }
        match value {
            Value::Object(fields) => self.object(schema, fields, path, place),
            Value::Array(items) => self.list(schema, items, path, place),
            Value::String(text) => self.text(schema, text, path),
            Value::Number(_) => self.number(schema, value, path),
            _ => {}
        }
        // A rule may read any field below it, so it is asked only when those have the form it expects.
        let readable =
            self.problems.as_slice()[before..].iter().all(|problem| problem.reason != Reason::SchemaViolation);
        if readable {
            self.rules(value, path, place);
        }
    }

    fn typed(&mut self, schema: &Value, value: &Value, path: &FieldPath) -> bool {
        let wanted = if schema.get("x-kubernetes-int-or-string").is_some() {
            "integer or string"
        } else if is_quantity(schema) {
            "quantity"
        } else {
            schema.get("type").and_then(Value::as_str).unwrap_or("any")
        };
        let fits = match wanted {
            "integer or string" => value.is_string() || value.is_i64(),
            "quantity" => return self.quantity(value, path),
            "object" => value.is_object(),
            "array" => value.is_array(),
            "string" => value.is_string(),
            "boolean" => value.is_boolean(),
            "integer" => value.is_i64() || value.is_u64(),
            "number" => value.is_number(),
            _ => true,
        };
        if !fits {
            let message = format!("must be of type {wanted}: \"{}\"", kind_of(value));
            self.violation(path, message, format!("write it as {wanted}"));
        }
        fits
    }

    /// Returns false if the value is no quantity. Negative quantities are for rules to judge.
    fn quantity(&mut self, value: &Value, path: &FieldPath) -> bool {
        let text = value.as_str().map_or_else(|| value.to_string(), |text| text.trim().to_owned());
        let parsed = text.parse::<Quantity>();
        if let Err(error) = &parsed {
            self.violation(path, format!("{text:?} is no quantity: {error}"), "write it as 500m or 128Mi");
        }
        parsed.is_ok()
    }

    /// Returns true if a required field is absent.
    fn is_absent(&self, fields: &Map<String, Value>, place: &str, name: &str) -> bool {
        let value = fields.get(name).filter(|value| !value.is_null());
        if self.definition.origin == Origin::Definition {
            return value.is_none();
        }
        let place = format!("{place}.{name}");
        let is_empty = value.is_none_or(|value| match value {
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            _ => false,
        });
        is_empty && !NOT_REQUIRED.iter().any(|optional| place.ends_with(optional))
    }

    fn object(&mut self, schema: &Value, fields: &Map<String, Value>, path: &FieldPath, place: &str) {
        for name in list_of(schema, "required").filter(|name| self.is_absent(fields, place, name)).collect::<Vec<_>>() {
            self.violation(&path.field(name), "Required value".to_owned(), "give it");
        }
        self.bounds(schema, ["minProperties", "maxProperties"], fields.len(), path);
        let additional = schema.get("additionalProperties");
        let known = schema.get("properties").and_then(Value::as_object);
        if self.definition.origin == Origin::Kubernetes && known.is_none() && additional.is_none() {
            return;
        }
        // What the controller wrote into the status is not the user's to mend.
        let is_of_controller =
            |name: &str| self.definition.origin == Origin::Definition && place.is_empty() && name == "status";
        for (name, value) in fields.iter().filter(|(name, _)| !is_of_controller(name)).collect::<Vec<_>>() {
            if let Some(additional) = additional {
                self.node(additional, value, &path.key(name), &format!("{place}.*"));
                continue;
            }
            match known.and_then(|known| known.get(name)) {
                // The API server drops a null that is not allowed.
                Some(_) if value.is_null() => {}
                Some(known) => {
                    let place = if place.is_empty() { name.clone() } else { format!("{place}.{name}") };
                    self.node(known, value, &path.field(name), &place);
                }
                None if self.definition.origin == Origin::Definition && preserves(schema, place, name) => {}
                None => self.unknown(name, known, path),
            }
        }
    }

    fn unknown(&mut self, name: &str, known: Option<&Map<String, Value>>, path: &FieldPath) {
        let near = known.and_then(|known| known.keys().find(|known| is_near(known, name)));
        if self.definition.origin == Origin::Kubernetes && near.is_none() {
            let message = format!("Kubernetes 1.36 has no field {name}: older API servers drop it");
            let help = "remove it, unless your Kubernetes is newer";
            self.problems.push(Problem::warning(Reason::UnknownField, path.field(name), message, help));
            return;
        }
        let help = near.map_or_else(|| "remove it".to_owned(), |near| format!("did you mean {near}?"));
        let message = format!("unknown field {name}: it would be dropped");
        self.problems.push(Problem::error(Reason::UnknownField, path.field(name), message, help));
    }

    fn list(&mut self, schema: &Value, items: &[Value], path: &FieldPath, place: &str) {
        self.bounds(schema, ["minItems", "maxItems"], items.len(), path);
        if let Some(of_item) = schema.get("items") {
            for (at, item) in items.iter().enumerate() {
                self.node(of_item, item, &path.index(at), &format!("{place}[]"));
            }
        }
        let keys: Vec<&str> = list_of(schema, "x-kubernetes-list-map-keys").collect();
        if keys.is_empty() {
            return;
        }
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        for (at, item) in items.iter().enumerate() {
            let key: Vec<&Value> = keys.iter().filter_map(|key| item.get(*key)).collect();
            if key.len() < keys.len() {
                continue;
            }
            // JSON has one text for one value, so that equal keys have equal texts.
            let text = key.iter().copied().cloned().collect::<Value>().to_string();
            if let Some(first) = seen.get(&text) {
                let shown: Vec<_> = key.iter().filter_map(|part| part.as_str()).collect();
                let message = format!("Duplicate value: {}", shown.join(", "));
                let problem = Problem::error(Reason::DuplicateName, path.index(at), message, "rename or remove one");
                self.problems.push(problem.with_also(path.index(*first)));
            } else {
                seen.insert(text, at);
            }
        }
    }

    fn text(&mut self, schema: &Value, text: &str, path: &FieldPath) {
        self.bounds(schema, ["minLength", "maxLength"], text.chars().count(), path);
        let allowed: Vec<&str> = list_of(schema, "enum").collect();
        if !allowed.is_empty() && !allowed.contains(&text) {
            let message = format!("Unsupported value: {text:?}");
            self.violation(path, message, format!("use one of {}", allowed.join(", ")));
        }
        let pattern = schema.get("pattern").and_then(Value::as_str);
        let patterns = &self.definition.patterns;
        if let Some(pattern) = pattern.filter(|pattern| !patterns.get(*pattern).is_some_and(|it| it.is_match(text))) {
            self.violation(path, format!("{text:?} should match '{pattern}'"), "write it so");
        }
    }

    fn number(&mut self, schema: &Value, value: &Value, path: &FieldPath) {
        let bound = |name: &str| schema.get(name).and_then(Value::as_i64);
        let is_int32 = schema.get("format").is_some_and(|format| format == "int32");
        let low = bound("minimum").or(is_int32.then_some(i64::from(i32::MIN))).unwrap_or(i64::MIN);
        let high = bound("maximum").or(is_int32.then_some(i64::from(i32::MAX))).unwrap_or(i64::MAX);
        // What does not fit in 64 bits is larger than any bound.
        let number = value.as_i64().unwrap_or(i64::MAX);
        if number < low {
            self.violation(path, format!("should be greater than or equal to {low}"), "choose a larger number");
        } else if number > high {
            self.violation(path, format!("should be less than or equal to {high}"), "choose a smaller number");
        }
    }

    /// In the words of the API server, so that people find the same text everywhere.
    fn bounds(&mut self, schema: &Value, names: [&str; 2], size: usize, path: &FieldPath) {
        let bound = |name: &str| schema.get(name).and_then(Value::as_u64).and_then(|bound| usize::try_from(bound).ok());
        if let Some(least) = bound(names[0]).filter(|least| size < *least) {
            let message = match names[0] {
                "minLength" => format!("should be at least {least} chars long"),
                "minItems" => format!("should have at least {least} items"),
                _ => format!("should have at least {least} properties"),
            };
            self.violation(path, message, format!("give at least {least}"));
        }
        if let Some(most) = bound(names[1]).filter(|most| size > *most) {
            let message = match names[1] {
                "maxLength" => format!("Too long: may not be more than {most} bytes"),
                _ => format!("Too many: {size}: must have at most {most} items"),
            };
            self.violation(path, message, format!("give at most {most}"));
        }
    }

    fn rules(&mut self, value: &Value, path: &FieldPath, place: &str) {
        for (_, rule) in self.definition.rules.iter().filter(|(at, rule)| at == place && !(rule.holds)(value)) {
            let mut fields = rule.fields.iter().map(|names| path.fields(names));
            let first = fields.next().unwrap_or_else(|| path.clone());
            let problem = Problem::error(rule.reason, first, rule.what(value), rule.help);
            self.problems.push(fields.fold(problem, Problem::with_also));
        }
    }
}

fn collect_patterns(schema: &Value, patterns: &mut BTreeMap<String, Regex>) {
    let own = schema.get("pattern").and_then(Value::as_str);
    patterns.extend(own.and_then(|pattern| Some((pattern.to_owned(), Regex::new(pattern).ok()?))));
    let below = schema.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::values);
    for schema in below.chain(schema.get("items")).chain(schema.get("additionalProperties")) {
        collect_patterns(schema, patterns);
    }
}

fn list_of<'a>(schema: &'a Value, name: &str) -> impl Iterator<Item = &'a str> {
    schema.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// Kubernetes' own fields are not declared: those of the object, and those of containers and volumes.
fn preserves(schema: &Value, place: &str, name: &str) -> bool {
    schema.get("x-kubernetes-preserve-unknown-fields").is_some()
        || (place.is_empty() && matches!(name, "apiVersion" | "kind" | "metadata"))
}

fn is_quantity(schema: &Value) -> bool {
    schema.get("format").is_some_and(|format| format == "quantity")
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Whether one name was probably meant for the other: the same but for case, or one edit away.
fn is_near(known: &str, given: &str) -> bool {
    let (known, given) = (known.to_ascii_lowercase(), given.to_ascii_lowercase());
    let common = known.bytes().zip(given.bytes()).take_while(|(a, b)| a == b).count();
    let rest = known.bytes().rev().zip(given.bytes().rev()).take_while(|(a, b)| a == b).count();
    let (short, long) = (known.len().min(given.len()), known.len().max(given.len()));
    known == given || (long - short <= 1 && common + rest + 1 >= long)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_name_is_recognised() {
        for (known, given, near) in [
            ("selector", "Selector", true),
            ("selector", "selectr", true),
            ("selector", "selectorr", true),
            ("selector", "selectur", true),
            ("volumes", "selector", false),
            ("mode", "labels", false),
        ] {
            assert_eq!(is_near(known, given), near, "{known} {given}");
        }
    }
}
