//! The arithmetic of one evaluation, part by part, for people.

use std::fmt;

use pillion_quantity::Resource;

use crate::program::MAX_INPUT;
use crate::syntax::{Node, Operation};
use crate::{EvalError, Field, Input, Outcome, Program, Ratio, Span};

/// The value of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// A plain number.
    Number(Ratio),
    /// An amount of a resource: `finite + infinite × w`, where `w` is the unlimited variable.
    Amount {
        /// In units: cores, bytes.
        finite: Ratio,
        /// Above zero: unlimited. Zero: the finite part is all.
        infinite: Ratio,
        /// Of what.
        resource: Resource,
    },
}

/// A part of an expression with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// What the part does.
    pub operation: Operation,
    /// Where it stands in the expression.
    pub span: Span,
    /// Its text.
    pub text: String,
    /// Its exact value.
    pub value: Value,
    /// The parts it is made of.
    pub children: Vec<Step>,
}

/// An expression with the value of every part; prints as lines of arithmetic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The field computed.
    pub field: Field,
    /// What the variable stood for.
    pub input: Input,
    /// The whole expression.
    pub root: Step,
    /// The result, rounded; or why there is none.
    pub result: Result<Outcome, EvalError>,
}

pub(crate) fn explain(program: &Program, nodes: &[Node], input: Input) -> Result<Explanation, EvalError> {
    let resource = program.field().resource;
    let too_large = EvalError::TooLarge { input, resource };
    let variable = match input {
        Input::Unlimited => Some((Ratio::ZERO, Ratio::ONE)),
        Input::Amount(amount) if amount.is_negative() => {
            return Err(EvalError::NegativeInput { input, resource });
        }
        Input::Amount(amount) if amount > MAX_INPUT => None,
        Input::Amount(amount) => Ratio::from_quantity(amount).map(|amount| (amount, Ratio::ZERO)),
    };
    let mut steps: Vec<Option<Step>> = Vec::with_capacity(nodes.len());
    for node in nodes {
        let children: Vec<Step> = node.children.iter().filter_map(|child| steps[*child].take()).collect();
        let value = variable.and_then(|variable| value(node, &children, variable, resource)).ok_or(too_large)?;
        steps.push(Some(Step {
            operation: node.operation,
            span: node.span,
            text: node.span.of(program.source()).to_owned(),
            value,
            children,
        }));
    }
    Ok(Explanation {
        field: program.field(),
        input,
        root: steps.pop().flatten().ok_or(too_large)?,
        result: program.eval(input),
    })
}

fn value(node: &Node, children: &[Step], variable: (Ratio, Ratio), resource: Resource) -> Option<Value> {
    let amount = |(finite, infinite)| Value::Amount { finite, infinite, resource };
    Some(match node.operation {
        Operation::Number => Value::Number(node.literal),
        Operation::Quantity => amount((node.literal, Ratio::ZERO)),
        Operation::Variable => amount(variable),
        Operation::Negate => children.first()?.value.map(Ratio::checked_neg)?,
        operation => {
            let mut values = children.iter().map(|child| child.value);
            let first = values.next()?;
            values.try_fold(first, |left, right| combine(operation, left, right, resource))?
        }
    })
}

fn combine(operation: Operation, left: Value, right: Value, resource: Resource) -> Option<Value> {
    match (operation, left, right) {
        (Operation::Multiply, Value::Number(factor), other) | (Operation::Multiply, other, Value::Number(factor)) => {
            other.map(|part| part.checked_mul(factor))
        }
        (Operation::Divide, other, Value::Number(divisor)) => other.map(|part| part.checked_div(divisor)),
        (operation, Value::Number(left), Value::Number(right)) => {
            pick(operation, (left, Ratio::ZERO), (right, Ratio::ZERO)).map(|(value, _)| Value::Number(value))
        }
        (operation, left, right) => pick(operation, left.parts(), right.parts())
            .map(|(finite, infinite)| Value::Amount { finite, infinite, resource }),
    }
}

type Parts = (Ratio, Ratio);

fn pick(operation: Operation, left: Parts, right: Parts) -> Option<Parts> {
    // The infinite part decides, and the finite one only where that is even.
    let left_is_larger = (left.1, left.0) > (right.1, right.0);
    match operation {
        Operation::Max => Some(if left_is_larger { left } else { right }),
        Operation::Min => Some(if left_is_larger { right } else { left }),
        Operation::Subtract => Some((left.0.checked_sub(right.0)?, left.1.checked_sub(right.1)?)),
        _ => Some((left.0.checked_add(right.0)?, left.1.checked_add(right.1)?)),
    }
}

impl Value {
    fn map(self, change: impl Fn(Ratio) -> Option<Ratio>) -> Option<Self> {
        Some(match self {
            Self::Number(value) => Self::Number(change(value)?),
            Self::Amount { finite, infinite, resource } => {
                Self::Amount { finite: change(finite)?, infinite: change(infinite)?, resource }
            }
        })
    }

    fn parts(self) -> Parts {
        match self {
            Self::Number(value) => (value, Ratio::ZERO),
            Self::Amount { finite, infinite, .. } => (finite, infinite),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Number(value) => value.fmt(f),
            Self::Amount { finite, infinite, resource } => match infinite.signum() {
                1 => f.pad("unlimited"),
                -1 => f.pad("-unlimited"),
                _ => match (finite.to_quantity(), resource) {
                    (Some(quantity), _) => quantity.human(resource).fmt(f),
                    (None, Resource::Memory) => finite.fmt(f),
                    (None, Resource::Cpu) => match finite.checked_mul(Ratio::whole(1000)) {
                        Some(milli) => f.pad(&format!("({milli})m")),
                        None => finite.fmt(f),
                    },
                },
            },
        }
    }
}

impl Step {
    /// The part with the values of its own parts in their places: `max(300m, 50m)`.
    pub fn with_values(&self) -> String {
        let shown: Vec<String> = self.children.iter().map(Self::shown).collect();
        let symbol = self.operation.symbol();
        match (self.operation, shown.as_slice()) {
            (Operation::Max | Operation::Min, arguments) => {
                format!("{symbol}({})", arguments.join(", "))
            }
            (_, [only]) => format!("{symbol}{only}"),
            (_, [left, right]) => format!("{left} {symbol} {right}"),
            _ => self.shown(),
        }
    }

    /// Numbers as they were written, so that `50%` stays `50%`.
    fn shown(&self) -> String {
        match self.operation {
            Operation::Number => self.text.trim_matches(['(', ')', ' ']).to_owned(),
            _ => self.value.to_string(),
        }
    }

    fn lines(&self, lines: &mut Vec<String>) {
        for child in &self.children {
            child.lines(lines);
        }
        let line = match self.operation {
            Operation::Number | Operation::Quantity => return,
            Operation::Variable => format!("{} = {}", self.text, self.value),
            _ => format!("{} = {} = {}", self.text, self.with_values(), self.value),
        };
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
}

impl fmt::Display for Explanation {
    /// One line for each part that is computed, innermost first, then the result.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = Vec::new();
        self.root.lines(&mut lines);
        for line in &lines {
            writeln!(f, "{line}")?;
        }
        match self.result {
            Ok(outcome) => write!(f, "{} = {}", self.field, outcome.human(self.field.resource)),
            Err(error) => write!(f, "{} is refused: {error}", self.field),
        }
    }
}
