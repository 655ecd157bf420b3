//! What the numbers of a strategy come to for the pods there are.

use pillion_api::PodCount;

/// How many of so many pods stay at the old revision.
///
/// A percentage is rounded up. One below 100 that would keep all of several pods leaves one to be updated, so that a small
/// fleet sees something of a canary.
pub fn pinned_target(partition: PodCount, pods: usize) -> usize {
    match partition {
        PodCount::Pods(count) => usize::try_from(count).unwrap_or(usize::MAX).min(pods),
        PodCount::Percent(percent) => {
            let share = share(percent, pods);
            if percent < 100 && pods > 1 && share == pods { pods - 1 } else { share }
        }
    }
}

/// How many of so many pods may be unavailable at a time. A percentage is rounded up, so that only 0 stops an update.
pub fn effective_max_unavailable(given: PodCount, pods: usize) -> usize {
    match given {
        PodCount::Pods(count) => usize::try_from(count).unwrap_or(usize::MAX),
        PodCount::Percent(percent) => share(percent, pods),
    }
}

fn share(percent: u8, pods: usize) -> usize {
    let percent = usize::from(percent.min(100));
    // Not in one product, which might be too large for the type.
    pods / 100 * percent + (pods % 100 * percent).div_ceil(100)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn percentages_are_rounded_up_and_a_canary_sees_one_pod() {
        let kept = |percent, pods| pinned_target(PodCount::Percent(percent), pods);
        // Of five pods 99 % would keep all: one is updated all the same.
        assert_eq!([kept(99, 5), kept(1, 5), kept(0, 5), kept(100, 5)], [4, 1, 0, 5]);
        assert_eq!([kept(99, 1), kept(99, 0), kept(100, 1), kept(50, 2), kept(33, 3)], [1, 0, 1, 1, 1]);
        assert_eq!([kept(90, 100), kept(90, 101), kept(99, 100), kept(99, 101)], [90, 91, 99, 100]);
        let of = |count, pods| pinned_target(PodCount::Pods(count), pods);
        assert_eq!([of(7, 100), of(7, 7), of(7, 3), of(0, 3)], [7, 7, 3, 0]);
        assert_eq!(kept(99, usize::MAX), usize::MAX / 100 * 99 + 15);
    }

    #[test]
    fn only_zero_stops_an_update() {
        let may = |percent, pods| effective_max_unavailable(PodCount::Percent(percent), pods);
        assert_eq!([may(5, 6), may(5, 5), may(10, 1000), may(0, 50), may(100, 7)], [1, 1, 100, 0, 7]);
        assert_eq!(effective_max_unavailable(PodCount::Pods(3), 2), 3);
    }

    proptest! {
        /// So a pod more never needs more than itself to be pinned: a ledger can decide pod by pod.
        #[test]
        fn one_pod_more_keeps_at_most_one_more(percent in 0_u8..=100, count in 0_u32..300, pods in 0_usize..1000) {
            for partition in [PodCount::Percent(percent), PodCount::Pods(count)] {
                let (before, after) = (pinned_target(partition, pods), pinned_target(partition, pods + 1));
                prop_assert!(before <= after && after <= before + 1, "{partition:?} of {pods}: {before}, {after}");
                prop_assert!(before <= pods);
            }
        }
    }
}
