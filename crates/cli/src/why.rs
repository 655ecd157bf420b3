//! `pillion why`: why pods of a cluster have or lack their sidecars.
//!
//! Of a Job that has not finished it also says which container still runs, and what would end it.
//!
//! A pod tells by the record it carries. What has no record, and what does not exist yet, is decided again with what the
//! cluster has now.

use std::collections::BTreeSet;
use std::io;

use clap::{Args, ValueEnum};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::live::kinds::{JOB, Kind, POD, named};
use crate::live::{Cluster, Connection, Failure, Query, World, run as run_live};
use crate::{Ending, Streams, yaml_text};

mod answer;
mod job;
mod recorded;
mod standing;
#[cfg(test)]
mod tests;
mod view;

use answer::Answer;
use job::JobAnswer;
use view::Detail;

#[derive(Args)]
pub(crate) struct Arguments {
    /// Pods and workloads: pod/web-0, deploy/web, sts/db, ds/agent, job/import, cronjob/nightly, rs/web-5f9c.
    #[arg(value_name = "KIND/NAME", value_parser = named, required_unless_present = "selector")]
    subjects: Vec<(Kind, String)>,
    /// Pods with these labels.
    #[arg(short = 'l', long, value_name = "LABELS", conflicts_with = "subjects")]
    selector: Option<String>,
    /// Namespace of the pods; without it the one of the context.
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    /// Pods of all namespaces.
    #[arg(short = 'A', long, requires = "selector", conflicts_with_all = ["namespace", "subjects"])]
    all_namespaces: bool,
    /// Only this set.
    #[arg(long, value_name = "NAME")]
    set: Option<String>,
    /// Format of the answer.
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
    #[command(flatten)]
    connection: Connection,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For people.
    #[default]
    Text,
    /// For people, with all sets that do not match.
    Wide,
    /// For programs.
    Json,
    /// The same.
    Yaml,
}

pub(crate) fn run(arguments: &Arguments, streams: &mut Streams<'_>) -> io::Result<Ending> {
    run_live(&arguments.connection, streams, async |cluster, streams| {
        let subjects = subjects(cluster, arguments).await?;
        let namespaces: BTreeSet<String> = subjects.iter().map(namespace_of).collect();
        let world = World::gather(cluster, Some(&namespaces), &arguments.connection.pillion_namespace).await?;
        if let Some(set) = arguments.set.as_ref().filter(|set| !world.has_set(set)) {
            return Err(Failure::Usage(format!("there is no SidecarSet {set}")));
        }
        let mut answers = answer::answers(&world, &subjects).map_err(Failure::Usage)?;
        for answer in &mut answers {
            answer.rows.retain(|row| arguments.set.as_ref().is_none_or(|set| *set == row.set));
        }
        for note in &world.notes {
            writeln!(streams.err, "note: {note}")?;
        }
        let jobs = jobs(cluster, &subjects).await?;
        write!(streams.out, "{}", shown(&jobs, &answers, arguments.output))?;
        let is_finding = answers.iter().any(Answer::is_finding) || jobs.iter().any(|job| job.is_finding);
        Ok(if is_finding { Ending::Finding } else { Ending::Fine })
    })
}

fn shown(jobs: &[JobAnswer], answers: &[Answer], output: Output) -> String {
    let text = |detail| {
        let jobs = jobs.iter().map(|job| job.text.clone());
        jobs.chain([view::text(answers, detail)]).collect::<Vec<_>>().join("\n")
    };
    match output {
        Output::Text => text(Detail::Short),
        Output::Wide => text(Detail::Full),
        Output::Json => format!("{:#}\n", document(jobs, answers)),
        Output::Yaml => yaml_text::document(&document(jobs, answers)),
    }
}

fn document(jobs: &[JobAnswer], answers: &[Answer]) -> Value {
    let mut document = json!({"objects": answers.iter().map(view::json).collect::<Vec<_>>()});
    if !jobs.is_empty() {
        document["jobs"] = jobs.iter().map(|job| job.json.clone()).collect();
    }
    document
}

/// Whether the Jobs that are asked about finish; of a `CronJob`, its newest.
async fn jobs(cluster: &Cluster, subjects: &[Value]) -> Result<Vec<JobAnswer>, Failure> {
    let mut answers = Vec::new();
    for subject in subjects {
        let namespace = namespace_of(subject);
        let job = match subject["kind"].as_str() {
            Some("Job") => Some(subject.clone()),
            Some("CronJob") => {
                let all = cluster.list(JOB, Query { namespace: Some(&namespace), labels: None }).await?;
                newest_of(subject, all)
            }
            _ => None,
        };
        let Some(job) = job else { continue };
        let labels = format!("batch.kubernetes.io/job-name={}", job["metadata"]["name"].as_str().unwrap_or_default());
        let query = Query { namespace: Some(&namespace), labels: Some(&labels) };
        let pods = cluster.list(POD, query).await?;
        answers.push(job::explain(&job, &pods, Timestamp::now()));
    }
    Ok(answers)
}

/// The Job that a `CronJob` made last.
fn newest_of(cron_job: &Value, jobs: Vec<Value>) -> Option<Value> {
    let uid = &cron_job["metadata"]["uid"];
    let is_its = |job: &Value| {
        let owners = job["metadata"]["ownerReferences"].as_array().into_iter().flatten();
        owners.into_iter().any(|owner| owner["uid"] == *uid)
    };
    let created = |job: &Value| job["metadata"]["creationTimestamp"].as_str().map(str::to_owned);
    jobs.into_iter().filter(is_its).max_by_key(created)
}

/// The pods and workloads that are asked about.
async fn subjects(cluster: &Cluster, arguments: &Arguments) -> Result<Vec<Value>, Failure> {
    let namespace = arguments.namespace.as_deref().unwrap_or(cluster.default_namespace());
    if let Some(labels) = &arguments.selector {
        let namespace = Some(namespace).filter(|_| !arguments.all_namespaces);
        let pods = cluster.list(POD, Query { namespace, labels: Some(labels) }).await?;
        if pods.is_empty() {
            let place = namespace.map_or_else(|| "any namespace".to_owned(), |name| format!("namespace {name}"));
            return Err(Failure::Usage(format!("no pod of {place} has labels {labels}")));
        }
        return Ok(pods);
    }
    let mut found = Vec::new();
    for (kind, name) in &arguments.subjects {
        let object = cluster.get(*kind, Some(namespace), name).await?;
        let missing = || Failure::Usage(format!("there is no {} {namespace}/{name}", kind.name));
        found.push(object.ok_or_else(missing)?);
    }
    Ok(found)
}

fn namespace_of(object: &Value) -> String {
    object.pointer("/metadata/namespace").and_then(Value::as_str).unwrap_or_default().to_owned()
}
