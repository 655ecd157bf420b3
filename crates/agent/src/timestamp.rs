//! Moments as Kubernetes writes them: whole seconds in UTC, `2026-11-15T18:00:00Z`.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const DAY: u64 = 86_400;

/// A moment, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Timestamp(pub(crate) u64);

impl Timestamp {
    pub(crate) fn now() -> Self {
        Self(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs())
    }

    /// Reads what the API server writes; fractions of a second are not there.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        let has_marks = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':'), (19, b'Z')]
            .iter()
            .all(|(at, mark)| bytes.get(*at) == Some(mark));
        if bytes.len() != 20 || !has_marks {
            return None;
        }
        let number = |from: usize, to: usize| {
            let digits = text.get(from..to).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?;
            digits.parse::<u64>().ok()
        };
        let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
        let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
        let is_moment = year >= 1970 && (1..=12).contains(&month) && (1..=31).contains(&day);
        if !is_moment || hour > 23 || minute > 59 || second > 60 {
            return None;
        }
        Some(Self(days_until(year, month, day) * DAY + hour * 3_600 + minute * 60 + second))
    }

    /// How long ago it was, seen from a later moment.
    pub(crate) fn age_at(self, now: Self) -> Duration {
        Duration::from_secs(now.0.saturating_sub(self.0))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, second) = (self.0 / DAY, self.0 % DAY);
        // A year that begins with March has its odd day at its end, and a month is 30.6 days long.
        let shifted = days + 719_468;
        let (era, of_era) = (shifted / 146_097, shifted % 146_097);
        let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * of_year + 2) / 153;
        let day = of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
        let year = era * 400 + year_of_era + u64::from(month <= 2);
        let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

/// Days from 1970 to a date.
fn days_until(year: u64, month: u64, day: u64) -> u64 {
    let year = if month <= 2 { year - 1 } else { year };
    let month_from_march = if month > 2 { month - 3 } else { month + 9 };
    let of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let (era, year_of_era) = (year / 400, year % 400);
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn moments_are_written_as_kubernetes_does() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_794_700_799, "2026-11-14T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(
                (Timestamp(seconds).to_string().as_str(), Timestamp::parse(text)),
                (text, Some(Timestamp(seconds)))
            );
        }
    }

    #[test]
    fn what_is_no_moment_is_none() {
        for text in [
            "",
            "2026-11-15",
            "2026-11-15T18:00:00+01:00",
            "2026-13-15T18:00:00Z",
            "+026-11-15T18:00:00Z",
            "ü026-11-15T18:00:0Z",
        ] {
            assert_eq!(Timestamp::parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(seconds in 0_u64..253_402_300_800) {
            prop_assert_eq!(Timestamp::parse(&Timestamp(seconds).to_string()), Some(Timestamp(seconds)));
        }
    }
}
