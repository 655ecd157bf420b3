//! A moment in eight bytes: there is one for every container of a cluster, several times.

use std::time::Duration;

use jiff::Timestamp;

/// Nanoseconds since 1970, or never. What is too far away for that is at the edge of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Moment(i64);

impl Moment {
    /// Before all others.
    pub(super) const NEVER: Self = Self(i64::MIN);

    /// Nanoseconds between the year 1, whose first moment all half-lives are counted from, and 1970.
    const BEFORE_1970: i128 = 62_135_596_800_000_000_000;

    pub(super) fn of(at: Timestamp) -> Self {
        let nanoseconds = at.as_nanosecond().clamp(i128::from(i64::MIN + 1), i128::from(i64::MAX));
        Self(i64::try_from(nanoseconds).unwrap_or(i64::MAX))
    }

    pub(super) fn timestamp(self) -> Option<Timestamp> {
        self.is_ever().then(|| Timestamp::from_nanosecond(i128::from(self.0)).unwrap_or(Timestamp::MAX))
    }

    pub(super) const fn is_ever(self) -> bool {
        self.0 != Self::NEVER.0
    }

    /// Nanoseconds since an earlier moment; below zero where it is a later one.
    pub(super) const fn since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }

    pub(super) const fn plus(self, nanoseconds: i64) -> Self {
        let sum = self.0.saturating_add(nanoseconds);
        if sum == Self::NEVER.0 { Self(sum + 1) } else { Self(sum) }
    }

    /// The nearest multiple of a duration since the year 1; the later one of two.
    pub(super) fn round(self, nanoseconds: i64) -> Self {
        let step = i128::from(nanoseconds.max(1));
        let over = (i128::from(self.0) + Self::BEFORE_1970).rem_euclid(step);
        let shift = if over * 2 < step { -over } else { step - over };
        self.plus(i64::try_from(shift).unwrap_or_default())
    }
}

/// A duration in nanoseconds, at least one, so that it can be divided by.
pub(super) fn nanoseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(text: &str) -> Moment {
        Moment::of(text.parse().unwrap())
    }

    #[test]
    fn moments_are_rounded_to_multiples_counted_from_the_year_1() {
        let hour = 3_600_000_000_000;
        let noon = moment("2026-01-01T12:00:00Z");
        assert_eq!(noon.round(24 * hour), moment("2026-01-02T00:00:00Z"));
        assert_eq!(noon.plus(-1).round(24 * hour), moment("2026-01-01T00:00:00Z"));
        // As Go's Time.Round has it; counted from 1970 it would be 14:00.
        assert_eq!(noon.round(7 * hour), noon);
    }

    #[test]
    fn what_is_far_away_is_at_the_edge_and_not_never() {
        assert!(Moment::of(Timestamp::MIN).is_ever() && Moment::of(Timestamp::MIN).plus(i64::MIN).is_ever());
        assert_eq!(Moment::of(Timestamp::MAX).since(Moment::of(Timestamp::MIN)), i64::MAX);
        assert_eq!((Moment::NEVER.timestamp(), Moment::NEVER < Moment::of(Timestamp::MIN)), (None, true));
    }
}
