//! What was measured, and its medians.

use serde::Serialize;

/// One arm in one round.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Sample {
    pub(crate) arm: String,
    pub(crate) clients: usize,
    pub(crate) round: usize,
    pub(crate) pods: usize,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) pods_per_second: f64,
    pub(crate) webhook_cpu_ms_per_review: Option<f64>,
    pub(crate) api_server_cpu_ms_per_pod: f64,
}

/// Median, smallest and largest.
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

impl Spread {
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_unstable_by(f64::total_cmp);
        let (least, most) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median =
            if values.len() % 2 == 1 { values[middle] } else { f64::midpoint(values[middle - 1], values[middle]) };
        Some(Self { median, least, most })
    }

    pub(crate) fn text(&self, digits: usize) -> String {
        let Self { median, least, most } = self;
        format!("{median:.digits$} ({least:.digits$} to {most:.digits$})")
    }
}

/// The value below which so many of a hundred lie.
pub(crate) fn percentile(sorted: &[f64], percent: usize) -> f64 {
    sorted[(sorted.len() - 1) * percent / 100]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_has_a_middle_and_two_ends() {
        assert_eq!(Spread::of([3.0, 1.0, 2.0]).unwrap().text(1), "2.0 (1.0 to 3.0)");
        assert_eq!(Spread::of([4.0, 1.0, 2.0, 3.0]).unwrap().text(1), "2.5 (1.0 to 4.0)");
        assert!(Spread::of([]).is_none());
        assert!((percentile(&[1.0, 2.0, 3.0, 4.0, 5.0], 50) - 3.0).abs() < f64::EPSILON);
    }
}
