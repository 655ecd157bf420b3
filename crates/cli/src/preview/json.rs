//! A preview for programs. Fields may be added, and none changes its meaning.

use pillion_inject::{Ending, Filled, Outcome, Size, Warning};
use serde_json::{Value, json};

use super::{Preview, Said};

/// The whole of it.
pub(crate) fn json(preview: &Preview<'_>) -> Value {
    let subject = preview.subject;
    let origin = subject.origin();
    json!({
        "source": {"file": subject.file, "kind": origin.kind, "namespace": origin.namespace, "name": origin.name},
        "branch": preview.branch,
        "namespace": {"name": subject.namespace.name, "labels": subject.namespace.labels},
        "admitted": !preview.decision.is_refused(),
        "verdicts": preview.all().iter().map(|(set, said)| verdict(set, said)).collect::<Vec<_>>(),
        "endings": preview.decision.endings.iter().map(ending).collect::<Vec<_>>(),
        "refusal": preview.decision.refusal.as_ref().map(|refusal| json!({
            "code": refusal.reason.code(), "reason": refusal.reason.name(), "message": refusal.message,
        })),
        "defaults": {
            "before": subject.filled.iter().map(filled).collect::<Vec<_>>(),
            "after": preview.filled_after.iter().map(filled).collect::<Vec<_>>(),
        },
        "notes": preview.notes(),
        "patch": preview.decision.patch,
        "pod": preview.pod(),
        "effect": preview.effect.as_ref().and_then(|effect| effect.as_ref().ok()).map(super::Effect::json),
    })
}

fn verdict(set: &str, said: &Said<'_, '_>) -> Value {
    match said {
        Said::Mismatch(found) => json!({
            "set": set, "outcome": Outcome::Skipped.word(), "code": found.reason.code(), "reason": found.reason.name(),
            "message": found.message, "sizes": [], "warnings": [],
        }),
        Said::Verdict(verdict) => json!({
            "set": set, "outcome": verdict.outcome.word(), "code": verdict.reason.code(), "reason": verdict.reason.name(),
            "message": verdict.message,
            "sizes": verdict.sizes.iter().map(size).collect::<Vec<_>>(),
            "warnings": verdict.warnings.iter().map(warning).collect::<Vec<_>>(),
        }),
    }
}

/// How a sidecar is ended.
fn ending(ending: &Ending) -> Value {
    json!({
        "container": ending.container,
        "code": ending.reason.code(),
        "reason": ending.reason.name(),
        "message": ending.message,
        "warnings": ending.warnings.iter().map(warning).collect::<Vec<_>>(),
    })
}

fn warning(warning: &Warning) -> Value {
    json!({"code": warning.reason.code(), "reason": warning.reason.name(), "message": warning.message})
}

/// An amount, and how it came about.
pub(crate) fn size(size: &Size<'_>) -> Value {
    let resource = size.field.resource;
    let steps = size.program.explain(size.input).map(|explanation| explanation.to_string()).unwrap_or_default();
    json!({
        "container": size.container,
        "field": size.field.to_string(),
        "expression": size.program.source(),
        "mode": size.mode.to_string(),
        "targets": size.targets.iter().map(|(name, amount)| json!({
            "container": name, "amount": amount.map(|amount| amount.human(resource).to_string()),
        })).collect::<Vec<_>>(),
        "input": size.input.human(resource).to_string(),
        "result": size.result.human(resource).to_string(),
        "steps": steps.lines().collect::<Vec<_>>(),
    })
}

fn filled(filled: &Filled) -> Value {
    json!({"path": filled.path.to_string(), "value": filled.value, "why": filled.by.to_string()})
}
