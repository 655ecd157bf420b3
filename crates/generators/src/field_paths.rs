//! Which fields a schema declares, and which an object gives: so that a test can demand that all are used.

use std::collections::BTreeSet;

use serde_json::Value;

/// The paths of all fields a structural schema declares, such as `.containers.name`.
pub fn declared_fields(schema: &Value) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    declared(schema, "", &mut paths);
    paths
}

/// The paths of all fields an object gives, in the same form.
pub fn given_fields(object: &Value) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    given(object, "", &mut paths);
    paths
}

/// Both kinds of containers have the same fields, so they count as one.
fn below(path: &str, name: &str) -> String {
    format!("{path}.{}", if name == "initContainers" { "containers" } else { name })
}

fn declared(schema: &Value, path: &str, paths: &mut BTreeSet<String>) {
    let schema = schema.get("items").unwrap_or(schema);
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        let path = below(path, name);
        declared(schema, &path, paths);
        paths.insert(path);
    }
}

fn given(value: &Value, path: &str, paths: &mut BTreeSet<String>) {
    for item in value.as_array().into_iter().flatten() {
        given(item, path, paths);
    }
    for (name, value) in value.as_object().into_iter().flatten() {
        let path = below(path, name);
        given(value, &path, paths);
        paths.insert(path);
    }
}
