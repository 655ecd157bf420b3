use proptest::prelude::*;

use super::*;

const HOUR: i64 = 3_600_000_000_000;
const HALF_LIFE: i64 = 24 * HOUR;

fn moment(seconds: i64) -> Moment {
    Moment::of(jiff::Timestamp::from_second(1_767_225_600 + seconds).unwrap())
}

fn of(samples: &[(u32, u32)]) -> Histogram {
    let mut own = Histogram::new(Scale::Bytes, HALF_LIFE);
    for (value, seconds) in samples {
        own.add(f64::from(*value), 1.0, moment(i64::from(*seconds)));
    }
    own
}

/// Values and seconds, of ten days.
fn samples() -> impl Strategy<Value = Vec<(u32, u32)>> {
    prop::collection::vec((any::<u32>(), 0..864_000_u32), 1..60)
}

fn parts(own: &Histogram) -> Vec<(u8, i64)> {
    own.parts().map(|(bucket, part)| (bucket, crate::estimate::number::amount(part * 1e9 + 0.5))).collect()
}

/// The same, as far as sums in another order can be.
fn is_near(one: &Histogram, other: &Histogram) -> bool {
    let (one, other) = (parts(one), parts(other));
    one.len() == other.len()
        && one.iter().zip(&other).all(|((at, one), (also, other))| at == also && one.abs_diff(*other) <= 2)
}

#[test]
fn an_empty_one_has_no_percentiles_and_an_empty_checkpoint() {
    let empty = of(&[]);
    assert!(empty.is_empty() && empty.percentile(0.9).is_none() && empty.parts().next().is_none());
    assert_eq!(empty.save(), HistogramCheckpoint::default());
    assert_eq!(Histogram::load(Scale::Bytes, HALF_LIFE, &HistogramCheckpoint::default()).unwrap(), empty);
}

#[test]
fn a_sample_counts_half_after_a_half_life() {
    let own = of(&[(5_000_000, 0), (15_000_000, 24 * 3600)]);
    assert_eq!(parts(&own), [(0, 333_333_333), (1, 666_666_667)]);
}

#[test]
fn what_is_taken_back_leaves_nothing_and_its_memory() {
    let mut own = of(&[(5_000_000, 0)]);
    own.add(4e9, 1.0, moment(0));
    assert!(own.weights.len() > 50);
    own.subtract(4e9, 1.0, moment(0));
    assert_eq!((parts(&own), own.weights.len()), (vec![(0, 1_000_000_000)], 1));
    own.subtract(5e6, 1.0, moment(0));
    assert!(own.is_empty() && own.weights.is_empty());
    // What was never there cannot be taken.
    own.subtract(5e6, 1.0, moment(0));
    assert_eq!(own.save().total_weight, None);
}

#[test]
fn samples_far_apart_move_the_reference_and_weights_stay_numbers() {
    let mut own = of(&[(5_000_000, 0)]);
    for day in [99, 101, 400, 1_700, 100_000] {
        own.add(15e6, 1.0, moment(day * 24 * 3600));
        assert!(own.total.is_finite() && own.percentile(0.5) == Some(Scale::Bytes.end(1)), "day {day}");
    }
    assert_eq!(own.save().bucket_weights, BTreeMap::from([(1, 10_000)]));
    // A moment far in the past weighs nothing, and does no harm.
    own.add(1e9, 1.0, Moment::of(jiff::Timestamp::MIN));
    assert_eq!(own.percentile(1.0), Some(Scale::Bytes.end(1)));
}

#[test]
fn checkpoints_that_cannot_be_are_refused_by_the_field() {
    let refused = |bucket_weights: &[(u32, u32)], total_weight| {
        let bucket_weights = bucket_weights.iter().copied().collect();
        let saved = HistogramCheckpoint { reference_timestamp: None, bucket_weights, total_weight: Some(total_weight) };
        Histogram::load(Scale::Cores, HALF_LIFE, &saved).unwrap_err()
    };
    assert_eq!(refused(&[(176, 1)], 1.0), "bucketWeights has bucket 176: there are 176, counted from 0");
    assert_eq!(refused(&[(0, 1)], -1.0), "totalWeight is -1: it must be zero or more");
}

proptest! {
    #[test]
    fn the_order_of_samples_does_not_matter((samples, shuffled) in samples().prop_flat_map(|samples| {
        (Just(samples.clone()), Just(samples).prop_shuffle())
    })) {
        prop_assert!(is_near(&of(&samples), &of(&shuffled)));
    }

    #[test]
    fn merging_is_adding(one in samples(), other in samples()) {
        let mut merged = of(&one);
        merged.merge(&of(&other));
        let both: Vec<(u32, u32)> = one.into_iter().chain(other).collect();
        prop_assert!(is_near(&merged, &of(&both)));
    }

    #[test]
    fn a_larger_part_is_never_below_a_smaller_one(samples in samples(), low in 0.0..=1.0_f64, more in 0.0..=1.0_f64) {
        let own = of(&samples);
        let high = low + (1.0 - low) * more;
        prop_assert!(own.percentile(low) <= own.percentile(high));
        prop_assert!(own.percentile(high).is_some());
    }

    #[test]
    fn only_the_time_between_samples_matters(samples in samples(), half_lives in 0..300_u32) {
        let later: Vec<_> = samples.iter().map(|(value, at)| (*value, at + half_lives * 24 * 3600)).collect();
        prop_assert_eq!(parts(&of(&samples)), parts(&of(&later)));
    }

    #[test]
    fn a_checkpoint_keeps_all_but_rounding(samples in samples()) {
        let own = of(&samples);
        let saved = own.save();
        let loaded = Histogram::load(Scale::Bytes, HALF_LIFE, &saved).unwrap();
        prop_assert!((loaded.total / own.total - 1.0).abs() < 1e-9);
        // Of 176 buckets, each may be half a unit off, of which the largest has ten thousand.
        for (bucket, part) in loaded.parts() {
            let before = own.weight(bucket) / own.total;
            prop_assert!((part - before).abs() <= 0.01, "bucket {bucket}: {before} and {part}");
        }
        prop_assert_eq!(loaded.save().bucket_weights, saved.bucket_weights);
    }

    #[test]
    fn what_was_added_can_be_taken_back(samples in samples(), extra in any::<u32>(), at in 0..864_000_u32) {
        let mut own = of(&samples);
        own.add(f64::from(extra), 1.0, moment(i64::from(at)));
        own.subtract(f64::from(extra), 1.0, moment(i64::from(at)));
        prop_assert!(is_near(&own, &of(&samples)));
    }
}
