//! How many writes are begun in a second.

use std::time::Duration;

use tokio::time::Instant;

/// Lets so many through in a second, evenly, with a little in hand after a pause.
#[derive(Debug)]
pub(super) struct Pace {
    apart: Duration,
    in_hand: Duration,
    next: Option<Instant>,
}

impl Pace {
    pub(super) fn new(per_second: u32) -> Self {
        let apart = Duration::from_secs(1) / per_second.max(1);
        // A tenth of a second's worth at once, as nobody notices; at least one.
        Self { apart, in_hand: Duration::from_millis(100).max(apart), next: None }
    }

    /// Takes one; or tells when there is one.
    pub(super) fn take(&mut self, now: Instant) -> Result<(), Instant> {
        let earliest = now.checked_sub(self.in_hand).unwrap_or(now);
        let next = self.next.unwrap_or(earliest).max(earliest);
        if next > now {
            return Err(next);
        }
        self.next = Some(next + self.apart);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_a_second_there_are_as_many_as_said_and_a_tenth_in_hand() {
        for (per_second, expected) in [(50, 56), (1, 3), (1000, 1101)] {
            let (mut pace, began) = (Pace::new(per_second), Instant::now() + Duration::from_secs(10));
            let (mut now, mut taken) = (began, 0);
            while now <= began + Duration::from_secs(1) {
                match pace.take(now) {
                    Ok(()) => taken += 1,
                    Err(at) => now = at,
                }
            }
            assert_eq!(taken, expected, "of {per_second}");
        }
    }

    #[test]
    fn whoever_must_wait_is_told_until_when() {
        let (mut pace, now) = (Pace::new(10), Instant::now() + Duration::from_secs(10));
        assert_eq!([pace.take(now), pace.take(now)], [Ok(()), Ok(())]);
        let at = now + Duration::from_millis(100);
        assert_eq!(pace.take(now), Err(at));
        assert_eq!(pace.take(at), Ok(()));
    }
}
