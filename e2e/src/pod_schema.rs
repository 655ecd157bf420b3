//! The schema of containers and volumes, reduced from the `OpenAPI` document that an API server serves.

use serde_json::{Map, Value, json};

/// Keywords that are kept. Quantities and ports get forms of their own.
const KEPT: [&str; 3] = ["type", "format", "required"];

/// Returns the schemas of containers and volumes without references, descriptions and defaults, in the form of
/// `crates/api/src/template_check/kubernetes-1.36.json`.
pub fn reduced(openapi: &Value) -> Value {
    let schemas = &openapi["components"]["schemas"];
    let of = |name: &str| inlined(&schemas[format!("io.k8s.api.core.v1.{name}")], schemas);
    json!({"container": of("Container"), "volume": of("Volume")})
}

fn inlined(schema: &Value, schemas: &Value) -> Value {
    if let Some(only) = schema.get("allOf").and_then(|all| all.get(0)) {
        return inlined(only, schemas);
    }
    if let Some(name) = schema.get("$ref").and_then(Value::as_str).and_then(|reference| reference.rsplit('/').next()) {
        return inlined(&schemas[name], schemas);
    }
    if schema["format"] == "int-or-string" {
        return json!({"x-kubernetes-int-or-string": true});
    }
    // The only other choice of types in pods.
    if schema.get("oneOf").is_some() {
        return json!({"format": "quantity"});
    }
    let mut kept: Map<String, Value> =
        KEPT.iter().filter_map(|name| Some(((*name).to_owned(), schema.get(name)?.clone()))).collect();
    if let Some(required) = kept.get_mut("required").and_then(Value::as_array_mut) {
        required.sort_by_key(ToString::to_string);
    }
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        let inner: Map<String, Value> =
            properties.iter().map(|(name, schema)| (name.clone(), inlined(schema, schemas))).collect();
        kept.insert("properties".to_owned(), inner.into());
    }
    for name in ["items", "additionalProperties"] {
        if let Some(inner) = schema.get(name) {
            kept.insert(name.to_owned(), inlined(inner, schemas));
        }
    }
    kept.into()
}
