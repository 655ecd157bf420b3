//! Keeps the counts in step with the watches, and writes what changed.
//!
//! One pass at a time, a second apart: it takes in all changes since the last, counts the pods they concern, and writes
//! the statuses that came out otherwise. So no set is written more often than once a second, however much happens.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use jiff::Timestamp;
use pillion_api::{Meaning, Namespaces, SetMode};
use pillion_inject::coverage::{Coverage, excuse, standings};
use pillion_inject::{Installation, selects_namespace};
use pillion_runtime::watch::{Changes, Key, Listing, Store};
use tokio::time::{sleep, timeout};

use super::Context;
use super::blast::Blasts;
use super::ledgers::{self, Arrivals, Book};
use super::news::{NewsDesk, news};
use super::observed::{Observed, hash};
use super::pods::{KeptPod, watch_bare, watch_injected};
use super::repair::Sweeper;
use super::rollout::{Board, Roller};
use super::sets::{StoredSet, watch_stored};
use super::status::{EXAMPLES, Facts, status};
use crate::view::{Judged, Known};

mod write;

use write::Writer;

/// A pass begins no sooner after the end of the one before.
const PACE: Duration = Duration::from_secs(1);

/// A pod in one of the two stores. One of the same name may be in both for a moment.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PodKey {
    pub(super) is_bare: bool,
    pub(super) key: Key,
}

/// Looks after all sets while it runs.
pub(super) async fn run(context: &Context) {
    context.view.completed().await;
    context.switch.store().completed().await;
    // Before the first pod: what the pods are matched with is what is known here, or newer.
    let sets = Sets::begin(context);
    let arrivals = Arrivals::default();
    let (injected, injected_driver) = watch_injected(&context.client, &arrivals, &context.watch_metrics);
    let (bare, bare_driver) = watch_bare(&context.client, context.view.clone(), &context.watch_metrics);
    let (stored, stored_driver) = watch_stored(&context.client, &context.watch_metrics);
    let (desk, desk_driver) = NewsDesk::open(context);
    let (sweeper, sweeper_driver) = Sweeper::new(context, desk.clone());
    let (blasts, blasts_driver) = Blasts::new(context);
    let (book, ledgers) = ledgers::keep(context, injected.clone(), arrivals);
    let board = Board::default();
    let roller = Roller::run(context, injected.clone(), bare.clone(), board.clone(), book.clone());
    let passes = async {
        injected.completed().await;
        bare.completed().await;
        stored.completed().await;
        let mut reconciler = Reconciler {
            context,
            changed: Changed::begin(&injected, &bare, &stored, &board, context),
            pods: Pods { injected, bare },
            stored,
            desk,
            sweeper,
            blasts,
            board,
            book,
            writer: Writer::default(),
            coverage: Coverage::default(),
            sets,
        };
        reconciler.run().await;
    };
    tokio::join!(
        injected_driver,
        bare_driver,
        stored_driver,
        desk_driver,
        sweeper_driver,
        blasts_driver,
        ledgers,
        roller,
        passes
    );
}

struct Reconciler<'a> {
    context: &'a Context,
    changed: Changed,
    pods: Pods,
    stored: Store<Arc<StoredSet>>,
    desk: NewsDesk,
    sweeper: Sweeper,
    blasts: Blasts,
    board: Board,
    book: Book,
    writer: Writer,
    coverage: Coverage<PodKey>,
    sets: Sets,
}

/// Both stores of pods.
pub(super) struct Pods {
    injected: Store<Arc<KeptPod>>,
    bare: Store<Arc<KeptPod>>,
}

/// What is remembered about the sets from pass to pass.
struct Sets {
    known: Arc<Known>,
    is_off: bool,
    observed: BTreeMap<String, Observed>,
    /// What each set selects, as a hash.
    selections: BTreeMap<String, String>,
    /// The sets that mean a namespace by its name or labels, by namespace.
    selecting: BTreeMap<Key, Vec<String>>,
    /// Sets whose pods may have been dropped before anybody asked for them, until they are listed.
    awaiting: Option<(Listing, BTreeSet<String>)>,
}

/// What changed since the last pass.
struct Changed {
    injected: Changes,
    bare: Changes,
    stored: Changes,
    namespaces: Changes,
    switch: Changes,
    sets: tokio::sync::watch::Receiver<u64>,
    board: Board,
    waiting: Waiting,
}

/// Changes that wait for the next pass.
#[derive(Default)]
struct Waiting {
    pods: BTreeSet<PodKey>,
    namespaces: BTreeSet<Key>,
    stored: BTreeSet<Key>,
    /// Sets whose update stands otherwise.
    rolling: BTreeSet<String>,
    are_sets: bool,
}

/// The sets a pass is about.
#[derive(Default)]
struct Touched {
    sets: BTreeSet<String>,
    are_all: bool,
}

impl Reconciler<'_> {
    async fn run(&mut self) {
        // What was there at the beginning is a change as well.
        self.changed.waiting.are_sets = true;
        let mut is_done = false;
        loop {
            let waiting = self.changed.take();
            let touched = Touched { sets: BTreeSet::new(), are_all: !is_done };
            is_done = self.pass(waiting, touched).await;
            sleep(PACE).await;
            if is_done {
                self.changed.next().await;
            } else {
                // What was left over is not to wait for a change.
                let _ = timeout(PACE, self.changed.next()).await;
            }
        }
    }

    /// Whether nothing is left over for another pass.
    async fn pass(&mut self, waiting: Waiting, mut touched: Touched) -> bool {
        let now = Timestamp::now();
        touched.sets.extend(waiting.stored.into_iter().map(|key| key.name.into()));
        touched.sets.extend(waiting.rolling);
        touched.are_all |= waiting.are_sets;
        let counts_all =
            self.take_in_sets(waiting.are_sets, &mut touched, now) | self.take_in_namespaces(&waiting.namespaces);
        let mut pods = waiting.pods;
        if counts_all {
            touched.are_all = true;
            pods.extend(self.pods.keys());
        }
        for pod in pods {
            touched.sets.extend(self.count(&pod, now));
        }
        let missed = self.coverage.all_missed();
        self.context.metrics.missed.set(i64::try_from(missed.len()).unwrap_or(i64::MAX));
        let is_swept = self.sweeper.sweep(&missed, &self.pods, now);
        let desired = self.desired(&touched, now);
        let is_written = self.writer.write(self.context, &self.stored, desired).await;
        is_swept && is_written && self.sets.awaiting.is_none() && !self.blasts.is_busy()
    }

    fn installation(&self) -> Installation<'_> {
        let Context { settings, .. } = self.context;
        Installation {
            mode: settings.mode,
            is_off: self.sets.is_off,
            own_namespace: Some(&settings.namespace),
            finish: self.context.finish.finishing(),
            // What is asked of an agent is no business of who counts sidecars.
            hot_updates: None,
            sizer: None,
        }
    }

    /// Takes in what became of the sets and the switch. Whether every pod is to be counted anew.
    fn take_in_sets(&mut self, are_changed: bool, touched: &mut Touched, now: Timestamp) -> bool {
        if let Some((listing, _)) = &self.sets.awaiting
            && self.pods.bare.has_listed(*listing)
        {
            self.sets.awaiting = None;
            touched.are_all = true;
        }
        let is_off = self.context.is_off();
        let switched = std::mem::replace(&mut self.sets.is_off, is_off) != is_off;
        if are_changed {
            let known = self.context.view.known();
            let before = std::mem::replace(&mut self.sets.known, Arc::clone(&known));
            self.blasts.edited(&before, &known);
            self.select_anew(&known);
        }
        let is_news = self.observe(touched, now);
        switched || are_changed || is_news
    }

    /// Takes in since when sets expect their pods. Whether that is another time than before.
    fn observe(&mut self, touched: &Touched, now: Timestamp) -> bool {
        let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
        let known = Arc::clone(&self.sets.known);
        self.sets.observed.retain(|name, _| known.sets.get(name).is_some());
        let mut is_news = false;
        for set in known.sets.sets().filter(|set| touched.contains(&set.name)) {
            // A status may say since when; it comes by another watch than the set.
            let judged = known.judged.get(&set.name);
            let Some(stored) = judged.and_then(|judged| self.current(&set.name, judged)) else { continue };
            let observes = self.context.settings.mode == SetMode::Observe || set.mode == SetMode::Observe;
            let remembered = self.sets.observed.get(&set.name);
            let next = Observed::next(hash(set, observes), remembered, stored.status().as_ref(), now);
            if remembered != Some(&next) {
                self.sets.observed.insert(set.name.clone(), next);
                is_news = true;
            }
        }
        is_news
    }

    /// The stored set that a judgement is about. None while one of the two is behind the other.
    fn current(&self, name: &str, judged: &Judged) -> Option<Arc<StoredSet>> {
        let stored = self.stored.get(&Key::new("", name))?;
        (stored.uid == judged.uid && stored.generation == judged.generation).then_some(stored)
    }

    /// Where a set selects other pods than before, those it selects now may have been dropped: all are listed again.
    fn select_anew(&mut self, known: &Known) {
        let selections = selections(known);
        let before = &self.sets.selections;
        let others = selections.iter().filter(|(name, hash)| before.get(*name) != Some(*hash));
        let others: BTreeSet<String> = others.map(|(name, _)| name.clone()).collect();
        self.sets.selections = selections;
        self.sets.selecting = all_selecting(known, self.context);
        self.list_again(others);
    }

    fn list_again(&mut self, sets: BTreeSet<String>) {
        if sets.is_empty() {
            return;
        }
        let listing = self.pods.bare.list_again();
        let before = self.sets.awaiting.take().map(|(_, sets)| sets).unwrap_or_default();
        self.sets.awaiting = Some((listing, before.into_iter().chain(sets).collect()));
    }

    /// Takes in what became of namespaces. Whether every pod is to be counted anew.
    fn take_in_namespaces(&mut self, changed: &BTreeSet<Key>) -> bool {
        let (mut others, mut is_news) = (BTreeSet::new(), false);
        for key in changed {
            let Some(namespace) = self.context.view.known_namespace(&key.name) else {
                self.sets.selecting.remove(key);
                continue;
            };
            let now = selecting(&self.sets.known, &namespace);
            match self.sets.selecting.insert(key.clone(), now.clone()) {
                // Pods that came before their namespace were kept.
                None => is_news = true,
                Some(before) if before == now => {}
                Some(before) => {
                    is_news = true;
                    others.extend(now.into_iter().filter(|set| !before.contains(set)));
                }
            }
        }
        self.list_again(others);
        is_news
    }

    /// Counts a pod anew. Tells the sets it stands or stood to.
    fn count(&mut self, pod: &PodKey, now: Timestamp) -> Vec<String> {
        let kept = self.pods.get(pod);
        let namespace = self.context.view.known_namespace(&pod.key.namespace);
        let (Some(kept), Some(namespace)) = (kept, namespace) else {
            return self.coverage.remove(pod).into_iter().map(|step| step.set).collect();
        };
        let since = |set: &Meaning| self.sets.observed.get(&set.name).map(|observed| observed.since);
        let stands = standings(&kept.living, &namespace, &self.sets.known.sets, self.installation(), since);
        let mut sets: Vec<String> = stands.keys().cloned().collect();
        for step in self.coverage.put(pod.clone(), stands, kept.living.is_ready) {
            if let Some(news) = news(&step, &pod.key, &kept, now) {
                self.desk.tell(news);
            }
            sets.push(step.set);
        }
        sets
    }

    /// The status these sets should have. Those of which not enough is known yet are left out.
    fn desired(&self, touched: &Touched, now: Timestamp) -> Vec<write::Desired> {
        let Sets { known, awaiting, .. } = &self.sets;
        let is_awaited = |name: &String| awaiting.as_ref().is_some_and(|(_, sets)| sets.contains(name));
        let desired = |(name, judged): (&String, &Arc<Judged>)| {
            if !touched.contains(name) || is_awaited(name) {
                return None;
            }
            let stored = self.current(name, judged)?;
            let before = stored.status();
            let facts = self.facts(name, judged, before.as_ref().and_then(|before| before.blast_radius.clone()));
            let status = status(&facts, before.as_ref(), now);
            Some(write::Desired { name: name.clone(), stored, status })
        };
        known.judged.iter().filter_map(desired).collect()
    }

    fn facts<'f>(&'f self, name: &str, judged: &'f Judged, before: Option<pillion_api::BlastRadius>) -> Facts<'f> {
        let set = self.sets.known.sets.get(name);
        let missed = self.coverage.missed(name).take(EXAMPLES);
        Facts {
            generation: judged.generation,
            problem: judged.problem.as_deref(),
            excuse: set.and_then(|set| excuse(set, self.installation())),
            tally: self.coverage.tally(name),
            missed: missed.map(|pod| pod.key.to_string()).collect(),
            observed: self.sets.observed.get(name),
            blast_radius: self.blasts.of(name, judged).or(before),
            set: set.map(AsRef::as_ref),
            rollout: self.board.get(name),
            canary: set.and_then(|set| self.book.summary(set)),
            custom_versions: custom_versions(&self.sets.known, name),
        }
    }
}

/// The newest custom version of each stored revision, by name.
fn custom_versions(known: &Known, set: &str) -> BTreeMap<String, String> {
    let all = known.revisions_of(set);
    all.filter_map(|revision| Some((revision.name.clone(), revision.custom_versions.last()?.clone()))).collect()
}

impl Touched {
    fn contains(&self, set: &str) -> bool {
        self.are_all || self.sets.contains(set)
    }
}

impl Sets {
    fn begin(context: &Context) -> Self {
        let known = context.view.known();
        Self {
            is_off: context.is_off(),
            observed: BTreeMap::new(),
            selections: selections(&known),
            selecting: all_selecting(&known, context),
            awaiting: None,
            known,
        }
    }
}

/// What each set selects, as a hash.
fn selections(known: &Known) -> BTreeMap<String, String> {
    known.sets.sets().map(|set| (set.name.clone(), hash(set, false))).collect()
}

fn all_selecting(known: &Known, context: &Context) -> BTreeMap<Key, Vec<String>> {
    let namespaces = context.view.namespaces();
    namespaces.iter().map(|(key, namespace)| (key.clone(), selecting(known, namespace))).collect()
}

/// The sets that mean a namespace by its name or labels.
fn selecting(known: &Known, namespace: &pillion_inject::Namespace) -> Vec<String> {
    let sets = known.sets.sets().filter(|set| set.namespaces != Namespaces::All);
    sets.filter(|set| selects_namespace(&set.namespaces, namespace)).map(|set| set.name.clone()).collect()
}

impl Pods {
    pub(super) fn get(&self, pod: &PodKey) -> Option<Arc<KeptPod>> {
        if pod.is_bare { self.bare.get(&pod.key) } else { self.injected.get(&pod.key) }
    }

    fn keys(&self) -> Vec<PodKey> {
        let of = |store: &Store<Arc<KeptPod>>, is_bare| {
            store.read(|pods| pods.iter().map(|(key, _)| PodKey { is_bare, key: key.clone() }).collect::<Vec<_>>())
        };
        let mut keys = of(&self.injected, false);
        keys.extend(of(&self.bare, true));
        keys
    }

    /// Looks at every pod.
    pub(super) fn each(&self, mut look: impl FnMut(&KeptPod)) {
        for store in [&self.injected, &self.bare] {
            store.read(|pods| pods.iter().for_each(|(_, pod)| look(pod)));
        }
    }
}

impl Changed {
    fn begin(
        injected: &Store<Arc<KeptPod>>,
        bare: &Store<Arc<KeptPod>>,
        stored: &Store<Arc<StoredSet>>,
        board: &Board,
        context: &Context,
    ) -> Self {
        Self {
            injected: injected.changes(),
            bare: bare.changes(),
            stored: stored.changes(),
            namespaces: context.view.namespace_changes(),
            switch: context.switch.store().changes(),
            sets: context.view.set_changes(),
            board: board.clone(),
            waiting: Waiting::default(),
        }
    }

    /// Waits until there is one.
    async fn next(&mut self) {
        let of = |keys: BTreeSet<Key>, is_bare| keys.into_iter().map(move |key| PodKey { is_bare, key });
        tokio::select! {
            keys = self.injected.next() => self.waiting.pods.extend(of(keys, false)),
            keys = self.bare.next() => self.waiting.pods.extend(of(keys, true)),
            keys = self.namespaces.next() => self.waiting.namespaces.extend(keys),
            keys = self.stored.next() => self.waiting.stored.extend(keys),
            // It is looked at in every pass.
            _ = self.switch.next() => {}
            _ = self.sets.changed() => self.waiting.are_sets = true,
            sets = self.board.changed() => self.waiting.rolling.extend(sets),
        }
    }

    /// Takes all there are.
    fn take(&mut self) -> Waiting {
        while self.next().now_or_never().is_some() {}
        std::mem::take(&mut self.waiting)
    }
}
