//! Pods of a `StatefulSet` have numbers; many of them are written in few letters.

use std::collections::BTreeSet;
use std::fmt;

/// What a pod is of a `StatefulSet`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member<'a> {
    /// The namespace.
    pub namespace: &'a str,
    /// The name of the `StatefulSet`.
    pub name: &'a str,
    /// The number of the pod.
    pub ordinal: u32,
}

/// Numbers, written as `0-4,7`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ordinals(BTreeSet<u32>);

/// More numbers than this is no `StatefulSet` of this world.
const MOST: usize = 100_000;

impl<'a> Member<'a> {
    /// What the pod of this name is, if it belongs to a `StatefulSet`.
    pub fn read(namespace: &'a str, owner_kind: &str, owner_name: &'a str, pod_name: &str) -> Option<Self> {
        let number = pod_name.strip_prefix(owner_name)?.strip_prefix('-')?;
        let ordinal = number.parse().ok().filter(|ordinal: &u32| ordinal.to_string() == number)?;
        (owner_kind == "StatefulSet").then_some(Self { namespace, name: owner_name, ordinal })
    }

    pub(super) fn key(self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

impl Ordinals {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut numbers = BTreeSet::new();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
            if usize::try_from(last.saturating_sub(first)).ok()? + numbers.len() >= MOST {
                return None;
            }
            numbers.extend(first..=last);
        }
        Some(Self(numbers))
    }

    pub(super) fn insert(&mut self, ordinal: u32) {
        self.0.insert(ordinal);
    }

    /// Whether it was there.
    pub(super) fn remove(&mut self, ordinal: u32) -> bool {
        self.0.remove(&ordinal)
    }
}

impl fmt::Display for Ordinals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut spans: Vec<(u32, u32)> = Vec::new();
        for number in &self.0 {
            match spans.last_mut() {
                Some((_, last)) if last.checked_add(1) == Some(*number) => *last = *number,
                _ => spans.push((*number, *number)),
            }
        }
        for (at, (first, last)) in spans.into_iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            if first == last {
                write!(f, "{comma}{first}")?;
            } else {
                write!(f, "{comma}{first}-{last}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn neighbours_are_written_as_a_span() {
        let shown = |numbers: &[u32]| Ordinals(numbers.iter().copied().collect()).to_string();
        assert_eq!(shown(&[]), "");
        assert_eq!(shown(&[3]), "3");
        assert_eq!(shown(&[0, 1, 2, 4, 6, 7, u32::MAX]), "0-2,4,6-7,4294967295");
        for wrong in ["a", "1-", "1-b", "0-4000000000", "1,,x"] {
            assert_eq!(Ordinals::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn only_a_pod_of_a_stateful_set_is_a_member() {
        let read = |kind, pod| Member::read("shop", kind, "web", pod).map(|member| (member.key(), member.ordinal));
        assert_eq!(read("StatefulSet", "web-12"), Some(("shop/web".to_owned(), 12)));
        for (kind, pod) in [
            ("ReplicaSet", "web-12"),
            ("StatefulSet", "web-a"),
            ("StatefulSet", "web-012"),
            ("StatefulSet", "webs-1"),
            ("StatefulSet", "web"),
        ] {
            assert_eq!(read(kind, pod), None, "{kind} {pod}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(numbers in proptest::collection::btree_set(0_u32..200, 0..60)) {
            let ordinals = Ordinals(numbers);
            prop_assert_eq!(Ordinals::parse(&ordinals.to_string()), Some(ordinals));
        }
    }
}
