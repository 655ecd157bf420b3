//! `pillion size report`: what sidecars ask for against what they use.
//!
//! It needs a kubeconfig and metrics-server, and nothing of ours in the cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use clap::{Args, ValueEnum};
use serde_json::Value;

use crate::layout::terminal;
use crate::live::kinds::{POD, POD_METRICS, SIDECAR_SET};
use crate::live::{Cluster, Connection, Failure, Progress, Query, run as run_live};
use crate::{Ending, Streams};

mod tax;
#[cfg(test)]
mod tests;
mod view;

use tax::{By, Measured, Survey, Tax};
use view::Detail;

/// A sidecar is a container that a `SidecarSet` injected, an init container with `restartPolicy: Always`, or one that
/// stands beside the main container of its pod, under the same name and from the same image repository in pods of at
/// least 2 workloads. The main container is the one that the annotation kubectl.kubernetes.io/default-container names,
/// else the first that no set injected.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Only pods of this namespace.
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    /// Pods of all namespaces; this is so without -n as well.
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    all_namespaces: bool,
    /// One table only, with all its lines.
    #[arg(long, value_enum)]
    by: Option<Dimension>,
    /// Format of the answer.
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
    /// Width of tables; without it that of the terminal.
    #[arg(long, env = "COLUMNS", value_parser = clap::value_parser!(u16).range(40..=400))]
    columns: Option<u16>,
    #[command(flatten)]
    connection: Connection,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Dimension {
    /// Sets that injected them.
    Set,
    /// Containers, by name and image repository.
    Container,
    /// Namespaces of the pods.
    Namespace,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For people.
    #[default]
    Table,
    /// For people, with all lines and columns.
    Wide,
    /// For programs.
    Json,
    /// For spreadsheets: a line for each set, container and namespace.
    Csv,
}

impl From<Dimension> for By {
    fn from(by: Dimension) -> Self {
        match by {
            Dimension::Set => Self::Set,
            Dimension::Container => Self::Container,
            Dimension::Namespace => Self::Namespace,
        }
    }
}

pub(super) fn run(arguments: &Arguments, streams: &mut Streams<'_>) -> io::Result<Ending> {
    run_live(&arguments.connection, streams, async |cluster, streams| {
        let (measured, tax) = survey(cluster, arguments, streams).await?;
        let by = arguments.by.map(By::from);
        match arguments.output {
            Output::Table => {
                let room = arguments.columns.map_or_else(|| terminal().columns, usize::from);
                write!(streams.out, "{}", view::text(&tax, measured.span.as_ref(), by, Detail::Columns(room)))?;
            }
            Output::Wide => write!(streams.out, "{}", view::text(&tax, measured.span.as_ref(), by, Detail::Wide))?,
            Output::Json => writeln!(streams.out, "{:#}", view::json(&tax, measured.span.as_ref()))?,
            Output::Csv => write!(streams.out, "{}", view::csv(&tax, by))?,
        }
        if tax.pods > 0 && measured.pods() == 0 {
            writeln!(
                streams.err,
                "error: the cluster does not tell what pods use: install metrics-server, and see that `kubectl top pods` works"
            )?;
            return Ok(Ending::Finding);
        }
        Ok(Ending::Fine)
    })
}

async fn survey(
    cluster: &Cluster,
    arguments: &Arguments,
    streams: &mut Streams<'_>,
) -> Result<(Measured, Tax), Failure> {
    let query = Query { namespace: arguments.namespace.as_deref(), ..Query::default() };
    let mut progress = Progress::new();
    let mut measured = Measured::default();
    cluster
        .pages(POD_METRICS, query, |page| {
            for metrics in &page {
                measured.take(metrics);
            }
            Ok(progress.tell(streams.err, || format!("measurements of {} pods so far", measured.pods()))?)
        })
        .await?;
    let sets = match cluster.list(SIDECAR_SET, Query::default()).await {
        Ok(sets) => containers_of(&sets),
        // Whoever may see pods may not see sets, which belong to the whole cluster.
        Err(failure) => {
            writeln!(streams.err, "note: sets are named only where a pod carries one: {}", crate::chain(&failure))?;
            BTreeMap::new()
        }
    };
    let mut survey = Survey::new(&measured, &sets);
    cluster
        .pages(POD, query, |page| {
            for pod in &page {
                survey.take(pod);
            }
            Ok(progress.tell(streams.err, || format!("{} pods so far", survey.pods()))?)
        })
        .await?;
    progress.end(streams.err)?;
    let tax = survey.tax();
    Ok((measured, tax))
}

/// The names of the containers of each set.
fn containers_of(sets: &[Value]) -> BTreeMap<String, BTreeSet<String>> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let names = |set: &Value| {
        let lists = ["initContainers", "containers"].map(|list| set["spec"][list].as_array().cloned());
        lists.into_iter().flatten().flatten().map(|container| text(&container["name"])).collect()
    };
    sets.iter().map(|set| (text(&set["metadata"]["name"]), names(set))).collect()
}
