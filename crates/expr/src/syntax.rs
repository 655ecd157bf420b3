//! The expression as written: nodes in a list, children before their parents.

use crate::{Ratio, Span};

/// What a part of an expression does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// A plain number: `0.5`, `50%`, `1e3`.
    Number,
    /// A quantity: `50m`, `100Mi`.
    Quantity,
    /// The field's variable.
    Variable,
    /// `-x`
    Negate,
    /// `x + y`
    Add,
    /// `x - y`
    Subtract,
    /// `x * y`
    Multiply,
    /// `x / y`
    Divide,
    /// `max(x, y, …)`
    Max,
    /// `min(x, y, …)`
    Min,
}

impl Operation {
    /// How it is written: `+`, `max`; empty for numbers, quantities and variables.
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::Number | Self::Quantity | Self::Variable => "",
            Self::Negate | Self::Subtract => "-",
            Self::Add => "+",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Max => "max",
            Self::Min => "min",
        }
    }
}

/// The place of a node in its list.
pub(crate) type Index = usize;

#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) operation: Operation,
    pub(crate) span: Span,
    /// The value of a number or quantity, in units; zero for the rest.
    pub(crate) literal: Ratio,
    pub(crate) children: Vec<Index>,
}
