//! Reading a quantity, with every habit of the Go library that changes which texts are legal.

use std::str::FromStr;

use crate::quantity::UNIT;
use crate::{Format, Quantity};

/// Kubernetes caps what is written with a binary suffix at this many units.
const BINARY_CAP: i128 = i64::MAX as i128;

/// Why a text is not a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// There is nothing to read.
    #[error("a quantity is empty: write a number such as 500m or 1Gi")]
    Empty,
    /// Something stands after the number that cannot be part of a quantity.
    #[error("not a quantity: write digits and at most one suffix, such as 500m, 1.5Gi or 2e3")]
    Malformed,
    /// The suffix is none that Kubernetes knows.
    #[error("unknown suffix: use one of n u m k M G T P E, Ki Mi Gi Ti Pi Ei, or an exponent")]
    Suffix,
    /// There is no digit where Kubernetes insists on one.
    #[error("a quantity needs at least one digit")]
    NoDigits,
    /// The exponent does not fit in 32 bits; Kubernetes would wrap it around.
    #[error("the exponent is out of range: it must fit in 32 bits")]
    Exponent,
    /// The value does not fit in 128 bits of nano-units.
    #[error("the quantity is too large: at most 170141183460469231731687303715 fits")]
    TooLarge,
}

impl FromStr for Quantity {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts = Parts::split(text)?;
        let suffix = Suffix::read(parts.suffix)?;
        if parts.has_no_digit() && suffix.needs_digits() {
            return Err(ParseError::NoDigits);
        }
        let (magnitude, format) = match suffix {
            Suffix::Decimal { exponent, format } => (parts.times_ten_to(exponent)?, format),
            Suffix::Binary { shift } => {
                let nano = parts.times_two_to(shift);
                // As Kubernetes does: less than one unit has no binary spelling.
                let format = if nano > 0 && nano < UNIT { Format::DecimalSi } else { Format::BinarySi };
                (nano, format)
            }
        };
        let nano = if parts.negative { -magnitude } else { magnitude };
        Ok(Quantity::from_nano(nano, format))
    }
}

/// A quantity text cut at its borders; the digits are not yet read.
struct Parts<'a> {
    negative: bool,
    whole: &'a str,
    fraction: &'a str,
    suffix: &'a str,
}

impl<'a> Parts<'a> {
    fn split(text: &'a str) -> Result<Self, ParseError> {
        if text.is_empty() {
            return Err(ParseError::Empty);
        }
        let (negative, rest) = match text.as_bytes()[0] {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let (whole, rest) = split_digits(rest);
        let (fraction, suffix) = match rest.strip_prefix('.') {
            Some(rest) => split_digits(rest),
            None => ("", rest),
        };
        // The shape Kubernetes demands of a suffix before it looks it up: letters, a sign, digits.
        let after_letters = suffix.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
        let after_sign = after_letters.strip_prefix(['+', '-']).unwrap_or(after_letters);
        if !split_digits(after_sign).1.is_empty() {
            return Err(ParseError::Malformed);
        }
        Ok(Self { negative, whole, fraction, suffix })
    }

    fn has_no_digit(&self) -> bool {
        self.whole.is_empty() && self.fraction.is_empty()
    }

    fn digits(&self) -> impl DoubleEndedIterator<Item = i128> {
        self.whole.bytes().chain(self.fraction.bytes()).map(|digit| i128::from(digit - b'0'))
    }

    /// The magnitude in nano-units, rounded up: every digit before the nano place counts in full,
    /// any other digit but zero adds one.
    fn times_ten_to(&self, exponent: i32) -> Result<i128, ParseError> {
        let places = i64::from(exponent) + 9;
        // How many of the digits stand at or above the nano place; may be more than there are.
        let whole = i64::try_from(self.whole.len()).map_err(|_| ParseError::TooLarge)?;
        let kept = usize::try_from(whole.saturating_add(places)).unwrap_or(0);
        let mut nano = 0_i128;
        let mut read = 0;
        let mut rounded_off = false;
        for digit in self.digits() {
            if read < kept {
                nano = push_digit(nano, digit).ok_or(ParseError::TooLarge)?;
                read += 1;
            } else {
                rounded_off |= digit != 0;
            }
        }
        while nano != 0 && read < kept {
            nano = push_digit(nano, 0).ok_or(ParseError::TooLarge)?;
            read += 1;
        }
        nano.checked_add(i128::from(rounded_off)).ok_or(ParseError::TooLarge)
    }

    /// The magnitude in nano-units, rounded up and capped as Kubernetes caps it.
    fn times_two_to(&self, shift: u32) -> i128 {
        let nano_per_digit = UNIT << shift;
        let cap = BINARY_CAP * UNIT;
        let mut whole = 0_i128;
        for digit in self.whole.bytes() {
            whole = whole * 10 + i128::from(digit - b'0');
            if whole > BINARY_CAP {
                return cap;
            }
        }
        // Long multiplication from the right: what falls off each digit only decides the rounding.
        let mut fraction = 0;
        let mut rounded_off = false;
        for digit in self.fraction.bytes().rev() {
            fraction += i128::from(digit - b'0') * nano_per_digit;
            rounded_off |= fraction % 10 != 0;
            fraction /= 10;
        }
        // What does not fit is above the cap as well.
        whole.saturating_mul(nano_per_digit).saturating_add(fraction + i128::from(rounded_off)).min(cap)
    }
}

fn split_digits(text: &str) -> (&str, &str) {
    let end = text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

fn push_digit(value: i128, digit: i128) -> Option<i128> {
    value.checked_mul(10)?.checked_add(digit)
}

enum Suffix {
    Decimal { exponent: i32, format: Format },
    Binary { shift: u32 },
}

impl Suffix {
    fn read(text: &str) -> Result<Self, ParseError> {
        let decimal = |exponent| Self::Decimal { exponent, format: Format::DecimalSi };
        Ok(match text {
            "n" => decimal(-9),
            "u" => decimal(-6),
            "m" => decimal(-3),
            "" => decimal(0),
            "k" => decimal(3),
            "M" => decimal(6),
            "G" => decimal(9),
            "T" => decimal(12),
            "P" => decimal(15),
            "E" => decimal(18),
            "Ki" => Self::Binary { shift: 10 },
            "Mi" => Self::Binary { shift: 20 },
            "Gi" => Self::Binary { shift: 30 },
            "Ti" => Self::Binary { shift: 40 },
            "Pi" => Self::Binary { shift: 50 },
            "Ei" => Self::Binary { shift: 60 },
            _ => {
                let digits = text.strip_prefix(['e', 'E']).ok_or(ParseError::Suffix)?;
                let exponent: i64 = digits.parse().map_err(|_| ParseError::Suffix)?;
                Self::Decimal {
                    exponent: i32::try_from(exponent).map_err(|_| ParseError::Exponent)?,
                    format: Format::DecimalExponent,
                }
            }
        })
    }

    /// Kubernetes reads `m` and `Ki` without a digit as zero, but only on the path it takes for
    /// small scales.
    fn needs_digits(&self) -> bool {
        match self {
            Self::Decimal { exponent, .. } => *exponent < -9,
            Self::Binary { shift } => *shift > 40,
        }
    }
}
