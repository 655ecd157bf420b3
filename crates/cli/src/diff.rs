//! `pillion diff`: what applying sets would do to the pods and templates of a cluster.
//!
//! Every workload and pod is read once, a page at a time, and decided with the sets as they stand and as the files have
//! them. Nothing is written.

use std::io;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde_json::json;

use crate::live::kinds::{POD, WORKLOADS};
use crate::live::{Cluster, Connection, Failure, Progress, Query, World, run as run_live};
use crate::{Ending, Streams, manifest, yaml_text};

mod change;
mod survey;
#[cfg(test)]
mod tests;
mod view;

use change::{Change, changes};
use survey::Survey;

#[derive(Args)]
pub(crate) struct Arguments {
    /// Sets: files, folders, or - for stdin. Objects of other kinds are left out.
    #[arg(short, long = "filename", value_name = "PATH", num_args = 1.., required = true)]
    filenames: Vec<PathBuf>,
    /// Only workloads and pods of this namespace.
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    /// How many pods and workloads are named for each effect.
    #[arg(long, value_name = "NUMBER", default_value_t = 5)]
    examples: usize,
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
    /// For programs.
    Json,
    /// The same.
    Yaml,
}

pub(crate) fn run(arguments: &Arguments, streams: &mut Streams<'_>) -> io::Result<Ending> {
    let manifests = manifest::read(&arguments.filenames)?;
    run_live(&arguments.connection, streams, async |cluster, streams| {
        let world = World::gather(cluster, None, &arguments.connection.pillion_namespace).await?;
        let changes = match changes(&manifests, &world) {
            Ok(changes) if changes.is_empty() => {
                return Err(Failure::Usage("no SidecarSet is given: name its file or folder with -f".to_owned()));
            }
            Ok(changes) => changes,
            Err(errors) => {
                for error in errors {
                    writeln!(streams.err, "error: {error}")?;
                }
                writeln!(streams.err, "note: a set with errors is refused; pillion lint draws the places")?;
                return Ok(Ending::Finding);
            }
        };
        for note in world.notes.iter().chain(changes.iter().flat_map(|change| &change.warnings)) {
            writeln!(streams.err, "note: {note}")?;
        }
        if changes.len() > 1 {
            writeln!(streams.err, "note: each set is judged alone, with the others as the cluster has them")?;
        }
        let mut survey = Survey::new(&world, &changes, arguments.examples);
        take_all(cluster, arguments.namespace.as_deref(), &mut survey, streams).await?;
        write!(streams.out, "{}", shown(&changes, &survey, arguments.output))?;
        Ok(if survey.is_finding() { Ending::Finding } else { Ending::Fine })
    })
}

/// Workloads come before the pods that they made.
async fn take_all(
    cluster: &Cluster,
    namespace: Option<&str>,
    survey: &mut Survey<'_>,
    streams: &mut Streams<'_>,
) -> Result<(), Failure> {
    let mut progress = Progress::new();
    for kind in WORKLOADS.into_iter().chain([POD]) {
        let mut seen = 0;
        let query = Query { namespace, ..Query::default() };
        cluster
            .pages(kind, query, |page| {
                seen += page.len();
                for object in &page {
                    survey.take(object);
                }
                Ok(progress.tell(streams.err, || format!("{seen} {} so far", kind.plural))?)
            })
            .await?;
    }
    Ok(progress.end(streams.err)?)
}

fn shown(changes: &[Change<'_>], survey: &Survey<'_>, output: Output) -> String {
    let all = || changes.iter().zip(survey.impacts());
    let document = || json!({"sets": all().map(|(change, impact)| view::json(change, impact)).collect::<Vec<_>>()});
    match output {
        Output::Text => all().map(|(change, impact)| view::text(change, impact)).collect::<Vec<_>>().join("\n"),
        Output::Json => format!("{:#}\n", document()),
        Output::Yaml => yaml_text::document(&document()),
    }
}
