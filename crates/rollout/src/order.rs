//! Which pods are updated first.
//!
//! Inside one priority the order is that in which Kubernetes itself would give pods up: what is least of use first. The
//! order depends on the pods alone, and pods that are alike come in the order of their names.

use std::cmp::{Ordering, Reverse};

use jiff::Timestamp;
use pillion_api::Priority;

use crate::pod::Pod;

/// The place of a pod in the order; the smallest is first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rank<'a> {
    /// By the priorities of the set.
    priority: (usize, Reverse<u64>),
    /// Not on a node, not started, not ready; the others last.
    use_of_it: (bool, bool, bool),
    /// The longer it has been ready, the later.
    ready_since: Reverse<Option<Timestamp>>,
    restarts: Reverse<u32>,
    created: Reverse<Timestamp>,
    pub(crate) pod: &'a Pod,
}

impl<'a> Rank<'a> {
    pub(crate) fn of(pod: &'a Pod, priority: &Priority) -> Self {
        let restarts = pod.containers.iter().filter_map(|it| it.status.as_ref()).map(|it| it.restarts).sum();
        Self {
            priority: rank_by(priority, pod),
            use_of_it: (pod.is_assigned, !pod.is_pending, pod.is_ready),
            ready_since: Reverse(pod.ready_since.filter(|_| pod.is_ready)),
            restarts: Reverse(restarts),
            created: Reverse(pod.created),
            pod,
        }
    }

    fn key(&self) -> impl Ord + use<'a> {
        (self.priority, self.use_of_it, self.ready_since, self.restarts, self.created)
    }
}

impl Ord for Rank<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let names = |it: &Self| (&*it.pod.namespace, &*it.pod.name);
        self.key().cmp(&other.key()).then_with(|| {
            let ((a, b), (c, d)) = (names(self), names(other));
            a.cmp(c).then_with(|| b.cmp(d))
        })
    }
}

impl PartialOrd for Rank<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Rank<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Rank<'_> {}

/// Smaller is first.
fn rank_by(priority: &Priority, pod: &Pod) -> (usize, Reverse<u64>) {
    match priority {
        Priority::None => (0, Reverse(0)),
        Priority::Weights(terms) => {
            let matching = terms.iter().filter(|(_, selector)| selector.matches(|key| pod.label(key)));
            (0, Reverse(matching.map(|(weight, _)| u64::from(*weight)).sum()))
        }
        // A pod with none of the keys was not asked to be early, so it is late. OpenKruise has such pods first.
        Priority::Ordered(keys) => {
            let found = keys.iter().enumerate().find_map(|(level, key)| Some((level, pod.label(key)?)));
            found.map_or((usize::MAX, Reverse(0)), |(level, value)| (level, Reverse(trailing_number(value))))
        }
    }
}

/// The number a text ends in, and one more, so that 0 is for a text without.
fn trailing_number(text: &str) -> u64 {
    let digits = text.len() - text.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    text[text.len() - digits..].parse::<u64>().map_or(0, |number| number.saturating_add(1))
}

/// Spreads pods with certain labels over the whole order.
pub(crate) fn scatter<'a, T: Copy>(
    mut pods: Vec<T>,
    terms: &[(String, String)],
    pod: impl Fn(&T) -> &'a Pod,
) -> Vec<T> {
    for (key, value) in expand(&pods, terms, &pod) {
        pods = spread(pods, |it| pod(it).label(&key) == Some(&value));
    }
    pods
}

/// The labels to spread by, those of the most pods first.
fn expand<'a, T>(pods: &[T], terms: &[(String, String)], pod: &impl Fn(&T) -> &'a Pod) -> Vec<(String, String)> {
    let mut expanded: Vec<(String, String)> = Vec::new();
    for (key, value) in terms {
        if value == "*" {
            let mut values: Vec<&str> = pods.iter().filter_map(|it| pod(it).label(key)).collect();
            values.sort_unstable();
            values.dedup();
            expanded.extend(values.into_iter().map(|value| (key.clone(), value.to_owned())));
        } else {
            expanded.push((key.clone(), value.clone()));
        }
    }
    let count = |(key, value): &(String, String)| pods.iter().filter(|it| pod(it).label(key) == Some(value)).count();
    expanded.sort_by_cached_key(|term| Reverse(count(term)));
    expanded.dedup();
    expanded
}

/// Spreads some of the pods evenly among the others, with the last of them at the end. One pod alone cannot be spread.
fn spread<T: Copy>(pods: Vec<T>, is_one: impl Fn(&T) -> bool) -> Vec<T> {
    let (mut ones, others): (Vec<T>, Vec<T>) = pods.iter().partition(|pod| is_one(pod));
    if ones.len() <= 1 || others.len() <= 1 {
        return pods;
    }
    let last = ones.pop();
    let groups = ones.len().min(others.len());
    let mut spread = Vec::with_capacity(pods.len());
    for group in 0..groups {
        spread.extend(part(&ones, groups, group));
        spread.extend(part(&others, groups, group));
    }
    spread.extend(last);
    spread
}

/// The part of a list that comes with one of so many groups.
fn part<T>(list: &[T], groups: usize, group: usize) -> &[T] {
    &list[list.len() * group / groups..list.len() * (group + 1) / groups]
}
