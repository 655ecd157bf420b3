//! How many writes the agent may make: a few at once, then one every five seconds.

use std::time::{Duration, Instant};

const AT_ONCE: u32 = 10;
const ONE_MORE_EVERY: Duration = Duration::from_secs(5);

/// What is left to spend. An app whose state changes all the time must not become a load for the API server; what is
/// put off is not lost, as only the last state counts.
#[derive(Debug)]
pub(super) struct Budget {
    left: u32,
    since: Instant,
}

impl Budget {
    pub(super) fn new(now: Instant) -> Self {
        Self { left: AT_ONCE, since: now }
    }

    /// Takes one, if there is one.
    pub(super) fn take(&mut self, now: Instant) -> bool {
        self.refill(now);
        let is_there = self.left > 0;
        self.left = self.left.saturating_sub(1);
        is_there
    }

    /// When there will be one more.
    pub(super) fn next(&self, now: Instant) -> Instant {
        (self.since + ONE_MORE_EVERY).max(now)
    }

    fn refill(&mut self, now: Instant) {
        while self.left < AT_ONCE && now.saturating_duration_since(self.since) >= ONE_MORE_EVERY {
            self.left += 1;
            self.since += ONE_MORE_EVERY;
        }
        if self.left == AT_ONCE {
            self.since = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_at_once_then_one_every_five_seconds() {
        let start = Instant::now();
        let mut budget = Budget::new(start);
        let later = |seconds| start + Duration::from_secs(seconds);
        assert_eq!((0..12).filter(|_| budget.take(later(100))).count(), 10);
        assert!(!budget.take(later(104)));
        assert_eq!(budget.next(later(104)), later(105));
        assert!(budget.take(later(105)));
        assert!(!budget.take(later(109)));
        assert_eq!((0..12).filter(|_| budget.take(later(1_000))).count(), 10);
    }
}
