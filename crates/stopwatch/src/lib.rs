//! Durations on a virtual machine. Its host may give the CPU time to others, and a second of wall time then says little: tests
//! wait by the time that the machine had, and the gate reports the share that it did not have.

#![forbid(unsafe_code)]

use std::fs;
use std::time::{Duration, Instant};

/// A wait never takes longer than this many times its limit.
const LONGEST: u32 = 4;

/// The start of a duration.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch {
    began: Instant,
    /// Absent where the kernel does not report them.
    ticks: Option<Ticks>,
}

/// A duration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Elapsed {
    /// Wall time.
    pub wall: Duration,
    /// The share of the CPU time of this machine that its host gave to others meanwhile, from 0 to 1.
    pub stolen: f64,
}

/// Clock ticks of all CPUs since the machine was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ticks {
    all: u64,
    stolen: u64,
}

impl Stopwatch {
    /// Starts one.
    pub fn start() -> Self {
        Self { began: Instant::now(), ticks: Ticks::now() }
    }

    /// The time since its start.
    pub fn elapsed(&self) -> Elapsed {
        let stolen = self.ticks.and_then(|before| Some(Ticks::now()?.stolen_since(before)));
        Elapsed { wall: self.began.elapsed(), stolen: stolen.unwrap_or_default() }
    }
}

impl Elapsed {
    /// The time that this machine had: wall time without the stolen share, and at least a quarter of it.
    pub fn had(&self) -> Duration {
        self.wall.mul_f64((1.0 - self.stolen).clamp(0.0, 1.0)).max(self.wall / LONGEST)
    }
}

impl Ticks {
    fn now() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/stat").ok()?)
    }

    /// The line `cpu` has user, nice, system, idle, iowait, irq, softirq and steal; guests, which follow, are in user too.
    fn parse(stat: &str) -> Option<Self> {
        let line = stat.lines().next()?.strip_prefix("cpu ")?;
        let ticks: Vec<u64> = line.split_whitespace().take(8).filter_map(|field| field.parse().ok()).collect();
        (ticks.len() == 8).then(|| Self { all: ticks.iter().sum(), stolen: ticks[7] })
    }

    #[expect(clippy::cast_precision_loss, reason = "a share needs no more than three digits")]
    fn stolen_since(self, before: Self) -> f64 {
        let all = self.all.saturating_sub(before.all).max(1);
        self.stolen.saturating_sub(before.stolen) as f64 / all as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_that_the_host_gave_to_others_is_found() {
        let before = Ticks::parse("cpu  100 0 50 800 10 0 5 35 7 0\ncpu0 1 2 3\n").unwrap();
        assert_eq!(before, Ticks { all: 1000, stolen: 35 });
        let after = Ticks::parse("cpu  150 0 50 800 10 0 5 85 7 0\n").unwrap();
        assert!((after.stolen_since(before) - 0.5).abs() < 1e-9);
        assert!(before.stolen_since(before).abs() < 1e-9);
        assert_eq!(Ticks::parse("cpu  1 2 3\n"), None);
    }

    #[test]
    fn a_wait_is_longer_where_the_machine_had_less_time_but_not_without_end() {
        let wall = Duration::from_mins(1);
        for (stolen, had) in [(0.0, 60), (0.5, 30), (0.75, 15), (0.99, 15), (1.0, 15)] {
            assert_eq!(Elapsed { wall, stolen }.had(), Duration::from_secs(had), "{stolen}");
        }
    }
}
