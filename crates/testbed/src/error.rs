//! What can go wrong with a bed, each with the way out.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use pillion_tools::MissingProgram;

/// Why a bed could not be started, used or stopped.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A program is not built.
    #[error(transparent)]
    Missing(#[from] MissingProgram),
    /// The machine is not prepared for a bed.
    #[error("this machine lacks what the bed needs:\n{0}")]
    NotPrepared(String),
    /// Something of the machine is missing.
    #[error("{what} is missing: {way_out}")]
    Lacking {
        /// What.
        what: String,
        /// What to do.
        way_out: &'static str,
    },
    /// The process that holds the bed misbehaved.
    #[error("keeper of the bed: {0}")]
    Keeper(String),
    /// A part ended by itself.
    #[error("{name} ended by itself ({how}); the last lines of {log}:\n{tail}")]
    Ended {
        /// The part.
        name: String,
        /// Exit status.
        how: String,
        /// Its log.
        log: PathBuf,
        /// End of its log.
        tail: String,
    },
    /// A condition did not come true in time.
    #[error("waited {} s for {what}; {seen}", .limit.as_secs())]
    TimedOut {
        /// The condition.
        what: String,
        /// How long.
        limit: Duration,
        /// What was seen instead.
        seen: String,
    },
    /// A set-up command failed.
    #[error("\"{command}\" ended with {status}: {output}")]
    Command {
        /// The command line.
        command: String,
        /// Exit status.
        status: String,
        /// What it printed.
        output: String,
    },
    /// A file of the bed could not be written or read.
    #[error("{path}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A certificate could not be made.
    #[error("certificate of {name}")]
    Certificate {
        /// For whom.
        name: String,
        /// Why.
        source: rcgen::Error,
    },
    /// The API server refused.
    #[error("{what}")]
    Kubernetes {
        /// What was tried.
        what: String,
        /// The answer.
        source: Box<kube::Error>,
    },
    /// The kubeconfig of a bed cannot be used.
    #[error("kubeconfig {path}: {why}")]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
}

impl Error {
    pub(crate) fn keeper(message: impl Into<String>) -> Self {
        Self::Keeper(message.into())
    }

    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { path, source }
    }

    pub(crate) fn kubernetes(what: impl Into<String>) -> impl FnOnce(kube::Error) -> Self {
        let what = what.into();
        move |source| Self::Kubernetes { what, source: Box::new(source) }
    }
}
