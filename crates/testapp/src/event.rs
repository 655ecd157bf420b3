//! One line on stdout per event, so that a test of `kubectl logs` can compare exact text.

use std::fmt;
use std::io::{self, Write};

/// Prints one line and flushes it.
pub(crate) fn emit(line: fmt::Arguments<'_>) {
    let mut stdout = io::stdout().lock();
    // A reader that went away must not change the behaviour under test.
    let _ = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
}
