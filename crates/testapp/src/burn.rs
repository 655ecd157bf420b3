//! Burns a wanted amount of CPU, on as many threads as it takes.

use std::hint;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Short against the 100 ms in which the kernel accounts a CPU quota, long against a context switch.
const PERIOD: Duration = Duration::from_millis(20);
const ONE_CORE: u32 = 1000;

/// The threads that burn now. Dropping it stops them.
#[derive(Default)]
pub(crate) struct Burner {
    millicores: u32,
    stop: Arc<AtomicBool>,
}

impl Burner {
    /// Starts the threads that together burn this much.
    pub(crate) fn start(millicores: u32) -> io::Result<Self> {
        let burner = Self { millicores, stop: Arc::default() };
        for share in shares(millicores) {
            let stop = Arc::clone(&burner.stop);
            thread::Builder::new().spawn(move || burn(share, &stop))?;
        }
        Ok(burner)
    }

    pub(crate) fn millicores(&self) -> u32 {
        self.millicores
    }
}

impl Drop for Burner {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Splits an amount over threads, none of which can burn more than one core.
fn shares(millicores: u32) -> Vec<u32> {
    let mut shares = vec![ONE_CORE; (millicores / ONE_CORE) as usize];
    let rest = millicores % ONE_CORE;
    if rest > 0 {
        shares.push(rest);
    }
    shares
}

/// Spins for its share of each period, by the thread's own CPU clock: on a busy machine wall time would count the time
/// it only waited for a core.
fn burn(share: u32, stop: &AtomicBool) {
    let goal = PERIOD * share / ONE_CORE;
    while !stop.load(Ordering::Relaxed) {
        let period_start = Instant::now();
        let used_before = thread_cpu_time();
        while thread_cpu_time().saturating_sub(used_before) < goal && period_start.elapsed() < PERIOD {
            for _ in 0..1000 {
                hint::spin_loop();
            }
        }
        thread::sleep(PERIOD.saturating_sub(period_start.elapsed()));
    }
}

fn thread_cpu_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_thread_is_asked_for_more_than_one_core() {
        assert_eq!(shares(0), Vec::<u32>::new());
        assert_eq!(shares(250), [250]);
        assert_eq!(shares(1000), [1000]);
        assert_eq!(shares(2300), [1000, 1000, 300]);
    }
}
