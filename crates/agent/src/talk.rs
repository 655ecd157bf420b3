//! What the agent says: single lines on stderr, which stand in the container's log among the lines of the app.

use std::fmt;

/// Says one line.
pub(crate) fn tell(message: fmt::Arguments<'_>) {
    // One write, so that the line stays whole between those of the app, and without a lock that somebody else may hold. A
    // closed stderr must not end the agent.
    let _ = rustix::io::write(rustix::stdio::stderr(), format!("pillion-agent: {message}\n").as_bytes());
}
