//! Eight days of history, as checkpoints: without it bounds move with every sample, and a recommender has something to write
//! in each pass that it has no more in a cluster that has run for a while.

use std::time::Duration;

use anyhow::Result;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Client;
use pillion_api::VerticalPodAutoscalerCheckpointStatus;
use pillion_rightsize::{Aggregate, Instance, Settings, Usage};
use pillion_testbed::apply;
use serde_json::json;

use super::{AUTOSCALERS, NAMESPACE, app};

const DAYS: u32 = 8;
/// Minutes between the samples that are made up; as many as there would have been are counted.
const STEP: u32 = 10;
/// Samples a minute that are counted, of all pods of an autoscaler.
const SAMPLES_A_MINUTE: i64 = 10;

/// Writes what both containers of all autoscalers have used so far.
pub(super) async fn write(client: &Client) -> Result<()> {
    let now = Timestamp::now();
    // What the feed serves: millicores and mebibytes, from and to.
    for (container, cpu, memory) in [("app", (50, 200), (80, 200)), ("helper", (5, 25), (20, 60))] {
        let status = history(now, cpu, memory)?;
        for number in 0..AUTOSCALERS {
            let name = app(number);
            let checkpoint = json!({"apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscalerCheckpoint",
                "metadata": {"name": format!("{name}-{container}"), "namespace": NAMESPACE},
                "spec": {"vpaObjectName": name, "containerName": container}, "status": status});
            apply(client, "bench", &checkpoint).await?;
        }
    }
    Ok(())
}

fn history(now: Timestamp, cpu: (i64, i64), memory: (i64, i64)) -> Result<VerticalPodAutoscalerCheckpointStatus> {
    let settings = Settings::default();
    let begun = now.saturating_sub(SignedDuration::from_hours(i64::from(DAYS) * 24))?;
    let mut aggregate = Aggregate::new(begun, &settings);
    let mut instance = Instance::default();
    let minutes = DAYS * 24 * 60;
    for minute in (0..minutes).step_by(STEP as usize) {
        let place = |(from, to): (i64, i64)| from + i64::from(minute.wrapping_mul(2_654_435_761) >> 16) % (to - from);
        let at = begun.saturating_add(Duration::from_mins(u64::from(minute)))?;
        let usage = Usage { at, cpu: Some(place(cpu)), memory: Some(place(memory) << 20) };
        aggregate.add(&mut instance, &usage, &settings);
    }
    let mut status = aggregate.save(&[], now);
    status.last_update_time = Some(Time(now));
    status.total_samples_count = Some(i64::from(minutes) * SAMPLES_A_MINUTE);
    Ok(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_history_can_be_loaded_and_is_eight_days_long() {
        let now: Timestamp = "2026-01-09T00:00:00Z".parse().unwrap();
        let loaded = Aggregate::load(&history(now, (50, 200), (80, 200)).unwrap(), &Settings::default()).unwrap();
        let span = loaded.span().map(|(first, last)| (first.to_string(), last.to_string()));
        assert_eq!(span, Some(("2026-01-01T00:00:00Z".to_owned(), "2026-01-08T23:50:00Z".to_owned())));
        assert_eq!((loaded.samples(), loaded.memory().is_empty()), (115_200, false));
        assert!(loaded.cpu().percentile(0.9).is_some_and(|cores| (0.17..0.22).contains(&cores)));
    }
}
