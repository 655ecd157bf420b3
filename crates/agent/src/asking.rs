//! One question to the app, with one time limit for all of it.

mod request;
mod timed;

use std::io;
use std::net::SocketAddr;
use std::time::Instant;

pub(crate) use self::request::{Answer, Request, ask};
pub(crate) use self::timed::{Timed, connect};

/// Why there is no good answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// As one word, for conditions.
    pub(crate) reason: &'static str,
    /// For people.
    pub(crate) message: String,
}

impl Failure {
    pub(crate) fn new(reason: &'static str, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }

    fn of_io(error: &io::Error, what: &str) -> Self {
        match error.kind() {
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => {
                Self::new("TimedOut", format!("{what}: no answer in time"))
            }
            io::ErrorKind::ConnectionRefused => Self::new("ConnectionRefused", format!("{what}: nobody listens")),
            _ => Self::new("BrokenConnection", format!("{what}: {error}")),
        }
    }
}

/// Whether one of these addresses takes connections.
pub(crate) fn ask_port(addresses: &[SocketAddr], end: Instant) -> Result<(), Failure> {
    connect(addresses, end).map(drop)
}
