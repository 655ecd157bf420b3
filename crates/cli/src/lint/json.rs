//! Findings for programs. Fields are added, and never change their meaning.

use pillion_api::Severity;
use serde_json::{Value, json};

use super::finding::{Finding, Report};
use crate::autoscalers::is_autoscaler;
use crate::diagnostic::docs;

pub(super) fn report(report: &Report<'_>) -> Value {
    json!({
        "sets": report.sets,
        "autoscalers": report.autoscalers,
        "ignored": report.ignored,
        "errors": report.errors(),
        "warnings": report.warnings(),
        "findings": report.findings.iter().map(finding).collect::<Vec<_>>(),
    })
}

fn finding(finding: &Finding<'_>) -> Value {
    let problem = &finding.problem;
    let kind = if is_autoscaler(finding.manifest) { "autoscaler" } else { "set" };
    json!({
        "severity": match problem.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        },
        "code": problem.reason.code(),
        "name": problem.reason.name(),
        "message": problem.message,
        "help": problem.help,
        "docs": docs(problem.reason),
        kind: finding.manifest.name(),
        "path": problem.path.to_string(),
        "file": finding.manifest.file,
        "line": finding.place.line,
        "column": finding.place.column,
        "endColumn": finding.place.column + finding.place.length,
        "also": finding.also.iter().map(|other| json!({
            "set": other.manifest.name(),
            "path": other.path.to_string(),
            "file": other.manifest.file,
            "line": other.place.line,
            "column": other.place.column,
        })).collect::<Vec<_>>(),
    })
}
