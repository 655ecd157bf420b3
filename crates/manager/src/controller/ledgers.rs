//! The leader's part in canaries: makes the ledgers, and keeps them in step with the pods there are.
//!
//! - [`Book`]: the ledgers there are, for those who update pods and for those who tell how sets stand.
//! - [`owners`]: which pods are leaving with their `ReplicaSet`.
//!
//! A ledger is written at most once a second, and at once when a Deployment begins to roll; only where something else is
//! true than it says. Reservations end when their pod is seen, or a minute after the leader first saw them by its own clock.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::ObjectMeta;
use pillion_api::{API_VERSION, InjectionLedger, Meaning};
use pillion_inject::selects_namespace;
use pillion_rollout::Pod;
use pillion_rollout::choice::{has_ledger, is_in_proportion};
use pillion_rollout::ledger::{Ledger, Member, Seen, Share, Summary};
use pillion_runtime::watch::{Changes, Store};
use tokio::time::{Instant, sleep, sleep_until};
use tracing::{debug, info, warn};

use super::Context;
use super::pods::KeptPod;
use crate::ledger_shelf::{Shelf, Written};

mod arrivals;
mod owners;

pub(super) use arrivals::Arrivals;
use owners::Owners;

/// A ledger is written no more often, unless a Deployment begins to roll.
const PACE: Duration = Duration::from_secs(1);
/// A reservation whose pod was not seen, or a claim whose update was not, ends so long after it was first seen.
const EXPIRY: Duration = Duration::from_mins(1);
/// So often a write is tried again while others are faster.
const TRIES: usize = 20;
/// The field manager of the leader.
const MANAGER: &str = "pillion-controller";

/// The ledgers there are. Clones see the same.
#[derive(Clone)]
pub(super) struct Book {
    context: Context,
    shelf: Shelf,
}

/// Why pods cannot be claimed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ClaimError {
    /// It is made in a moment.
    #[error("the set has no ledger yet")]
    NoLedger,
    /// Somebody else leads, or will soon.
    #[error("this replica does not lead")]
    NotLeading,
    /// The API server did not take it.
    #[error("the ledger cannot be written: {0}")]
    NotWritten(String),
}

/// Watches the ledgers, and keeps them by these pods while the future runs.
pub(super) fn keep(
    context: &Context,
    pods: Store<Arc<KeptPod>>,
    arrivals: Arrivals,
) -> (Book, impl Future<Output = ()> + Send + use<>) {
    let Context { writer, settings, watch_metrics, .. } = context;
    let (shelf, shelf_driver) =
        Shelf::watch(writer.clone(), &settings.namespace, MANAGER, "ledgers_of_leader", watch_metrics);
    let book = Book { context: context.clone(), shelf };
    let keeper = Keeper { book: book.clone(), pods, arrivals, arrived: BTreeSet::new(), first_seen: BTreeMap::new() };
    let driver = async move {
        tokio::join!(shelf_driver, keeper.run());
    };
    (book, driver)
}

impl Book {
    /// How the canary of a set stands; `None` where it has no ledger.
    pub(super) fn summary(&self, set: &Meaning) -> Option<Summary> {
        let ledger = self.shelf.get(&set.name).filter(|_| has_ledger(set))?;
        Some(Ledger::read(&ledger.spec).summary(&share(set)))
    }

    /// Counts pods as updated to the newest revision of their set, before they are. Gives the uids of those that may be:
    /// where a proportion is kept, as many as it leaves.
    pub(super) async fn claim(&self, set: &Meaning, pods: &[&Pod]) -> Result<BTreeSet<String>, ClaimError> {
        let all = || pods.iter().map(|pod| pod.uid.to_string()).collect();
        if !has_ledger(set) || pods.is_empty() {
            return Ok(all());
        }
        let asked = pods.iter().filter_map(|pod| seen(set, pod, true));
        let asked: Vec<Seen<'_>> = asked.collect();
        let claimed = self.change(&set.name, |ledger| {
            let mut next = ledger.clone();
            let granted = next.claim(&share(set), asked.iter().copied());
            (next, granted.into_iter().map(str::to_owned).collect())
        });
        claimed.await
    }

    /// Changes a ledger in one write, and again from what is there where others were faster.
    async fn change<R>(&self, set: &str, mut change: impl FnMut(&Ledger) -> (Ledger, R)) -> Result<R, ClaimError> {
        let mut why = "others were faster".to_owned();
        for _ in 0..TRIES {
            let Some(object) = self.shelf.get(set) else { return Err(ClaimError::NoLedger) };
            let ledger = Ledger::read(&object.spec);
            let (next, result) = change(&ledger);
            if next == ledger {
                return Ok(result);
            }
            if !self.context.leadership.is_held_for(self.context.patience) {
                return Err(ClaimError::NotLeading);
            }
            let next = InjectionLedger { metadata: object.metadata.clone(), spec: next.stored() };
            match self.shelf.replace(next, self.context.patience).await {
                Written::Done => return Ok(result),
                Written::Late => {}
                Written::Failed(reason) => why = reason,
            }
            self.shelf.read_again(set, self.context.patience).await;
        }
        Err(ClaimError::NotWritten(why))
    }
}

/// Only what counts and claims look at; a ledger of the leader gives no pod a pinned revision.
fn share(set: &Meaning) -> Share<'_> {
    Share { newest: &set.revision, pinned: "", partition: set.update.partition }
}

/// What a ledger is told of a pod; nothing where the pod does not carry the set.
fn seen<'p>(set: &Meaning, pod: &'p Pod, is_counted: bool) -> Option<Seen<'p>> {
    let revision = &pod.revisions.of(&set.name)?.is;
    let reservation = pod.reservations.iter().find(|(of, _)| **of == *set.name).map(|(_, id)| &**id);
    let member = pod.owner.as_ref().and_then(|owner| Member::read(&pod.namespace, &owner.kind, &owner.name, &pod.name));
    Some(Seen { uid: &pod.uid, revision, reservation, member, is_counted })
}

struct Keeper {
    book: Book,
    pods: Store<Arc<KeptPod>>,
    arrivals: Arrivals,
    /// Reservations of pods that had come before the last pass. Those that are not among the pods by now are gone.
    arrived: BTreeSet<String>,
    /// When this leader first saw what is pending, by set.
    first_seen: BTreeMap<String, BTreeMap<String, Instant>>,
}

/// What a pass waits for.
struct Changed {
    pods: Changes,
    ledgers: Changes,
    owners: (Changes, Changes),
    sets: tokio::sync::watch::Receiver<u64>,
}

impl Keeper {
    async fn run(mut self) {
        let mut sets = self.book.context.view.set_changes();
        self.book.shelf.completed().await;
        self.pods.completed().await;
        loop {
            if self.is_needed() {
                // Who owns whom costs memory, so it is only known while somebody asks.
                let Context { client, watch_metrics, .. } = &self.book.context;
                let (owners, owners_driver) = Owners::watch(client, watch_metrics);
                tokio::select! {
                    () = owners_driver => {}
                    () = self.keep(&owners) => info!("no set keeps an exact proportion any more"),
                }
            }
            // The sending end lives as long as the view.
            let _ = sets.changed().await;
        }
    }

    /// Whether there is a ledger, or should be one.
    fn is_needed(&self) -> bool {
        let known = self.book.context.view.known();
        known.sets.sets().any(|set| has_ledger(set)) || !self.book.shelf.sets().is_empty()
    }

    async fn keep(&mut self, owners: &Owners) {
        owners.completed().await;
        let mut changed = Changed {
            pods: self.pods.changes(),
            ledgers: self.book.shelf.changes(),
            owners: owners.changes(),
            sets: self.book.context.view.set_changes(),
        };
        while self.is_needed() {
            let next = self.pass(owners).await;
            tokio::select! {
                () = sleep(PACE) => changed.next_or(next).await,
                // A Deployment begins to roll: the sooner its old pods do not count, the fewer new ones are decided beside
                // them.
                () = changed.owners() => {}
            }
        }
    }

    /// Puts every ledger right. Gives when there is something to do though nothing changes.
    async fn pass(&mut self, owners: &Owners) -> Option<Instant> {
        let known = self.book.context.view.known();
        let mut wake = None;
        let arrived = self.arrivals.take();
        let leaving = owners.leaving();
        for set in known.sets.sets().filter(|set| has_ledger(set)) {
            let Some(judged) = known.judged.get(&set.name) else { continue };
            let next = self.put_right(set, &judged.uid, &leaving).await;
            wake = wake.into_iter().chain(next).min();
        }
        // Of what came just now, the store may not tell yet.
        if !arrived.is_empty() {
            wake = Some(Instant::now());
        }
        self.arrived = arrived;
        for name in self.book.shelf.sets() {
            if !known.sets.get(&name).is_some_and(|set| has_ledger(set)) {
                self.first_seen.remove(&name);
                self.remove(&name).await;
                wake = Some(Instant::now());
            }
        }
        wake
    }

    async fn put_right(&mut self, set: &Meaning, uid: &str, leaving: &BTreeSet<Box<str>>) -> Option<Instant> {
        match self.book.shelf.get(&set.name) {
            Some(ledger) if ledger.spec.set_uid == uid => {}
            Some(_) => {
                // Of another set that had this name.
                self.remove(&set.name).await;
                return Some(Instant::now());
            }
            None => {
                self.begin(set, uid, leaving).await;
                return Some(Instant::now() + PACE);
            }
        }
        // One look at the pods for all tries: what is new in the ledger meanwhile, they cannot have brought.
        let pods = self.pods_of(set);
        let seen: Vec<Seen<'_>> = self.seen(set, &pods, leaving).collect();
        let mut first_seen = self.first_seen.get(&set.name).cloned().unwrap_or_default();
        let folded = self.book.change(&set.name, |ledger| {
            let now = Instant::now();
            first_seen = ledger.pending().map(|id| (id.to_owned(), *first_seen.get(id).unwrap_or(&now))).collect();
            let is_over = |id: &String, since: Instant| since + EXPIRY <= now || self.arrived.contains(id);
            let expired = first_seen.iter().filter(|(id, since)| is_over(id, **since)).map(|(id, _)| id.clone());
            (ledger.fold(seen.iter().copied(), &expired.collect()), ())
        });
        let folded = folded.await;
        let next = first_seen.values().min().map(|since| *since + EXPIRY);
        self.first_seen.insert(set.name.clone(), first_seen);
        match folded {
            Ok(()) => next,
            Err(error) => {
                debug!(set = set.name, %error, "the ledger stays as it is");
                Some(Instant::now() + PACE)
            }
        }
    }

    /// Pods that carry the set.
    fn pods_of(&self, set: &Meaning) -> Vec<Arc<KeptPod>> {
        let carries = |kept: &KeptPod| kept.pod.revisions.of(&set.name).is_some();
        self.pods.read(|pods| pods.iter().map(|(_, pod)| pod).filter(|pod| carries(pod)).map(Arc::clone).collect())
    }

    fn seen<'p>(
        &self,
        set: &Meaning,
        pods: &'p [Arc<KeptPod>],
        leaving: &BTreeSet<Box<str>>,
    ) -> impl Iterator<Item = Seen<'p>> {
        let pods = pods.iter().map(|kept| &kept.pod);
        pods.filter_map(|pod| seen(set, pod, self.is_counted(set, pod, leaving)))
    }

    /// Whether the proportion is kept among pods like this one.
    fn is_counted(&self, set: &Meaning, pod: &Pod, leaving: &BTreeSet<Box<str>>) -> bool {
        let namespace = self.book.context.view.known_namespace(&pod.namespace);
        let is_leaving = pod.owner.as_ref().is_some_and(|owner| leaving.contains(&owner.uid));
        !pod.is_deleting
            && !pod.is_ended
            && !is_leaving
            && set.selector.matches(|key| pod.label(key))
            && namespace.is_none_or(|namespace| selects_namespace(&set.namespaces, &namespace))
            && is_in_proportion(set, |key| pod.label(key))
    }

    /// Makes the ledger of a set from the pods there are.
    async fn begin(&self, set: &Meaning, uid: &str, leaving: &BTreeSet<Box<str>>) {
        if !self.book.context.leadership.is_held_for(self.book.context.patience) {
            return;
        }
        let pods = self.pods_of(set);
        let ledger = Ledger::of_set(uid).fold(self.seen(set, &pods, leaving), &BTreeSet::new());
        // It goes with the set, also where nobody leads.
        let owner = OwnerReference {
            api_version: API_VERSION.to_owned(),
            kind: "SidecarSet".to_owned(),
            name: set.name.clone(),
            uid: uid.to_owned(),
            ..OwnerReference::default()
        };
        let metadata =
            ObjectMeta { name: Some(set.name.clone()), owner_references: Some(vec![owner]), ..ObjectMeta::default() };
        let object = InjectionLedger { metadata, spec: ledger.stored() };
        match self.book.shelf.create(&object, self.book.context.patience).await {
            Written::Done => info!(set = set.name, pods = ledger.summary(&share(set)).pods, "a ledger begins"),
            Written::Late => {}
            Written::Failed(why) => warn!(set = set.name, why, "cannot make the ledger"),
        }
    }

    async fn remove(&self, set: &str) {
        let Some(ledger) = self.book.shelf.get(set) else { return };
        if !self.book.context.leadership.is_held_for(self.book.context.patience) {
            return;
        }
        match self.book.shelf.delete(&ledger, self.book.context.patience).await {
            Written::Done => info!(set, "the ledger ends"),
            Written::Late => {}
            Written::Failed(why) => warn!(set, why, "cannot remove the ledger"),
        }
    }
}

impl Changed {
    /// Waits until a Deployment has another `ReplicaSet`, or is paused or goes on.
    async fn owners(&mut self) {
        let (parts, paused) = &mut self.owners;
        tokio::select! {
            _ = parts.next() => {}
            _ = paused.next() => {}
        }
    }

    /// Waits for a change, or for this time.
    async fn next_or(&mut self, time: Option<Instant>) {
        let at_time = async {
            match time {
                Some(time) => sleep_until(time).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.pods.next() => {}
            _ = self.ledgers.next() => {}
            _ = self.owners.0.next() => {}
            _ = self.owners.1.next() => {}
            _ = self.sets.changed() => {}
            () = at_time => {}
        }
    }
}
