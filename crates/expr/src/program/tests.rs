use num_bigint::BigInt;
use proptest::prelude::*;

use super::{MAX_INPUT, OFFSET_BOUND, SLOPE_BOUND, STEEPNESS_BOUND, Stretch};

fn below(bound: i128) -> impl Strategy<Value = i128> {
    // Half of them at the very edge, where an overflow would be.
    prop_oneof![(0..100_i128).prop_map(move |back| bound - 1 - back), 0..bound, 0..(1_i128 << 20)]
}

proptest! {
    /// Debug builds trap overflow, so this also runs the proof at the top of the file.
    #[test]
    fn evaluation_is_exact_up_to_the_bounds(
        divisor in below(SLOPE_BOUND - 1),
        slope in below(SLOPE_BOUND),
        offset in below(OFFSET_BOUND),
        nano in below(MAX_INPUT.nano() + 1),
        signs in 0..4,
    ) {
        let divisor = divisor + 1;
        let slope = slope.min(STEEPNESS_BOUND * divisor - 1) * if signs & 1 == 0 { 1 } else { -1 };
        let offset = offset * if signs & 2 == 0 { 1 } else { -1 };
        let (floor, exact) = Stretch { start: 0, offset, slope, divisor }.at(nano);
        let [floor, offset, slope, nano, divisor] = [floor, offset, slope, nano, divisor].map(BigInt::from);
        let over = offset + slope * nano - floor * &divisor;
        prop_assert!(over >= BigInt::from(0) && over < divisor);
        prop_assert_eq!(exact, over == BigInt::from(0));
    }
}
