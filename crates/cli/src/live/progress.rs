//! How far long work is, on stderr: one line that changes for a person, a line every few seconds otherwise.

use std::io::{self, IsTerminal as _, Write};
use std::time::{Duration, Instant};

/// A person wants to see that something moves.
const REDRAWN: Duration = Duration::from_millis(100);
/// A log wants to be short.
const LOGGED: Duration = Duration::from_secs(5);

/// What was told last, and when.
pub(crate) struct Progress {
    is_terminal: bool,
    last: Instant,
    is_drawn: bool,
}

impl Progress {
    pub(crate) fn new() -> Self {
        Self { is_terminal: io::stderr().is_terminal(), last: Instant::now(), is_drawn: false }
    }

    /// Tells it if it is time to.
    pub(crate) fn tell(&mut self, err: &mut dyn Write, words: impl FnOnce() -> String) -> io::Result<()> {
        let pause = if self.is_terminal { REDRAWN } else { LOGGED };
        if self.last.elapsed() < pause {
            return Ok(());
        }
        self.last = Instant::now();
        if self.is_terminal {
            self.is_drawn = true;
            write!(err, "\r\x1b[K{}", words())?;
            err.flush()
        } else {
            writeln!(err, "{}", words())
        }
    }

    /// Takes the line away that changed.
    pub(crate) fn end(self, err: &mut dyn Write) -> io::Result<()> {
        if self.is_drawn { write!(err, "\r\x1b[K") } else { Ok(()) }
    }
}
