//! What the agent says: single lines on stderr, which stand in the container's log among the lines of the app.

use std::fmt;
use std::io::{self, Write};

/// Says one line.
pub(crate) fn tell(message: fmt::Arguments<'_>) {
    // One write, so that the line stays whole between those of the app. A closed stderr must not end the agent.
    let _ = io::stderr().write_all(format!("pillion-agent: {message}\n").as_bytes());
}
