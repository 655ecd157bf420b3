//! What a bed and its keeper say to each other: one JSON value per line.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::slot::Slot;

/// A program the keeper shall run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Part {
    /// Name in messages and of the log file.
    pub(crate) name: String,
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<String>,
    pub(crate) environment: Vec<(String, String)>,
    /// stdout and stderr are appended here.
    pub(crate) log: PathBuf,
}

/// What can be done to a running part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Signal {
    /// Ask it to end.
    Terminate,
    /// End it as a power failure would.
    Kill,
    /// Freeze it: sockets stay open, nothing answers.
    Freeze,
    /// Let a frozen one go on.
    Thaw,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    Run(Part),
    Signal {
        name: String,
        signal: Signal,
    },
    /// End everything, clean up, and end. The same happens when the pipe closes.
    End,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// First line: the keeper holds this slot.
    Holding { slot: Slot },
    /// Answer to `Run`.
    Running { pid: i32 },
    /// Answer to `Signal`.
    Signalled,
    /// Answer to a request that could not be carried out.
    Failed { why: String },
    /// Not an answer: a part ended by itself or by a signal.
    Exited { name: String, how: String },
}
