//! What is drawn at random: names of this process, and revisions where a set asks for that.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};

use pillion_rollout::choice::Draw;

const LETTERS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";

/// A short word that no other process has.
pub(crate) fn word() -> String {
    letters(number() >> 24)
}

/// A draw between two revisions.
pub(crate) fn draw() -> Draw {
    Draw((number() >> 32) as u32)
}

/// A number in few letters.
pub(crate) fn letters(mut number: u64) -> String {
    let mut letters = Vec::new();
    loop {
        letters.push(char::from(LETTERS[(number % 36) as usize]));
        number /= 36;
        if number == 0 {
            return letters.into_iter().rev().collect();
        }
    }
}

fn number() -> u64 {
    // Every `RandomState` has keys of its own, which begin with some that the system drew at random.
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn numbers_are_short_and_differ() {
        assert_eq!([0, 35, 36, 1_000_000].map(letters), ["0", "z", "10", "lfls"]);
        let words: BTreeSet<String> = (0..1000).map(|_| word()).collect();
        assert_eq!(words.len(), 1000);
        assert!(words.iter().all(|word| word.len() <= 8), "{words:?}");
    }

    #[test]
    fn draws_are_spread_evenly() {
        let draws = 100_000_u32;
        let low = (0..draws).filter(|_| draw().0 < u32::MAX / 10).count();
        // Ten standard deviations.
        assert!((9_050..10_950).contains(&low), "{low} of {draws} are in the lowest tenth");
    }
}
