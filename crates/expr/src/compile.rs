//! Types, and the reduction of a parsed expression to one curve.
//!
//! A part is a plain number or an amount of the field's resource. Nothing turns an amount into a
//! number, so numbers are constants, one side of every product is a constant, and every
//! expression is a curve.

use crate::curve::{Curve, Follow, Piece, Trouble};
use crate::syntax::{Node, Operation};
use crate::{Error, ErrorCode, Field, MAX_PIECES, Ratio, Span};

enum Part {
    Number(Ratio),
    Amount(Curve),
}

impl Part {
    /// A bare number counts cores or bytes where an amount is wanted.
    fn into_amount(self) -> Curve {
        match self {
            Self::Number(value) => Curve::constant(value),
            Self::Amount(curve) => curve,
        }
    }
}

/// The lines the expression consists of.
pub(crate) fn reduce(source: &str, field: Field, nodes: &[Node]) -> Result<Vec<Piece>, Error> {
    let reducer = Reducer { source, field };
    let mut parts: Vec<Option<Part>> = Vec::with_capacity(nodes.len());
    for node in nodes {
        let mut children = node.children.iter().filter_map(|child| Some((nodes[*child].span, parts[*child].take()?)));
        let part = match (children.next(), children.next()) {
            (None, _) => Reducer::leaf(node),
            (Some((_, only)), None) => reducer.negate(node.span, only)?,
            (Some((_, left)), Some((right_span, right))) => {
                let mut part = reducer.combine(node, left, right_span, right)?;
                for (span, argument) in children {
                    part = reducer.combine(node, part, span, argument)?;
                }
                part
            }
        };
        parts.push(Some(part));
    }
    let root = parts.pop().flatten();
    Ok(root.map_or_else(Vec::new, |part| part.into_amount().into_pieces()))
}

struct Reducer<'a> {
    source: &'a str,
    field: Field,
}

impl Reducer<'_> {
    fn leaf(node: &Node) -> Part {
        match node.operation {
            Operation::Variable => Part::Amount(Curve::identity()),
            Operation::Quantity => Part::Amount(Curve::constant(node.literal)),
            _ => Part::Number(node.literal),
        }
    }

    fn negate(&self, span: Span, part: Part) -> Result<Part, Error> {
        Ok(match part {
            Part::Number(value) => Part::Number(value.checked_neg().ok_or_else(|| self.too_precise(span))?),
            Part::Amount(curve) => Part::Amount(self.fits(span, curve.times(Ratio::whole(-1)))?),
        })
    }

    fn combine(&self, node: &Node, left: Part, right_span: Span, right: Part) -> Result<Part, Error> {
        let span = node.span;
        match (node.operation, left, right) {
            (operation, Part::Number(left), Part::Number(right)) => {
                self.numbers(operation, span, left, right_span, right)
            }
            (Operation::Multiply, Part::Number(factor), Part::Amount(curve))
            | (Operation::Multiply, Part::Amount(curve), Part::Number(factor)) => {
                Ok(Part::Amount(self.fits(span, curve.times(factor))?))
            }
            (Operation::Multiply, Part::Amount(_), Part::Amount(_)) => Err(Error::new(
                ErrorCode::ProductOfAmounts,
                span,
                format!("`{}` multiplies two amounts of {}", self.quote(span), self.field.resource),
                "one of the factors must be a plain number, such as `0.5` or `50%`",
            )),
            (Operation::Divide, Part::Amount(curve), Part::Number(divisor)) => {
                let factor = self.quotient(span, right_span, Ratio::ONE, divisor)?;
                Ok(Part::Amount(self.fits(span, curve.times(factor))?))
            }
            (Operation::Divide, _, Part::Amount(_)) => Err(Error::new(
                ErrorCode::DivisorNotNumber,
                right_span,
                format!("`{}` divides by an amount of {}", self.quote(right_span), self.field.resource),
                "the divisor must be a plain number",
            )),
            (operation, left, right) => {
                let (left, right) = (left.into_amount(), right.into_amount());
                let curve = match operation {
                    Operation::Subtract => left.minus(&right),
                    Operation::Max => left.follow(&right, Follow::Upper),
                    Operation::Min => left.follow(&right, Follow::Lower),
                    _ => left.plus(&right),
                };
                Ok(Part::Amount(self.fits(span, curve)?))
            }
        }
    }

    fn numbers(
        &self,
        operation: Operation,
        span: Span,
        left: Ratio,
        right_span: Span,
        right: Ratio,
    ) -> Result<Part, Error> {
        let value = match operation {
            Operation::Subtract => left.checked_sub(right),
            Operation::Multiply => left.checked_mul(right),
            Operation::Divide => Some(self.quotient(span, right_span, left, right)?),
            Operation::Max => Some(left.max(right)),
            Operation::Min => Some(left.min(right)),
            _ => left.checked_add(right),
        };
        value.map(Part::Number).ok_or_else(|| self.too_precise(span))
    }

    fn quotient(&self, span: Span, divisor_span: Span, dividend: Ratio, divisor: Ratio) -> Result<Ratio, Error> {
        if divisor == Ratio::ZERO {
            return Err(Error::new(
                ErrorCode::DivisionByZero,
                divisor_span,
                format!("`{}` is zero, and nothing can be divided by it", self.quote(divisor_span)),
                "divide by another number",
            ));
        }
        dividend.checked_div(divisor).ok_or_else(|| self.too_precise(span))
    }

    fn fits(&self, span: Span, curve: Result<Curve, Trouble>) -> Result<Curve, Error> {
        curve.map_err(|trouble| match trouble {
            Trouble::Precision => self.too_precise(span),
            Trouble::Pieces => Error::new(
                ErrorCode::TooManyPieces,
                span,
                format!("`{}` has more than {MAX_PIECES} straight pieces", self.quote(span)),
                "use fewer `max` and `min`",
            ),
        })
    }

    fn too_precise(&self, span: Span) -> Error {
        too_precise(self.source, span)
    }

    fn quote(&self, span: Span) -> String {
        crate::literal::short(span.of(self.source))
    }
}

pub(crate) fn too_precise(source: &str, span: Span) -> Error {
    Error::new(
        ErrorCode::TooPrecise,
        span,
        format!(
            "`{}` cannot be computed exactly: its numbers are too large or too long",
            crate::literal::short(span.of(source))
        ),
        "use smaller numbers or fewer digits",
    )
}
