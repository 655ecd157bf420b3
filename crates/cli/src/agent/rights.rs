//! What agents with a configuration may do, told to people and to programs.

use std::collections::BTreeSet;

use pillion_agent_api::{Rights, TargetRight, names};
use serde_json::{Value, json};

use crate::layout::hanging;

/// Wide enough for what the lists are called.
const INDENT: usize = 18;

/// Indented lines, below a line that says whose these are.
pub(super) fn text(rights: &Rights) -> String {
    let mut lines: Vec<(&str, String)> = Vec::new();
    let joined = |items: &BTreeSet<String>| items.iter().cloned().collect::<Vec<_>>().join(", ");
    for (name, items) in [("labels", &rights.labels), ("annotations", &rights.annotations)] {
        lines.extend((!items.is_empty()).then(|| (name, joined(items))));
    }
    let probes = format!("those that its annotation {} names", names::POD_PROBES);
    let mut conditions = rights.conditions.clone();
    conditions.extend(rights.pod_probes.then_some(probes));
    lines.extend((!conditions.is_empty()).then(|| ("conditions", joined(&conditions))));
    let mut told = match lines.is_empty() {
        true => "  nothing is set on its pod\n".to_owned(),
        false => "  sets on its own pod, by pods/status: patch\n".to_owned(),
    };
    for (name, items) in lines {
        told.push_str(&format!("    {name:<14}{}\n", hanging(INDENT, &items)));
    }
    if let Some(target) = &rights.target {
        let of = if target.group.is_empty() {
            target.resource.clone()
        } else {
            format!("{}.{}", target.resource, target.group)
        };
        let TargetRight { pointer, resource, .. } = target;
        let line = format!("sets {pointer} of {of} of the pod's name, by {resource}: patch");
        told.push_str(&format!("  {}\n", hanging(2, &line)));
        told.push_str(&format!("    {:<14}{}\n", "values", hanging(INDENT, &joined(&rights.values))));
    }
    if !rights.config_maps.is_empty() {
        told.push_str(&format!("  reads the ConfigMap {}, by configmaps: get, watch\n", joined(&rights.config_maps)));
    }
    if rights.token_reviews {
        told.push_str("  asks whose a token is, by tokenreviews: create\n");
    }
    told
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
