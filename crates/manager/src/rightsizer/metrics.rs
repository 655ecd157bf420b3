//! What right-sizing is measured by. Names are upstream's where they mean the same; no label names an object.

use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// Metrics of right-sizing. Only the leader's say anything.
#[derive(Clone, Debug)]
pub struct SizingMetrics {
    pub(super) autoscalers: Gauge,
    pub(super) aggregates: Gauge,
    pub(super) passes: Counter,
    pub(super) status_writes: Counter,
    pub(super) status_failures: Counter,
    pub(super) checkpoint_writes: Counter,
    pub(super) checkpoint_failures: Counter,
    pub(super) controlled_pods: Gauge,
    pub(super) evicted: Counter,
    pub(super) failed_evictions: Counter,
    pub(super) in_place_updated: Counter,
    pub(super) failed_in_place: Counter,
    /// Plans that were not carried out because they break a rule. There are none.
    pub(super) violations: Counter,
    updates: Histogram,
    responses: Family<ResponseLabel, Counter>,
    steps: Family<StepLabel, Histogram, fn() -> Histogram>,
}

/// A part of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum PassStep {
    LoadVpas,
    LoadPods,
    LoadMetrics,
    UpdateVpas,
    MaintainCheckpoints,
    GarbageCollect,
    Total,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResponseLabel {
    is_error: Answer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Answer {
    Error,
    Samples,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StepLabel {
    step: PassStep,
}

impl EncodeLabelValue for Answer {
    fn encode(&self, encoder: &mut prometheus_client::encoding::LabelValueEncoder<'_>) -> std::fmt::Result {
        let text = match self {
            Self::Error => "true",
            Self::Samples => "false",
        };
        EncodeLabelValue::encode(&text, encoder)
    }
}

impl EncodeLabelValue for PassStep {
    fn encode(&self, encoder: &mut prometheus_client::encoding::LabelValueEncoder<'_>) -> std::fmt::Result {
        let text = match self {
            Self::LoadVpas => "LoadVPAs",
            Self::LoadPods => "LoadPods",
            Self::LoadMetrics => "LoadMetrics",
            Self::UpdateVpas => "UpdateVPAs",
            Self::MaintainCheckpoints => "MaintainCheckpoints",
            Self::GarbageCollect => "GarbageCollect",
            Self::Total => "total",
        };
        EncodeLabelValue::encode(&text, encoder)
    }
}

fn times() -> Histogram {
    Histogram::new(exponential_buckets(0.01, 2.0, 14))
}

impl SizingMetrics {
    /// Adds the metrics to a registry. Names are upstream's, so it is one without a prefix.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            autoscalers: Gauge::default(),
            aggregates: Gauge::default(),
            passes: Counter::default(),
            status_writes: Counter::default(),
            status_failures: Counter::default(),
            checkpoint_writes: Counter::default(),
            checkpoint_failures: Counter::default(),
            controlled_pods: Gauge::default(),
            evicted: Counter::default(),
            failed_evictions: Counter::default(),
            in_place_updated: Counter::default(),
            failed_in_place: Counter::default(),
            violations: Counter::default(),
            updates: times(),
            responses: Family::default(),
            steps: Family::new_with_constructor(times as fn() -> Histogram),
        };
        let Self {
            autoscalers,
            aggregates,
            passes,
            status_writes,
            status_failures,
            checkpoint_writes,
            checkpoint_failures,
            controlled_pods,
            evicted,
            failed_evictions,
            in_place_updated,
            failed_in_place,
            violations,
            updates,
            responses,
            steps,
        } = metrics.clone();
        let recommender = registry.sub_registry_with_prefix("vpa_recommender");
        recommender.register("vpa_objects_count", "VerticalPodAutoscalers that are ours", autoscalers);
        recommender.register("aggregate_container_states_count", "Containers of them that are learned of", aggregates);
        recommender.register("passes", "Passes that have ended", passes);
        recommender.register("status_writes", "Statuses that were written", status_writes);
        recommender.register("status_failures", "Statuses that could not be written", status_failures);
        recommender.register("checkpoint_writes", "Checkpoints that were written", checkpoint_writes);
        recommender.register("checkpoint_failures", "Checkpoints that could not be written", checkpoint_failures);
        recommender.register("metric_server_responses", "Answers of the source of samples", responses);
        recommender.register("execution_latency_seconds", "Time of a pass, by step", steps);
        let updater = registry.sub_registry_with_prefix("vpa_updater");
        updater.register("controlled_pods_total", "Pods of VerticalPodAutoscalers that are applied", controlled_pods);
        updater.register("evicted_pods", "Pods that were evicted", evicted);
        updater.register("failed_eviction_attempts", "Evictions that were refused", failed_evictions);
        updater.register("in_place_updated_pods", "Pods that were resized in place", in_place_updated);
        updater.register("failed_in_place_update_attempts", "Resizes that were refused", failed_in_place);
        let help = "Plans that were not carried out because they break a rule: a defect, please report it";
        updater.register("plan_violations", help, violations);
        updater.register("execution_latency_seconds", "Time of a look at all pods", updates);
        metrics
    }

    pub(super) fn updated(&self, seconds: f64) {
        self.updates.observe(seconds);
    }

    pub(super) fn answered(&self, is_error: bool) {
        let is_error = if is_error { Answer::Error } else { Answer::Samples };
        self.responses.get_or_create(&ResponseLabel { is_error }).inc();
    }

    pub(super) fn took(&self, step: PassStep, seconds: f64) {
        self.steps.get_or_create(&StepLabel { step }).observe(seconds);
    }
}
