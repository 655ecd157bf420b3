//! The CustomResourceDefinition: derived from the types, tightened to what the API server stores, with the rules in it.

use kube::CustomResourceExt;
use serde_json::{Map, Value, json};

use crate::SidecarSet;
use crate::rule::{Message, RULES, Rule};

/// The definition of SidecarSet, ready to be applied.
pub fn sidecar_set_crd() -> Value {
    // A type of k8s-openapi always serialises; were it not so, every test of this crate would say so.
    let mut crd = serde_json::to_value(SidecarSet::crd()).unwrap_or_default();
    // By this label an installation tells our definition from OpenKruise's.
    crd["metadata"]["labels"] = json!({"app.kubernetes.io/part-of": "pillion"});
    if let Some(schema) = crd.pointer_mut("/spec/versions/0/schema/openAPIV3Schema") {
        tighten(schema);
        for rule in RULES {
            for place in rule.places() {
                if let Some(node) = node_mut(schema, &place) {
                    insert(node, rule);
                }
            }
        }
    }
    crd
}

/// The schema of SidecarSet, from the root of the object.
pub fn sidecar_set_schema() -> Value {
    sidecar_set_crd().pointer("/spec/versions/0/schema/openAPIV3Schema").cloned().unwrap_or_default()
}

/// Takes out what would make the API server store or accept more than was written.
pub(crate) fn tighten(node: &mut Value) {
    match node {
        Value::Object(fields) => {
            // The API server drops a null where it is not allowed, so that `has()` means what it says.
            fields.remove("nullable");
            if fields.get("title").is_some_and(Value::is_string) {
                fields.remove("title");
            }
            if let Some(Value::String(text)) = fields.get_mut("description") {
                *text = text.replace("\n\n", "\0").replace('\n', " ").replace('\0', "\n");
            }
            for bound in ["minimum", "maximum"] {
                if let Some(number) = fields.get(bound).and_then(Value::as_f64)
                    && number.fract() == 0.0
                {
                    fields.insert(bound.to_owned(), whole(number));
                }
            }
            fields.values_mut().for_each(tighten);
        }
        Value::Array(items) => items.iter_mut().for_each(tighten),
        _ => {}
    }
}

#[expect(clippy::cast_possible_truncation, reason = "bounds are written as small whole numbers")]
fn whole(number: f64) -> Value {
    Value::from(number as i64)
}

/// The schema of a place such as `spec.containers[].image`.
fn node_mut<'a>(schema: &'a mut Value, place: &str) -> Option<&'a mut Value> {
    let mut node = schema;
    for step in place.split('.').filter(|step| !step.is_empty()) {
        let (name, lists) = step.split_once("[]").map_or((step, false), |(name, _)| (name, true));
        node = node.get_mut("properties")?.get_mut(name)?;
        if lists {
            node = node.get_mut("items")?;
        }
    }
    Some(node)
}

fn insert(node: &mut Value, rule: &Rule) {
    let Some(fields) = node.as_object_mut() else { return };
    let mut entry = Map::new();
    entry.insert("rule".to_owned(), rule.cel.into());
    entry.insert("message".to_owned(), rule.text().into());
    if let Message::Naming { text, found, .. } = &rule.message {
        let expression = format!("'{}: {}: {}'.format([{found}])", rule.reason.code(), quoted(text), quoted(rule.help));
        entry.insert("messageExpression".to_owned(), expression.into());
    }
    // The API server knows no path into the metadata.
    if let [field] = rule.fields
        && !rule.at.is_empty()
    {
        entry.insert("fieldPath".to_owned(), format!(".{field}").into());
    }
    let rules = fields.entry("x-kubernetes-validations").or_insert_with(|| json!([]));
    if let Some(rules) = rules.as_array_mut() {
        rules.push(Value::Object(entry));
    }
}

fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\'', "\\'")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::API_VERSION;

    fn visit(node: &Value, path: &str, look: &mut impl FnMut(&str, &Map<String, Value>)) {
        match node {
            Value::Object(fields) => {
                look(path, fields);
                fields.iter().for_each(|(key, value)| visit(value, &format!("{path}/{key}"), look));
            }
            Value::Array(items) => items.iter().for_each(|item| visit(item, path, look)),
            _ => {}
        }
    }

    #[test]
    fn every_place_of_every_rule_is_in_the_schema() {
        let mut schema = sidecar_set_schema();
        for rule in RULES {
            assert!(!rule.places().is_empty());
            for place in rule.places() {
                let node = node_mut(&mut schema, &place).unwrap_or_else(|| panic!("no {place} for {}", rule.cel));
                let rules = node["x-kubernetes-validations"].as_array().unwrap();
                assert!(rules.iter().any(|inserted| inserted["rule"] == rule.cel), "{place}");
            }
        }
    }

    #[test]
    fn every_list_map_and_text_of_the_spec_is_bounded_and_nothing_has_a_default() {
        let mut loose = Vec::new();
        visit(&sidecar_set_schema()["properties"]["spec"], "spec", &mut |path, fields| {
            let is = |kind: &str| fields.get("type").is_some_and(|value| value == kind);
            let free = |bounds: &[&str]| !bounds.iter().any(|bound| fields.contains_key(*bound));
            let unbounded = (is("array") && free(&["maxItems"]))
                || (is("string") && free(&["maxLength", "enum"]))
                || (fields.contains_key("additionalProperties") && free(&["maxProperties"]))
                || (fields.contains_key("x-kubernetes-int-or-string") && free(&["maxLength"]));
            // A property may be called `default`; a default stands beside a type.
            if unbounded || fields.contains_key("nullable") || (fields.contains_key("type") && !free(&["default"])) {
                loose.push(path.to_owned());
            }
        });
        assert_eq!(loose, Vec::<String>::new());
    }

    #[test]
    fn names_columns_and_scope_are_as_promised() {
        let crd = sidecar_set_crd();
        let labels = json!({"app.kubernetes.io/part-of": "pillion"});
        assert_eq!(crd["metadata"], json!({"name": "sidecarsets.apps.kruise.io", "labels": labels}));
        assert_eq!(crd["spec"]["scope"], "Cluster");
        assert_eq!(crd["spec"]["names"]["shortNames"], json!(["scs"]));
        assert_eq!(crd["spec"]["names"]["categories"], json!(["pillion"]));
        let version = &crd["spec"]["versions"][0];
        assert_eq!(version["name"], "v1alpha1");
        assert_eq!(API_VERSION, format!("{}/v1alpha1", crd["spec"]["group"].as_str().unwrap()));
        assert_eq!(version["subresources"], json!({"status": {}}));
        let columns: Vec<&str> = version["additionalPrinterColumns"]
            .as_array()
            .unwrap()
            .iter()
            .map(|c| c["name"].as_str().unwrap())
            .collect();
        // Whether it is well, how far it is, what is wrong; then what `-o wide` adds.
        let narrow = ["Matched", "Injected", "Updated", "Ready", "Missed", "Status"];
        let wide = ["Predating", "Revision", "Mode", "Images", "Message"];
        assert_eq!(columns, [&narrow[..], &wide, &["Age"]].concat());
    }
}
