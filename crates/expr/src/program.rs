//! A checked expression, and its evaluation.
//!
//! # Why evaluation cannot overflow
//!
//! Each piece is kept as integers with `nano-units of result = (offset + slope × x) / divisor`,
//! where `x` is the input in nano-units. With `x = q × divisor + r`, `0 <= r < divisor`:
//!
//! ```text
//! (offset + slope × x) / divisor = slope × q + (offset + slope × r) / divisor
//! ```
//!
//! [`Program::compile`] refuses pieces outside `|slope| < 2^62`, `divisor < 2^62`,
//! `|slope| < 2^32 × divisor` and `|offset| < 2^124`; [`Program::eval`] refuses `x` above
//! [`MAX_INPUT`], which is below 2^93. So `|slope × r| < 2^124`, `|offset + slope × r| < 2^125`,
//! `|slope × q| <= |slope| × x / divisor < 2^125`, and every sum stays below 2^127.

use std::fmt;

use pillion_quantity::{Format, Quantity, Resource};

use crate::analysis::{Analysis, Interval, Sign, Zeros, negative_intervals};
use crate::curve::Piece;
use crate::explain::{self, Explanation};
use crate::ratio::common_divisor;
use crate::syntax::Node;
use crate::{Error, ErrorCode, Field, MAX_LENGTH, Ratio, Side, Span, compile, parse};

const NANO: i128 = 1_000_000_000;
const SLOPE_BOUND: i128 = 1 << 62;
const STEEPNESS_BOUND: i128 = 1 << 32;
const OFFSET_BOUND: i128 = 1 << 124;

/// The largest amount that goes in or comes out: 2^63 - 1 units, where Kubernetes ends as well.
pub const MAX_INPUT: Quantity = Quantity::from_units(i64::MAX, Format::DecimalSi);

/// What the variable stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// So much.
    Amount(Quantity),
    /// No limit is set: the variable grows without end.
    Unlimited,
}

/// What an expression comes to, rounded up to whole millicores or bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// So much.
    Amount(Quantity),
    /// No limit is to be set.
    Unlimited,
}

/// Why an expression has no result for an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvalError {
    /// The result is below zero.
    #[error("the result is negative: {} where {resource} is {}", Negative(*.result, *.resource), Shown(*.input, *.resource))]
    Negative {
        /// What the variable stood for.
        input: Input,
        /// The result, rounded down to nano-units; `None` where it falls without end.
        result: Option<Quantity>,
        /// The resource of both.
        resource: Resource,
    },
    /// The input is below zero, which no container can have.
    #[error("{resource} cannot be {}: it is negative", Shown(*.input, *.resource))]
    NegativeInput {
        /// What the variable stood for.
        input: Input,
        /// Its resource.
        resource: Resource,
    },
    /// The input or the result is above [`MAX_INPUT`].
    #[error("more than {} {resource} is out of range, where {resource} is {}", i64::MAX, Shown(*.input, *.resource))]
    TooLarge {
        /// What the variable stood for.
        input: Input,
        /// The resource.
        resource: Resource,
    },
}

/// A checked expression for one field.
#[derive(Clone, Debug)]
pub struct Program {
    source: Box<str>,
    field: Field,
    nodes: Box<[Node]>,
    pieces: Box<[Piece]>,
    negative: Box<[Interval]>,
    steps: Box<[Stretch]>,
}

/// A piece in the form evaluation uses; see the top of this file.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    /// The least whole number of nano-units it covers.
    start: i128,
    offset: i128,
    slope: i128,
    divisor: i128,
}

impl Program {
    /// Checks an expression for a field, once and for all inputs.
    ///
    /// Refuses what cannot be read, mixes resources, divides by zero, cannot be computed exactly,
    /// or is negative for every input. What is negative for some inputs is accepted;
    /// [`Analysis::negative`] says for which.
    pub fn compile(source: &str, field: Field) -> Result<Self, Error> {
        if source.len() > MAX_LENGTH {
            return Err(Error::new(
                ErrorCode::TooLong,
                Span::new(0, source.len()),
                format!("the expression has {} bytes, more than {MAX_LENGTH}", source.len()),
                "write a shorter expression",
            ));
        }
        let nodes = parse::parse(source, field)?;
        let whole = nodes.last().map_or(Span::new(0, 0), |root| root.span);
        let too_precise = || compile::too_precise(source, whole);
        let pieces = compile::reduce(source, field, &nodes)?;
        let steps = pieces.iter().map(Stretch::new).collect::<Option<_>>().ok_or_else(too_precise)?;
        let negative = negative_intervals(&pieces).ok_or_else(too_precise)?;
        let program = Self {
            source: source.into(),
            field,
            nodes: nodes.into(),
            pieces: pieces.into(),
            negative: negative.into(),
            steps,
        };
        if program.analysis().sign() == Sign::AlwaysNegative {
            return Err(Error::new(
                ErrorCode::AlwaysNegative,
                whole,
                format!("the result is negative for every amount of {}", field.resource),
                "no container can have a negative amount: use `max(0, …)` or another expression",
            ));
        }
        Ok(program)
    }

    /// The expression as it was written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The field it is for.
    pub fn field(&self) -> Field {
        self.field
    }

    /// Evaluates; allocates nothing.
    ///
    /// The result is exact, then rounded up to whole millicores or bytes. For
    /// [`Input::Unlimited`] it is the limit of the expression as its variable grows.
    pub fn eval(&self, input: Input) -> Result<Outcome, EvalError> {
        let resource = self.field.resource;
        let (stretch, nano) = match input {
            Input::Unlimited => match self.steps.last() {
                Some(last) if last.slope > 0 => return Ok(Outcome::Unlimited),
                Some(last) if last.slope < 0 => {
                    let result = None;
                    return Err(EvalError::Negative { input, result, resource });
                }
                last => (last, 0),
            },
            Input::Amount(amount) if amount.is_negative() => {
                return Err(EvalError::NegativeInput { input, resource });
            }
            Input::Amount(amount) if amount > MAX_INPUT => {
                return Err(EvalError::TooLarge { input, resource });
            }
            Input::Amount(amount) => {
                let nano = amount.nano();
                let after = self.steps.partition_point(|step| step.start <= nano);
                (self.steps.get(after.saturating_sub(1)), nano)
            }
        };
        // There is always a step: the first begins at zero.
        let (floor, exact) = stretch.map_or((0, true), |stretch| stretch.at(nano));
        if floor < 0 {
            let result = Some(Quantity::from_nano(floor, Format::DecimalSi));
            return Err(EvalError::Negative { input, result, resource });
        }
        let ceiling = Quantity::from_nano(floor + i128::from(!exact), notation(resource));
        match ceiling.round_up(resource) {
            Some(result) if result <= MAX_INPUT => Ok(Outcome::Amount(result)),
            _ => Err(EvalError::TooLarge { input, resource }),
        }
    }

    /// What the expression does over all amounts, exactly.
    pub fn analysis(&self) -> Analysis<'_> {
        Analysis::new(&self.pieces, &self.negative)
    }

    /// The amounts for which it sets a limit of exactly zero, which a node would read as no limit.
    ///
    /// Not zero alone: a pod has such limits only where they already mean none. Nor a single amount next to those for
    /// which the result is negative, which is refused for that.
    pub fn zero_limits(&self) -> Vec<Zeros> {
        if self.field.side == Side::Requests {
            return Vec::new();
        }
        let is_edge = |at| self.negative.iter().any(|found| found.from == at || found.to == Some(at));
        let is_point = |zeros: &Zeros| zeros.to == Some(zeros.from);
        let mut zeros = self.analysis().zeros();
        zeros.retain(|zeros| !is_point(zeros) || (zeros.from != Ratio::ZERO && !is_edge(zeros.from)));
        zeros
    }

    /// The expression with the value of every part of it.
    ///
    /// Fails only where the input is refused, or where a part is too large to be written down.
    pub fn explain(&self, input: Input) -> Result<Explanation, EvalError> {
        explain::explain(self, &self.nodes, input)
    }
}

impl Stretch {
    fn new(piece: &Piece) -> Option<Self> {
        let line = piece.line;
        let offset = line.offset.checked_mul(Ratio::whole(NANO))?;
        let slope = line.slope;
        let common = common_divisor(offset.denominator(), slope.denominator())?;
        let divisor = (offset.denominator() / common).checked_mul(slope.denominator())?;
        let stretch = Self {
            start: piece.start.checked_mul(Ratio::whole(NANO))?.ceil(),
            offset: offset.numerator().checked_mul(divisor / offset.denominator())?,
            slope: slope.numerator().checked_mul(divisor / slope.denominator())?,
            divisor,
        };
        let fits = stretch.slope.abs() < SLOPE_BOUND
            && stretch.divisor < SLOPE_BOUND
            && stretch.slope.abs() < STEEPNESS_BOUND * stretch.divisor
            && stretch.offset.abs() < OFFSET_BOUND;
        fits.then_some(stretch)
    }

    /// The result in nano-units, rounded down, and whether that is exact.
    fn at(&self, nano: i128) -> (i128, bool) {
        let (quotient, rest) = (nano / self.divisor, nano % self.divisor);
        let over = self.offset + self.slope * rest;
        (self.slope * quotient + over.div_euclid(self.divisor), over.rem_euclid(self.divisor) == 0)
    }
}

/// The notation a result is printed in: what people write for that resource.
const fn notation(resource: Resource) -> Format {
    match resource {
        Resource::Cpu => Format::DecimalSi,
        Resource::Memory => Format::BinarySi,
    }
}

impl Input {
    /// The input as a person would write it.
    pub fn human(self, resource: Resource) -> impl fmt::Display {
        Shown(self, resource)
    }
}

impl Outcome {
    /// The outcome as a person would write it: `300m`, `150Mi`, `unlimited`.
    pub fn human(self, resource: Resource) -> impl fmt::Display {
        match self {
            Self::Amount(amount) => Shown(Input::Amount(amount), resource),
            Self::Unlimited => Shown(Input::Unlimited, resource),
        }
    }
}

struct Shown(Input, Resource);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Input::Amount(amount) => amount.human(self.1).fmt(f),
            Input::Unlimited => f.pad("unlimited"),
        }
    }
}

struct Negative(Option<Quantity>, Resource);

impl fmt::Display for Negative {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(amount) => amount.human(self.1).fmt(f),
            None => f.pad("it falls without end"),
        }
    }
}

#[cfg(test)]
mod tests;
