//! A slim copy of what a watch sees, readable from many threads.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kube::Resource;
use parking_lot::{Mutex, RwLock};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::changes::{Changes, Subscribers};

/// Errors of a watch that lie further apart than this are not one failure: each was overcome, even if there was nothing
/// to tell since. Longer than one try takes to fail on an API server that takes connections and says nothing.
pub(super) const APART: Duration = Duration::from_mins(3);

/// Names an object of a kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Empty for objects of the whole cluster.
    pub namespace: Box<str>,
    /// The name.
    pub name: Box<str>,
}

/// The objects a watch has kept. Clones read the same ones.
pub struct Store<V> {
    shared: Arc<Shared<V>>,
}

/// A list that was asked for: [`Store::list_again`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Listing(u64);

/// The objects as they are while a reader holds them still.
pub struct Objects<'a, V>(&'a BTreeMap<Key, Entry<V>>);

struct Shared<V> {
    contents: RwLock<Contents<V>>,
    subscribers: Subscribers,
    complete: watch::Sender<bool>,
    failure: Mutex<Option<Failure>>,
    listings: Mutex<Listings>,
    wanted: Notify,
}

/// Which of the lists that were asked for there have been.
#[derive(Default)]
struct Listings {
    asked: u64,
    begun: u64,
    ended: u64,
}

struct Contents<V> {
    objects: BTreeMap<Key, Entry<V>>,
    /// What a list under way has brought that differs from the objects; small, unless everything is new.
    pending: BTreeMap<Key, Entry<V>>,
    /// Counts lists.
    round: u32,
}

struct Entry<V> {
    value: V,
    /// The list that last brought it.
    round: u32,
}

struct Failure {
    since: Instant,
    last: Instant,
    message: String,
}

impl Key {
    /// The key of an object.
    pub fn of(object: &impl Resource) -> Self {
        let metadata = object.meta();
        Self::new(metadata.namespace.as_deref().unwrap_or_default(), metadata.name.as_deref().unwrap_or_default())
    }

    /// The key of these names; the namespace is empty for objects of the whole cluster.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            return formatter.write_str(&self.name);
        }
        write!(formatter, "{}/{}", self.namespace, self.name)
    }
}

impl<V> Clone for Store<V> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<V> Store<V> {
    /// Whether all objects have been listed once. Before that an absent object may only be not yet known.
    pub fn is_complete(&self) -> bool {
        *self.shared.complete.borrow()
    }

    /// Waits until all objects have been listed once.
    pub async fn completed(&self) {
        let mut complete = self.shared.complete.subscribe();
        let seen = complete.wait_for(|complete| *complete).await;
        drop(seen.expect("the sending end lives as long as this store"));
    }

    /// A readiness check: whether the store is complete, or why it is not.
    pub fn check_complete(&self) -> Result<(), String> {
        if self.is_complete() {
            return Ok(());
        }
        let failure = self.shared.failure.lock();
        let why = failure.as_ref().map_or("the first list is under way", |failure| &failure.message);
        Err(format!("not listed yet: {why}"))
    }

    /// How long the watch has been failing, if it is; the store then shows the past. A single error counts until the
    /// next event, or for three minutes where nothing happens.
    pub fn failing_for(&self) -> Option<Duration> {
        let failure = self.shared.failure.lock();
        failure.as_ref().filter(|failure| failure.last.elapsed() < APART).map(|failure| failure.since.elapsed())
    }

    /// Reads many objects at one point in time. Changes wait meanwhile: no long work in here.
    pub fn read<R>(&self, look: impl FnOnce(Objects<'_, V>) -> R) -> R {
        look(Objects(&self.shared.contents.read().objects))
    }

    /// Number of objects.
    pub fn len(&self) -> usize {
        self.read(|objects| objects.0.len())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Has the watch list everything again, for a `slim` that would now keep other things. Meanwhile the store shows
    /// what it has.
    pub fn list_again(&self) -> Listing {
        let mut listings = self.shared.listings.lock();
        listings.asked += 1;
        self.shared.wanted.notify_one();
        Listing(listings.asked)
    }

    /// Whether a list that began after it was asked for has ended.
    pub fn has_listed(&self, listing: Listing) -> bool {
        self.shared.listings.lock().ended >= listing.0
    }

    /// Tells which objects changed from now on, beginning with all there are. A change that leaves the kept value as
    /// it was is none.
    pub fn changes(&self) -> Changes {
        // No change comes between the keys and the subscription.
        let contents = self.shared.contents.read();
        self.shared.subscribers.subscribe(contents.objects.keys().cloned().collect())
    }
}

impl<V: Clone> Store<V> {
    /// A copy of one object.
    pub fn get(&self, key: &Key) -> Option<V> {
        self.read(|objects| objects.get(key).cloned())
    }

    /// A copy of all of them.
    pub fn snapshot(&self) -> BTreeMap<Key, V> {
        self.read(|objects| objects.iter().map(|(key, value)| (key.clone(), value.clone())).collect())
    }
}

impl<'a, V> Objects<'a, V> {
    /// One object.
    pub fn get(&self, key: &Key) -> Option<&'a V> {
        self.0.get(key).map(|entry| &entry.value)
    }

    /// All objects in the order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = (&'a Key, &'a V)> + use<'a, V> {
        self.0.iter().map(|(key, entry)| (key, &entry.value))
    }

    /// The objects of one namespace.
    pub fn in_namespace(&self, namespace: &str) -> impl Iterator<Item = (&'a Key, &'a V)> + use<'a, V> {
        let first = Key::new(namespace, "");
        let namespace = first.namespace.clone();
        let rest = self.0.range(first..).take_while(move |(key, _)| key.namespace == namespace);
        rest.map(|(key, entry)| (key, &entry.value))
    }
}

/// How the watch writes.
impl<V: PartialEq> Store<V> {
    pub(super) fn new() -> Self {
        let contents = Contents { objects: BTreeMap::new(), pending: BTreeMap::new(), round: 0 };
        let shared = Shared {
            contents: RwLock::new(contents),
            subscribers: Subscribers::default(),
            complete: watch::Sender::new(false),
            failure: Mutex::new(None),
            listings: Mutex::default(),
            wanted: Notify::new(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Waits until a list is wanted that was not started.
    pub(super) async fn list_wanted(&self) {
        loop {
            let is_wanted = {
                let listings = self.shared.listings.lock();
                listings.asked > listings.begun
            };
            if is_wanted {
                return;
            }
            self.shared.wanted.notified().await;
        }
    }

    /// A list is about to be asked the API server for, and serves all who wanted one until now. It may take long to begin.
    pub(super) fn list_starts(&self) {
        let mut listings = self.shared.listings.lock();
        listings.begun = listings.asked;
    }

    /// A list begins. What an earlier one brought that did not end is forgotten.
    pub(super) fn list_begins(&self) {
        let mut contents = self.shared.contents.write();
        contents.pending = BTreeMap::new();
        contents.round = contents.round.wrapping_add(1);
    }

    /// A list brings an object; nothing of it is seen until the list ends. Only what differs from what is there is
    /// held twice, so that a list of everything does not double the memory.
    pub(super) fn list_brings(&self, key: Key, value: Option<V>) {
        let mut contents = self.shared.contents.write();
        let Contents { objects, pending, round } = &mut *contents;
        let present = objects.get_mut(&key);
        match (value, present) {
            (Some(value), Some(entry)) if entry.value == value => {
                entry.round = *round;
                pending.remove(&key);
            }
            (Some(value), _) => {
                pending.insert(key, Entry { value, round: *round });
            }
            (None, present) => {
                pending.remove(&key);
                if let Some(entry) = present {
                    entry.round = round.wrapping_sub(1);
                }
            }
        }
    }

    /// The list ends: what it brought replaces what was there, at once.
    pub(super) fn list_ends(&self) {
        let mut contents = self.shared.contents.write();
        let Contents { objects, pending, round } = &mut *contents;
        let mut changed = Vec::new();
        objects.retain(|key, entry| {
            let stays = entry.round == *round;
            if !stays {
                changed.push(key.clone());
            }
            stays
        });
        changed.extend(pending.keys().cloned());
        if objects.is_empty() {
            // The first list: it is the objects.
            std::mem::swap(objects, pending);
        }
        while let Some((key, entry)) = pending.pop_first() {
            objects.insert(key, entry);
        }
        drop(contents);
        {
            let mut listings = self.shared.listings.lock();
            listings.ended = listings.begun;
        }
        self.overcome();
        self.shared.complete.send_replace(true);
        self.shared.subscribers.tell(changed);
    }

    /// An object was created or changed; without a value it is not kept.
    pub(super) fn apply(&self, key: Key, value: Option<V>) {
        let mut contents = self.shared.contents.write();
        let round = contents.round;
        let changed = match value {
            Some(value) if contents.objects.get(&key).is_some_and(|entry| entry.value == value) => false,
            Some(value) => {
                contents.objects.insert(key.clone(), Entry { value, round });
                true
            }
            None => contents.objects.remove(&key).is_some(),
        };
        drop(contents);
        self.overcome();
        if changed {
            self.shared.subscribers.tell([key]);
        }
    }

    /// The watch failed; it goes on trying.
    pub(super) fn failed(&self, message: String) {
        let now = Instant::now();
        let mut failure = self.shared.failure.lock();
        let since = failure.as_ref().filter(|before| before.last.elapsed() < APART).map_or(now, |before| before.since);
        *failure = Some(Failure { since, last: now, message });
    }

    fn overcome(&self) {
        let mut failure = self.shared.failure.lock();
        *failure = None;
    }
}

#[cfg(test)]
impl<V> Store<V> {
    pub(super) fn pending_keys(&self) -> Vec<Key> {
        self.shared.contents.read().pending.keys().cloned().collect()
    }
}
