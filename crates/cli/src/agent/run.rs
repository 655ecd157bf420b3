//! `pillion agent run --local`: the agent itself, on this machine. It asks the app as it would in a pod, and prints each
//! patch as one JSON line instead of sending it.

use std::path::PathBuf;

use clap::Args;

use crate::Ending;

#[derive(Args)]
pub(crate) struct Arguments {
    /// The configuration.
    #[arg(value_name = "FILE")]
    config: PathBuf,
    /// Print patches, and send nothing. There is no other way outside of a pod.
    #[arg(long, required = true)]
    local: bool,
}

pub(super) fn run(arguments: &Arguments) -> Ending {
    let Arguments { config, local: _ } = arguments;
    match pillion_agent::run_local(config) {
        0 => Ending::Fine,
        _ => Ending::Finding,
    }
}
