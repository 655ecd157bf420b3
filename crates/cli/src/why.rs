//! `pillion why`: why pods of a cluster have or lack their sidecars.
//!
//! A pod tells by the record it carries. What has no record, and what does not exist yet, is decided again with what the
//! cluster has now.

use std::collections::BTreeSet;
use std::io;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use crate::live::kinds::{Kind, POD, named};
use crate::live::{Cluster, Connection, Failure, Query, World, run as run_live};
use crate::{Ending, Streams, yaml_text};

mod answer;
mod recorded;
mod standing;
#[cfg(test)]
mod tests;
mod view;

use answer::Answer;
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
        write!(streams.out, "{}", shown(&answers, arguments.output))?;
        Ok(if answers.iter().any(Answer::is_finding) { Ending::Finding } else { Ending::Fine })
    })
}

fn shown(answers: &[Answer], output: Output) -> String {
    match output {
        Output::Text => view::text(answers, Detail::Short),
        Output::Wide => view::text(answers, Detail::Full),
        Output::Json => format!("{:#}\n", document(answers)),
        Output::Yaml => yaml_text::document(&document(answers)),
    }
}

fn document(answers: &[Answer]) -> Value {
    json!({"objects": answers.iter().map(view::json).collect::<Vec<_>>()})
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
