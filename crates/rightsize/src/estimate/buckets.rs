//! Into which bucket a value falls, and where buckets begin.
//!
//! Each bucket is 5 % wider than the one before. Checkpoints hold numbers of buckets, so that this may never change.

/// How many buckets there are, of either scale.
pub const BUCKETS: usize = 176;

const RATIO: f64 = 1.0 + 0.05;
const LAST: u8 = 175;

/// What is measured, by the width of its first bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Cores; the first bucket is a hundredth wide.
    Cores,
    /// Bytes; the first bucket is ten million wide.
    Bytes,
}

impl Scale {
    const fn first(self) -> f64 {
        match self {
            Self::Cores => 0.01,
            Self::Bytes => 1e7,
        }
    }

    /// The bucket of a value. What is below all buckets is in the first, what is above all in the last.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is cut and never below zero")]
    pub fn bucket(self, value: f64) -> u8 {
        if value < self.first() || value.is_nan() {
            return 0;
        }
        // As upstream computes it: at the edge of a bucket, which whole bytes can hit, the table of starts says otherwise.
        let place = (value * (RATIO - 1.0) / self.first() + 1.0).ln() / RATIO.ln();
        (place as u8).min(LAST)
    }

    /// Where a bucket begins.
    pub fn start(self, bucket: u8) -> f64 {
        if bucket == 0 { 0.0 } else { self.first() * (power(bucket) - 1.0) / (RATIO - 1.0) }
    }

    /// Where a bucket ends. The last one has no end: where it begins.
    pub fn end(self, bucket: u8) -> f64 {
        self.start(bucket.min(LAST - 1) + 1)
    }
}

/// A power of the ratio by squares, which rounds alike on every machine, and as upstream does.
fn power(mut exponent: u8) -> f64 {
    let (mut product, mut square) = (1.0, RATIO);
    while exponent != 0 {
        if exponent & 1 == 1 {
            product *= square;
        }
        square *= square;
        exponent >>= 1;
    }
    product
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::float_cmp, reason = "upstream's numbers, to the last bit")]
    fn buckets_are_those_of_upstream() {
        let ends = [0, 1, 2, 8].map(|bucket| Scale::Bytes.end(bucket));
        assert_eq!(ends, [10_000_000.0, 20_499_999.999_999_99, 31_524_999.999_999_996, 110_265_643.195_703_06]);
        assert_eq!(Scale::Cores.end(8), 0.110_265_643_195_703_06);
        assert_eq!(Scale::Cores.start(LAST), Scale::Cores.end(LAST));
        assert_eq!(Scale::Cores.end(LAST).floor(), 1021.0);
    }

    #[test]
    fn values_at_an_edge_fall_where_upstream_has_them() {
        let found = [9_999_999.0, 1e7, 20_500_000.0, 20_500_001.0, 31_525_000.0, 43_101_250.0, 1e300, f64::INFINITY];
        assert_eq!(found.map(|value| Scale::Bytes.bucket(value)), [0, 1, 1, 2, 2, 4, LAST, LAST]);
        assert_eq!([-1.0, 0.0, 0.009, 0.01, f64::NAN].map(|value| Scale::Cores.bucket(value)), [0, 0, 0, 1, 0]);
    }

    #[test]
    fn a_value_lies_in_its_bucket() {
        for bucket in 0..LAST {
            let middle = f64::midpoint(Scale::Cores.start(bucket), Scale::Cores.end(bucket));
            assert_eq!(Scale::Cores.bucket(middle), bucket);
        }
    }
}
