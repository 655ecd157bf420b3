use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use pillion_api::VerticalPodAutoscalerCheckpointStatus;

use super::*;

const MEBIBYTE: i64 = 1024 * 1024;

fn at(minutes: i64) -> Timestamp {
    let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    start.saturating_add(SignedDuration::from_mins(minutes)).unwrap()
}

fn usage(minutes: i64, cpu: i64, memory: i64) -> Usage {
    Usage { at: at(minutes), cpu: Some(cpu), memory: Some(memory * MEBIBYTE) }
}

fn aggregate() -> (Aggregate, Instance, Settings) {
    let settings = Settings::default();
    (Aggregate::new(at(0), &settings), Instance::default(), settings)
}

/// Peaks of memory, as the number of mebibytes their buckets end at.
fn peaks(own: &Aggregate) -> Vec<i64> {
    own.memory.parts().map(|(bucket, _)| super::super::number::amount(Scale::Bytes.end(bucket)) / MEBIBYTE).collect()
}

#[test]
fn an_instance_is_small_enough_for_every_container_of_a_cluster() {
    assert!(size_of::<Instance>() <= 64, "{} bytes", size_of::<Instance>());
    assert!(size_of::<Aggregate>() <= 192, "{} bytes", size_of::<Aggregate>());
}

#[test]
fn samples_that_are_not_new_or_not_possible_are_left_out() {
    let (mut own, mut instance, settings) = aggregate();
    own.add(&mut instance, &usage(5, 100, 100), &settings);
    let after_one = own.clone();
    own.add(&mut instance, &usage(5, 900, 90), &settings);
    own.add(&mut instance, &usage(4, 900, 900), &settings);
    own.add(&mut instance, &usage(6, -1, -1), &settings);
    own.add(&mut instance, &Usage { at: at(7), cpu: None, memory: None }, &settings);
    own.add(&mut instance, &Usage { at: at(7), cpu: Some(i64::MAX), memory: Some(i64::MAX) }, &settings);
    assert_eq!(own, after_one);
}

#[test]
fn one_peak_of_memory_counts_for_each_window() {
    let (mut own, mut instance, settings) = aggregate();
    for (minutes, memory) in [(0, 100), (10, 300), (20, 200), (1439, 50), (1440, 80)] {
        own.add(&mut instance, &usage(minutes, 1, memory), &settings);
    }
    assert_eq!(peaks(&own), [91, 315]);
    // Another container has windows and peaks of its own.
    own.add(&mut Instance::default(), &usage(1440, 1, 1000), &settings);
    assert_eq!(peaks(&own), [91, 315, 1027]);
}

#[test]
fn a_first_sample_of_zero_does_not_hide_the_peak_of_its_window() {
    let (mut own, mut instance, settings) = aggregate();
    own.add(&mut instance, &usage(0, 0, 0), &settings);
    own.add(&mut instance, &usage(1, 100, 100), &settings);
    assert_eq!(peaks(&own), [105]);
}

#[test]
fn running_out_of_memory_raises_the_peak_of_the_window_once() {
    let (mut own, mut instance, settings) = aggregate();
    own.add(&mut instance, &usage(0, 1, 100), &settings);
    let oom = |minutes, mebibytes| Oom { at: at(minutes), memory_used: mebibytes * MEBIBYTE };
    assert!(own.add_oom(&mut instance, &oom(1, 100), &settings));
    assert_eq!(peaks(&own), [205]);
    // The next one starts from what was used, not from what the last one was taken to need.
    assert!(own.add_oom(&mut instance, &oom(2, 100), &settings));
    assert_eq!(peaks(&own), [205]);
    // 20 % are more than 100 MiB.
    assert!(own.add_oom(&mut instance, &oom(3, 2048), &settings));
    assert_eq!(peaks(&own), [2467]);
    assert!(!own.add_oom(&mut instance, &oom(3 - 1441, 4096), &settings), "it is older than a window");
    assert_eq!(peaks(&own), [2467]);
}

#[test]
fn running_out_of_memory_before_any_sample_counts() {
    let (mut own, mut instance, settings) = aggregate();
    assert!(own.add_oom(&mut instance, &Oom { at: at(0), memory_used: 100 * MEBIBYTE }, &settings));
    assert_eq!((peaks(&own), own.samples()), (vec![205], 0));
}

#[test]
fn the_peak_of_an_open_window_is_not_saved() {
    let (mut own, mut instance, settings) = aggregate();
    own.add(&mut instance, &usage(0, 100, 100), &settings);
    let saved = |instances: &[Instance], minutes| own.save(instances, at(minutes)).memory_histogram.unwrap();
    assert_eq!(saved(&[instance], 1).bucket_weights.len(), 0);
    assert_eq!(saved(&[instance], 1440).bucket_weights, [(8, 10_000)].into());
    assert_eq!(saved(&[], 1).bucket_weights, [(8, 10_000)].into());
}

#[test]
fn what_was_learned_expires_after_eight_windows_of_silence() {
    let (mut own, mut instance, settings) = aggregate();
    let day = 24 * 60;
    assert!(!own.is_expired(at(8 * day - 1), &settings) && own.is_expired(at(8 * day), &settings));
    own.add(&mut instance, &usage(day, 1, 1), &settings);
    assert!(!own.is_expired(at(9 * day - 1), &settings) && own.is_expired(at(9 * day), &settings));
}

#[test]
fn size_memory_alone_keeps_an_aggregate() {
    let (mut own, mut instance, settings) = aggregate();
    let day = 24 * 60;
    own.add(&mut instance, &Usage { at: at(7 * day), cpu: None, memory: Some(100 * MEBIBYTE) }, &settings);
    assert_eq!((own.samples(), own.span()), (0, None));
    assert!(!own.is_expired(at(15 * day - 1), &settings) && own.is_expired(at(15 * day), &settings));
    let mut saved = own.save(&[], at(7 * day));
    saved.last_update_time = Some(Time(at(7 * day)));
    let loaded = Aggregate::load(&saved, &settings).unwrap();
    assert_eq!(peaks(&loaded), [105]);
    assert!(!loaded.is_expired(at(15 * day - 1), &settings) && loaded.is_expired(at(15 * day), &settings));
}

#[test]
fn a_checkpoint_that_cannot_be_read_says_why() {
    let settings = Settings::default();
    let mut saved = Aggregate::new(at(0), &settings).save(&[], at(0));
    assert!(Aggregate::load(&saved, &settings).is_ok());
    saved.total_samples_count = Some(-1);
    let refused = |saved: &VerticalPodAutoscalerCheckpointStatus| Aggregate::load(saved, &settings).unwrap_err();
    assert_eq!(refused(&saved), "status.totalSamplesCount is -1: it must be zero or more");
    saved.cpu_histogram.as_mut().unwrap().total_weight = Some(-2.0);
    saved.total_samples_count = None;
    assert_eq!(refused(&saved), "status.cpuHistogram.totalWeight is -2: it must be zero or more");
    saved.version = Some("v4".to_owned());
    assert_eq!(refused(&saved), "status.version is \"v4\": only \"v3\" can be read");
}

#[test]
fn merging_takes_all_of_both() {
    let (mut own, mut instance, settings) = aggregate();
    own.add(&mut instance, &usage(10, 100, 100), &settings);
    let mut other = Aggregate::new(at(0), &settings);
    other.add(&mut Instance::default(), &usage(5, 100, 200), &settings);
    other.add(&mut Instance::default(), &usage(20, 200, 200), &settings);
    let mut empty = Aggregate::new(at(0), &settings);
    for known in [&own, &other, &Aggregate::new(at(0), &settings)] {
        empty.merge(known);
    }
    assert_eq!((empty.samples(), empty.span()), (3, Some((at(5), at(20)))));
    assert_eq!(peaks(&empty), [105, 205]);
}
