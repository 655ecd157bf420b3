//! What was learned, as it is kept in the cluster: upstream's form v3, so that either program goes on with the other's.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use pillion_api::{HistogramCheckpoint, VerticalPodAutoscalerCheckpointStatus};

use jiff::Timestamp;

use super::aggregate::Aggregate;
use super::buckets::Scale;
use super::histogram::Histogram;
use super::instance::Instance;
use super::moment::{Moment, nanoseconds};
use super::settings::Settings;

/// The only form there is.
const VERSION: &str = "v3";

impl Aggregate {
    /// As it is kept; the caller says when it was written. `instances` are its containers that still run: peaks of their
    /// open windows are left out, for they are seen again.
    pub fn save<'a>(
        &self,
        instances: impl IntoIterator<Item = &'a Instance>,
        now: Timestamp,
    ) -> VerticalPodAutoscalerCheckpointStatus {
        let mut memory = self.memory.clone();
        for instance in instances {
            instance.without_open_peak(&mut memory, Moment::of(now));
        }
        VerticalPodAutoscalerCheckpointStatus {
            last_update_time: None,
            version: Some(VERSION.to_owned()),
            cpu_histogram: Some(self.cpu.save()),
            memory_histogram: Some(memory.save()),
            first_sample_start: self.first_sample.timestamp().map(Time),
            last_sample_start: self.last_sample.timestamp().map(Time),
            total_samples_count: i64::try_from(self.samples).ok().filter(|samples| *samples > 0),
        }
    }

    /// From what is kept; else why it cannot be used.
    pub fn load(saved: &VerticalPodAutoscalerCheckpointStatus, settings: &Settings) -> Result<Self, String> {
        let version = saved.version.as_deref().unwrap_or_default();
        if version != VERSION {
            return Err(format!("status.version is {version:?}: only {VERSION:?} can be read"));
        }
        let count = saved.total_samples_count.unwrap_or_default();
        let samples = u64::try_from(count)
            .map_err(|_| format!("status.totalSamplesCount is {count}: it must be zero or more"))?;
        let histogram = |field: &str, saved: &Option<HistogramCheckpoint>, scale, half_life| {
            let absent = HistogramCheckpoint::default();
            Histogram::load(scale, nanoseconds(half_life), saved.as_ref().unwrap_or(&absent))
                .map_err(|why| format!("status.{field}.{why}"))
        };
        let moment = |saved: &Option<Time>| saved.as_ref().map_or(Moment::NEVER, |time| Moment::of(time.0));
        let last_sample = moment(&saved.last_sample_start);
        Ok(Self {
            cpu: histogram("cpuHistogram", &saved.cpu_histogram, Scale::Cores, settings.cpu_half_life)?,
            // One of memory alone does not say when it was seen, only when it was written.
            last_seen: if last_sample.is_ever() { last_sample } else { moment(&saved.last_update_time) },
            memory: histogram("memoryHistogram", &saved.memory_histogram, Scale::Bytes, settings.memory_half_life)?,
            first_sample: moment(&saved.first_sample_start),
            last_sample,
            samples,
        })
    }
}
