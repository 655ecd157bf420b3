//! What this process costs, as metrics read from the kernel at every scrape.

use std::fmt;
use std::fs;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;
use rustix::time::{ClockId, clock_gettime};

/// Memory, CPU time and open files of this process.
#[derive(Debug)]
pub(super) struct Process {
    started: SystemTime,
}

impl Process {
    pub(super) fn new() -> Self {
        Self { started: SystemTime::now() }
    }
}

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        encoder
            .encode_descriptor("process_cpu", "CPU time spent", Some(&Unit::Seconds), MetricType::Counter)?
            .encode_counter::<NoLabelSet, _, u64>(&cpu_time().as_secs_f64(), None)?;
        let started = self.started.duration_since(UNIX_EPOCH).unwrap_or_default();
        encoder
            .encode_descriptor("process_start_time", "When it started", Some(&Unit::Seconds), MetricType::Gauge)?
            .encode_gauge(&started.as_secs_f64())?;
        // What the kernel does not tell is left out rather than shown as nothing.
        if let Some(bytes) = resident_memory() {
            encoder
                .encode_descriptor("process_resident_memory", "Memory in use", Some(&Unit::Bytes), MetricType::Gauge)?
                .encode_gauge(&bytes)?;
        }
        if let Some(count) = open_files() {
            encoder
                .encode_descriptor("process_open_fds", "Open files and sockets", None, MetricType::Gauge)?
                .encode_gauge(&count)?;
        }
        Ok(())
    }
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or_default(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

fn resident_memory() -> Option<i64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: i64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    kibibytes.checked_mul(1024)
}

fn open_files() -> Option<i64> {
    let count = fs::read_dir("/proc/self/fd").ok()?.count();
    // Reading the folder opened it.
    i64::try_from(count).ok().map(|count| count - 1)
}
