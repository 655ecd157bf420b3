//! What is wrong with an object, where, and the way out.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

use crate::Reason;

/// One thing a person should put right, or know.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {reason}: {message}: {help}")]
pub struct Problem {
    /// Whether the object is refused for it.
    pub severity: Severity,
    /// What kind of problem it is.
    pub reason: Reason,
    /// Where it is.
    pub path: FieldPath,
    /// Where its other half is, if it has one: the second spelling, the second container of a name.
    pub also: Vec<FieldPath>,
    /// What is wrong, naming the value.
    pub message: String,
    /// The way out.
    pub help: String,
    /// Where in the text of the field, for an expression.
    pub excerpt: Option<Excerpt>,
}

/// The part of a field's text a problem is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    /// The whole text.
    pub text: String,
    /// First byte of the part.
    pub start: usize,
    /// End of the part, not in it.
    pub end: usize,
    /// The text with a caret under the part; plain, without colour.
    pub drawn: String,
}

/// Whether an object with this problem is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// It is refused.
    Error,
    /// It is accepted, and the person is told.
    Warning,
}

impl Problem {
    /// An error at a place.
    pub fn error(reason: Reason, path: FieldPath, message: impl Into<String>, help: impl Into<String>) -> Self {
        let (message, help) = (message.into(), help.into());
        Self { severity: Severity::Error, reason, path, also: Vec::new(), message, help, excerpt: None }
    }

    /// A warning at a place.
    pub fn warning(reason: Reason, path: FieldPath, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(reason, path, message, help) }
    }

    /// The same with its other half.
    #[must_use]
    pub fn with_also(mut self, path: FieldPath) -> Self {
        self.also.push(path);
        self
    }

    /// Whether the object is refused for it.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// The most errors, and the most warnings, that one check collects. A hostile object could otherwise fill the memory.
const MOST_COLLECTED: usize = 1000;

/// Problems that a check collects. Errors and warnings are counted apart, so that warnings never displace an error.
#[derive(Clone, Debug, Default)]
pub(crate) struct Collected {
    problems: Vec<Problem>,
    errors: usize,
    /// The places of errors.
    rejected: BTreeSet<FieldPath>,
}

impl Collected {
    pub(crate) fn push(&mut self, problem: Problem) {
        let count = if problem.is_error() { self.errors } else { self.problems.len() - self.errors };
        if count < MOST_COLLECTED {
            if problem.is_error() {
                self.errors += 1;
                self.rejected.insert(problem.path.clone());
            }
            self.problems.push(problem);
        }
    }

    pub(crate) fn extend(&mut self, problems: impl IntoIterator<Item = Problem>) {
        problems.into_iter().for_each(|problem| self.push(problem));
    }

    /// Returns true if there is an error.
    pub(crate) fn rejects(&self) -> bool {
        self.errors > 0
    }

    /// Returns true if there is an error at a place.
    pub(crate) fn rejects_at(&self, path: &FieldPath) -> bool {
        self.rejected.contains(path)
    }

    /// Returns true if no more errors are taken in.
    pub(crate) fn is_full(&self) -> bool {
        self.errors >= MOST_COLLECTED
    }

    pub(crate) fn as_slice(&self) -> &[Problem] {
        &self.problems
    }

    pub(crate) fn into_vec(self) -> Vec<Problem> {
        self.problems
    }
}

/// A place in an object: the way to it from the root.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FieldPath {
    segments: Vec<Segment>,
}

/// One step of a way.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Segment {
    /// A field of the API.
    Field(String),
    /// A place in a list, counted from zero.
    Index(usize),
    /// A key the user chose, such as an annotation's.
    Key(String),
}

impl FieldPath {
    /// The object itself.
    pub fn root() -> Self {
        Self::default()
    }

    /// Fields from the root, joined by dots: `spec.selector`.
    pub fn of(fields: &str) -> Self {
        Self::root().fields(fields)
    }

    /// The steps from the root.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// One field further.
    #[must_use]
    pub fn field(&self, name: &str) -> Self {
        self.then(Segment::Field(name.to_owned()))
    }

    /// Several fields further, joined by dots.
    #[must_use]
    pub fn fields(&self, names: &str) -> Self {
        names.split('.').filter(|name| !name.is_empty()).fold(self.clone(), |path, name| path.field(name))
    }

    /// Into a list.
    #[must_use]
    pub fn index(&self, at: usize) -> Self {
        self.then(Segment::Index(at))
    }

    /// Into a map.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        self.then(Segment::Key(key.to_owned()))
    }

    /// The first steps of the way.
    #[must_use]
    pub(crate) fn first(&self, count: usize) -> Self {
        Self { segments: self.segments.iter().take(count).cloned().collect() }
    }

    /// Returns the value at the place, if the object has one there.
    pub(crate) fn value_in<'a>(&self, object: &'a Value) -> Option<&'a Value> {
        self.segments.iter().try_fold(object, |value, segment| match segment {
            Segment::Field(name) | Segment::Key(name) => value.get(name),
            Segment::Index(at) => value.get(at),
        })
    }

    fn then(&self, segment: Segment) -> Self {
        let mut segments = self.segments.clone();
        segments.push(segment);
        Self { segments }
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, segment) in self.segments.iter().enumerate() {
            match segment {
                Segment::Field(name) if at == 0 => write!(f, "{name}")?,
                Segment::Field(name) => write!(f, ".{name}")?,
                Segment::Index(index) => write!(f, "[{index}]")?,
                Segment::Key(key) => write!(f, "[{key}]")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_reads_as_kubernetes_writes_it() {
        let path = FieldPath::of("spec.containers").index(2).fields("resourcesPolicy.resourceExpr.limits").key("cpu");
        assert_eq!(path.to_string(), "spec.containers[2].resourcesPolicy.resourceExpr.limits[cpu]");
        assert_eq!(path.segments()[2], Segment::Index(2));
        assert_eq!(FieldPath::root().to_string(), "");
    }

    #[test]
    fn warnings_never_displace_an_error_and_both_are_bounded() {
        let mut collected = Collected::default();
        let (path, reason) = (FieldPath::root(), Reason::UnknownField);
        for _ in 0..5000 {
            collected.push(Problem::warning(reason, path.clone(), "a", "b"));
        }
        for _ in 0..5000 {
            collected.push(Problem::error(reason, path.clone(), "a", "b"));
        }
        let errors = collected.as_slice().iter().filter(|problem| problem.is_error()).count();
        assert_eq!((errors, collected.into_vec().len()), (1000, 2000));
    }

    #[test]
    fn a_problem_reads_as_one_line() {
        let problem = Problem::error(Reason::NoContainers, FieldPath::of("spec"), "there is none", "add one");
        assert_eq!(problem.to_string(), "spec: PL109: there is none: add one");
    }
}
