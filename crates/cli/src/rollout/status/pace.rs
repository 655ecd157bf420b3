//! How long a rollout will take, from the pace seen while watching it.

use std::collections::VecDeque;
use std::fmt;

use jiff::{SignedDuration, Timestamp};

use crate::rollout::history::age;
use crate::rollout::picture::Picture;

/// What is older says nothing of the pace of now.
const REMEMBERED: SignedDuration = SignedDuration::from_mins(5);
/// Less is too little to tell.
const LEAST: SignedDuration = SignedDuration::from_secs(5);

/// How many pods were done at which time.
#[derive(Clone, Debug, Default)]
pub(super) struct Pace {
    newest: String,
    seen: VecDeque<(Timestamp, usize)>,
}

/// When it will be done, if it goes on so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Estimate {
    left: SignedDuration,
    tenths_per_minute: u128,
}

impl Pace {
    /// Looks at a rollout; how long it will take, where that can be told.
    pub(super) fn look(&mut self, picture: &Picture, now: Timestamp) -> Option<Estimate> {
        if self.newest != picture.newest {
            *self = Self { newest: picture.newest.clone(), seen: VecDeque::new() };
        }
        let counts = &picture.progress.counts;
        let done = counts.updated.saturating_sub(counts.updating);
        // Those that stay, by the partition or until they are created again, are not waited for.
        let stay = picture.progress.pinned.max(counts.needs_recreate);
        let left = counts.pods.saturating_sub(stay).saturating_sub(done);
        self.after(done, left, now)
    }

    fn after(&mut self, done: usize, left: usize, now: Timestamp) -> Option<Estimate> {
        while self.seen.front().is_some_and(|(time, _)| now.duration_since(*time) > REMEMBERED) {
            self.seen.pop_front();
        }
        self.seen.push_back((now, done));
        let (began, done_then) = *self.seen.front()?;
        let took = now.duration_since(began);
        let made = done.checked_sub(done_then).filter(|made| *made > 0)?;
        if left == 0 || took < LEAST {
            return None;
        }
        let (made, left, took) = (made as u128, left as u128, took.as_millis().unsigned_abs());
        let seconds = (took * left).div_ceil(made * 1000);
        Some(Estimate {
            left: SignedDuration::from_secs(i64::try_from(seconds).unwrap_or(i64::MAX)),
            tenths_per_minute: made * 600_000 / took,
        })
    }
}

impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, tenths) = (self.tenths_per_minute / 10, self.tenths_per_minute % 10);
        write!(f, "about {}, at {whole}.{tenths} pods a minute", age(self.left))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_000_000 + seconds).unwrap()
    }

    #[test]
    fn the_pace_is_that_of_the_last_minutes() {
        let mut pace = Pace::default();
        assert_eq!(pace.after(3, 100, at(0)), None, "one look tells nothing");
        assert_eq!(pace.after(5, 98, at(4)), None, "it is too soon");
        let estimate = pace.after(13, 90, at(60)).unwrap();
        assert_eq!(estimate.to_string(), "about 9m, at 10.0 pods a minute");
        assert_eq!(estimate.left, SignedDuration::from_secs(540));
        // It stood still for so long that nothing can be told.
        assert_eq!(pace.after(13, 90, at(360)), None);
        let estimate = pace.after(15, 88, at(375)).unwrap();
        assert_eq!(estimate.to_string(), "about 11m, at 8.0 pods a minute");
        assert_eq!(pace.after(103, 0, at(380)), None, "nothing is left");
        assert_eq!(pace.after(1, 102, at(390)), None, "it goes backwards");
    }
}
