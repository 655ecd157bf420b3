//! Rolls new revisions out over running pods: keeps the fleets of all sets in step with the watches, asks the planner, and
//! carries out what it plans.
//!
//! - [`fleets`]: which pods belong to which set; [`revisions`]: which revisions are stored.
//! - [`budgets`]: `PodDisruptionBudget`s; [`asking`]: what only the API server can tell of a pod; [`adoptees`]: pods that
//!   must be read for it.
//! - [`sizers`]: whose resources are not ours to change.
//! - [`executor`]: one write to one pod; [`pace`]: how many of them in a second.
//! - [`board`]: how every update stands, for the statuses.
//!
//! A plan is made when something changed that may let a pod begin, soon after anything else, and at most so often that
//! planning takes a fifth of one core. What it says is written while it is fresh, and planned anew after that. Nothing here waits for an event that may not come: whatever is
//! outstanding has a time after which it is looked at again.

use std::collections::{BTreeMap, BTreeSet};
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, StreamExt as _};
use jiff::Timestamp;
use pillion_api::Meaning;
use pillion_plan::{Action, check};
use pillion_rollout::choice::has_ledger;
use pillion_rollout::history::{Step, steps};
use pillion_rollout::{DisruptionBudget, Fleet, OwnWrites, Sizers, ground, plan};
use pillion_runtime::watch::{Changes, Key, Store};
use tokio::time::{Instant, sleep_until};
use tracing::{debug, error};

use super::Context;
use super::ledgers::Book;
use super::pods::KeptPod;
use crate::names::NEVER_REVIEWED;
use crate::view::Known;

mod adoptees;
mod asking;
mod board;
mod budgets;
mod executor;
mod fleets;
mod pace;
mod revisions;
mod sizers;

use adoptees::Adoptees;
pub(super) use board::{Board, Note};
use executor::Outcome;
use fleets::{Call, Fleets, carried};
use pace::Pace;
use revisions::Storing;
use sizers::Sizing;

/// What was planned is written for so long.
const FRESH: Duration = Duration::from_millis(100);
/// So many pods are written at the same time.
const AT_ONCE: usize = 16;
/// A pod whose write failed because it had changed is left for so long, unless the watch shows the change.
const AFTER_CHANGE: Duration = Duration::from_secs(1);
/// A pod whose write was refused is left for so long.
const AFTER_REFUSAL: Duration = Duration::from_secs(15);

/// Something that was begun, and is done.
enum Done {
    Written { action: Box<Action>, outcome: Outcome },
    Stored { set: String },
    Told { set: String, uid: Box<str>, trouble: Option<String> },
    Read { key: Key, uid: Box<str>, pod: Result<Option<Arc<KeptPod>>, String> },
    Adopted { key: Key, pod: Result<Option<Arc<KeptPod>>, String> },
    Claimed { set: String, actions: Vec<Action> },
}

/// Rolls out while it runs.
pub(super) struct Roller<'a> {
    context: &'a Context,
    injected: Store<Arc<KeptPod>>,
    bare: Store<Arc<KeptPod>>,
    budgets: Store<Arc<DisruptionBudget>>,
    sizing: Option<Sizing>,
    sizers: Sizers,
    board: Board,
    book: Book,
    known: Arc<Known>,
    fleets: Fleets,
    own_writes: OwnWrites,
    /// Pods whose writes failed, by uid, with the time from which they are planned again.
    failed: BTreeMap<Box<str>, (Instant, Key)>,
    storing: Storing,
    adoptees: Adoptees,
    writing: BTreeSet<Box<str>>,
    pace: Pace,
    work: FuturesUnordered<BoxFuture<'a, Done>>,
}

/// What may have changed.
struct Watched {
    injected: Changes,
    bare: Changes,
    budgets: Changes,
    autoscalers: Option<Changes>,
    namespaces: Changes,
    switch: Changes,
    sets: tokio::sync::watch::Receiver<u64>,
}

impl<'a> Roller<'a> {
    /// Looks after all updates while the future runs.
    pub(super) async fn run(
        context: &'a Context,
        injected: Store<Arc<KeptPod>>,
        bare: Store<Arc<KeptPod>>,
        board: Board,
        book: Book,
    ) {
        let (budgets, budgets_driver) = budgets::watch_budgets(&context.client, &context.watch_metrics);
        let (sizing, sizing_driver) = Sizing::watch(context);
        let rolling = async {
            if let Some(sizing) = &sizing {
                sizing.completed().await;
            }
            injected.completed().await;
            bare.completed().await;
            budgets.completed().await;
            let mut watched = Watched {
                injected: injected.changes(),
                bare: bare.changes(),
                budgets: budgets.changes(),
                autoscalers: sizing.as_ref().map(Sizing::changes),
                namespaces: context.view.namespace_changes(),
                switch: context.switch.store().changes(),
                sets: context.view.set_changes(),
            };
            let mut roller = Self {
                context,
                injected: injected.clone(),
                bare: bare.clone(),
                budgets: budgets.clone(),
                sizing,
                sizers: Sizers::default(),
                board,
                book,
                known: context.view.known(),
                fleets: Fleets::default(),
                own_writes: OwnWrites::default(),
                failed: BTreeMap::new(),
                storing: Storing::default(),
                adoptees: Adoptees::default(),
                writing: BTreeSet::new(),
                pace: Pace::new(context.settings.updates_per_second),
                work: FuturesUnordered::new(),
            };
            roller.take_in_sets();
            roller.roll(&mut watched).await;
        };
        tokio::join!(budgets_driver, sizing_driver, rolling);
    }

    async fn roll(&mut self, watched: &mut Watched) {
        loop {
            let wake = self.act();
            let timer = async {
                match wake {
                    Some(at) => sleep_until(at).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                keys = watched.injected.next() => self.take_in_pods(&keys),
                keys = watched.bare.next() => self.take_in_bare(&keys),
                _ = watched.sets.changed() => self.take_in_sets(),
                _ = watched.namespaces.next() => self.take_in_sets(),
                _ = watched.switch.next() => self.fleets.call_all(),
                _ = watched.budgets.next() => self.fleets.call_waiting(),
                () = changed(&mut watched.autoscalers) => self.take_in_autoscalers(),
                Some(done) = self.work.next(), if !self.work.is_empty() => self.finish(done),
                () = timer => self.fleets.wake(Timestamp::now()),
            }
            // All that has happened meanwhile is one change.
            while let Some(Some(done)) = self.work.next().now_or_never() {
                self.finish(done);
            }
        }
    }

    /// Their statuses change often, and concern nobody here.
    fn take_in_autoscalers(&mut self) {
        let sizers = self.sizing.as_ref().map(Sizing::sizers).unwrap_or_default();
        if sizers != self.sizers {
            self.sizers = sizers;
            self.fleets.call_all();
        }
    }

    fn take_in_pods(&mut self, keys: &BTreeSet<Key>) {
        for key in keys {
            let kept = self.injected.get(key);
            if let Some(kept) = &kept {
                self.adoptees.forget(key);
                self.own_writes.saw(&kept.pod);
                if self.failed.remove(&kept.pod.uid).is_some() {
                    self.own_writes.forget(&kept.pod.uid);
                }
            }
            let gone = self.fleets.put(self.context, &self.known, key, kept);
            if let Some(uid) = gone {
                self.own_writes.forget(&uid);
                self.failed.remove(&uid);
            }
        }
    }

    /// Pods that another injector made are read whole, as the watch brings only their metadata.
    fn take_in_bare(&mut self, keys: &BTreeSet<Key>) {
        for key in keys {
            if self.is_adoptee(key) {
                self.adoptees.changed(key.clone());
            }
        }
    }

    /// Whether another injector gave it what a set of ours says. One that is none is forgotten.
    fn is_adoptee(&mut self, key: &Key) -> bool {
        if self.injected.get(key).is_some() {
            return false;
        }
        let carries = self.bare.get(key).is_some_and(|kept| !carried(self.context, &self.known, &kept).is_empty());
        if !carries {
            self.adoptees.forget(key);
            self.fleets.put(self.context, &self.known, key, None);
        }
        carries
    }

    fn read_adoptees(&mut self, now: Instant) {
        for key in self.adoptees.begin_reads(now) {
            let client = self.context.client.clone();
            let read = async move {
                let pod = asking::pod(&client, &key).await;
                Done::Adopted { key, pod }
            };
            self.work.push(read.boxed());
        }
    }

    fn take_in_sets(&mut self) {
        self.known = self.context.view.known();
        self.fleets.set_all(self.context, &self.known, &self.injected);
        let bare: Vec<Key> = self.bare.read(|pods| pods.iter().map(|(key, _)| key.clone()).collect());
        for key in bare {
            if !self.is_adoptee(&key) {
                continue;
            }
            match self.adoptees.get(&key) {
                Some(kept) => drop(self.fleets.put(self.context, &self.known, &key, Some(kept))),
                None => self.adoptees.changed(key),
            }
        }
        self.board.retain(|set| self.known.sets.get(set).is_some());
        let sets: Vec<String> = self.known.sets.sets().map(|set| set.name.clone()).collect();
        for set in sets {
            self.store_revisions(&set);
        }
    }

    /// Has the newest revision stored, and those let go that nobody uses.
    fn store_revisions(&mut self, name: &str) {
        if self.storing.is_under_way(name) {
            return;
        }
        let steps = self.revision_steps(name);
        if steps.is_empty() {
            self.storing.rest(name);
            return;
        }
        let (context, set) = (self.context, name.to_owned());
        self.storing.begin(name);
        self.work.push(
            async move {
                revisions::carry_out(context, &set, steps).await;
                Done::Stored { set }
            }
            .boxed(),
        );
    }

    fn revision_steps(&self, name: &str) -> Vec<Step> {
        let (Some(set), Some(judged)) = (self.known.sets.get(name), self.known.judged.get(name)) else {
            return Vec::new();
        };
        let written = self.context.view.written(name);
        let spec = written.as_ref().and_then(|written| written["spec"].as_object());
        let Some(spec) = spec else { return Vec::new() };
        let stored: Vec<_> = self.known.revisions_of(name).map(AsRef::as_ref).collect();
        let in_use = self.fleets.revisions_in_use(name);
        steps(set, &judged.uid, &self.context.settings.namespace, spec, &stored, &in_use)
    }

    fn finish(&mut self, done: Done) {
        match done {
            Done::Written { action, outcome } => self.written(&action, &outcome),
            Done::Stored { set } => self.storing.ended(set, Instant::now()),
            Done::Told { set, uid, trouble } => self.fleets.told(&set, uid, trouble),
            Done::Read { key, uid, pod } => {
                match pod {
                    Ok(Some(kept)) if kept.pod.uid == uid => self.own_writes.read(&kept.pod, Timestamp::now()),
                    Ok(_) => self.own_writes.forget(&uid),
                    // It counts as written until it can be told, or is too old to count.
                    Err(why) => debug!(pod = %key, why, "cannot be read"),
                }
                self.fleets.call_those_of_pod(&key);
            }
            Done::Claimed { set, actions } => self.fleets.claimed(&set, actions),
            Done::Adopted { key, pod } => {
                let kept = self.adoptees.read(&key, pod);
                if self.injected.get(&key).is_none() {
                    self.fleets.put(self.context, &self.known, &key, kept);
                }
            }
        }
    }

    fn written(&mut self, action: &Action, outcome: &Outcome) {
        let update = action.update();
        let uid: Box<str> = update.uid.as_str().into();
        self.writing.remove(&uid);
        self.context.metrics.updated(outcome.counted());
        let rest = match outcome {
            Outcome::Written => {
                self.board.written(&update.set);
                None
            }
            // The watch will tell; if it does not, the pod is read.
            Outcome::Unknown(_) => None,
            Outcome::Changed => Some(AFTER_CHANGE),
            Outcome::Gone => Some(Duration::ZERO),
            Outcome::Refused(why) => {
                self.board.refused(&update.set, &format!("pod {}/{}: {why}", update.namespace, update.name));
                Some(AFTER_REFUSAL)
            }
        };
        if let Some(rest) = rest {
            self.failed.insert(uid, (Instant::now() + rest, Key::new(&update.namespace, &update.name)));
        }
        // One that is written takes room, and one that is not gives it back.
        self.fleets.call(&update.set, if outcome == &Outcome::Written { Call::Soon } else { Call::Now });
    }

    /// Plans and writes what there is to do. Tells when to come back though nothing happens.
    fn act(&mut self) -> Option<Instant> {
        let now = Instant::now();
        self.forgive(now);
        for set in self.fleets.due(now) {
            self.plan(&set);
        }
        let waits = self.write();
        let storing = self.storing.wakes().chain(self.adoptees.wake());
        let wake = self
            .fleets
            .wakes()
            .map(|at| instant(at, now))
            .chain(self.failed.values().map(|(at, _)| *at))
            .chain(storing);
        wake.chain(waits).chain(self.fleets.next_due(now)).min()
    }

    /// What failed may be tried again when its time has come.
    fn forgive(&mut self, now: Instant) {
        for (uid, (_, key)) in self.failed.extract_if(.., |_, (at, _)| *at <= now) {
            self.own_writes.forget(&uid);
            self.fleets.call_those_of_pod(&key);
        }
        self.read_adoptees(now);
        for set in self.storing.due(now) {
            self.store_revisions(&set);
        }
    }

    fn plan(&mut self, name: &str) {
        let known = Arc::clone(&self.known);
        let (Some(set), Some(rolling)) = (known.sets.get(name), self.fleets.get_mut(name)) else { return };
        let began = Instant::now();
        let now = Timestamp::now();
        let pods: Vec<_> = rolling.pods.values().map(|kept| &kept.pod).collect();
        let budgets = budgets::of_namespaces(&self.budgets, &pods);
        let namespace = self.context.settings.namespace.as_str();
        let fleet = Fleet {
            set,
            templates: &rolling.templates,
            pods: &pods,
            budgets: &budgets,
            troubles: &rolling.troubles,
            own_writes: &self.own_writes,
            sizers: &self.sizers,
            left_alone: &[NEVER_REVIEWED, namespace],
            now,
            is_off: self.context.is_off() || self.context.settings.mode == pillion_api::SetMode::Observe,
        };
        let (mut plan, progress) = plan(&fleet);
        // Whoever comes after must be able to tell what the pods were given.
        if !rolling.templates.contains_key(&set.revision) {
            plan.actions.clear();
        }
        if !plan.is_empty()
            && let Err(violations) = check(&plan, &ground(&fleet, &plan))
        {
            for violation in violations {
                error!(set = name, %violation, "a plan that must not be carried out");
            }
            self.context.metrics.violations.inc();
            plan.actions.clear();
        }
        let counts_first = has_ledger(set) && !plan.is_empty();
        let (planned, claimed) = if counts_first { (Vec::new(), plan.actions) } else { (plan.actions, Vec::new()) };
        rolling.planned(planned, progress.wake_at, progress.counts.waiting > 0, began);
        if counts_first {
            rolling.begins_to_claim();
            let uids: BTreeSet<&str> = claimed.iter().map(|action| action.update().uid.as_str()).collect();
            let pods = rolling.pods.values().filter(|kept| uids.contains(&*kept.pod.uid)).cloned().collect();
            self.work.push(claim(self.book.clone(), Arc::clone(set), claimed, pods));
        }
        let (asked, read): (Vec<_>, Vec<_>) =
            (rolling.worth_asking(&progress.ask_events, began), rolling.keys_of(&progress.read_again));
        self.board.put(name, progress);
        for (key, uid) in asked {
            self.ask(name, key, uid);
        }
        for (key, uid) in read {
            self.read(key, uid);
        }
    }

    fn ask(&self, set: &str, key: Key, uid: Box<str>) {
        let (client, set) = (self.context.client.clone(), set.to_owned());
        self.work.push(
            async move {
                let trouble = asking::trouble(&client, &key, &uid).await;
                Done::Told { set, uid, trouble }
            }
            .boxed(),
        );
    }

    fn read(&self, key: Key, uid: Box<str>) {
        let client = self.context.client.clone();
        self.work.push(
            async move {
                let pod = asking::pod(&client, &key).await;
                Done::Read { key, uid, pod }
            }
            .boxed(),
        );
    }

    /// Begins the writes that are planned, as far as there is room. Tells when there is room again.
    fn write(&mut self) -> Option<Instant> {
        while self.writing.len() < AT_ONCE {
            if !self.fleets.has_planned() {
                return None;
            }
            let now = Instant::now();
            if let Err(at) = self.pace.take(now) {
                return Some(at);
            }
            let action = self.fleets.next_planned()?;
            let update = action.update();
            let uid: Box<str> = update.uid.as_str().into();
            if self.writing.contains(&uid) || self.failed.contains_key(&uid) {
                continue;
            }
            // From the moment it is sent it may have arrived.
            self.own_writes.wrote(update, Timestamp::now());
            self.fleets.forget_trouble(&update.set, &uid);
            self.writing.insert(uid);
            let context = self.context;
            self.work.push(
                async move {
                    let outcome = executor::carry_out(context, &action).await;
                    Done::Written { action: Box::new(action), outcome }
                }
                .boxed(),
            );
        }
        None
    }
}

/// Has pods counted as updated before they are, where new pods are given revisions by the same count. Gives the writes that
/// may be made.
fn claim(book: Book, set: Arc<Meaning>, actions: Vec<Action>, pods: Vec<Arc<KeptPod>>) -> BoxFuture<'static, Done> {
    async move {
        let updates = actions.iter().filter(|action| matches!(action, Action::Update(_)));
        let uids: BTreeSet<&str> = updates.map(|action| action.update().uid.as_str()).collect();
        let asked: Vec<_> = pods.iter().map(|kept| &kept.pod).filter(|pod| uids.contains(&*pod.uid)).collect();
        let granted = book.claim(&set, &asked).await.unwrap_or_else(|why| {
            debug!(set = set.name, %why, "no pod can be counted as updated");
            BTreeSet::new()
        });
        let may_be = |action: &Action| match action {
            Action::Update(update) => granted.contains(&update.uid),
            // One that goes back takes nothing from the old ones.
            Action::Restore(_) => true,
        };
        let actions = actions.into_iter().filter(may_be).collect();
        Done::Claimed { set: set.name.clone(), actions }
    }
    .boxed()
}

/// When a time of the planner comes.
fn instant(at: Timestamp, now: Instant) -> Instant {
    let left = at.duration_since(Timestamp::now());
    now + Duration::try_from(left).unwrap_or_default() + Duration::from_millis(1)
}

/// So long no plan of a set is made after one that took `took`: a fifth of one core at most.
fn rest_after(took: Duration) -> Duration {
    took * 4
}

async fn changed(changes: &mut Option<Changes>) {
    match changes {
        Some(changes) => drop(changes.next().await),
        None => pending().await,
    }
}
