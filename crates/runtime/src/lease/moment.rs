//! Points in time as one machine sees them.

use std::ops::{Add, Sub};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// A point in time on this machine's clock since boot: it never goes back, nobody can set it, and it goes on while the
/// machine sleeps, so that a leader which slept through its lease knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(Duration);

impl Moment {
    /// Now.
    pub fn now() -> Self {
        let time = clock_gettime(ClockId::Boottime);
        let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
        Self(Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default()))
    }

    /// This long after the machine started.
    pub const fn since_boot(duration: Duration) -> Self {
        Self(duration)
    }

    /// How long after `earlier` this is; nothing if it is before.
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Moment {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration))
    }
}

impl Sub<Duration> for Moment {
    type Output = Self;

    fn sub(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(duration))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_is_the_one_of_the_kernel_since_boot() {
        let before = Moment::now();
        let text = std::fs::read_to_string("/proc/uptime").unwrap();
        let uptime: f64 = text.split_whitespace().next().unwrap().parse().unwrap();
        let after = Moment::now();
        // The kernel shows hundredths of a second, cut.
        let shown = Moment::since_boot(Duration::from_secs_f64(uptime));
        assert!(before - Duration::from_millis(20) < shown && shown <= after, "{before:?} {shown:?} {after:?}");
    }

    #[test]
    fn before_is_no_time_since() {
        let (early, late) = (Moment(Duration::from_secs(1)), Moment(Duration::from_secs(3)));
        assert_eq!((late.since(early), early.since(late)), (Duration::from_secs(2), Duration::ZERO));
    }
}
