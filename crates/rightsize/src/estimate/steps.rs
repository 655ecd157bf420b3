//! The way from a histogram to a number, step by step. Recommending and explaining both walk it, so that they cannot differ.

use pillion_quantity::Resource;

use crate::policy::ContainerPolicy;

use super::aggregate::Aggregate;
use super::histogram::Histogram;
use super::moment::nanoseconds;
use super::number::{amount, float, times};
use super::recommend::ContainerType;
use super::settings::{Percentiles, Settings};

const MILLICORES: f64 = 1000.0;
const NANOSECONDS_A_MINUTE: i64 = 60_000_000_000;

/// One of the numbers of a recommendation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// A pod that asks for less is changed.
    Lower,
    /// What a container should ask for.
    Target,
    /// A pod that asks for more is changed.
    Upper,
}

/// One step on the way to a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// What this part of the samples stayed below.
    Percentile {
        /// From 0 to 1.
        part: f64,
    },
    /// Something is added to be safe.
    Margin {
        /// As a part of what it is added to.
        fraction: f64,
    },
    /// A bound is widened, the more the less history there is.
    Confidence {
        /// How much history there is: 1 for a sample each minute in a whole interval.
        confidence: f64,
        /// What that multiplies the bound by.
        factor: f64,
    },
    /// There is a least amount for everyone.
    Floor {
        /// The container's own part of it.
        least: i64,
        /// How many containers share the pod's; none where the floor is the container's own.
        shared_by: Option<usize>,
    },
    /// Amounts are rounded up.
    Rounding {
        /// To multiples of this.
        to: i64,
    },
    /// The container wants whole cores.
    WholeCores,
    /// The policy says the least.
    MinAllowed {
        /// The least.
        least: i64,
        /// Whose policy.
        origin: Origin,
    },
    /// The policy says the most.
    MaxAllowed {
        /// The most.
        most: i64,
        /// Whose policy.
        origin: Origin,
    },
}

/// Where a bound of a policy is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// In the policy of this container.
    Own,
    /// In the policy of every container, `*`, which holds for native sidecars, too.
    EveryContainer,
    /// In the settings of the recommender.
    Settings,
}

/// A step that was taken, and what the amount was after it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Taken {
    /// The step.
    pub step: Step,
    /// Millicores or bytes after it.
    pub amount: i64,
}

/// What a number is made of, besides the resource and the bound.
#[derive(Clone, Copy)]
pub(super) struct Way<'a> {
    pub(super) kind: ContainerType,
    pub(super) aggregate: &'a Aggregate,
    pub(super) policy: &'a ContainerPolicy,
    /// How many app containers share the floor.
    pub(super) apps: usize,
    pub(super) settings: &'a Settings,
}

/// A number before and after the bounds of policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arrived {
    pub(super) uncapped: i64,
    pub(super) capped: i64,
}

impl Way<'_> {
    /// Walks to a number, and shows each step that changes it or could have. None where there are too few samples.
    pub(super) fn walk(self, resource: Resource, bound: Bound, mut show: impl FnMut(Taken)) -> Option<Arrived> {
        let used = self.histogram(resource).percentile(self.percentile(resource, bound))?;
        if !self.has_enough(resource) {
            return None;
        }
        let mut value = amount(match resource {
            Resource::Cpu => used * MILLICORES,
            Resource::Memory => used,
        });
        let mut take = |step, next| {
            show(Taken { step, amount: next });
            next
        };
        value = take(Step::Percentile { part: self.percentile(resource, bound) }, value);

        let fraction = self.settings.margin_fraction;
        value = take(Step::Margin { fraction }, value + times(value, fraction));
        if let Some(factor) = self.widening(resource, bound) {
            value = take(Step::Confidence { confidence: self.confidence(resource), factor }, times(value, factor));
        }
        let (least, shared_by) = self.floor(resource);
        value = take(Step::Floor { least, shared_by }, value.max(least));

        let to = match resource {
            Resource::Cpu => self.settings.round_cpu_millicores,
            Resource::Memory => self.settings.round_memory_bytes,
        };
        if to > 1 {
            value = take(Step::Rounding { to }, round_up(value, to));
        }
        if resource == Resource::Cpu && self.policy.whole_cores && self.settings.whole_cores {
            value = take(Step::WholeCores, round_up(value, 1000));
        }
        let uncapped = value;
        let origin = if self.policy.is_of_every_container { Origin::EveryContainer } else { Origin::Own };
        if let Some(least) = self.policy.min.bound(resource) {
            value = take(Step::MinAllowed { least, origin }, value.max(least));
        }
        let (most, origin) = match self.policy.max.get(resource) {
            None => (self.settings.max_allowed.bound(resource), Origin::Settings),
            Some(_) => (self.policy.max.bound(resource), origin),
        };
        if let Some(most) = most {
            value = take(Step::MaxAllowed { most, origin }, value.min(most));
        }
        Some(Arrived { uncapped, capped: value })
    }

    pub(super) fn histogram(&self, resource: Resource) -> &Histogram {
        match resource {
            Resource::Cpu => &self.aggregate.cpu,
            Resource::Memory => &self.aggregate.memory,
        }
    }

    /// Samples are counted of cpu only; memory alone, as short jobs leave it, is enough where one sample would be.
    fn has_enough(&self, resource: Resource) -> bool {
        let least = self.settings.min_samples.max(1);
        self.aggregate.samples >= least || (resource == Resource::Memory && least == 1)
    }

    fn percentile(&self, resource: Resource, bound: Bound) -> f64 {
        let Percentiles { lower, target, upper } = match resource {
            Resource::Cpu => self.settings.cpu_percentiles,
            Resource::Memory => self.settings.memory_percentiles,
        };
        match bound {
            Bound::Lower => lower,
            Bound::Target => target,
            Bound::Upper => upper,
        }
    }

    /// How much history there is: 1 for a sample each minute in a whole interval. Both resources count samples of cpu.
    pub(super) fn confidence(&self, resource: Resource) -> f64 {
        let interval = nanoseconds(match resource {
            Resource::Cpu => self.settings.cpu_confidence_interval,
            Resource::Memory => self.settings.memory_confidence_interval,
        });
        let own = self.aggregate;
        let life = if own.first_sample.is_ever() { own.last_sample.since(own.first_sample) } else { 0 };
        let minutes = float(interval / NANOSECONDS_A_MINUTE)
            + float(interval % NANOSECONDS_A_MINUTE) / float(NANOSECONDS_A_MINUTE);
        let samples = float(i64::try_from(own.samples).unwrap_or(i64::MAX));
        (float(life) / float(interval)).min(samples / minutes)
    }

    fn widening(&self, resource: Resource, bound: Bound) -> Option<f64> {
        let confidence = self.confidence(resource);
        match bound {
            Bound::Target => None,
            Bound::Upper => Some(1.0 + 1.0 / confidence),
            Bound::Lower => {
                let narrowed = 1.0 + 0.001 / confidence;
                Some(1.0 / (narrowed * narrowed))
            }
        }
    }

    fn floor(&self, resource: Resource) -> (i64, Option<usize>) {
        match self.kind {
            ContainerType::App => {
                let apps = self.apps.max(1);
                let part = 1.0 / float(i64::try_from(apps).unwrap_or(i64::MAX));
                (times(self.settings.pod_min.get(resource).unwrap_or_default(), part), Some(apps))
            }
            ContainerType::NativeSidecar => (self.settings.sidecar_min.get(resource).unwrap_or_default(), None),
        }
    }
}

/// The next whole multiple; amounts are never below zero.
const fn round_up(value: i64, to: i64) -> i64 {
    match value % to {
        0 => value,
        over => value - over + to,
    }
}
