//! A histogram that forgets: what is older counts less.
//!
//! Weights of samples double with each half-life after the reference, so that older ones need not be touched. Only the
//! buckets between the lowest and the highest used one take memory: most containers use a dozen of them.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use pillion_api::HistogramCheckpoint;

use super::buckets::{BUCKETS, Scale};
use super::moment::Moment;
use super::number::float;

/// A bucket with less than this is empty.
const EPSILON: f64 = 0.001 * 0.1;
/// So many half-lives after the reference, it moves: weights grow with each of them and must stay numbers.
const MOST_HALF_LIVES: i64 = 100;
/// The largest weight of a bucket in a checkpoint.
const LARGEST_SAVED: f64 = 10_000.0;

/// How often which values were seen, where older sightings count less.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    /// Weights of the buckets from `first` on.
    weights: Vec<f64>,
    total: f64,
    reference: Moment,
    half_life: i64,
    first: u8,
    scale: Scale,
}

impl Histogram {
    pub(super) const fn new(scale: Scale, half_life: i64) -> Self {
        Self { weights: Vec::new(), total: 0.0, reference: Moment::NEVER, half_life, first: 0, scale }
    }

    /// What is measured.
    pub const fn scale(&self) -> Scale {
        self.scale
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.used().is_none()
    }

    /// What a part of all samples is below, from 0 to 1; always the end of a bucket. None of an empty one.
    pub fn percentile(&self, part: f64) -> Option<f64> {
        let (lowest, highest) = self.used()?;
        let threshold = part * self.total;
        let mut sum = 0.0;
        let reached = (lowest..highest).find(|bucket| {
            sum += self.weight(*bucket);
            sum >= threshold
        });
        Some(self.scale.end(reached.unwrap_or(highest)))
    }

    /// Buckets with something in them, with their part of all.
    pub fn parts(&self) -> impl Iterator<Item = (u8, f64)> + use<'_> {
        let used = self.used().map(|(lowest, highest)| lowest..=highest);
        used.into_iter()
            .flatten()
            .map(|bucket| (bucket, self.weight(bucket) / self.total))
            .filter(|(_, part)| *part > 0.0)
    }

    /// The lowest and the highest bucket that are not empty.
    fn used(&self) -> Option<(u8, u8)> {
        let place = |index: usize| self.first + u8::try_from(index).unwrap_or(u8::MAX);
        let lowest = self.weights.iter().position(|weight| *weight >= EPSILON)?;
        let highest = self.weights.iter().rposition(|weight| *weight >= EPSILON)?;
        Some((place(lowest), place(highest)))
    }

    fn weight(&self, bucket: u8) -> f64 {
        bucket
            .checked_sub(self.first)
            .and_then(|index| self.weights.get(usize::from(index)))
            .copied()
            .unwrap_or_default()
    }

    /// The weight of a bucket, with room made for it.
    fn weight_mut(&mut self, bucket: u8) -> &mut f64 {
        if self.weights.is_empty() {
            self.first = bucket;
        }
        if bucket < self.first {
            let missing = usize::from(self.first - bucket);
            self.weights.splice(0..0, std::iter::repeat_n(0.0, missing));
            self.first = bucket;
        }
        let index = usize::from(bucket - self.first);
        if index >= self.weights.len() {
            self.weights.resize(index + 1, 0.0);
        }
        &mut self.weights[index]
    }

    pub(super) fn add(&mut self, value: f64, weight: f64, at: Moment) {
        let weight = weight * self.growth(at);
        *self.weight_mut(self.scale.bucket(value)) += weight;
        self.total += weight;
    }

    /// Takes back a sample that was added.
    pub(super) fn subtract(&mut self, value: f64, weight: f64, at: Moment) {
        let weight = weight * self.growth(at);
        let bucket = self.scale.bucket(value);
        let less = |from: f64| if from - weight < EPSILON { 0.0 } else { from - weight };
        self.total = less(self.total);
        if self.weight(bucket) > 0.0 {
            let left = self.weight_mut(bucket);
            *left = less(*left);
        }
        self.trim();
    }

    /// Adds all that another one has.
    pub(super) fn merge(&mut self, other: &Self) {
        if self.reference < other.reference {
            self.move_reference(other.reference.round(self.half_life));
        }
        let factor = if other.reference < self.reference { other.factor_to(self.reference) } else { 1.0 };
        for (index, weight) in (other.first..).zip(&other.weights).filter(|(_, weight)| **weight > 0.0) {
            *self.weight_mut(index) += weight * factor;
        }
        self.total += other.total * factor;
        self.trim();
    }

    /// How much a sample of this moment counts, against one of the reference.
    fn growth(&mut self, at: Moment) -> f64 {
        if !self.reference.is_ever() || at > self.reference.plus(self.half_life.saturating_mul(MOST_HALF_LIVES)) {
            self.move_reference(at.round(self.half_life));
        }
        (float(at.since(self.reference)) / float(self.half_life)).exp2()
    }

    fn move_reference(&mut self, to: Moment) {
        let factor = self.factor_to(to);
        for weight in &mut self.weights {
            *weight *= factor;
        }
        self.total *= factor;
        self.reference = to;
        self.trim();
    }

    /// What weights are multiplied by when the reference moves. The power is whole, so that nothing is rounded.
    fn factor_to(&self, to: Moment) -> f64 {
        if !self.reference.is_ever() {
            return 0.0;
        }
        (float(self.reference.since(to)) / float(self.half_life) + 0.5).floor().exp2()
    }

    fn trim(&mut self) {
        while self.weights.last() == Some(&0.0) {
            self.weights.pop();
        }
        let leading = self.weights.iter().take_while(|weight| **weight == 0.0).count();
        self.weights.drain(..leading);
        self.first += u8::try_from(leading).unwrap_or_default();
    }

    /// As a checkpoint has it.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 10000")]
    pub(super) fn save(&self) -> HistogramCheckpoint {
        let used = || self.used().into_iter().flat_map(|(lowest, highest)| lowest..=highest);
        let largest = used().map(|bucket| self.weight(bucket)).fold(0.0, f64::max);
        let scaled =
            |bucket| (u32::from(bucket), (self.weight(bucket) * (LARGEST_SAVED / largest) + 0.5).floor() as u32);
        HistogramCheckpoint {
            reference_timestamp: self.reference.timestamp().map(Time),
            bucket_weights: used().map(scaled).filter(|(_, weight)| *weight > 0).collect(),
            total_weight: (self.total > 0.0).then_some(self.total),
        }
    }

    /// From a checkpoint; else why not.
    pub(super) fn load(scale: Scale, half_life: i64, saved: &HistogramCheckpoint) -> Result<Self, String> {
        let total = saved.total_weight.unwrap_or_default();
        if !total.is_finite() || total < 0.0 {
            return Err(format!("totalWeight is {total}: it must be zero or more"));
        }
        let mut own = Self::new(scale, half_life);
        // The reference of an empty one would be the year 1, which a checkpoint may also spell out.
        own.reference = saved.reference_timestamp.as_ref().map_or(Moment::NEVER, |time| Moment::of(time.0));
        let sum = Self::sum(&saved.bucket_weights)?;
        if sum > 0.0 {
            let ratio = total / sum;
            for (bucket, weight) in &saved.bucket_weights {
                let bucket = u8::try_from(*bucket).unwrap_or(u8::MAX);
                *own.weight_mut(bucket) += f64::from(*weight) * ratio;
            }
            own.total = total;
            own.trim();
        }
        Ok(own)
    }

    fn sum(weights: &BTreeMap<u32, u32>) -> Result<f64, String> {
        match weights.keys().next_back() {
            Some(bucket) if usize::try_from(*bucket).is_ok_and(|bucket| bucket < BUCKETS) => {
                Ok(weights.values().map(|weight| f64::from(*weight)).sum())
            }
            Some(bucket) => Err(format!("bucketWeights has bucket {bucket}: there are {BUCKETS}, counted from 0")),
            None => Ok(0.0),
        }
    }
}

#[cfg(test)]
mod tests;
