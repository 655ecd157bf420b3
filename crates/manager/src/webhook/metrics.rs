//! What reviews are counted by. Labels are from enums, never from objects.

use std::time::Duration;

use pillion_api::Reason;
use pillion_inject::Outcome;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

/// Metrics of all reviews.
#[derive(Clone, Debug)]
pub struct AdmissionMetrics {
    reviews: Family<ReviewLabels, Counter>,
    verdicts: Family<VerdictLabels, Counter>,
    duration: Family<AboutLabel, Histogram, fn() -> Histogram>,
}

/// What a review is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelValue)]
pub(super) enum About {
    /// A pod that is created.
    Pods,
    /// A set that is written.
    Sidecarsets,
}

/// How a review was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelValue)]
pub(super) enum Answered {
    /// The object passes as it is.
    Allowed,
    /// The object passes, changed.
    Patched,
    /// The object is refused.
    Refused,
    /// It was no review, or could not be answered.
    Failed,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReviewLabels {
    about: About,
    answer: Answered,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct VerdictLabels {
    outcome: &'static str,
    code: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AboutLabel {
    about: About,
}

/// From a twentieth of a millisecond to the time the API server waits.
fn buckets() -> Histogram {
    Histogram::new([5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 5e-2, 0.1, 0.5, 1.0, 3.0])
}

impl AdmissionMetrics {
    /// Adds the metrics of reviews to a registry.
    pub fn register(registry: &mut Registry) -> Self {
        let duration = Family::new_with_constructor(buckets as fn() -> Histogram);
        let metrics = Self { reviews: Family::default(), verdicts: Family::default(), duration };
        let Self { reviews, verdicts, duration } = metrics.clone();
        registry.register("admission_reviews", "Reviews, by how they were answered", reviews);
        registry.register("admission_verdicts", "What sets decided about pods they match", verdicts);
        let help = "How long a review took, from its last byte to its answer";
        registry.register_with_unit("admission_duration", help, Unit::Seconds, duration);
        metrics
    }

    pub(super) fn answered(&self, about: About, answer: Answered, took: Duration) {
        self.reviews.get_or_create(&ReviewLabels { about, answer }).inc();
        self.duration.get_or_create(&AboutLabel { about }).observe(took.as_secs_f64());
    }

    pub(super) fn decided(&self, outcome: Outcome, reason: Reason) {
        self.verdicts.get_or_create(&VerdictLabels { outcome: outcome.word(), code: reason.code() }).inc();
    }
}
