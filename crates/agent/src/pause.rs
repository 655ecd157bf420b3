//! How long to wait before something is tried again.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Pauses that grow with every failure, up to a longest one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pauses {
    first: Duration,
    longest: Duration,
    next: Duration,
}

impl Pauses {
    pub(crate) fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, next: first }
    }

    /// The pause after another failure.
    pub(crate) fn grow(&mut self) -> Duration {
        let pause = self.next;
        self.next = (pause * 2).min(self.longest);
        pause
    }

    /// It went well.
    pub(crate) fn reset(&mut self) {
        self.next = self.first;
    }
}

/// Half of it to all of it, so that the pods of a cluster do not come back all at once.
pub(crate) fn spread(pause: Duration) -> Duration {
    pause / 2 + (pause / 2).mul_f64(chance())
}

/// All of it to a fifth more, for what is done again and again and never too soon.
pub(crate) fn lengthen(interval: Duration) -> Duration {
    interval + (interval / 5).mul_f64(chance())
}

/// From 0 to 1. The nanoseconds of the clock differ enough between pods.
fn chance() -> f64 {
    let nanoseconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().subsec_nanos();
    f64::from(nanoseconds % 1_000) / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_the_longest_and_begin_again() {
        let mut pauses = Pauses::new(Duration::from_secs(1), Duration::from_secs(5));
        let grown: Vec<u64> = (0..5).map(|_| pauses.grow().as_secs()).collect();
        assert_eq!(grown, [1, 2, 4, 5, 5]);
        pauses.reset();
        assert_eq!(pauses.grow(), Duration::from_secs(1));
    }

    #[test]
    fn pauses_stay_within_their_bounds() {
        for _ in 0..1_000 {
            let pause = spread(Duration::from_secs(2));
            assert!(pause >= Duration::from_secs(1) && pause <= Duration::from_secs(2), "{pause:?}");
            let interval = lengthen(Duration::from_secs(5));
            assert!(interval >= Duration::from_secs(5) && interval <= Duration::from_secs(6), "{interval:?}");
        }
    }
}
