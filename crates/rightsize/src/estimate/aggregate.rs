//! What is known of all containers that share a recommendation.

use std::sync::Arc;

use jiff::Timestamp;

use super::buckets::Scale;
use super::histogram::Histogram;
use super::instance::{Instance, Oom, Usage};
use super::moment::{Moment, nanoseconds};
use super::number::{MOST, float};
use super::settings::Settings;

/// A sample of cpu counts this much in a histogram.
const SAMPLE_WEIGHT: f64 = 0.1;
const MILLICORES: f64 = 1000.0;

/// Containers with one key share an aggregate: those of one name in the pods of one autoscaler. Labels of pods are no part
/// of it: a new revision, a new ordinal or a new run of a job goes on with what the last one learned.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// The namespace of both.
    pub namespace: Arc<str>,
    /// The name of the autoscaler.
    pub autoscaler: Arc<str>,
    /// The name of the containers.
    pub container: Arc<str>,
}

/// What is known of all containers that share a recommendation.
#[derive(Clone, Debug, PartialEq)]
pub struct Aggregate {
    pub(super) cpu: Histogram,
    pub(super) memory: Histogram,
    pub(super) first_sample: Moment,
    pub(super) last_sample: Moment,
    /// Of either resource; when it was made, until there is one.
    pub(super) last_seen: Moment,
    pub(super) samples: u64,
}

impl Aggregate {
    /// One that knows nothing yet.
    pub fn new(created: Timestamp, settings: &Settings) -> Self {
        Self {
            cpu: Histogram::new(Scale::Cores, nanoseconds(settings.cpu_half_life)),
            memory: Histogram::new(Scale::Bytes, nanoseconds(settings.memory_half_life)),
            first_sample: Moment::NEVER,
            last_sample: Moment::NEVER,
            last_seen: Moment::of(created),
            samples: 0,
        }
    }

    /// Takes what one of its containers used. What is not new, or below zero, is left out.
    pub fn add(&mut self, instance: &mut Instance, usage: &Usage, settings: &Settings) {
        let at = Moment::of(usage.at);
        let legal = |amount: &i64| (0..=MOST).contains(amount);
        if let Some(millicores) = usage.cpu.filter(legal).filter(|_| instance.takes_cpu(at)) {
            self.cpu.add(float(millicores) / MILLICORES, SAMPLE_WEIGHT, at);
            self.last_sample = self.last_sample.max(at);
            self.first_sample = if self.first_sample.is_ever() { self.first_sample.min(at) } else { at };
            self.samples += 1;
            self.last_seen = self.last_seen.max(at);
        }
        if let Some(bytes) = usage.memory.filter(legal)
            && instance.add_memory(&mut self.memory, at, bytes, settings)
        {
            self.last_seen = self.last_seen.max(at);
        }
    }

    /// Takes that one of its containers ran out of memory. False for one that is too old to tell anything.
    pub fn add_oom(&mut self, instance: &mut Instance, oom: &Oom, settings: &Settings) -> bool {
        let is_taken = instance.add_oom(&mut self.memory, oom, settings);
        if is_taken {
            self.last_seen = self.last_seen.max(Moment::of(oom.at));
        }
        is_taken
    }

    /// Takes all that another one knows.
    pub fn merge(&mut self, other: &Self) {
        self.cpu.merge(&other.cpu);
        self.memory.merge(&other.memory);
        if !self.first_sample.is_ever() || (other.first_sample.is_ever() && other.first_sample < self.first_sample) {
            self.first_sample = other.first_sample;
        }
        self.last_sample = self.last_sample.max(other.last_sample);
        self.last_seen = self.last_seen.max(other.last_seen);
        self.samples = self.samples.saturating_add(other.samples);
    }

    /// How often which cpu was used, in cores.
    pub const fn cpu(&self) -> &Histogram {
        &self.cpu
    }

    /// How often which peak of memory was seen, in bytes.
    pub const fn memory(&self) -> &Histogram {
        &self.memory
    }

    /// How many samples of cpu there were.
    pub const fn samples(&self) -> u64 {
        self.samples
    }

    /// When the first and the last sample of cpu were taken.
    pub fn span(&self) -> Option<(Timestamp, Timestamp)> {
        Some((self.first_sample.timestamp()?, self.last_sample.timestamp()?))
    }

    /// Whether nothing was seen of its containers for so long that what was learned is no longer true. Memory alone is
    /// something: a short job may end before its cpu was ever measured.
    pub fn is_expired(&self, now: Timestamp, settings: &Settings) -> bool {
        let windows = nanoseconds(settings.memory_interval).saturating_mul(i64::from(settings.memory_interval_count));
        Moment::of(now).since(self.last_seen) >= windows
    }
}

#[cfg(test)]
mod tests;
