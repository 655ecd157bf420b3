//! Where choices come from: a small generator whose whole state is one number.

/// Random choices; the same seed gives the same ones.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// Choices that follow from this seed.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// A number below the bound, which must not be 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        // SplitMix64: a few lines, and well spread from any seed.
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }

    /// A number from 0 to `most`.
    pub fn up_to(&mut self, most: usize) -> usize {
        let bound = most as u64 + 1;
        usize::try_from(self.below(bound)).expect("it is at most a usize")
    }

    /// Whether something that happens so many times of a hundred happens now.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of these, of which there must be one.
    pub fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        let at = self.up_to(choices.len() - 1);
        choices[at]
    }

    /// So many of these, none twice, in any order; all of them where there are fewer.
    pub fn some_of<T: Copy>(&mut self, choices: &[T], count: usize) -> Vec<T> {
        let mut left = choices.to_vec();
        let mut chosen = Vec::new();
        while chosen.len() < count && !left.is_empty() {
            let at = self.up_to(left.len() - 1);
            chosen.push(left.swap_remove(at));
        }
        chosen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_choices_and_another_gives_others() {
        let draw = |seed| {
            let mut random = Random::new(seed);
            (0..8).map(|_| random.below(1000)).collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn choices_are_within_their_bounds_and_reach_them() {
        let mut random = Random::new(7);
        let drawn: Vec<usize> = (0..200).map(|_| random.up_to(3)).collect();
        assert_eq!((drawn.iter().min(), drawn.iter().max()), (Some(&0), Some(&3)));
        let percent = (0..1000).filter(|_| random.chance(30)).count();
        assert!((230..370).contains(&percent), "{percent}");
        assert!(!random.chance(0) && random.chance(100));
        let mut all = random.some_of(&[1, 2, 3], 9);
        all.sort_unstable();
        assert_eq!(all, [1, 2, 3]);
        assert_eq!(random.some_of(&[1, 2, 3], 2).len(), 2);
    }
}
