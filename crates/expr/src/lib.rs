//! Resource expressions (`max(cpu*50%, 50m)`), exact.
//!
//! Decides what an expression means, what it evaluates to for a given amount, what it does over
//! all amounts, and which amount a pod's containers add up to. Every rule is checked once, by
//! [`Program::compile`]; the result is a function of one variable, made of straight lines, so
//! evaluation is one multiplication and the analysis is exact instead of sampled.
//!
//! - [`Field`]: which of `requests|limits` × `cpu|memory` an expression is for.
//! - [`Program`]: a checked expression; [`Program::eval`], [`Program::analysis`], [`Program::explain`].
//! - [`Input`], [`Outcome`]: an amount, or unlimited.
//! - [`Error`]: a refusal with code, span, message and help; [`Error::render`] draws the caret.
//! - [`Targets`]: the containers a policy looks at, and their [`Targets::aggregate`].
//!
//! It knows nothing of pods, sets, files or the API server, and uses no floating point.
#![forbid(unsafe_code)]

mod analysis;
mod compile;
mod curve;
mod error;
mod explain;
mod field;
mod lex;
mod literal;
mod parse;
mod program;
mod ratio;
mod render;
mod syntax;
mod targets;

pub use analysis::{Analysis, Direction, Extreme, Growth, Interval, Knee, Range, Segment, Sign, Zeros};
pub use error::{Error, ErrorCode, Span};
pub use explain::{Explanation, Step, Value};
pub use field::{Field, Side, UnknownField};
pub use pillion_quantity::{Quantity, Resource};
pub use program::{EvalError, Input, MAX_INPUT, Outcome, Program};
pub use ratio::Ratio;
pub use syntax::Operation;
pub use targets::{
    AggregateError, Amounts, Container, MAX_PATTERN_LENGTH, Mode, NamePattern, NoTarget, PatternError, Targets,
    UnknownMode,
};

/// The longest expression, in bytes.
pub const MAX_LENGTH: usize = 4096;
/// The deepest nesting of parentheses, calls and signs.
pub const MAX_DEPTH: usize = 64;
/// The most numbers, variables, operators and calls in one expression.
pub const MAX_NODES: usize = 512;
/// The most straight lines an expression, or a part of it, may consist of.
pub const MAX_PIECES: usize = 64;
