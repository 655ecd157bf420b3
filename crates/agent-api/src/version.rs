//! What a version is: `v` and one to four numbers with dots between them.

use std::fmt;
use std::str::FromStr;

/// The numbers a version may have.
const MOST_PARTS: usize = 4;

/// A version, as `v1.20`. Two of them are the same when their texts are; which is lower is decided by the numbers alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version(Vec<u32>);

/// Why a text is no version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoVersion(String);

impl Version {
    /// Whether it is lower than another; numbers it does not have are 0, so `v1` is not lower than `v1.0`.
    pub fn is_below(&self, other: &Self) -> bool {
        self.padded() < other.padded()
    }

    fn padded(&self) -> [u32; MOST_PARTS] {
        let mut numbers = [0; MOST_PARTS];
        numbers[..self.0.len()].copy_from_slice(&self.0);
        numbers
    }
}

impl FromStr for Version {
    type Err = NoVersion;

    fn from_str(text: &str) -> Result<Self, NoVersion> {
        let refusal = || NoVersion(text.chars().take(64).collect());
        let numbers = text.strip_prefix('v').ok_or_else(refusal)?;
        let parts: Option<Vec<u32>> = numbers.split('.').take(MOST_PARTS + 1).map(number).collect();
        parts.filter(|parts| parts.len() <= MOST_PARTS).map(Self).ok_or_else(refusal)
    }
}

/// A number that is written in one way only.
fn number(digits: &str) -> Option<u32> {
    let is_canonical = digits == "0" || !digits.starts_with(['0', '+']);
    digits.parse().ok().filter(|_| is_canonical)
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lead = 'v';
        for part in &self.0 {
            write!(f, "{lead}{part}")?;
            lead = '.';
        }
        Ok(())
    }
}

impl fmt::Display for NoVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is no version: write v and one to four numbers with dots between them, as v1.20", self.0)
    }
}

impl std::error::Error for NoVersion {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn b13_versions_of_one_to_four_parts_are_versions() {
        for text in ["v1", "v0", "v1.2", "v1.2.3", "v1.2.3.4", "v4294967295.0.0.1"] {
            assert_eq!(text.parse::<Version>().map(|version| version.to_string()), Ok(text.to_owned()));
        }
        for text in
            ["", "v", "1.2", "V1", "v1.", "v.1", "v1.2.3.4.5", "v01", "v+1", "v-1", "v1.2-rc1", "v4294967296", "v1 "]
        {
            assert_eq!(text.parse::<Version>(), Err(NoVersion(text.to_owned())), "{text}");
        }
    }

    #[test]
    fn b13_versions_are_compared_by_their_numbers() {
        let is_below = |a: &str, b: &str| a.parse::<Version>().unwrap().is_below(&b.parse().unwrap());
        assert!(is_below("v1.9", "v1.10"));
        assert!(is_below("v1.2.3", "v1.2.3.4"));
        assert!(!is_below("v1", "v1.0.0.0") && !is_below("v1.0.0.0", "v1"));
        assert!(!is_below("v2", "v1.99.99.99"));
    }

    proptest! {
        #[test]
        fn what_is_read_prints_as_it_was(text in "v[0-9.]{0,12}|\\PC{0,8}") {
            if let Ok(version) = text.parse::<Version>() {
                prop_assert_eq!(version.to_string(), text);
            }
        }
    }
}
