//! How a thread is told to end, while it waits for something else.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Says when to end. Copies say the same.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<(Mutex<bool>, Condvar)>);

impl Stop {
    /// Has everybody end.
    pub fn stop(&self) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.1.notify_all();
    }

    /// Whether it is time to end.
    pub fn is_stopped(&self) -> bool {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for so long, or until it is time to end; returns whether it is.
    pub fn wait(&self, at_most: Duration) -> bool {
        let end = Instant::now() + at_most;
        let mut stopped = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        while !*stopped {
            let Some(left) = end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) else { break };
            stopped = self.0.1.wait_timeout(stopped, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        *stopped
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn one_that_waits_is_woken() {
        let stop = Stop::default();
        assert!(!stop.wait(Duration::from_millis(1)));
        let waiting = thread::spawn({
            let stop = stop.clone();
            move || stop.wait(Duration::from_mins(1))
        });
        stop.stop();
        assert!(waiting.join().unwrap());
        assert!(stop.is_stopped());
    }
}
