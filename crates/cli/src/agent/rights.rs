//! What agents with a configuration may do, told to people and to programs.

use std::collections::BTreeSet;

use pillion_agent_api::{Rights, TargetRight, names};
use serde_json::{Value, json};

use crate::layout::hanging;

/// Wide enough for what the lists are called.
const INDENT: usize = 18;

/// Indented lines, below a line that says whose these are.
pub(super) fn text(rights: &Rights) -> String {
    let joined = |items: &BTreeSet<String>| items.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    let list = |name: &str, items: &BTreeSet<String>| format!("    {name:<14}{}", hanging(INDENT, &joined(items)));
    let mut conditions = rights.conditions.clone();
    conditions.extend(rights.pod_probes.then(|| format!("those that its annotation {} names", names::POD_PROBES)));
    let marks = [("labels", &rights.labels), ("annotations", &rights.annotations), ("conditions", &conditions)];
    let marks: Vec<_> = marks.iter().filter(|(_, items)| !items.is_empty()).collect();
    let on_pod =
        if marks.is_empty() { "sets nothing on its pod" } else { "sets on its own pod, by pods/status: patch" };
    let mut lines = vec![format!("  {on_pod}")];
    lines.extend(marks.iter().map(|(name, items)| list(name, items)));
    if let Some(TargetRight { group, resource, pointer, .. }) = &rights.target {
        let of = if group.is_empty() { resource.clone() } else { format!("{resource}.{group}") };
        let line = format!("sets {pointer} of {of} of the pod's name, by {resource}: patch");
        lines.push(format!("  {}", hanging(2, &line)));
        lines.push(list("values", &rights.values));
    }
    if !rights.config_maps.is_empty() {
        lines.push(format!("  reads the ConfigMap {}, by configmaps: get, watch", joined(&rights.config_maps)));
    }
    if rights.token_reviews {
        lines.push("  asks whose a token is, by tokenreviews: create".to_owned());
    }
    lines.join("\n") + "\n"
}

pub(super) fn json(rights: &Rights) -> Value {
    json!({
        "labels": rights.labels,
        "annotations": rights.annotations,
        "conditions": rights.conditions,
        "podProbes": rights.pod_probes,
        "target": rights.target.as_ref().map(|target| json!({
            "group": target.group,
            "version": target.version,
            "resource": target.resource,
            "pointer": target.pointer,
        })),
        "values": rights.values,
        "tokenReviews": rights.token_reviews,
        "rules": rights.role_rules(),
    })
}
