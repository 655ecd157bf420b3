//! How often in a row.

/// Counts the same outcome in a row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally<K> {
    last: Option<(K, u32)>,
}

impl<K: PartialEq> Tally<K> {
    /// Counts one more; returns how many of this kind there are in a row.
    pub(crate) fn add(&mut self, kind: K) -> u32 {
        let count = match self.last.take() {
            Some((last, count)) if last == kind => count.saturating_add(1),
            _ => 1,
        };
        self.last = Some((kind, count));
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_kind_begins_anew() {
        let mut tally = Tally { last: None };
        let counts: Vec<u32> = ["a", "a", "b", "a", "a", "a"].into_iter().map(|kind| tally.add(kind)).collect();
        assert_eq!(counts, [1, 2, 1, 1, 2, 3]);
    }
}
