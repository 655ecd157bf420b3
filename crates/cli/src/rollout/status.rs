//! `pillion rollout status`: how far a rollout is, and what it waits for.

use std::io;

use clap::Args;
use jiff::Timestamp;

use super::gather::Rollout;
use super::picture::Picture;
use crate::live::kinds::set_named;
use crate::live::{Connection, run as run_live};
use crate::{Ending, Format, Streams};

mod follow;
mod json;
mod pace;
mod screen;
#[cfg(test)]
mod tests;
mod text;

use text::Detail;
pub(super) use text::outlook;

#[derive(Args)]
pub(crate) struct Arguments {
    /// The set: scs/mesh, or mesh.
    #[arg(value_name = "SET", value_parser = set_named)]
    set: String,
    /// Follow it until it is done (status 0) or stalled (status 1). At a terminal the picture is drawn in place; elsewhere
    /// every change is a line.
    #[arg(short, long)]
    watch: bool,
    /// Format of the answer.
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
    #[command(flatten)]
    connection: Connection,
}

pub(super) fn run(arguments: &Arguments, streams: &mut Streams<'_>) -> io::Result<Ending> {
    run_live(&arguments.connection, streams, async |cluster, streams| {
        if arguments.watch {
            return Box::pin(follow::follow(cluster, arguments, streams)).await;
        }
        let rollout = match Rollout::gathered(cluster, &arguments.connection, &arguments.set, streams).await? {
            Ok(rollout) => rollout,
            Err(ending) => return Ok(ending),
        };
        let picture = Picture::of(&rollout, Timestamp::now());
        match arguments.output {
            Format::Text => write!(streams.out, "{}", text::text(&picture, None, Detail::Full))?,
            Format::Json => writeln!(streams.out, "{:#}", json::json(&picture))?,
        }
        Ok(if picture.state.is_stalled() { Ending::Finding } else { Ending::Fine })
    })
}
