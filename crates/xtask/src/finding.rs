//! What a check found.

use std::fmt;
use std::path::PathBuf;

/// One thing to put right: where it is, what is wrong, and the way out.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// Relative to the root of the repository.
    pub path: PathBuf,
    /// Counted from one; `None` if the whole file or folder is meant.
    pub line: Option<usize>,
    /// What is wrong and what to do about it.
    pub message: String,
}

impl Finding {
    /// A finding about a whole file or folder.
    pub fn of_file(path: impl Into<PathBuf>, message: impl Into<String>) -> Self {
        Self { path: path.into(), line: None, message: message.into() }
    }

    /// A finding about one line, counted from one.
    pub fn of_line(path: impl Into<PathBuf>, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.into(), line: Some(line), message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}", self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn editors_can_jump_to_it() {
        assert_eq!(Finding::of_file("a/b.rs", "is long").to_string(), "a/b.rs: is long");
        assert_eq!(Finding::of_line("a/b.rs", 7, "is odd").to_string(), "a/b.rs:7: is odd");
    }
}
