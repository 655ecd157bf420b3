//! Expressions as trees, and their meaning in arbitrary precision, straight from the rules.

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{Signed, ToPrimitive, Zero};
use pillion_expr::{ErrorCode, Input, Quantity};

#[derive(Clone, Debug)]
pub(crate) enum Tree {
    Number(String, BigRational),
    Quantity(String, BigRational),
    Variable,
    Negate(Box<Tree>),
    Binary(char, Box<Tree>, Box<Tree>),
    Call(&'static str, Vec<Tree>),
}

/// `finite + infinite × w`; a number or an amount.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Value {
    pub(crate) finite: BigRational,
    pub(crate) infinite: BigRational,
    pub(crate) amount: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fault {
    Product,
    Divisor,
    Zero,
}

/// An expression with two faults may be refused for either, whichever is found first.
pub(crate) const FAULTS: [ErrorCode; 3] =
    [ErrorCode::ProductOfAmounts, ErrorCode::DivisorNotNumber, ErrorCode::DivisionByZero];

impl Value {
    pub(crate) fn is_negative(&self) -> bool {
        self.infinite.is_negative() || (self.infinite.is_zero() && self.finite.is_negative())
    }

    fn scaled(self, factor: &BigRational) -> Self {
        Self { finite: self.finite * factor, infinite: self.infinite * factor, amount: self.amount }
    }

    fn is_above(&self, other: &Self) -> bool {
        (&self.infinite, &self.finite) > (&other.infinite, &other.finite)
    }
}

impl From<pillion_expr::Value> for Value {
    fn from(value: pillion_expr::Value) -> Self {
        match value {
            pillion_expr::Value::Number(value) => {
                Self { finite: crate::big(value), infinite: BigRational::zero(), amount: false }
            }
            pillion_expr::Value::Amount { finite, infinite, .. } => {
                Self { finite: crate::big(finite), infinite: crate::big(infinite), amount: true }
            }
        }
    }
}

pub(crate) fn units(number: i128) -> BigRational {
    BigRational::from(BigInt::from(number))
}

pub(crate) fn quantity(nano: &BigRational) -> Quantity {
    let nano = nano.to_integer().to_i128().unwrap();
    Quantity::from_nano(nano, pillion_quantity::Format::DecimalSi)
}

pub(crate) fn bind(input: Input) -> Value {
    let (finite, infinite) = match input {
        Input::Amount(amount) => (units(amount.nano()) / units(1_000_000_000), units(0)),
        Input::Unlimited => (units(0), units(1)),
    };
    Value { finite, infinite, amount: true }
}

impl Tree {
    pub(crate) fn value(&self, variable: &Value) -> Result<Value, Fault> {
        let constant =
            |value: &BigRational, amount| Value { finite: value.clone(), infinite: BigRational::zero(), amount };
        match self {
            Self::Number(_, value) => Ok(constant(value, false)),
            Self::Quantity(_, value) => Ok(constant(value, true)),
            Self::Variable => Ok(variable.clone()),
            Self::Negate(inner) => Ok(inner.value(variable)?.scaled(&units(-1))),
            Self::Binary(operator, left, right) => binary(*operator, left.value(variable)?, right.value(variable)?),
            Self::Call(name, arguments) => {
                let mut values = Vec::new();
                for argument in arguments {
                    values.push(argument.value(variable)?);
                }
                let amount = values.iter().any(|value| value.amount);
                let chosen = values
                    .into_iter()
                    .reduce(|best, next| if next.is_above(&best) == (*name == "max") { next } else { best })
                    .unwrap();
                Ok(Value { amount, ..chosen })
            }
        }
    }
}

fn binary(operator: char, left: Value, right: Value) -> Result<Value, Fault> {
    match operator {
        '*' if left.amount && right.amount => Err(Fault::Product),
        '*' if left.amount => Ok(left.scaled(&right.finite)),
        '*' => Ok(right.scaled(&left.finite)),
        '/' if right.amount => Err(Fault::Divisor),
        '/' if right.finite.is_zero() => Err(Fault::Zero),
        '/' => Ok(left.scaled(&right.finite.recip())),
        _ => {
            let right = if operator == '-' { right.scaled(&units(-1)) } else { right };
            Ok(Value {
                finite: left.finite + right.finite,
                infinite: left.infinite + right.infinite,
                amount: left.amount || right.amount,
            })
        }
    }
}
