//! The duration of a run. On a virtual machine a second of wall time says little if the host gives the CPU to others.

use std::fs;
use std::time::Instant;

use anyhow::{Context, ensure};

use super::Duration;

/// The start of a run.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch {
    began: Instant,
    ticks: Ticks,
}

/// Clock ticks of all CPUs since the machine was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ticks {
    all: u64,
    stolen: u64,
}

impl Stopwatch {
    /// Starts it.
    pub fn start() -> anyhow::Result<Self> {
        Ok(Self { began: Instant::now(), ticks: Ticks::now()? })
    }

    /// The time since its start.
    pub fn read(&self) -> anyhow::Result<Duration> {
        Ok(Duration { wall: self.began.elapsed().as_secs_f64(), stolen: Ticks::now()?.stolen_since(self.ticks) })
    }
}

impl Ticks {
    fn now() -> anyhow::Result<Self> {
        Self::parse(&fs::read_to_string("/proc/stat").context("cannot read /proc/stat")?)
    }

    /// The line `cpu` has user, nice, system, idle, iowait, irq, softirq and steal; guests, which follow, are in user too.
    fn parse(stat: &str) -> anyhow::Result<Self> {
        let line = stat.lines().next().and_then(|line| line.strip_prefix("cpu ")).unwrap_or_default();
        let ticks: Vec<u64> = line.split_whitespace().take(8).filter_map(|field| field.parse().ok()).collect();
        ensure!(ticks.len() == 8, "/proc/stat does not begin with the CPU time of all processors");
        Ok(Self { all: ticks.iter().sum(), stolen: ticks[7] })
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
    fn the_share_that_the_host_withheld_is_found() {
        let before = Ticks::parse("cpu  100 0 50 800 10 0 5 35 7 0\ncpu0 1 2 3\n").unwrap();
        assert_eq!(before, Ticks { all: 1000, stolen: 35 });
        let after = Ticks::parse("cpu  150 0 50 800 10 0 5 85 7 0\n").unwrap();
        assert!((after.stolen_since(before) - 0.5).abs() < 1e-9);
        assert!(before.stolen_since(before).abs() < 1e-9);
        let error = Ticks::parse("cpu  1 2 3\n").unwrap_err();
        assert_eq!(error.to_string(), "/proc/stat does not begin with the CPU time of all processors");
    }
}
