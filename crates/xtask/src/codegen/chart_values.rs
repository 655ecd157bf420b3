//! The page of the chart's values: what the schema says of each, and what holds where nothing is said.

use std::fmt::Write as _;

use anyhow::{Context, bail};
use serde_json::Value;

use crate::yaml;

const SCHEMA: &str = include_str!("../../../../charts/pillion/values.schema.json");
const VALUES: &str = include_str!("../../../../charts/pillion/values.yaml");

const TOP: &str = "# Values of the chart\n\n\
    Everything `charts/pillion` can be told, from its schema and its defaults (`cargo xtask codegen` writes this page). A key\n\
    that is not here is refused by Helm before anything is changed. What they are good for is told in [Install](install.md).\n\n\
    | value | default | meaning |\n|---|---|---|\n";

/// The page.
pub(super) fn page() -> anyhow::Result<String> {
    let schema: Value = serde_json::from_str(SCHEMA).context("values.schema.json")?;
    let values = yaml::parse(VALUES).context("values.yaml")?;
    let mut page = TOP.to_owned();
    for (path, schema, value) in leaves(&schema, &values)? {
        let meaning = schema["description"].as_str().with_context(|| format!("{path} has no description"))?;
        let choices = schema["enum"].as_array().map(|choices| {
            let words: Vec<_> = choices.iter().map(|choice| format!("`{}`", plain(choice))).collect();
            format!(" One of {}.", words.join(", "))
        });
        let (default, choices) = (plain(&value), choices.unwrap_or_default());
        writeln!(page, "| `{path}` | `{default}` | {meaning}{choices} |")?;
    }
    Ok(page)
}

/// Every value that is not a group of others, by name.
fn leaves(schema: &Value, values: &Value) -> anyhow::Result<Vec<(String, Value, Value)>> {
    let mut found = Vec::new();
    let mut waiting = vec![(String::new(), schema.clone(), values.clone())];
    while let Some((path, node, value)) = waiting.pop() {
        let node = resolved(schema, node)?;
        let groups = node.get("description").is_none() && value.is_object();
        if !groups {
            found.push((path, node, value));
            continue;
        }
        // The last to be put on is the first to be taken off.
        for (key, value) in value.as_object().into_iter().flatten().rev() {
            let below =
                node["properties"].get(key).with_context(|| format!("{path}: the schema does not know {key}"))?;
            let dot = if path.is_empty() { "" } else { "." };
            waiting.push((format!("{path}{dot}{key}"), below.clone(), value.clone()));
        }
    }
    Ok(found)
}

/// A schema with what it refers to.
fn resolved(root: &Value, mut node: Value) -> anyhow::Result<Value> {
    let Some(Value::String(reference)) = node.as_object_mut().and_then(|node| node.remove("$ref")) else {
        return Ok(node);
    };
    let Some(Value::Object(target)) = reference.strip_prefix('#').and_then(|path| root.pointer(path)) else {
        bail!("there is no {reference}");
    };
    for (key, value) in target {
        if node.get(key).is_none() {
            node[key] = value.clone();
        }
    }
    Ok(node)
}

/// A string as it is, everything else as JSON.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) if text.is_empty() => "\"\"".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_has_a_line_and_a_meaning() {
        let page = page().unwrap();
        for line in [
            "| `layout` | `Separate` | Whether webhook and controller are Deployments of their own or one. One of `Separate`, `OnePod`. |",
            "| `webhook.replicas` | `2` | How many pods. |",
            "| `featureGates` | `{}` | Features to switch on or off. |",
            "| `image.tag` | `\"\"` | Its tag; the version of the chart where empty. |",
        ] {
            assert!(page.contains(line), "no {line:?} in\n{page}");
        }
    }
}
