//! Why a Job has not finished: which containers still run, what would end them, and the command that mends it.
//!
//! A function of the Job, its pods and the time; nothing is asked of a cluster here.

use std::fmt::Write as _;

use jiff::Timestamp;
use serde_json::{Value, json};

mod container;
mod finding;
#[cfg(test)]
mod tests;

use crate::layout::hanging;
use crate::rollout::{age, plural};
use container::{Seen, seen};
use finding::{Finding, find};

/// So many pods of a Job are told one by one; the others have most likely the same to tell.
const TOLD: usize = 2;

/// What is to be said about a Job.
pub(crate) struct JobAnswer {
    pub(crate) text: String,
    pub(crate) json: Value,
    /// Whether it will not finish unless somebody does something.
    pub(crate) is_finding: bool,
}

/// Explains a Job.
pub(crate) fn explain(job: &Value, pods: &[Value], now: Timestamp) -> JobAnswer {
    let title = format!("Job {}/{}", text(&job["metadata"]["namespace"]), text(&job["metadata"]["name"]));
    if let Some(why) = settled(job, now) {
        let json = json!({"job": title, "finished": why});
        return JobAnswer { text: format!("{title} {why}\n"), json, is_finding: false };
    }
    let wanted = job["spec"]["completions"].as_u64().unwrap_or(1);
    let done = job["status"]["succeeded"].as_u64().unwrap_or(0);
    let living: Vec<&Value> = pods.iter().filter(|pod| is_living(pod)).collect();
    let failed = pods.iter().filter(|pod| pod["status"]["phase"] == "Failed").count();
    let failed = if failed > 0 { format!(", {} failed", plural(failed, "pod")) } else { String::new() };
    let running = plural(living.len(), "pod");
    let mut told = format!("{title} has not finished: {done} of {wanted} completions, {running} active{failed}\n");
    let mut objects = Vec::new();
    let mut is_finding = false;
    for pod in living.iter().take(TOLD) {
        let containers = seen(pod);
        let finding = find(job, pod, &containers, now);
        is_finding |= finding.is_stuck;
        told.push('\n');
        told.push_str(&of_pod(pod, &containers, &finding, now));
        objects.push(json!({
            "pod": pod["metadata"]["name"],
            "containers": containers.iter().map(|it| it.json(now)).collect::<Vec<_>>(),
            "why": finding.why, "fix": finding.fix, "stuck": finding.is_stuck,
        }));
    }
    if living.is_empty() {
        told.push_str("\n  why  no pod of it runs: its controller makes the next one, or waits before it does\n");
    }
    if living.len() > TOLD {
        // Writing to a String cannot fail.
        let _ = writeln!(told, "\nand {} more", plural(living.len() - TOLD, "pod"));
    }
    JobAnswer { text: told, json: json!({"job": title, "pods": objects}), is_finding }
}

/// Why nothing is to be waited for.
fn settled(job: &Value, now: Timestamp) -> Option<String> {
    let conditions = job["status"]["conditions"].as_array().into_iter().flatten();
    let mut holding = conditions.filter(|condition| condition["status"] == "True");
    let condition = holding.find(|it| matches!(text(&it["type"]), "Complete" | "Failed" | "Suspended"))?;
    let since = time(&condition["lastTransitionTime"]).map(|at| format!(" for {}", age(now.duration_since(at))));
    let since = since.unwrap_or_default();
    Some(match text(&condition["type"]) {
        "Complete" => format!("is complete{since}"),
        "Suspended" => format!("is suspended{since}: set spec.suspend to false to go on"),
        _ => format!("has failed{since}: {}: {}", text(&condition["reason"]), text(&condition["message"])),
    })
}

fn is_living(pod: &Value) -> bool {
    !matches!(text(&pod["status"]["phase"]), "Succeeded" | "Failed")
}

fn of_pod(pod: &Value, containers: &[Seen<'_>], finding: &Finding, now: Timestamp) -> String {
    let phase = text(&pod["status"]["phase"]);
    let since = time(&pod["status"]["startTime"]).map(|at| format!(" for {}", age(now.duration_since(at))));
    let mut told = format!("pod {}  {phase}{}\n", text(&pod["metadata"]["name"]), since.unwrap_or_default());
    let head = ["CONTAINER", "STATE", "KIND", "WHAT ENDS IT"].map(str::to_owned);
    let rows: Vec<[String; 4]> = containers.iter().map(|container| container.row(now)).collect();
    let width = |column: usize| {
        let cells = rows.iter().chain([&head]).map(|row| row[column].chars().count());
        cells.max().unwrap_or_default()
    };
    let widths = [width(0), width(1), width(2)];
    for [name, state, kind, end] in [&head].into_iter().chain(&rows) {
        let begin = format!("  {name:0$}  {state:1$}  {kind:2$}  ", widths[0], widths[1], widths[2]);
        // Writing to a String cannot fail.
        let _ = writeln!(told, "{begin}{end}");
    }
    let _ = writeln!(told, "\n  why  {}", hanging(7, &finding.why));
    if let Some(fix) = &finding.fix {
        // A command is on one line, so that it can be copied.
        let _ = writeln!(told, "  fix  {fix}");
    }
    told
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn time(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}
