//! The spelling a person would write.

use std::fmt;

use crate::print;
use crate::quantity::UNIT;
use crate::{Quantity, Resource};

/// Prints an amount as a person would write it, exactly; see [`Quantity::human`].
///
/// Cpu is cores or millicores (`2`, `1500`, `300m`). Memory takes the suffix, binary or decimal,
/// that leaves the fewest digits (`150Mi`, `200M`, `13421773`), binary where that is even; a
/// fraction of a byte is written as one (`13421772.8`). The text is a legal quantity of the same value.
#[derive(Clone, Copy, Debug)]
pub struct Human {
    quantity: Quantity,
    resource: Resource,
}

impl Human {
    pub(crate) const fn new(quantity: Quantity, resource: Resource) -> Self {
        Self { quantity, resource }
    }
}

impl fmt::Display for Human {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nano = self.quantity.nano();
        f.pad(&match self.resource {
            Resource::Cpu => cpu(nano),
            Resource::Memory => memory(nano),
        })
    }
}

fn cpu(nano: i128) -> String {
    if nano % UNIT == 0 { (nano / UNIT).to_string() } else { print::decimal(nano) }
}

fn memory(nano: i128) -> String {
    if nano % UNIT != 0 {
        return fractional(nano);
    }
    let binary = print::binary(nano / UNIT);
    let decimal = print::decimal(nano);
    if digits(&decimal) < digits(&binary) { decimal } else { binary }
}

fn fractional(nano: i128) -> String {
    let sign = if nano < 0 { "-" } else { "" };
    let (whole, fraction) = (nano / UNIT, nano % UNIT);
    let text = format!("{sign}{}.{:09}", whole.abs(), fraction.abs());
    text.trim_end_matches('0').to_owned()
}

fn digits(text: &str) -> usize {
    text.bytes().filter(u8::is_ascii_digit).count()
}
