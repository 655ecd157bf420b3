//! How each number of a recommendation came about, for people.

use jiff::Timestamp;
use pillion_quantity::Resource;

use crate::policy::ContainerPolicy;

use super::aggregate::Aggregate;
use super::recommend::ContainerType;
use super::settings::Settings;
use super::steps::{Bound, Taken, Way};

/// How the numbers of one container came about.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The container.
    pub container: String,
    /// What it is to its pod.
    pub kind: ContainerType,
    /// Why there is no recommendation at all, where there is none for that reason.
    pub not_served: Option<String>,
    /// How many samples of cpu there were.
    pub samples: u64,
    /// When the first and the last of them were taken.
    pub span: Option<(Timestamp, Timestamp)>,
    /// Of cpu, in millicores.
    pub cpu: ResourceExplanation,
    /// Of memory, in bytes.
    pub memory: ResourceExplanation,
}

/// How the numbers of one resource came about, in millicores or bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceExplanation {
    /// The resource.
    pub resource: Resource,
    /// Why there are no numbers, where there are none.
    pub absent: Option<String>,
    /// How much history there is: 1 for a sample each minute in a whole interval.
    pub confidence: f64,
    /// Steps to the lower bound; the last one has its amount.
    pub lower: Vec<Taken>,
    /// Steps to the target.
    pub target: Vec<Taken>,
    /// Steps to the upper bound.
    pub upper: Vec<Taken>,
    /// What was used, from low to high.
    pub bars: Vec<Bar>,
}

/// A bucket of a histogram with something in it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bar {
    /// Where it begins, in millicores or bytes.
    pub from: f64,
    /// Where it ends.
    pub to: f64,
    /// Its part of all, from 0 to 1, where older samples count less.
    pub part: f64,
}

/// Says how the numbers of a container come about. `apps` is [`count_of_apps`](super::count_of_apps) of its pod.
pub fn explain(
    container: &str,
    kind: ContainerType,
    aggregate: &Aggregate,
    policy: &ContainerPolicy,
    apps: usize,
    settings: &Settings,
) -> Explanation {
    let way = Way { kind, aggregate, policy, apps, settings };
    let not_served = if !kind.is_served(settings) {
        Some("it is a native sidecar, and the gate NativeSidecar is off".to_owned())
    } else if policy.is_off {
        Some("its policy says Off".to_owned())
    } else {
        None
    };
    Explanation {
        container: container.to_owned(),
        kind,
        not_served,
        samples: aggregate.samples(),
        span: aggregate.span(),
        cpu: way.explain(Resource::Cpu),
        memory: way.explain(Resource::Memory),
    }
}

impl ResourceExplanation {
    /// The number that steps lead to.
    pub fn amount(steps: &[Taken]) -> Option<i64> {
        steps.last().map(|taken| taken.amount)
    }
}

impl Way<'_> {
    fn explain(self, resource: Resource) -> ResourceExplanation {
        let steps = |bound| {
            let mut steps = Vec::new();
            if self.policy.sizes(resource) {
                self.walk(resource, bound, |taken| steps.push(taken));
            }
            steps
        };
        let target = steps(Bound::Target);
        let histogram = self.histogram(resource);
        let absent = if !self.policy.sizes(resource) {
            Some(format!("its policy does not control {}", resource.name()))
        } else if histogram.is_empty() {
            Some(format!("there are no samples of {} yet", resource.name()))
        } else if target.is_empty() {
            Some(format!(
                "there are {} samples, and {} are needed",
                self.aggregate.samples(),
                self.settings.min_samples
            ))
        } else {
            None
        };
        let unit = match resource {
            Resource::Cpu => 1000.0,
            Resource::Memory => 1.0,
        };
        let scale = histogram.scale();
        let bar = |(bucket, part)| Bar { from: scale.start(bucket) * unit, to: scale.end(bucket) * unit, part };
        ResourceExplanation {
            resource,
            absent,
            confidence: self.confidence(resource),
            lower: steps(Bound::Lower),
            target,
            upper: steps(Bound::Upper),
            bars: histogram.parts().map(bar).collect(),
        }
    }
}
