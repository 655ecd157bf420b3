//! Samples of the containers of one aggregate, told to our crate and to upstream's library alike.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use pillion_api::VerticalPodAutoscalerCheckpointStatus;
use pillion_rightsize::{
    Aggregate, Amounts, Bound, ContainerPolicy, ContainerType, Instance, Oom, Percentiles, Settings, Usage, explain,
};
use serde::{Deserialize, Serialize};

/// Samples of the containers of one aggregate.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) start: Timestamp,
    /// When the checkpoint is written, in seconds after the start.
    pub(crate) now: i64,
    /// How many containers share the floor.
    pub(crate) containers: usize,
    pub(crate) settings: Set,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) checkpoint: Option<VerticalPodAutoscalerCheckpointStatus>,
    pub(crate) events: Vec<Event>,
}

/// Settings that are not the defaults.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Set {
    pub(crate) margin: Option<f64>,
    pub(crate) pod_min_cpu_milli: Option<i64>,
    pub(crate) pod_min_memory_mib: Option<i64>,
    pub(crate) lower: Option<f64>,
    pub(crate) target: Option<f64>,
    pub(crate) upper: Option<f64>,
    pub(crate) confidence_hours: Option<u64>,
    pub(crate) cpu_half_life_hours: Option<u64>,
    pub(crate) memory_half_life_hours: Option<u64>,
    pub(crate) memory_interval_hours: Option<u64>,
    pub(crate) oom_ratio: Option<f64>,
    pub(crate) oom_min_bytes: Option<i64>,
}

/// What happened to one container at a moment.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Event {
    pub(crate) instance: usize,
    pub(crate) second: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cpu: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) memory: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) oom: Option<i64>,
}

/// What is made of a series.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct Verdict {
    pub(crate) name: String,
    pub(crate) bare: Both<Bounds>,
    pub(crate) floored: Both<Bounds>,
    /// Lower, target and upper.
    pub(crate) percentiles: Both<[f64; 3]>,
    pub(crate) checkpoint: VerticalPodAutoscalerCheckpointStatus,
}

/// Of both resources.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub(crate) struct Both<T> {
    pub(crate) cpu: T,
    pub(crate) memory: T,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Bounds {
    pub(crate) lower: i64,
    pub(crate) target: i64,
    pub(crate) upper: i64,
}

impl Set {
    pub(crate) fn settings(&self) -> Settings {
        let default = Settings::default();
        let hours = |set: Option<u64>, default: Duration| set.map_or(default, Duration::from_hours);
        let percentiles = |default: Percentiles| Percentiles {
            lower: self.lower.unwrap_or(default.lower),
            target: self.target.unwrap_or(default.target),
            upper: self.upper.unwrap_or(default.upper),
        };
        Settings {
            margin_fraction: self.margin.unwrap_or(default.margin_fraction),
            cpu_percentiles: percentiles(default.cpu_percentiles),
            memory_percentiles: percentiles(default.memory_percentiles),
            cpu_confidence_interval: hours(self.confidence_hours, default.cpu_confidence_interval),
            memory_confidence_interval: hours(self.confidence_hours, default.memory_confidence_interval),
            pod_min: Amounts {
                cpu: self.pod_min_cpu_milli.or(default.pod_min.cpu),
                memory: self.pod_min_memory_mib.map(|mebibytes| mebibytes * 1024 * 1024).or(default.pod_min.memory),
            },
            memory_interval: hours(self.memory_interval_hours, default.memory_interval),
            cpu_half_life: hours(self.cpu_half_life_hours, default.cpu_half_life),
            memory_half_life: hours(self.memory_half_life_hours, default.memory_half_life),
            oom_bump_ratio: self.oom_ratio.unwrap_or(default.oom_bump_ratio),
            oom_min_bump_bytes: self.oom_min_bytes.unwrap_or(default.oom_min_bump_bytes),
            ..default
        }
    }
}

impl Series {
    pub(crate) fn at(&self, second: i64) -> Timestamp {
        self.start.saturating_add(SignedDuration::from_secs(second)).unwrap()
    }

    /// What this crate makes of it.
    pub(crate) fn ours(&self) -> Verdict {
        let settings = self.settings.settings();
        let mut aggregate = match &self.checkpoint {
            Some(saved) => Aggregate::load(saved, &settings).unwrap(),
            None => Aggregate::new(self.start, &settings),
        };
        let mut instances: Vec<Instance> = Vec::new();
        for event in &self.events {
            if event.instance >= instances.len() {
                instances.resize(event.instance + 1, Instance::default());
            }
            let (at, instance) = (self.at(event.second), &mut instances[event.instance]);
            aggregate.add(instance, &Usage { at, cpu: event.cpu, memory: event.memory }, &settings);
            if let Some(memory_used) = event.oom {
                aggregate.add_oom(instance, &Oom { at, memory_used }, &settings);
            }
        }
        let percentiles = |histogram: &pillion_rightsize::Histogram, set: Percentiles| {
            [set.lower, set.target, set.upper].map(|part| histogram.percentile(part).unwrap_or_default())
        };
        Verdict {
            name: self.name.clone(),
            bare: self.bounds(&aggregate, &Settings { pod_min: Amounts::default(), ..settings.clone() }),
            floored: self.bounds(&aggregate, &settings),
            percentiles: Both {
                cpu: percentiles(aggregate.cpu(), settings.cpu_percentiles),
                memory: percentiles(aggregate.memory(), settings.memory_percentiles),
            },
            checkpoint: aggregate.save(&instances, self.at(self.now)),
        }
    }

    /// The bounds, by way of the explanation: it walks the same steps as the recommendation.
    fn bounds(&self, aggregate: &Aggregate, settings: &Settings) -> Both<Bounds> {
        let policy = ContainerPolicy::default();
        let recommended = pillion_rightsize::recommend(
            &self.containers().map(|name| (name, ContainerType::App, aggregate)).collect::<Vec<_>>(),
            |_| policy.clone(),
            settings,
        );
        let own = recommended.of("c0").expect("there are samples");
        let explained = explain("c0", ContainerType::App, aggregate, &policy, self.containers, settings);
        let bounds = |amount: fn(&Amounts) -> Option<i64>, explained: &pillion_rightsize::ResourceExplanation| {
            let bound = |bound: Bound, amounts: &Amounts| {
                let steps = match bound {
                    Bound::Lower => &explained.lower,
                    Bound::Target => &explained.target,
                    Bound::Upper => &explained.upper,
                };
                assert_eq!(amount(amounts), steps.last().map(|taken| taken.amount), "explained as recommended");
                amount(amounts).unwrap_or_default()
            };
            Bounds {
                lower: bound(Bound::Lower, &own.lower),
                target: bound(Bound::Target, &own.target),
                upper: bound(Bound::Upper, &own.upper),
            }
        };
        Both { cpu: bounds(|own| own.cpu, &explained.cpu), memory: bounds(|own| own.memory, &explained.memory) }
    }

    fn containers(&self) -> impl Iterator<Item = &'static str> {
        ["c0", "c1", "c2", "c3", "c4"].into_iter().take(self.containers)
    }
}
