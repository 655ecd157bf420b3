//! The canonical form: the largest suffix that leaves a whole number before it.

use std::fmt;

use crate::quantity::UNIT;
use crate::{Format, Quantity};

const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&canonical(*self))
    }
}

fn canonical(quantity: Quantity) -> String {
    let nano = quantity.nano();
    if nano == 0 {
        return "0".to_owned();
    }
    match quantity.format() {
        Format::DecimalExponent => match without_thousands(nano, usize::MAX) {
            (mantissa, 3) => mantissa.to_string(),
            (mantissa, thousands) => format!("{mantissa}e{}", thousands * 3 - 9),
        },
        // Kubernetes spells small and fractional amounts decimally whatever they were written in.
        Format::BinarySi if nano % UNIT == 0 && nano.abs() >= 1024 * UNIT => binary(nano / UNIT),
        Format::BinarySi | Format::DecimalSi => decimal(nano),
    }
}

/// The exact value with the largest decimal suffix.
pub(crate) fn decimal(nano: i128) -> String {
    let (mantissa, thousands) = without_thousands(nano, DECIMAL.len() - 1);
    let suffix = DECIMAL[usize::try_from(thousands).unwrap_or_default()];
    format!("{mantissa}{suffix}")
}

/// The exact value with the largest binary suffix.
pub(crate) fn binary(units: i128) -> String {
    let (mantissa, times) = without_factors(units, 1024, BINARY.len() - 1);
    let suffix = BINARY[usize::try_from(times).unwrap_or_default()];
    format!("{mantissa}{suffix}")
}

fn without_thousands(nano: i128, most: usize) -> (i128, i32) {
    without_factors(nano, 1000, most)
}

fn without_factors(mut value: i128, factor: i128, most: usize) -> (i128, i32) {
    let mut times = 0;
    while value != 0 && value % factor == 0 && usize::try_from(times).is_ok_and(|t| t < most) {
        value /= factor;
        times += 1;
    }
    (value, times)
}
