//! Who is told of changes, and how: keys, each once however often it changed since it was last asked for.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::store::Key;

/// Tells one reader which objects changed.
pub struct Changes {
    waiting: Arc<Waiting>,
}

#[derive(Default)]
pub(super) struct Subscribers(Mutex<Vec<Weak<Waiting>>>);

/// Keys that a reader has not asked for yet. There are never more of them than objects come and gone meanwhile.
struct Waiting {
    keys: Mutex<BTreeSet<Key>>,
    wake: Notify,
}

impl Changes {
    /// Waits until there is a change, and takes the keys of all objects that changed since the last call. What became
    /// of them is to be read from the store.
    pub async fn next(&mut self) -> BTreeSet<Key> {
        loop {
            let keys = std::mem::take(&mut *self.waiting.keys.lock());
            if !keys.is_empty() {
                return keys;
            }
            // A change since the look above has left a permit, so this does not wait for another one.
            self.waiting.wake.notified().await;
        }
    }
}

impl Subscribers {
    pub(super) fn subscribe(&self, keys: BTreeSet<Key>) -> Changes {
        let waiting = Arc::new(Waiting { keys: Mutex::new(keys), wake: Notify::new() });
        self.0.lock().push(Arc::downgrade(&waiting));
        Changes { waiting }
    }

    pub(super) fn tell(&self, keys: impl IntoIterator<Item = Key>) {
        let keys: Vec<Key> = keys.into_iter().collect();
        if keys.is_empty() {
            return;
        }
        self.0.lock().retain(|subscriber| {
            let Some(waiting) = subscriber.upgrade() else { return false };
            waiting.keys.lock().extend(keys.iter().cloned());
            waiting.wake.notify_one();
            true
        });
    }
}
