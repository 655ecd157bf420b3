//! Between whole amounts and numbers that weights and factors are made of.

/// The largest amount there is; more than any machine has.
pub(super) const MOST: i64 = 100_000_000_000_000;

/// Amounts are at most [`MOST`], which is far below where this would lose a unit.
#[expect(clippy::cast_precision_loss, reason = "amounts, counts and nanoseconds: exact, or off by parts of 10^15")]
pub(super) const fn float(whole: i64) -> f64 {
    whole as f64
}

/// The whole amount in a number: cut, never below zero, never above [`MOST`], and zero for what is no number.
#[expect(clippy::cast_possible_truncation, reason = "it is to be cut")]
pub(super) const fn amount(number: f64) -> i64 {
    if number > float(MOST) {
        MOST
    } else if number > 0.0 {
        number as i64
    } else {
        0
    }
}

/// So many times an amount.
pub(super) const fn times(whole: i64, factor: f64) -> i64 {
    amount(float(whole) * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_cut_and_have_edges() {
        assert_eq!([126.9, -1.0, 1e300, f64::INFINITY, f64::NAN].map(amount), [126, 0, MOST, MOST, 0]);
        assert_eq!((times(110, 0.15), times(0, f64::INFINITY)), (16, 0));
    }
}
