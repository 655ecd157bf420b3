//! Expressions as trees, and their meaning in arbitrary precision, straight from the rules.

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{Signed, ToPrimitive, Zero};
use pillion_expr::{ErrorCode, Input, Quantity};

#[derive(Clone, Debug)]
pub(crate) enum Tree {
    Number(BigRational),
    Quantity(BigRational),
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
    /// The same with every number read, by the plain rules.
    pub(crate) fn of(written: &pillion_generators::Tree) -> Self {
        use pillion_generators::Tree as Written;
        match written {
            Written::Number(text) => Self::Number(number(text)),
            Written::Quantity(text) => Self::Quantity(amount(text)),
            Written::Variable => Self::Variable,
            Written::Negate(inner) => Self::Negate(Box::new(Self::of(inner))),
            Written::Binary(operator, left, right) => {
                Self::Binary(*operator, Box::new(Self::of(left)), Box::new(Self::of(right)))
            }
            Written::Call(name, arguments) => Self::Call(name, arguments.iter().map(Self::of).collect()),
        }
    }

    pub(crate) fn value(&self, variable: &Value) -> Result<Value, Fault> {
        let constant =
            |value: &BigRational, amount| Value { finite: value.clone(), infinite: BigRational::zero(), amount };
        match self {
            Self::Number(value) => Ok(constant(value, false)),
            Self::Quantity(value) => Ok(constant(value, true)),
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

/// `1.5`, `50%`, `2e+3`
fn number(text: &str) -> BigRational {
    if let Some((digits, exponent)) = text.split_once(['e', 'E']) {
        return decimal(digits) * units(10).pow(exponent.parse().unwrap());
    }
    match text.strip_suffix('%') {
        Some(percent) => decimal(percent) / units(100),
        None => decimal(text),
    }
}

/// `100m`, `1.5Mi`
fn amount(text: &str) -> BigRational {
    let (digits, suffix) = text.split_at(text.find(|c: char| c.is_alphabetic()).unwrap());
    let (power, shift) = match suffix {
        "n" => (-9, 0),
        "u" => (-6, 0),
        "m" => (-3, 0),
        "k" => (3, 0),
        "M" => (6, 0),
        "G" => (9, 0),
        "T" => (12, 0),
        "Ki" => (0, 10),
        "Mi" => (0, 20),
        "Gi" => (0, 30),
        "Ti" => (0, 40),
        other => panic!("{other} is not drawn"),
    };
    decimal(digits) * units(10).pow(power) * units(1_i128 << shift)
}

fn decimal(text: &str) -> BigRational {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits: BigInt = format!("0{whole}{fraction}").parse().unwrap();
    BigRational::new(digits, BigInt::from(10).pow(u32::try_from(fraction.len()).unwrap()))
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
