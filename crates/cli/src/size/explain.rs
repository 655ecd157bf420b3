//! `pillion size explain`: how the numbers that an autoscaler publishes came about.
//!
//! What was learned is in the checkpoints, and the steps from there are the recommender's own. Objects of upstream's
//! recommender are the same, and are explained as well.

use std::fs;
use std::io;
use std::path::PathBuf;

use clap::Args;
use jiff::Timestamp;

use crate::layout::terminal;
use crate::live::kinds::{AUTOSCALER, CHECKPOINT, POD, autoscaler_named};
use crate::live::{Connection, Failure, Query, run as run_live};
use crate::{Ending, Format, Streams};

mod bars;
mod json;
mod steps;
mod subject;
mod svg;
#[cfg(test)]
mod tests;
mod text;

use subject::Subject;

#[derive(Args)]
pub(crate) struct Arguments {
    /// The autoscaler: vpa/web, or web.
    #[arg(value_name = "VPA", value_parser = autoscaler_named)]
    autoscaler: String,
    /// Namespace of the autoscaler; without it the one of the context.
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    /// Only this container.
    #[arg(long, value_name = "NAME")]
    container: Option<String>,
    /// Also write a picture.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Format of the answer.
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
    /// Width of the drawing; without it that of the terminal.
    #[arg(long, env = "COLUMNS", value_parser = clap::value_parser!(u16).range(60..=400))]
    columns: Option<u16>,
    #[command(flatten)]
    connection: Connection,
}

pub(super) fn run(arguments: &Arguments, streams: &mut Streams<'_>) -> io::Result<Ending> {
    let name = &arguments.autoscaler;
    run_live(&arguments.connection, streams, async |cluster, streams| {
        let namespace = arguments.namespace.as_deref().unwrap_or_else(|| cluster.default_namespace());
        let object = cluster.get(AUTOSCALER, Some(namespace), name).await?;
        let object = object.ok_or_else(|| {
            Failure::Usage(format!("there is no VerticalPodAutoscaler {namespace}/{name}: correct the name or -n"))
        })?;
        let query = Query { namespace: Some(namespace), ..Query::default() };
        let checkpoints = cluster.list(CHECKPOINT, query).await?;
        let pods = cluster.list(POD, query).await?;
        let mut subject = Subject::read(&object, &checkpoints, &pods, Timestamp::now()).map_err(Failure::Usage)?;
        if let Some(container) = &arguments.container {
            subject.keep(container).map_err(Failure::Usage)?;
        }
        match arguments.output {
            Format::Text => {
                let room = arguments.columns.map_or_else(|| terminal().columns, usize::from);
                write!(streams.out, "{}", text::text(&subject, room))?;
            }
            Format::Json => writeln!(streams.out, "{:#}", json::json(&subject))?,
        }
        if let Some(file) = &arguments.svg {
            fs::write(file, svg::draw(&subject))
                .map_err(|error| io::Error::new(error.kind(), format!("cannot write {}: {error}", file.display())))?;
            writeln!(streams.err, "wrote {}", file.display())?;
        }
        Ok(Ending::Fine)
    })
}
