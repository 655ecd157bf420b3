//! The page about every field of a kind, from its schema: one table per object, with the rules that hold in it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Map, Value};

/// The page for a schema, below an introduction.
pub(super) fn page(introduction: &str, schema: &Value) -> String {
    let mut writer = Writer { page: introduction.to_owned(), described: BTreeMap::new() };
    for part in ["spec", "status"] {
        if let Some(node) = schema.pointer(&format!("/properties/{part}")) {
            writer.object(part, node);
        }
    }
    writer.page
}

struct Writer {
    page: String,
    /// Where each object was described, by its schema: what stands in two places is described once.
    described: BTreeMap<String, String>,
}

impl Writer {
    fn object(&mut self, path: &str, node: &Value) {
        let Some(fields) = node.get("properties").and_then(Value::as_object) else { return };
        self.described.insert(identity(node), path.to_owned());
        let description = node.get("description").and_then(Value::as_str).unwrap_or_default();
        self.write(format_args!("\n## {path}\n\n{description}\n\n| Field | Type | Meaning |\n|---|---|---|\n"));
        let required = node.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
        let mut further = Vec::new();
        for (name, field) in fields {
            let (below, suffix) = field.get("items").map_or((field, ""), |items| (items, "[]"));
            let below_path = format!("{path}.{name}{suffix}");
            let link = below.get("properties").map(|_| self.home(below, &below_path));
            if link.as_ref() == Some(&below_path) {
                further.push((below_path, below));
            }
            let kind = kind(field);
            let kind = link.map_or(kind.clone(), |link| format!("[{kind}](#{})", anchor(&link)));
            let must = if required.contains(&Value::from(name.as_str())) { "**Required.** " } else { "" };
            self.write(format_args!("| `{name}` | {kind} | {must}{} |\n", meaning(field)));
        }
        self.rules(path, node);
        for (path, node) in further {
            self.object(&path, node);
        }
    }

    /// Where an object is described: at this path, unless it was before.
    fn home(&mut self, node: &Value, path: &str) -> String {
        self.described.entry(identity(node)).or_insert_with(|| path.to_owned()).clone()
    }

    /// The rules of an object, and of its fields that are no objects.
    fn rules(&mut self, path: &str, node: &Value) {
        let mut messages = rules(node);
        for field in node.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::values) {
            if field.get("properties").is_none() {
                messages.extend(rules(field));
            }
        }
        if !messages.is_empty() {
            self.write(format_args!("\nRules of `{path}`:\n\n"));
            messages.dedup();
            for message in messages {
                self.write(format_args!("- {message}\n"));
            }
        }
    }

    fn write(&mut self, arguments: std::fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = self.page.write_fmt(arguments);
    }
}

/// A schema without its description: two fields may have one form and be for different things.
fn identity(node: &Value) -> String {
    let mut node = node.clone();
    if let Some(fields) = node.as_object_mut() {
        fields.remove("description");
    }
    node.to_string()
}

fn rules(node: &Value) -> Vec<String> {
    let rules = node.get("x-kubernetes-validations").and_then(Value::as_array).into_iter().flatten();
    rules
        .filter_map(|rule| rule.get("message")?.as_str())
        .map(|message| match message.split_once(": ") {
            Some((code, rest)) if code.starts_with("PL") => {
                format!("[{code}](reason-codes.md): {}", rest.replace("%s", "…"))
            }
            _ => message.to_owned(),
        })
        .collect()
}

fn kind(field: &Value) -> String {
    if field.get("x-kubernetes-int-or-string").is_some() {
        return "number or percentage".to_owned();
    }
    match field.get("type").and_then(Value::as_str) {
        Some("array") => format!("list of {}", field.get("items").map_or("object".to_owned(), kind)),
        Some("object") if field.get("additionalProperties").is_some() => "map".to_owned(),
        Some("string") if field.get("enum").is_some() => {
            let words = field["enum"].as_array().into_iter().flatten().filter_map(Value::as_str);
            words.map(|word| format!("`{word}`")).collect::<Vec<_>>().join(" or ")
        }
        Some("integer") => "number".to_owned(),
        Some(other) => other.to_owned(),
        None => "object".to_owned(),
    }
}

fn meaning(field: &Value) -> String {
    let text = field.get("description").and_then(Value::as_str).unwrap_or_default();
    text.replace('\n', " ").replace('|', "\\|")
}

/// The anchor Markdown gives a heading.
fn anchor(heading: &str) -> String {
    heading.chars().filter(|c| c.is_alphanumeric() || *c == '-').collect::<String>().to_lowercase()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_object_has_a_table_and_what_stands_twice_is_described_once() {
        let selector = json!({"type": "object", "description": "Labels.", "properties": {"key": {"type": "string", "description": "A | b."}}});
        let mut other = selector.clone();
        other["description"] = json!("Other labels.");
        let schema = json!({"properties": {"spec": {"description": "The wish.", "required": ["one"], "properties": {
            "one": selector, "two": other,
            "many": {"type": "array", "description": "Many.", "items": {"type": "string"}},
            "mode": {"type": "string", "enum": ["A", "B"], "description": "How.",
                     "x-kubernetes-validations": [{"rule": "x", "message": "PL118: a number: write it as 3"}]},
        }}}});
        let expected = "# Page\n\
            \n## spec\n\nThe wish.\n\n| Field | Type | Meaning |\n|---|---|---|\n\
            | `many` | list of string | Many. |\n\
            | `mode` | `A` or `B` | How. |\n\
            | `one` | [object](#specone) | **Required.** Labels. |\n\
            | `two` | [object](#specone) | Other labels. |\n\
            \nRules of `spec`:\n\n- [PL118](reason-codes.md): a number: write it as 3\n\
            \n## spec.one\n\nLabels.\n\n| Field | Type | Meaning |\n|---|---|---|\n\
            | `key` | string | A \\| b. |\n";
        assert_eq!(page("# Page\n", &schema), expected);
    }
}
