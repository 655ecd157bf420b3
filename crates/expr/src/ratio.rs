//! Exact fractions of 128-bit integers; what does not fit is `None`, never wrong.

use std::cmp::Ordering;
use std::fmt;

use pillion_quantity::{Quantity, Resource};

const NANO: i128 = 1_000_000_000;

/// An exact fraction, always in lowest terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ratio {
    numerator: i128,
    denominator: i128,
}

impl Ratio {
    /// Zero.
    pub const ZERO: Self = Self::whole(0);
    /// One.
    pub const ONE: Self = Self::whole(1);

    /// A whole number.
    pub const fn whole(number: i128) -> Self {
        Self { numerator: number, denominator: 1 }
    }

    /// `numerator / denominator`, or `None` where the denominator is zero or the result does not fit.
    pub fn new(numerator: i128, denominator: i128) -> Option<Self> {
        if denominator == 0 || numerator == i128::MIN || denominator == i128::MIN {
            return None;
        }
        let divisor = common_divisor(numerator, denominator)? * denominator.signum();
        // 128-bit division is slow, and most fractions are in lowest terms already.
        Some(if divisor == 1 {
            Self { numerator, denominator }
        } else {
            Self { numerator: divide(numerator, divisor), denominator: divide(denominator, divisor) }
        })
    }

    /// The part above the line, with the sign.
    pub const fn numerator(self) -> i128 {
        self.numerator
    }

    /// The part below the line, above zero.
    pub const fn denominator(self) -> i128 {
        self.denominator
    }

    /// -1, 0 or 1.
    pub const fn signum(self) -> i128 {
        self.numerator.signum()
    }

    /// The sum, where it fits.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        if other.numerator == 0 {
            return Some(self);
        }
        if self.numerator == 0 {
            return Some(other);
        }
        if self.denominator == other.denominator {
            let sum = self.numerator.checked_add(other.numerator)?;
            return Self::new(sum, self.denominator);
        }
        // Over the least common denominator, so that nothing overflows that need not.
        let common = common_divisor(self.denominator, other.denominator)?;
        let ours = divide(self.denominator, common);
        let theirs = divide(other.denominator, common);
        let numerator = self.numerator.checked_mul(theirs)?.checked_add(other.numerator.checked_mul(ours)?)?;
        Self::new(numerator, ours.checked_mul(other.denominator)?)
    }

    /// The difference, where it fits.
    pub fn checked_sub(self, other: Self) -> Option<Self> {
        self.checked_add(other.checked_neg()?)
    }

    /// The negative, where it fits.
    pub fn checked_neg(self) -> Option<Self> {
        Some(Self { numerator: self.numerator.checked_neg()?, denominator: self.denominator })
    }

    /// The product, where it fits.
    pub fn checked_mul(self, other: Self) -> Option<Self> {
        if self.numerator == 0 || other == Self::ONE {
            return Some(self);
        }
        if other.numerator == 0 || self == Self::ONE {
            return Some(other);
        }
        // Cancel first, so that nothing overflows that need not.
        let left = Self::new(self.numerator, other.denominator)?;
        let right = Self::new(other.numerator, self.denominator)?;
        Some(Self {
            numerator: left.numerator.checked_mul(right.numerator)?,
            denominator: left.denominator.checked_mul(right.denominator)?,
        })
    }

    /// The quotient, where it fits and the divisor is not zero.
    pub fn checked_div(self, other: Self) -> Option<Self> {
        self.checked_mul(Self::new(other.denominator, other.numerator)?)
    }

    /// The greatest whole number that is not above it.
    pub const fn floor(self) -> i128 {
        self.numerator.div_euclid(self.denominator)
    }

    /// The least whole number that is not below it.
    pub const fn ceil(self) -> i128 {
        self.floor() + (self.numerator.rem_euclid(self.denominator) != 0) as i128
    }

    /// The number of units of a quantity.
    pub fn from_quantity(quantity: Quantity) -> Option<Self> {
        Self::new(quantity.nano(), NANO)
    }

    /// The quantity of so many units, where it is a whole number of nano-units.
    pub fn to_quantity(self) -> Option<Quantity> {
        let nano = self.checked_mul(Self::whole(NANO))?;
        (nano.denominator == 1).then(|| Quantity::from_nano(nano.numerator, pillion_quantity::Format::DecimalSi))
    }

    /// As people write so many units: cores as a number (`2.4`), bytes with a suffix (`150Mi`).
    pub fn human(self, resource: Resource) -> String {
        match (resource, self.to_quantity()) {
            (Resource::Memory, Some(quantity)) => quantity.human(resource).to_string(),
            _ => self.to_string(),
        }
    }

    /// The decimal digits, where they come to an end.
    fn decimal(self) -> Option<String> {
        let mut rest = self.denominator;
        let (mut twos, mut fives) = (0_u32, 0_u32);
        while rest % 2 == 0 {
            rest /= 2;
            twos += 1;
        }
        while rest % 5 == 0 {
            rest /= 5;
            fives += 1;
        }
        let places = twos.max(fives);
        if rest != 1 || places > 20 {
            return None;
        }
        let scale = 10_i128.pow(places);
        let digits = self.numerator.checked_mul(scale / self.denominator)?;
        let sign = if digits < 0 { "-" } else { "" };
        let (whole, fraction) = ((digits / scale).abs(), (digits % scale).abs());
        Some(if places == 0 {
            format!("{sign}{whole}")
        } else {
            let width = places as usize;
            format!("{sign}{whole}.{fraction:0width$}")
        })
    }
}

impl Ord for Ratio {
    fn cmp(&self, other: &Self) -> Ordering {
        if self.denominator == other.denominator {
            return self.numerator.cmp(&other.numerator);
        }
        let left = self.numerator.checked_mul(other.denominator);
        let right = other.numerator.checked_mul(self.denominator);
        match (left, right) {
            (Some(left), Some(right)) => left.cmp(&right),
            // Too long to multiply out: compare the whole parts, then what remains, upside down.
            _ => self.floor().cmp(&other.floor()).then_with(|| {
                let (left, right) = (self.remainder(), other.remainder());
                match (left.numerator, right.numerator) {
                    (0, 0) => Ordering::Equal,
                    (0, _) => Ordering::Less,
                    (_, 0) => Ordering::Greater,
                    _ => right.inverse().cmp(&left.inverse()),
                }
            }),
        }
    }
}

impl Ratio {
    const fn remainder(self) -> Self {
        Self { numerator: self.numerator.rem_euclid(self.denominator), denominator: self.denominator }
    }

    /// Only of what is above zero.
    const fn inverse(self) -> Self {
        Self { numerator: self.denominator, denominator: self.numerator }
    }
}

impl PartialOrd for Ratio {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Ratio {
    /// Decimal where that is exact (`2.4`), else a fraction (`1/3`).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.decimal().unwrap_or_else(|| format!("{}/{}", self.numerator, self.denominator));
        f.pad(&text)
    }
}

/// The greatest number that divides both; `None` where it does not fit.
pub(crate) fn common_divisor(a: i128, b: i128) -> Option<i128> {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        // Nearly all numbers are small, and 64-bit steps are several times faster.
        if let (Ok(a), Ok(b)) = (u64::try_from(a), u64::try_from(b)) {
            return Some(i128::from(small_common_divisor(a, b)));
        }
        (a, b) = (b, a % b);
    }
    i128::try_from(a).ok()
}

fn small_common_divisor(mut a: u64, mut b: u64) -> u64 {
    if a == 0 || b == 0 {
        return a | b;
    }
    let twos = (a | b).trailing_zeros();
    a >>= a.trailing_zeros();
    while b != 0 {
        b >>= b.trailing_zeros();
        (a, b) = (a.min(b), a.abs_diff(b));
    }
    a << twos
}

/// `a / b`; only of a `b` that is not zero.
fn divide(a: i128, b: i128) -> i128 {
    match (i64::try_from(a), i64::try_from(b)) {
        (Ok(a), Ok(b)) if a != i64::MIN => i128::from(a / b),
        _ => a / b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ratio(numerator: i128, denominator: i128) -> Ratio {
        Ratio::new(numerator, denominator).unwrap()
    }

    #[test]
    fn prints_decimals_where_they_end_and_fractions_where_they_do_not() {
        for (ratio, text) in [
            (ratio(12, 5), "2.4"),
            (ratio(-1, 2), "-0.5"),
            (ratio(-1, 3), "-1/3"),
            (ratio(8, -2), "-4"),
            (ratio(0, -7), "0"),
            (ratio(1, 1000), "0.001"),
        ] {
            assert_eq!(ratio.to_string(), text);
        }
    }

    #[test]
    fn order_is_exact_where_products_do_not_fit() {
        let big = i128::MAX;
        assert!(ratio(big, big - 1) > ratio(big - 1, big - 2).checked_sub(Ratio::ONE).unwrap());
        assert!(ratio(big - 1, big) < ratio(big, big - 1));
        assert!(ratio(big - 2, big - 1) < ratio(big - 1, big));
        assert!(ratio(1 - big, big) < ratio(2 - big, big - 1));
        assert!(Ratio::whole(-2) < ratio(-big, big - 1));
        assert!(ratio(-big, big - 1) > Ratio::whole(-2));
        assert_eq!(ratio(big, 3).cmp(&ratio(big, 3)), Ordering::Equal);
    }

    #[test]
    fn what_does_not_fit_is_none() {
        assert_eq!(Ratio::new(1, 0), None);
        assert_eq!(Ratio::whole(i128::MAX).checked_add(Ratio::ONE), None);
        assert_eq!(Ratio::whole(i128::MAX).checked_add(Ratio::whole(9)), None);
        assert_eq!(Ratio::whole(i128::MAX).checked_mul(Ratio::whole(2)), None);
        assert_eq!(Ratio::ONE.checked_div(Ratio::ZERO), None);
        assert_eq!(ratio(1, i128::MAX).checked_add(ratio(1, i128::MAX - 1)), None);
    }

    proptest! {
        #[test]
        fn the_common_divisor_is_the_greatest(a in 0_u64..5000, b in 1_u64..5000, times in 1_u64..1_000_000) {
            let slow = (1..=b).rev().find(|d| a % d == 0 && b % d == 0).unwrap();
            prop_assert_eq!(small_common_divisor(a * times, b * times), slow * times);
            let long = 1_i128 << 64;
            let (a, b) = (i128::from(a) * long, -i128::from(b) * long);
            prop_assert_eq!(common_divisor(a, b), Some(i128::from(slow) * long));
        }

        #[test]
        fn arithmetic_agrees_with_cross_multiplication(
            a in any::<i32>(), b in 1_i32.., c in any::<i32>(), d in 1_i32..,
        ) {
            let [a, b, c, d] = [a, b, c, d].map(i128::from);
            let (left, right) = (ratio(a, b), ratio(c, d));
            prop_assert_eq!(left.checked_add(right), Ratio::new(a * d + c * b, b * d));
            prop_assert_eq!(left.checked_sub(right), Ratio::new(a * d - c * b, b * d));
            prop_assert_eq!(left.checked_mul(right), Ratio::new(a * c, b * d));
            prop_assert_eq!(left.checked_div(right), Ratio::new(a * d, b * c));
            prop_assert_eq!(left.cmp(&right), (a * d).cmp(&(c * b)));
            prop_assert!(Ratio::whole(left.floor()) <= left && Ratio::whole(left.ceil()) >= left);
            prop_assert!(left.ceil() - left.floor() <= 1);
        }
    }
}
