//! Limits of the reservations of a namespace and of a peer: forged reviews cannot fill a ledger.

use std::collections::BTreeMap;
use std::time::Duration;

use pillion_rollout::ledger::MAX_RESERVATIONS;
use pillion_runtime::server::Peer;
use tokio::time::Instant;

/// A reservation whose pod is not seen is forgotten after a minute.
const WINDOW: Duration = Duration::from_mins(1);
/// Reservations of pods of one namespace, in one ledger and window. Two replicas leave room for other namespaces.
const OF_NAMESPACE: usize = MAX_RESERVATIONS * 3 / 10;
/// Reservations by reviews of one peer, in one ledger and window. Two replicas do not fill a ledger.
const OF_PEER: usize = MAX_RESERVATIONS * 48 / 100;
const _: () = assert!(2 * OF_PEER < MAX_RESERVATIONS && OF_NAMESPACE < OF_PEER);
/// Windows that are remembered; beyond it, those that are over are forgotten.
const REMEMBERED: usize = 1_000;

/// Whose pod a reservation is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The namespace of the pod.
    pub namespace: String,
    /// The sender of the review.
    pub peer: Peer,
}

/// Reservations of the current window, by ledger and origin.
#[derive(Debug, Default)]
pub(super) struct Quota(BTreeMap<(String, Part), Window>);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Namespace(String),
    Peer(Peer),
}

#[derive(Clone, Copy, Debug)]
struct Window {
    began: Instant,
    count: usize,
}

impl Quota {
    /// Counts a reservation in the ledger of a set; returns false if its namespace or its peer has had its share.
    pub(super) fn take(&mut self, set: &str, origin: &Origin, now: Instant) -> bool {
        if self.0.len() >= REMEMBERED {
            self.0.retain(|_, window| !window.is_over(now));
        }
        let parts = [(Part::Namespace(origin.namespace.clone()), OF_NAMESPACE), (Part::Peer(origin.peer), OF_PEER)];
        let parts = parts.map(|(part, most)| ((set.to_owned(), part), most));
        let has_room = |(key, most): &((String, Part), usize)| {
            self.0.get(key).is_none_or(|window| window.is_over(now) || window.count < *most)
        };
        if !parts.iter().all(has_room) {
            return false;
        }
        for (key, _) in parts {
            let window = self.0.entry(key).or_insert(Window { began: now, count: 0 });
            if window.is_over(now) {
                *window = Window { began: now, count: 0 };
            }
            window.count += 1;
        }
        true
    }
}

impl Window {
    fn is_over(&self, now: Instant) -> bool {
        now.duration_since(self.began) >= WINDOW
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(namespace: &str, last: u8) -> Origin {
        Origin { namespace: namespace.to_owned(), peer: Peer::of(([10, 0, 0, last], 1).into()) }
    }

    #[test]
    fn attack_reviews_of_one_namespace_leave_room_for_others() {
        let (mut quota, now) = (Quota::default(), Instant::now());
        let mut take = |set: &str, namespace: &str, peer: u8, times: usize, now| {
            (0..times).filter(|_| quota.take(set, &origin(namespace, peer), now)).count()
        };
        assert_eq!(take("mesh", "evil", 1, 2_000, now), 1_500);
        // Another namespace, until its peer has had its share; another set and another peer have theirs.
        assert_eq!(take("mesh", "team", 1, 2_000, now), 900);
        assert_eq!(take("mesh", "team", 2, 2_000, now), 600);
        assert_eq!(take("logs", "evil", 1, 10, now), 10);
        let later = now + WINDOW;
        assert_eq!(take("mesh", "evil", 1, 10, later - Duration::from_millis(1)), 0);
        assert_eq!(take("mesh", "evil", 1, 10, later), 10);
    }

    #[test]
    fn windows_that_are_over_are_forgotten() {
        let (mut quota, now) = (Quota::default(), Instant::now());
        for number in 0..REMEMBERED {
            quota.take(&number.to_string(), &origin("team", 1), now);
        }
        assert!(quota.0.len() > REMEMBERED);
        quota.take("mesh", &origin("team", 1), now + WINDOW);
        assert_eq!(quota.0.len(), 2);
    }
}
