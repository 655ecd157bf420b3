//! The command line of `bed`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};

use crate::config::{Config, Fleet};
use crate::keeper;
use crate::parts::node::mounts;

mod person;
mod run;

/// A real Kubernetes on this machine, gone without a trace when you are done.
#[derive(Parser)]
#[command(name = "bed")]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Start a bed and leave it running.
    Up(Content),
    /// Show the running bed.
    Status,
    /// Run kubectl on the running bed.
    #[command(disable_help_flag = true)]
    Kubectl {
        /// Arguments of kubectl.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Stop the running bed.
    Down,
    /// Start a bed, run a command with it, stop the bed.
    Run {
        #[command(flatten)]
        content: Content,
        /// The command; it finds the bed in `PILLION_BED` and KUBECONFIG.
        #[arg(last = true, required = true)]
        command: Vec<String>,
    },
    /// Hold the bed of `up`.
    #[command(hide = true)]
    Hold(Content),
    /// Keep the processes of one bed.
    #[command(hide = true)]
    Keeper { locks: PathBuf },
    /// Hold the mounts of a real node.
    #[command(hide = true)]
    NodeHolder { folder: PathBuf },
}

/// What the bed consists of, besides a control plane with its controllers.
#[derive(Args, Clone)]
struct Content {
    /// A real node: kubelet and containerd, with the test images.
    #[arg(long)]
    node: bool,
    /// Simulated nodes.
    #[arg(long, value_name = "N")]
    fleet: Option<usize>,
    /// metrics-server.
    #[arg(long)]
    metrics: bool,
    /// Milliseconds a simulated container with a changed image is down.
    #[arg(long, value_name = "MS", default_value_t = 1000)]
    image_delay: u64,
}

impl Content {
    fn config(&self, name: &str) -> Config {
        let mut config = Config::control_plane(name).with_controllers();
        if self.node {
            config = config.with_node();
        }
        if let Some(nodes) = self.fleet {
            config = config.with_fleet(Fleet::of(nodes).image_delay(Duration::from_millis(self.image_delay)));
        }
        if self.metrics {
            config = config.with_metrics();
        }
        config
    }

    /// The same as command line arguments, for the process that holds the bed of `up`.
    fn arguments(&self) -> Vec<String> {
        let mut arguments = vec![format!("--image-delay={}", self.image_delay)];
        arguments.extend(self.node.then(|| "--node".to_owned()));
        arguments.extend(self.metrics.then(|| "--metrics".to_owned()));
        arguments.extend(self.fleet.map(|nodes| format!("--fleet={nodes}")));
        arguments
    }
}

/// Runs the verb of the command line; a failure is one message on stderr and status 1.
#[expect(clippy::print_stderr, reason = "talk goes to stderr")]
pub fn main() -> ExitCode {
    run_verb(Arguments::parse().verb).unwrap_or_else(|error| {
        eprintln!("bed: {error:#}");
        ExitCode::FAILURE
    })
}

fn run_verb(verb: Verb) -> Result<ExitCode> {
    match verb {
        // These two stay single-threaded, away from the asynchronous rest.
        Verb::Keeper { locks } => Ok(keeper::keep(&locks).map(|()| ExitCode::SUCCESS)?),
        Verb::NodeHolder { folder } => match mounts::hold(&folder)? {},
        Verb::Up(content) => person::up(&content),
        Verb::Status => in_runtime(person::status()),
        Verb::Kubectl { arguments } => person::kubectl(&arguments),
        Verb::Down => in_runtime(person::down()),
        Verb::Hold(content) => in_runtime(person::hold(&content)),
        Verb::Run { content, command } => in_runtime(run::run(&content, &command)),
    }
}

fn in_runtime(verb: impl Future<Output = Result<ExitCode>>) -> Result<ExitCode> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?.block_on(verb)
}
