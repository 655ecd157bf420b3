//! Why an update was not made: what kind of reason it is decides whether it is tried again, and how a caller is answered.

use std::fmt;

/// Why an update was not made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) kind: Kind,
    /// For people: what is wrong, and the way out.
    pub(super) message: String,
}

/// What kind of reason it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The rules do not allow what was asked; nothing was tried.
    Refused,
    /// The file could not be had this time.
    Unreachable,
    /// What came is not what was asked for, and will not be another time.
    Unfit,
    /// There is no room, or the folder cannot be written.
    Disk,
    /// The app did not take it, and has what it had before.
    NotLoaded,
    /// Another update is on its way, or has just been.
    Busy,
    /// The agent was told to end.
    Stopped,
}

impl Failure {
    pub(super) fn new(kind: Kind, message: impl fmt::Display) -> Self {
        Self { kind, message: message.to_string() }
    }

    pub(super) fn refused(message: impl fmt::Display) -> Self {
        Self::new(Kind::Refused, message)
    }

    pub(super) fn unreachable(message: impl fmt::Display) -> Self {
        Self::new(Kind::Unreachable, message)
    }

    pub(super) fn unfit(message: impl fmt::Display) -> Self {
        Self::new(Kind::Unfit, message)
    }

    pub(super) fn disk(message: impl fmt::Display) -> Self {
        Self::new(Kind::Disk, message)
    }

    pub(super) fn not_loaded(message: impl fmt::Display) -> Self {
        Self::new(Kind::NotLoaded, message)
    }
}

impl Kind {
    /// Whether another try may do better without anybody asking anew.
    pub(super) fn may_pass(self) -> bool {
        matches!(self, Self::Unreachable | Self::Disk | Self::Stopped)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}
