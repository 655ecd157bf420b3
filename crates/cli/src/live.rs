//! What all verbs that ask a cluster share: how it is named on the command line, reached, and read.

use std::io;
use std::path::PathBuf;

use clap::Args;
use pillion_runtime::client::{ConnectError, Source};

use crate::{Ending, Streams, chain, installation};

mod cluster;
pub(crate) mod kinds;
mod progress;
mod world;

pub(crate) use cluster::{Cluster, DryRun, Patched, Query};
pub(crate) use progress::Progress;
pub(crate) use world::World;

/// Which cluster is asked.
#[derive(Args)]
pub(crate) struct Connection {
    /// Kubeconfig to use instead of KUBECONFIG or ~/.kube/config.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig to use instead of the current one.
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// Namespace the product itself runs in.
    #[arg(long, value_name = "NAME", default_value = installation::DEFAULT_NAMESPACE)]
    pub(crate) pillion_namespace: String,
}

impl Connection {
    /// The flags by which kubectl asks the same cluster, each with a space before it.
    pub(crate) fn flags(&self) -> String {
        let kubeconfig = self.kubeconfig.as_ref().map(|path| format!(" --kubeconfig {}", path.display()));
        let context = self.context.as_ref().map(|name| format!(" --context {name}"));
        kubeconfig.into_iter().chain(context).collect()
    }
}

/// Why a verb did not come to its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// Nobody reads what is written.
    #[error(transparent)]
    Output(#[from] io::Error),
    /// What was asked for cannot be, or is not there.
    #[error("{0}")]
    Usage(String),
    /// Nothing says where the cluster is, or not well.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The cluster does not answer, or not with what was asked for.
    #[error("cannot {doing}")]
    Cluster {
        /// What was being done: `list pods`.
        doing: String,
        /// What came instead.
        source: Box<kube::Error>,
    },
    /// The cluster does not tell what changes.
    #[error("cannot watch {0}")]
    Watch(String),
}

/// Runs what asks a cluster. Where there is none, that is said, and the status is 3.
pub(crate) fn run(
    connection: &Connection,
    streams: &mut Streams<'_>,
    verb: impl AsyncFnOnce(&Cluster, &mut Streams<'_>) -> Result<Ending, Failure>,
) -> io::Result<Ending> {
    let source = Source { kubeconfig: connection.kubeconfig.clone(), context: connection.context.clone() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ended = runtime.block_on(async {
        let cluster = Cluster::connect(&source).await?;
        verb(&cluster, streams).await
    });
    match ended {
        Ok(ending) => Ok(ending),
        Err(Failure::Output(error)) => Err(error),
        Err(Failure::Usage(message)) => Err(io::Error::other(message)),
        Err(failure @ (Failure::Connect(_) | Failure::Cluster { .. } | Failure::Watch(_))) => {
            writeln!(streams.err, "error: {}", chain(&failure))?;
            Ok(Ending::NoCluster)
        }
    }
}
