//! Records what beds cost, for the tables of `just ci-times`: how long each took to start and to stop, and the CPU time of the
//! process that started it with all its children.

use std::env;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::time::{Duration, Instant};

use serde::Serialize;

/// Names the file to append records to. Nothing is recorded without it.
const VARIABLE: &str = "PILLION_BED_USAGE";
/// The name of the running test, as cargo-nextest passes it.
const TEST_VARIABLE: &str = "NEXTEST_TEST_NAME";
/// Clock ticks per second in `/proc`; 100 on every architecture that Kubernetes supports.
const TICKS_PER_SECOND: f64 = 100.0;

/// The costs of one bed. Dropping it appends them to the file, so it must be dropped after the bed has ended.
#[derive(Debug)]
pub(crate) struct Usage {
    began: Instant,
    start: Duration,
    ending: Option<Instant>,
}

#[derive(Serialize)]
struct Record<'a> {
    test: &'a str,
    start_seconds: f64,
    stop_seconds: f64,
    cpu_seconds: f64,
}

impl Usage {
    pub(crate) fn begin() -> Self {
        Self { began: Instant::now(), start: Duration::ZERO, ending: None }
    }

    /// The bed is ready.
    pub(crate) fn started(&mut self) {
        self.start = self.began.elapsed();
    }

    /// The bed is about to be stopped.
    pub(crate) fn ending(&mut self) {
        self.ending = Some(Instant::now());
    }
}

impl Drop for Usage {
    fn drop(&mut self) {
        let Some(path) = env::var_os(VARIABLE) else { return };
        let record = Record {
            test: &env::var(TEST_VARIABLE).unwrap_or_default(),
            start_seconds: self.start.as_secs_f64(),
            stop_seconds: self.ending.map_or(0.0, |ending| ending.elapsed().as_secs_f64()),
            cpu_seconds: cpu_seconds(&fs::read_to_string("/proc/self/stat").unwrap_or_default()),
        };
        let Ok(mut line) = serde_json::to_vec(&record) else { return };
        line.push(b'\n');
        // One write of one line: tests that run at the same time do not mix theirs. A lost record fails no test.
        let file = OpenOptions::new().create(true).append(true).open(path);
        let _ = file.and_then(|mut file| file.write_all(&line));
    }
}

/// CPU time of a process and of its children that have ended, from its `/proc/<pid>/stat`.
fn cpu_seconds(stat: &str) -> f64 {
    // The name of the program is in parentheses and may hold spaces; utime is the 12th field after it.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let ticks = fields.split_whitespace().skip(11).take(4).filter_map(|field| field.parse::<f64>().ok());
    ticks.sum::<f64>() / TICKS_PER_SECOND
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_that_of_the_process_and_its_children() {
        let stat = "7 (a (b) c) S 1 7 7 0 -1 4194560 100 200 0 0 150 50 1200 300 20 0 1 0 5 1 1";
        assert!((cpu_seconds(stat) - 17.0).abs() < f64::EPSILON);
        assert!(cpu_seconds("").abs() < f64::EPSILON);
    }
}
