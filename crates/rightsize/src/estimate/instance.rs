//! What is remembered of one running container: which samples are new, and the peak of the window that is still open.

use jiff::Timestamp;

use super::histogram::Histogram;
use super::moment::{Moment, nanoseconds};
use super::number::{float, times};
use super::settings::Settings;

/// A peak of memory counts this much in a histogram.
pub(super) const PEAK_WEIGHT: f64 = 1.0;

/// What a container used at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// When it was measured.
    pub at: Timestamp,
    /// Millicores, where they are known.
    pub cpu: Option<i64>,
    /// Bytes, where they are known.
    pub memory: Option<i64>,
}

/// A container was ended because it, or its pod, used too much memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Oom {
    /// When.
    pub at: Timestamp,
    /// Bytes that it is known to have needed: its request, or what it was seen to use.
    pub memory_used: i64,
}

/// What is remembered of one running container between two samples. It has no history: that is in the aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instance {
    last_cpu: Moment,
    last_memory: Moment,
    window_end: Moment,
    memory_peak: i64,
    oom_peak: i64,
}

impl Default for Instance {
    fn default() -> Self {
        let never = Moment::NEVER;
        Self { last_cpu: never, last_memory: never, window_end: never, memory_peak: 0, oom_peak: 0 }
    }
}

impl Instance {
    /// Whether a sample of cpu is a new one.
    pub(super) fn takes_cpu(&mut self, at: Moment) -> bool {
        let is_new = at > self.last_cpu;
        if is_new {
            self.last_cpu = at;
        }
        is_new
    }

    /// Takes a sample of memory into the peaks; false for one that is out of order.
    pub(super) fn add_memory(&mut self, peaks: &mut Histogram, at: Moment, bytes: i64, settings: &Settings) -> bool {
        if at < self.last_memory {
            return false;
        }
        if self.raise(peaks, at, bytes, settings) {
            self.memory_peak = bytes;
        }
        true
    }

    /// Takes an end by lack of memory into the peaks; false for one that is too old to tell anything.
    pub(super) fn add_oom(&mut self, peaks: &mut Histogram, oom: &Oom, settings: &Settings) -> bool {
        let at = Moment::of(oom.at);
        if self.last_memory.is_ever() && self.last_memory.since(at) > nanoseconds(settings.memory_interval) {
            return false;
        }
        // Not the peak of an earlier end, so that ends in a row do not add up.
        let used = oom.memory_used.max(self.memory_peak).max(0);
        let needed = used.saturating_add(settings.oom_min_bump_bytes).max(times(used, settings.oom_bump_ratio));
        if self.raise(peaks, at, needed, settings) {
            self.oom_peak = needed;
        }
        true
    }

    /// One peak counts for each window. A higher one takes the place of the one before; a later window has its own. Says
    /// whether this is the peak now.
    fn raise(&mut self, peaks: &mut Histogram, at: Moment, bytes: i64, settings: &Settings) -> bool {
        self.last_memory = at;
        if !self.window_end.is_ever() {
            self.window_end = at;
        }
        if at < self.window_end {
            if bytes <= self.peak() {
                return false;
            }
            // Upstream leaves a peak of zero where it is, and with it the whole window.
            peaks.subtract(float(self.peak()), PEAK_WEIGHT, self.window_end);
        } else {
            let interval = nanoseconds(settings.memory_interval);
            let whole = at.since(self.window_end) / interval;
            self.window_end = self.window_end.plus(whole.saturating_mul(interval).saturating_add(interval));
            self.memory_peak = 0;
            self.oom_peak = 0;
        }
        // It counts as of the end of its window, so that all peaks of a window weigh the same.
        peaks.add(float(bytes), PEAK_WEIGHT, self.window_end);
        true
    }

    /// Takes the peak of a window that is still open out of what is saved: after a restart it is seen again.
    pub(super) fn without_open_peak(&self, peaks: &mut Histogram, now: Moment) {
        if now < self.window_end {
            peaks.subtract(float(self.peak()), PEAK_WEIGHT, self.window_end);
        }
    }

    fn peak(&self) -> i64 {
        self.memory_peak.max(self.oom_peak)
    }
}
