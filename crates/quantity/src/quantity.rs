//! The value type: nano-units, the remembered notation, checked arithmetic, rounding.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use crate::{Human, Resource};

/// Nano-units in one unit.
pub(crate) const UNIT: i128 = 1_000_000_000;
const MILLI: i128 = 1_000_000;

/// The notation a quantity was written in, and is printed in again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Suffixes `n u m k M G T P E`, powers of ten.
    DecimalSi,
    /// Suffixes `Ki Mi Gi Ti Pi Ei`, powers of 1024.
    BinarySi,
    /// An exponent: `12e6`.
    DecimalExponent,
}

/// A Kubernetes quantity: an exact multiple of one nano-unit.
///
/// Equality, order and hash look at the value only: `1Ki` equals `1024`.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    nano: i128,
    format: Format,
}

impl Quantity {
    /// Zero, in decimal notation.
    pub const ZERO: Self = Self::from_nano(0, Format::DecimalSi);

    /// A quantity of so many nano-units.
    pub const fn from_nano(nano: i128, format: Format) -> Self {
        Self { nano, format }
    }

    /// A quantity of so many thousandths: `from_milli(300)` is `300m`.
    pub const fn from_milli(milli: i64) -> Self {
        // i64 × 10^6 always fits in an i128.
        Self::from_nano(milli as i128 * MILLI, Format::DecimalSi)
    }

    /// A quantity of so many whole units: cores, or bytes.
    pub const fn from_units(units: i64, format: Format) -> Self {
        Self::from_nano(units as i128 * UNIT, format)
    }

    /// The exact value in nano-units.
    pub const fn nano(self) -> i128 {
        self.nano
    }

    /// The notation [`Display`](std::fmt::Display) writes it in.
    pub const fn format(self) -> Format {
        self.format
    }

    /// The same value in another notation.
    #[must_use]
    pub const fn with_format(self, format: Format) -> Self {
        Self::from_nano(self.nano, format)
    }

    /// Whether the value is zero.
    pub const fn is_zero(self) -> bool {
        self.nano == 0
    }

    /// Whether the value is below zero.
    pub const fn is_negative(self) -> bool {
        self.nano < 0
    }

    /// Whole units, rounded away from zero as Kubernetes' `Value()` documents.
    pub const fn value(self) -> i128 {
        away_from_zero(self.nano, UNIT)
    }

    /// Thousandths, rounded away from zero as Kubernetes' `MilliValue()` documents.
    pub const fn milli_value(self) -> i128 {
        away_from_zero(self.nano, MILLI)
    }

    /// The sum, or `None` where it does not fit.
    ///
    /// Like Kubernetes it keeps the notation of `self`, unless `self` is zero.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        let nano = self.nano.checked_add(other.nano)?;
        Some(Self::from_nano(nano, self.kept_format(other)))
    }

    /// The difference, or `None` where it does not fit; the notation as in [`Self::checked_add`].
    pub fn checked_sub(self, other: Self) -> Option<Self> {
        let nano = self.nano.checked_sub(other.nano)?;
        Some(Self::from_nano(nano, self.kept_format(other)))
    }

    /// The product with a whole number, or `None` where it does not fit.
    pub fn checked_mul(self, factor: i128) -> Option<Self> {
        let nano = self.nano.checked_mul(factor)?;
        Some(Self::from_nano(nano, self.format))
    }

    /// The negative, or `None` where it does not fit.
    pub fn checked_neg(self) -> Option<Self> {
        Some(Self::from_nano(self.nano.checked_neg()?, self.format))
    }

    /// The least amount that is not below `self` and that the resource can hold: whole
    /// millicores, whole bytes. `None` where that does not fit.
    pub fn round_up(self, resource: Resource) -> Option<Self> {
        let step = resource.step();
        match self.nano.rem_euclid(step) {
            0 => Some(self),
            over => Some(Self::from_nano(self.nano.checked_add(step - over)?, self.format)),
        }
    }

    /// The spelling a person would write for an amount of this resource.
    pub const fn human(self, resource: Resource) -> Human {
        Human::new(self, resource)
    }

    const fn kept_format(self, other: Self) -> Format {
        if self.is_zero() { other.format } else { self.format }
    }
}

const fn away_from_zero(nano: i128, step: i128) -> i128 {
    nano / step + (nano % step).signum()
}

impl Default for Quantity {
    fn default() -> Self {
        Self::ZERO
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nano == other.nano
    }
}

impl Eq for Quantity {}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nano.cmp(&other.nano)
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Hash for Quantity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.nano.hash(state);
    }
}

#[cfg(test)]
mod tests;
