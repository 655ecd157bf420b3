//! Which pods belong to which set, and how far the plan of each set is.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use pillion_api::{Meaning, Template};
use pillion_inject::Installation;
use pillion_inject::coverage::{Standing, standings};
use pillion_plan::Action;
use pillion_rollout::Pod;
use pillion_runtime::watch::{Key, Store};
use tokio::time::Instant;

use super::super::Context;
use super::super::pods::KeptPod;
use super::{FRESH, rest_after};
use crate::view::Known;

/// The events of one pod are asked for again after so long.
const ASKED_AGAIN: Duration = Duration::from_secs(30);
/// A set none of whose pods may be updated is planned again after so long.
const AFTER_NO_CLAIM: Duration = Duration::from_secs(1);

/// What lets no pod begin is planned for after so long, if nothing else is: it changes only what is told.
const SOON: Duration = Duration::from_millis(100);

/// Whether a set is to be planned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Call {
    /// No.
    #[default]
    None,
    /// Before long: something changed that lets no pod begin.
    Soon,
    /// Something changed.
    Now,
}

/// All fleets.
#[derive(Default)]
pub(super) struct Fleets {
    sets: BTreeMap<String, Rolling>,
    /// The sets each pod carries.
    of_pod: BTreeMap<Key, Vec<String>>,
    /// Whose turn it is to write.
    turn: Option<String>,
}

/// One set that is rolled out.
#[derive(Default)]
pub(super) struct Rolling {
    pub(super) pods: BTreeMap<Key, Arc<KeptPod>>,
    pub(super) templates: BTreeMap<String, Arc<Template>>,
    pub(super) troubles: BTreeMap<Box<str>, String>,
    asked: BTreeMap<Box<str>, Instant>,
    planned: VecDeque<Action>,
    planned_at: Option<Instant>,
    rests_until: Option<Instant>,
    wake_at: Option<Timestamp>,
    call: Call,
    is_waiting: bool,
    /// Whether what was planned is being counted before it is written.
    is_claiming: bool,
}

impl Fleets {
    pub(super) fn get_mut(&mut self, set: &str) -> Option<&mut Rolling> {
        self.sets.get_mut(set)
    }

    /// Takes in the sets there are, and every pod anew.
    pub(super) fn set_all(&mut self, context: &Context, known: &Known, pods: &Store<Arc<KeptPod>>) {
        self.sets.retain(|name, _| known.sets.get(name).is_some());
        for set in known.sets.sets() {
            let rolling = self.sets.entry(set.name.clone()).or_default();
            let templates = known.revisions_of(&set.name);
            rolling.templates =
                templates.filter_map(|it| Some((it.name.clone(), Arc::clone(it.template.as_ref()?)))).collect();
            rolling.call = Call::Now;
            rolling.planned.clear();
        }
        let all: Vec<(Key, Arc<KeptPod>)> =
            pods.read(|pods| pods.iter().map(|(key, kept)| (key.clone(), Arc::clone(kept))).collect());
        for (key, kept) in all {
            self.put(context, known, &key, Some(kept));
        }
    }

    /// Takes in a pod, or that it is gone. Gives the uid of one that is gone.
    pub(super) fn put(
        &mut self,
        context: &Context,
        known: &Known,
        key: &Key,
        kept: Option<Arc<KeptPod>>,
    ) -> Option<Box<str>> {
        let sets = kept.as_ref().map(|kept| carried(context, known, kept)).unwrap_or_default();
        let before =
            if sets.is_empty() { self.of_pod.remove(key) } else { self.of_pod.insert(key.clone(), sets.clone()) };
        let mut gone = None;
        for set in before.iter().flatten().filter(|set| !sets.contains(set)) {
            if let Some(rolling) = self.sets.get_mut(set) {
                let left = rolling.pods.remove(key);
                gone = left.map(|left| left.pod.uid.clone());
                rolling.call = Call::Now;
            }
        }
        if let Some(kept) = kept {
            for set in &sets {
                if let Some(rolling) = self.sets.get_mut(set) {
                    let before = rolling.pods.insert(key.clone(), Arc::clone(&kept));
                    let may_free = before.is_none_or(|before| may_let_others_begin(&before.pod, &kept.pod));
                    rolling.call(if may_free { Call::Now } else { Call::Soon });
                }
            }
        }
        gone.filter(|_| sets.is_empty())
    }

    /// The revisions that pods of a set have, or came from.
    pub(super) fn revisions_in_use(&self, set: &str) -> BTreeSet<&str> {
        let pods = self.sets.get(set).into_iter().flat_map(|rolling| rolling.pods.values());
        let given = pods.filter_map(|kept| kept.pod.revisions.of(set));
        given.flat_map(|given| [Some(given.is.as_str()), given.from.as_deref()]).flatten().collect()
    }

    pub(super) fn call(&mut self, set: &str, call: Call) {
        if let Some(rolling) = self.sets.get_mut(set) {
            rolling.call(call);
        }
    }

    pub(super) fn call_all(&mut self) {
        self.sets.values_mut().for_each(|rolling| rolling.call = Call::Now);
    }

    /// Sets whose pods wait for something.
    pub(super) fn call_waiting(&mut self) {
        self.sets.values_mut().filter(|rolling| rolling.is_waiting).for_each(|rolling| rolling.call = Call::Now);
    }

    pub(super) fn call_those_of_pod(&mut self, key: &Key) {
        for set in self.of_pod.get(key).into_iter().flatten() {
            if let Some(rolling) = self.sets.get_mut(set) {
                rolling.call = Call::Now;
            }
        }
    }

    /// Sets whose time has come.
    pub(super) fn wake(&mut self, now: Timestamp) {
        for rolling in self.sets.values_mut().filter(|rolling| rolling.wake_at.is_some_and(|at| at <= now)) {
            rolling.wake_at = None;
            rolling.call = Call::Now;
        }
    }

    /// The sets to be planned now.
    pub(super) fn due(&self, now: Instant) -> Vec<String> {
        let is_due = |rolling: &Rolling| rolling.due_at(now).is_some_and(|at| at <= now);
        self.sets.iter().filter(|(_, rolling)| is_due(rolling)).map(|(name, _)| name.clone()).collect()
    }

    /// When the next set is to be planned, of those that are not yet.
    pub(super) fn next_due(&self, now: Instant) -> Option<Instant> {
        self.sets.values().filter_map(|rolling| rolling.due_at(now)).min()
    }

    pub(super) fn wakes(&self) -> impl Iterator<Item = Timestamp> {
        self.sets.values().filter_map(|rolling| rolling.wake_at)
    }

    pub(super) fn has_planned(&self) -> bool {
        self.sets.values().any(|rolling| !rolling.planned.is_empty())
    }

    /// The next write, of each set in turn.
    pub(super) fn next_planned(&mut self) -> Option<Action> {
        let after = self.turn.clone().unwrap_or_default();
        let has = |(_, rolling): &(&String, &mut Rolling)| !rolling.planned.is_empty();
        let mut all: Vec<(&String, &mut Rolling)> = self.sets.iter_mut().filter(has).collect();
        let next = all.iter().position(|(name, _)| **name > after).unwrap_or_default();
        let (name, rolling) = all.get_mut(next)?;
        let action = rolling.planned.pop_front();
        self.turn = Some((*name).clone());
        action
    }

    /// What was planned was counted, and may be written.
    pub(super) fn claimed(&mut self, set: &str, actions: Vec<Action>) {
        let Some(rolling) = self.sets.get_mut(set) else { return };
        rolling.is_claiming = false;
        if actions.is_empty() {
            rolling.rests_until = Some(Instant::now() + AFTER_NO_CLAIM);
            rolling.call = Call::Now;
        }
        rolling.planned = actions.into();
        rolling.planned_at = Some(Instant::now());
    }

    /// What events said of a pod.
    pub(super) fn told(&mut self, set: &str, uid: Box<str>, trouble: Option<String>) {
        let Some(rolling) = self.sets.get_mut(set) else { return };
        if let Some(trouble) = trouble {
            rolling.troubles.insert(uid, trouble);
            rolling.call = Call::Now;
        }
    }

    /// What was said of a pod is of no use once it is written.
    pub(super) fn forget_trouble(&mut self, set: &str, uid: &str) {
        if let Some(rolling) = self.sets.get_mut(set) {
            rolling.troubles.remove(uid);
            rolling.asked.remove(uid);
        }
    }
}

impl Rolling {
    /// When it is to be planned: at once if something changed, but what was planned last is written first while it is
    /// fresh, and planning rests in proportion to what it takes.
    fn due_at(&self, now: Instant) -> Option<Instant> {
        if self.call == Call::None || self.is_claiming {
            return None;
        }
        let wait = match self.call {
            _ if !self.planned.is_empty() => FRESH,
            Call::Soon => SOON,
            _ => Duration::ZERO,
        };
        let waited = self.planned_at.map(|at| at + wait);
        Some(waited.into_iter().chain(self.rests_until).max().unwrap_or(now))
    }

    fn call(&mut self, call: Call) {
        self.call = self.call.max(call);
    }

    pub(super) fn planned(
        &mut self,
        actions: Vec<Action>,
        wake_at: Option<Timestamp>,
        is_waiting: bool,
        began: Instant,
    ) {
        let now = Instant::now();
        self.planned = actions.into();
        self.planned_at = Some(now);
        self.rests_until = Some(now + rest_after(now.duration_since(began)));
        self.wake_at = wake_at;
        self.is_waiting = is_waiting;
        self.call = Call::None;
        let pods: BTreeSet<&str> = if self.asked.is_empty() && self.troubles.is_empty() {
            return;
        } else {
            self.pods.values().map(|kept| &*kept.pod.uid).collect()
        };
        self.asked.retain(|uid, _| pods.contains(&**uid));
        self.troubles.retain(|uid, _| pods.contains(&**uid));
    }

    pub(super) fn begins_to_claim(&mut self) {
        self.is_claiming = true;
    }

    /// The pods whose events are to be asked for, of these.
    pub(super) fn worth_asking(&mut self, uids: &[Box<str>], now: Instant) -> Vec<(Key, Box<str>)> {
        let keys = self.keys_of(uids);
        keys.into_iter()
            .filter(|(_, uid)| {
                let is_due = self.asked.get(uid).is_none_or(|at| now.duration_since(*at) >= ASKED_AGAIN);
                if is_due {
                    self.asked.insert(uid.clone(), now);
                }
                is_due
            })
            .collect()
    }

    pub(super) fn keys_of(&self, uids: &[Box<str>]) -> Vec<(Key, Box<str>)> {
        if uids.is_empty() {
            return Vec::new();
        }
        let found = self.pods.iter().filter(|(_, kept)| uids.contains(&kept.pod.uid));
        found.map(|(key, kept)| (key.clone(), kept.pod.uid.clone())).collect()
    }
}

/// Whether a change of one pod may let another one begin: it came to be well, was swapped, is going, or became another kind
/// of pod. Most changes are those a pod goes through while it is updated, and only the last of them does.
fn may_let_others_begin(before: &Pod, after: &Pod) -> bool {
    let statuses_differ =
        || before.containers.iter().map(|it| &it.status).ne(after.containers.iter().map(|it| &it.status));
    let is_another =
        before.uid != after.uid || before.is_deleting != after.is_deleting || before.labels != after.labels;
    is_another || (after.is_ready && (!before.is_ready || statuses_differ()))
}

/// The sets a pod carries, of those that select it.
pub(super) fn carried(context: &Context, known: &Known, kept: &KeptPod) -> Vec<String> {
    let Some(namespace) = context.view.known_namespace(&kept.pod.namespace) else { return Vec::new() };
    let own_namespace = Some(context.settings.namespace.as_str());
    let installation = Installation { own_namespace, ..Installation::default() };
    let since = |_: &Meaning| None;
    let stands = standings(&kept.living, &namespace, &known.sets, installation, since);
    stands.into_iter().filter(|(_, standing)| *standing == Standing::Carries).map(|(set, _)| set).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pillion_rollout::{Container, List, State, Status};

    fn pod(is_ready: bool, restarts: u32, state: State) -> Pod {
        let container = Container {
            list: List::Init,
            index: 0,
            name: "proxy".into(),
            image: "proxy:1".into(),
            resources: None,
            has_startup_probe: false,
            status: Some(Status { restarts, id: restarts.to_string().into(), state, is_ready }),
        };
        Pod { uid: "u-1".into(), is_ready, containers: Box::new([container]), ..Pod::default() }
    }

    #[test]
    fn of_all_that_a_pod_goes_through_only_its_being_well_lets_others_begin() {
        let old = pod(true, 0, State::Running(None));
        let mut written = old.clone();
        written.containers[0].image = "proxy:2".into();
        written.record = Some("{}".into());
        let ended = pod(false, 0, State::Terminated("Completed".into()));
        let started = pod(false, 1, State::Running(None));
        let well = pod(true, 1, State::Running(None));
        let steps = [&old, &written, &ended, &started, &well];
        let seen: Vec<bool> = steps.windows(2).map(|pair| may_let_others_begin(pair[0], pair[1])).collect();
        assert_eq!(seen, [false, false, false, true]);
        // A node that never shows it unready.
        assert!(may_let_others_begin(&written, &well));
        let going = Pod { is_deleting: true, ..ended.clone() };
        assert!(may_let_others_begin(&ended, &going));
        let labels = [("app".into(), "web".into())].into();
        assert!(may_let_others_begin(&ended, &Pod { labels, ..ended.clone() }));
        assert!(may_let_others_begin(&ended, &Pod { uid: "u-2".into(), ..ended.clone() }));
    }

    #[test]
    fn what_lets_nobody_begin_is_planned_for_before_long_and_all_else_at_once() {
        let now = Instant::now();
        let mut rolling = Rolling { planned_at: Some(now), ..Rolling::default() };
        assert_eq!(rolling.due_at(now), None);
        rolling.call(Call::Soon);
        assert_eq!(rolling.due_at(now), Some(now + SOON));
        rolling.call(Call::Now);
        rolling.call(Call::Soon);
        assert_eq!(rolling.due_at(now), Some(now));
        rolling.rests_until = Some(now + Duration::from_millis(7));
        assert_eq!(rolling.due_at(now), rolling.rests_until);
    }
}
