//! Which containers an expression looks at, and what they add up to.
//!
//! The caller decides which containers may be looked at at all (plain containers and native
//! sidecars, none that was injected); this file decides by name, and aggregates.

use std::fmt;
use std::str::FromStr;

use pillion_quantity::{Quantity, Resource};
use regex::bytes::{Regex, RegexBuilder};

use crate::{Field, Input, Side};

/// The longest name pattern, in bytes.
pub const MAX_PATTERN_LENGTH: usize = 1024;
/// The most memory a compiled name pattern may take, in bytes.
const MAX_PATTERN_SIZE: usize = 64 << 10;
/// The most memory matching may keep between names, in bytes.
const MAX_MATCH_CACHE: usize = 64 << 10;

/// A regular expression that container names are searched with; not anchored.
#[derive(Clone, Debug)]
pub struct NamePattern {
    regex: Regex,
}

/// Why a name pattern is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// It has too many bytes.
    #[error("the name pattern has {0} bytes: write at most {MAX_PATTERN_LENGTH}")]
    TooLong(usize),
    /// It would need too much memory.
    #[error("the name pattern is too costly: write it with smaller repetitions")]
    TooCostly,
    /// It is not a regular expression.
    #[error("the name pattern is not a regular expression: {0}")]
    Malformed(String),
}

impl NamePattern {
    /// The pattern that every name matches: what an absent pattern means.
    pub const DEFAULT: &'static str = ".*";

    /// Checks a pattern. Classes such as `\w` are of ASCII, as in Go, and as names are.
    pub fn new(pattern: &str) -> Result<Self, PatternError> {
        if pattern.len() > MAX_PATTERN_LENGTH {
            return Err(PatternError::TooLong(pattern.len()));
        }
        RegexBuilder::new(pattern)
            .unicode(false)
            .size_limit(MAX_PATTERN_SIZE)
            .dfa_size_limit(MAX_MATCH_CACHE)
            .nest_limit(64)
            .build()
            .map(|regex| Self { regex })
            .map_err(|error| match error {
                regex::Error::CompiledTooBig(_) => PatternError::TooCostly,
                error => PatternError::Malformed(last_line(&error.to_string())),
            })
    }

    /// Whether the pattern is found anywhere in the name.
    pub fn is_match(&self, name: &str) -> bool {
        self.regex.is_match(name.as_bytes())
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        self.regex.as_str()
    }
}

/// The library draws a picture over several lines; its last one says what is wrong.
fn last_line(text: &str) -> String {
    let last = text.lines().last().unwrap_or_default();
    last.trim_start_matches("error: ").to_owned()
}

/// How the amounts of several containers become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// All together.
    Sum,
    /// The largest.
    Max,
}

/// A mode that is neither `sum` nor `max`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown mode {0:?}: use sum or max")]
pub struct UnknownMode(pub String);

impl FromStr for Mode {
    type Err = UnknownMode;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "sum" => Ok(Self::Sum),
            "max" => Ok(Self::Max),
            other => Err(UnknownMode(other.to_owned())),
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Sum => "sum",
            Self::Max => "max",
        })
    }
}

/// The amounts on one side of a container's resources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amounts {
    /// `cpu`, where it is set.
    pub cpu: Option<Quantity>,
    /// `memory`, where it is set.
    pub memory: Option<Quantity>,
}

/// A container that may be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Container<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its requests.
    pub requests: Amounts,
    /// Its limits.
    pub limits: Amounts,
}

impl Container<'_> {
    /// What it has in a field, where that is set.
    pub fn get(&self, field: Field) -> Option<Quantity> {
        let amounts = match field.side {
            Side::Requests => &self.requests,
            Side::Limits => &self.limits,
        };
        match field.resource {
            Resource::Cpu => amounts.cpu,
            Resource::Memory => amounts.memory,
        }
    }
}

/// No container has a name that matches.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no container matches {pattern:?} (there are: {}): change the pattern", .names.join(", "))]
pub struct NoTarget {
    /// The pattern.
    pub pattern: String,
    /// The names there were.
    pub names: Vec<String>,
}

/// The amounts of the targets do not fit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the sum of {field} over the containers up to {container:?} is out of range: lower one of them")]
pub struct AggregateError {
    /// The field.
    pub field: Field,
    /// The container at which the sum stopped fitting.
    pub container: String,
}

/// The containers a policy looks at; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Targets<'a> {
    containers: Vec<Container<'a>>,
}

impl<'a> Targets<'a> {
    /// The containers whose names match.
    pub fn select(
        containers: impl IntoIterator<Item = Container<'a>>,
        pattern: &NamePattern,
    ) -> Result<Self, NoTarget> {
        let (chosen, others): (Vec<_>, Vec<_>) =
            containers.into_iter().partition(|container| pattern.is_match(container.name));
        if chosen.is_empty() {
            return Err(NoTarget {
                pattern: pattern.as_str().to_owned(),
                names: others.iter().map(|other| other.name.to_owned()).collect(),
            });
        }
        Ok(Self { containers: chosen })
    }

    /// The chosen containers, in the order of the pod.
    pub fn containers(&self) -> &[Container<'a>] {
        &self.containers
    }

    /// What the containers add up to in a field.
    ///
    /// One missing limit makes the aggregate unlimited; a missing request counts as zero.
    pub fn aggregate(&self, field: Field, mode: Mode) -> Result<Input, AggregateError> {
        let mut total = Quantity::ZERO;
        for container in &self.containers {
            let amount = match (container.get(field), field.side) {
                (Some(amount), _) => amount,
                (None, Side::Requests) => Quantity::ZERO,
                (None, Side::Limits) => return Ok(Input::Unlimited),
            };
            total = match mode {
                Mode::Max => total.max(amount),
                Mode::Sum => total
                    .checked_add(amount)
                    .ok_or_else(|| AggregateError { field, container: container.name.to_owned() })?,
            };
        }
        Ok(Input::Amount(total))
    }
}
