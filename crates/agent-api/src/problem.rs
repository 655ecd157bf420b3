//! What is wrong with a configuration, where, and the way out.

use std::fmt;

/// One thing a person should put right, or know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Whether the configuration is refused for it.
    pub severity: Severity,
    /// Line of the text that was given, counted from 1.
    pub line: usize,
    /// Counted from 1, in characters.
    pub column: usize,
    /// Characters to point at, at least one.
    pub length: usize,
    /// The way to the value, as `plugins[0].config.fileDir`; empty for the text as a whole.
    pub path: String,
    /// What is wrong.
    pub message: String,
    /// The way out.
    pub help: String,
}

/// Whether a configuration with this problem is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// It is refused.
    Error,
    /// It is taken, and the person is told.
    Warning,
}

/// What was read otherwise than it is written, because its author cannot have meant it so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repair {
    /// Line of the text that was given, counted from 1.
    pub line: usize,
    /// What was read how.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, column, path, message, help, .. } = self;
        let lead = if path.is_empty() { "" } else { ": " };
        write!(f, "line {line}, column {column}: {path}{lead}{message}: {help}")
    }
}

impl fmt::Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}
