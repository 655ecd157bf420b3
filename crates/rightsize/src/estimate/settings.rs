//! What people may set of estimation. Defaults are upstream's, where upstream has the setting.

use std::time::Duration;

use crate::amounts::Amounts;

const DAY: Duration = Duration::from_hours(24);
const MEBIBYTE: i64 = 1024 * 1024;

/// What people may set of estimation.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// What is added to what was used, as a part of it.
    pub margin_fraction: f64,
    /// Of cpu: which part of the samples each bound covers.
    pub cpu_percentiles: Percentiles,
    /// Of memory: which part of the peaks each bound covers.
    pub memory_percentiles: Percentiles,
    /// How much history of cpu makes bounds twice as wide as they could be.
    pub cpu_confidence_interval: Duration,
    /// The same of memory.
    pub memory_confidence_interval: Duration,
    /// The least a pod gets; its app containers share it.
    pub pod_min: Amounts,
    /// The least a native sidecar gets. It is not shared, so that it leaves the share of app containers alone.
    pub sidecar_min: Amounts,
    /// The most any container gets, where its policy has no bound of its own.
    pub max_allowed: Amounts,
    /// Millicores are rounded up to multiples of this.
    pub round_cpu_millicores: i64,
    /// Bytes are rounded up to multiples of this.
    pub round_memory_bytes: i64,
    /// Whether containers that ask for whole cores get them.
    pub whole_cores: bool,
    /// Of how long a window only the peak of memory counts.
    pub memory_interval: Duration,
    /// So many windows without a sample, and what was learned is forgotten.
    pub memory_interval_count: u32,
    /// After this time a sample of cpu counts half.
    pub cpu_half_life: Duration,
    /// After this time a peak of memory counts half.
    pub memory_half_life: Duration,
    /// A container that ran out of memory is taken to need so many times what it had.
    pub oom_bump_ratio: f64,
    /// And at least so many bytes more.
    pub oom_min_bump_bytes: i64,
    /// With fewer samples nothing is recommended.
    pub min_samples: u64,
    /// The gate `NativeSidecar`.
    pub native_sidecars: bool,
}

/// Which part of the samples each bound covers, from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Percentiles {
    /// Of the lower bound.
    pub lower: f64,
    /// Of the target.
    pub target: f64,
    /// Of the upper bound.
    pub upper: f64,
}

impl Default for Percentiles {
    fn default() -> Self {
        Self { lower: 0.5, target: 0.9, upper: 0.95 }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            margin_fraction: 0.15,
            cpu_percentiles: Percentiles::default(),
            memory_percentiles: Percentiles::default(),
            cpu_confidence_interval: DAY,
            memory_confidence_interval: DAY,
            pod_min: Amounts { cpu: Some(25), memory: Some(250 * MEBIBYTE) },
            sidecar_min: Amounts { cpu: Some(10), memory: Some(20 * MEBIBYTE) },
            max_allowed: Amounts::default(),
            round_cpu_millicores: 1,
            round_memory_bytes: 1,
            whole_cores: false,
            memory_interval: DAY,
            memory_interval_count: 8,
            cpu_half_life: DAY,
            memory_half_life: DAY,
            oom_bump_ratio: 1.2,
            oom_min_bump_bytes: 100 * MEBIBYTE,
            min_samples: 1,
            native_sidecars: false,
        }
    }
}
