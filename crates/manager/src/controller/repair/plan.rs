//! Which missed pods are evicted next.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use pillion_runtime::watch::Key;

use crate::admission::pods::Owner;

/// A workload whose new pod was missed too is left alone for so long.
const HOLD: SignedDuration = SignedDuration::from_mins(10);
/// A pod that is not created again for so long is not waited for.
const REPLACED: SignedDuration = SignedDuration::from_mins(5);
/// How long what was done is remembered.
const REMEMBERED: SignedDuration = SignedDuration::from_hours(1);
/// After the Eviction API, or the API server, said no.
const SHORT_WAIT: SignedDuration = SignedDuration::from_secs(10);
/// After a rehearsal that failed.
const LONG_WAIT: SignedDuration = SignedDuration::from_secs(60);

/// How much may be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Budget {
    /// Pods of one workload at a time.
    pub(super) per_workload: usize,
    /// Time between two evictions, in the whole cluster.
    pub(super) apart: SignedDuration,
}

/// A pod that should carry sidecars and does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MissedPod {
    pub(super) key: Key,
    pub(super) uid: String,
    pub(super) created: Timestamp,
    pub(super) owner: Option<Owner>,
    /// Sets whose sidecars it lacks.
    pub(super) sets: Vec<String>,
}

/// The pods of an owner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Fleet {
    /// Those that stay.
    pub(super) present: usize,
    /// Those that are on their way out, or have their sidecars and are not ready.
    pub(super) unsettled: usize,
}

/// A pod to be evicted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Evict {
    pub(super) pod: MissedPod,
    pub(super) owner: Owner,
    /// So many pods its owner has.
    pub(super) present: usize,
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It is on its way out.
    Evicted,
    /// A disruption budget says that it must wait.
    Budget,
    /// It would not come back with its sidecars.
    Rehearsal,
    /// It is gone or changed, or the API server failed.
    Failed,
}

/// What was done so far, by the uid of the owner.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    last: Option<Timestamp>,
    owners: BTreeMap<String, Past>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Past {
    under_way: usize,
    evicted: Option<Evicted>,
    waits_until: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug)]
struct Evicted {
    at: Timestamp,
    /// So many pods there were before.
    present: usize,
}

/// What to evict now. The oldest come first.
pub(super) fn repair(
    missed: &[MissedPod],
    fleets: &BTreeMap<String, Fleet>,
    history: &History,
    budget: Budget,
    now: Timestamp,
) -> Vec<Evict> {
    let mut room = history.room(budget, now);
    let mut chosen: Vec<Evict> = Vec::new();
    let mut oldest: Vec<&MissedPod> = missed.iter().collect();
    oldest.sort_by_key(|pod| (pod.created, &pod.key));
    for pod in oldest {
        if room == 0 {
            break;
        }
        let Some(owner) = pod.owner.as_ref().filter(|owner| creates_again(owner)) else { continue };
        let fleet = fleets.get(&owner.uid).copied().unwrap_or_default();
        let past = history.owners.get(&owner.uid).copied().unwrap_or_default();
        let also = chosen.iter().filter(|evict| evict.owner.uid == owner.uid).count();
        if past.holds(pod, now) || past.in_flight(fleet, now) + also >= budget.per_workload {
            continue;
        }
        chosen.push(Evict { pod: pod.clone(), owner: owner.clone(), present: fleet.present });
        room -= 1;
    }
    chosen
}

/// Whether the owner of a pod creates another in its place, wherever that may run.
fn creates_again(owner: &Owner) -> bool {
    owner.api_version == "apps/v1" && matches!(owner.kind.as_str(), "ReplicaSet" | "StatefulSet" | "DaemonSet")
}

impl Past {
    /// Whether the owner is left alone for now.
    fn holds(&self, pod: &MissedPod, now: Timestamp) -> bool {
        // The API server tells whole seconds.
        let was_missed_again = |it: &Evicted| pod.created.as_second() >= it.at.as_second() && now < it.at + HOLD;
        self.waits_until.is_some_and(|until| now < until) || self.evicted.as_ref().is_some_and(was_missed_again)
    }

    fn in_flight(&self, fleet: Fleet, now: Timestamp) -> usize {
        let evicted = self.evicted.filter(|it| now < it.at + REPLACED);
        let lacking = evicted.map_or(0, |it| it.present.saturating_sub(fleet.present));
        // A pod on its way out is both unsettled and lacking.
        self.under_way + fleet.unsettled.max(lacking)
    }
}

impl History {
    fn room(&self, budget: Budget, now: Timestamp) -> usize {
        let apart = budget.apart.as_millis().max(1);
        // As much as a second holds, however long nothing was done.
        let most = (1_000 / apart).max(1);
        let since = self.last.map_or(i128::MAX, |last| now.duration_since(last).as_millis());
        usize::try_from((since / apart).clamp(0, most)).unwrap_or(0)
    }

    /// An eviction begins.
    pub(super) fn begins(&mut self, evict: &Evict, now: Timestamp) {
        self.last = Some(now);
        self.owners.entry(evict.owner.uid.clone()).or_default().under_way += 1;
    }

    /// What became of it.
    pub(super) fn ended(&mut self, evict: &Evict, outcome: Outcome, now: Timestamp) {
        let past = self.owners.entry(evict.owner.uid.clone()).or_default();
        past.under_way = past.under_way.saturating_sub(1);
        match outcome {
            Outcome::Evicted => past.evicted = Some(Evicted { at: now, present: evict.present }),
            Outcome::Budget | Outcome::Failed => past.waits_until = Some(now + SHORT_WAIT),
            Outcome::Rehearsal => past.waits_until = Some(now + LONG_WAIT),
        }
        self.owners.retain(|_, past| {
            let last = past.evicted.map(|it| it.at).max(past.waits_until);
            past.under_way > 0 || last.is_some_and(|last| now < last + REMEMBERED)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUDGET: Budget = Budget { per_workload: 1, apart: SignedDuration::from_secs(1) };

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn owner(kind: &str, name: &str) -> Owner {
        let api_version = "apps/v1".to_owned();
        Owner { api_version, kind: kind.to_owned(), name: name.to_owned(), uid: format!("u-{name}") }
    }

    fn pod(name: &str, owner: Option<Owner>, created: i64) -> MissedPod {
        let (key, uid) = (Key::new("shop", name), format!("u-{name}"));
        MissedPod { key, uid, created: at(created), owner, sets: vec!["mesh".to_owned()] }
    }

    fn of_web(name: &str, created: i64) -> MissedPod {
        pod(name, Some(owner("ReplicaSet", "web")), created)
    }

    fn settled(present: usize) -> BTreeMap<String, Fleet> {
        BTreeMap::from([("u-web".to_owned(), Fleet { present, unsettled: 0 })])
    }

    fn names(chosen: &[Evict]) -> Vec<&str> {
        chosen.iter().map(|evict| &*evict.pod.key.name).collect()
    }

    #[test]
    fn only_pods_that_are_created_again_are_evicted() {
        let fast = Budget { per_workload: 9, apart: SignedDuration::from_millis(10) };
        let missed = [
            pod("alone", None, 1),
            pod("job", Some(owner("Job", "job")), 1),
            pod("static", Some(Owner { api_version: "v1".to_owned(), ..owner("Node", "n") }), 1),
            pod("other", Some(Owner { api_version: "other/v1".to_owned(), ..owner("ReplicaSet", "r") }), 1),
            pod("deployed", Some(owner("ReplicaSet", "a")), 4),
            pod("stateful", Some(owner("StatefulSet", "b")), 3),
            pod("daemon", Some(owner("DaemonSet", "c")), 2),
        ];
        let chosen = repair(&missed, &BTreeMap::new(), &History::default(), fast, at(100));
        assert_eq!(names(&chosen), ["daemon", "stateful", "deployed"], "the oldest first");
    }

    #[test]
    fn a_workload_loses_one_at_a_time() {
        let missed = [of_web("a", 1), of_web("b", 2), of_web("c", 3)];
        let mut history = History::default();
        let first = repair(&missed, &settled(3), &history, BUDGET, at(100));
        assert_eq!(names(&first), ["a"]);
        history.begins(&first[0], at(100));
        let next = |history: &History, fleet: Fleet, second| {
            let fleets = BTreeMap::from([("u-web".to_owned(), fleet)]);
            names(&repair(&missed[1..], &fleets, history, BUDGET, at(second))).join(",")
        };
        let full = Fleet { present: 3, unsettled: 0 };
        assert_eq!(next(&history, full, 200), "", "it is under way");
        history.ended(&first[0], Outcome::Evicted, at(101));
        for (fleet, why) in [
            (Fleet { present: 2, unsettled: 1 }, "it is on its way out"),
            (Fleet { present: 2, unsettled: 0 }, "it is gone, and there is no other"),
            (Fleet { present: 3, unsettled: 1 }, "the other is not ready"),
        ] {
            assert_eq!(next(&history, fleet, 200), "", "{why}");
        }
        assert_eq!(next(&history, full, 200), "b");
        // A workload that was made smaller meanwhile is not waited for without end.
        let smaller = Fleet { present: 2, unsettled: 0 };
        assert_eq!(next(&history, smaller, 101 + 5 * 60 - 1), "");
        assert_eq!(next(&history, smaller, 101 + 5 * 60), "b");
    }

    #[test]
    fn several_at_a_time_where_that_is_the_budget() {
        let missed = [of_web("a", 1), of_web("b", 2), of_web("c", 3), of_web("d", 4)];
        let two = Budget { per_workload: 2, apart: SignedDuration::from_millis(100) };
        let chosen = repair(&missed, &settled(4), &History::default(), two, at(100));
        assert_eq!(names(&chosen), ["a", "b"]);
        let mut history = History::default();
        for evict in &chosen {
            history.begins(evict, at(100));
            history.ended(evict, Outcome::Evicted, at(100));
        }
        let fleets = |present, unsettled| BTreeMap::from([("u-web".to_owned(), Fleet { present, unsettled })]);
        assert_eq!(names(&repair(&missed[2..], &fleets(2, 2), &history, two, at(110))), [""; 0]);
        assert_eq!(names(&repair(&missed[2..], &fleets(3, 1), &history, two, at(110))), ["c"]);
    }

    #[test]
    fn evictions_of_the_whole_cluster_are_apart() {
        let missed: Vec<MissedPod> = (0..9)
            .map(|number| pod(&format!("p-{number}"), Some(owner("DaemonSet", &format!("d-{number}"))), number))
            .collect();
        let mut history = History::default();
        let slow = Budget { per_workload: 1, apart: SignedDuration::from_secs(10) };
        let first = repair(&missed, &BTreeMap::new(), &history, slow, at(100));
        assert_eq!(names(&first), ["p-0"], "a long rest before gives no more");
        history.begins(&first[0], at(100));
        history.ended(&first[0], Outcome::Evicted, at(100));
        assert_eq!(names(&repair(&missed[1..], &BTreeMap::new(), &history, slow, at(109))), [""; 0]);
        assert_eq!(names(&repair(&missed[1..], &BTreeMap::new(), &history, slow, at(110))), ["p-1"]);
        let fast = Budget { per_workload: 1, apart: SignedDuration::from_millis(250) };
        assert_eq!(repair(&missed[1..], &BTreeMap::new(), &history, fast, at(101)).len(), 4);
    }

    #[test]
    fn a_workload_whose_new_pods_are_missed_too_is_left_alone() {
        let mut history = History::default();
        let first = repair(&[of_web("a", 1)], &settled(1), &history, BUDGET, at(100));
        history.begins(&first[0], at(100));
        history.ended(&first[0], Outcome::Evicted, at(100));
        let again = [of_web("again", 100)];
        assert_eq!(names(&repair(&again, &settled(1), &history, BUDGET, at(100 + 10 * 60 - 1))), [""; 0]);
        assert_eq!(names(&repair(&again, &settled(1), &history, BUDGET, at(100 + 10 * 60))), ["again"]);
        // One that was there before is not what came of it.
        assert_eq!(names(&repair(&[of_web("older", 99)], &settled(1), &history, BUDGET, at(110))), ["older"]);
    }

    #[test]
    fn who_was_told_to_wait_waits() {
        for (outcome, seconds) in [(Outcome::Budget, 10), (Outcome::Failed, 10), (Outcome::Rehearsal, 60)] {
            let mut history = History::default();
            let first = repair(&[of_web("a", 1)], &settled(1), &history, BUDGET, at(100));
            history.begins(&first[0], at(100));
            history.ended(&first[0], outcome, at(100));
            let chosen = |second| names(&repair(&[of_web("a", 1)], &settled(1), &history, BUDGET, at(second))).len();
            assert_eq!((chosen(100 + seconds - 1), chosen(100 + seconds)), (0, 1), "{outcome:?}");
        }
    }
}
