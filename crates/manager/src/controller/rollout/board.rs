//! How every update stands, from whoever plans to whoever writes statuses.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;
use pillion_rollout::Progress;
use tokio::sync::Notify;

/// How every update stands. Clones see the same.
#[derive(Clone, Default)]
pub(in super::super) struct Board {
    of: Arc<Mutex<Noted>>,
    wake: Arc<Notify>,
}

#[derive(Default)]
struct Noted {
    sets: BTreeMap<String, Note>,
    changed: BTreeSet<String>,
}

/// How the update of one set stands.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in super::super) struct Note {
    pub(in super::super) progress: Arc<Progress>,
    /// The last write that the API server did not want, if none was taken since.
    pub(in super::super) refused: Option<String>,
}

impl Board {
    pub(super) fn put(&self, set: &str, progress: Progress) {
        self.change(set, |note| note.progress = Arc::new(progress));
    }

    pub(super) fn refused(&self, set: &str, why: &str) {
        self.change(set, |note| note.refused = Some(why.to_owned()));
    }

    pub(super) fn written(&self, set: &str) {
        self.change(set, |note| note.refused = None);
    }

    fn change(&self, set: &str, change: impl FnOnce(&mut Note)) {
        let mut noted = self.of.lock();
        let note = noted.sets.entry(set.to_owned()).or_default();
        let before = note.clone();
        change(note);
        if *note != before {
            noted.changed.insert(set.to_owned());
            drop(noted);
            self.wake.notify_one();
        }
    }

    pub(super) fn retain(&self, is_there: impl Fn(&str) -> bool) {
        self.of.lock().sets.retain(|set, _| is_there(set));
    }

    pub(in super::super) fn get(&self, set: &str) -> Option<Note> {
        self.of.lock().sets.get(set).cloned()
    }

    /// Waits until one stands otherwise, and takes all that do. There is one reader.
    pub(in super::super) async fn changed(&self) -> BTreeSet<String> {
        loop {
            let changed = std::mem::take(&mut self.of.lock().changed);
            if !changed.is_empty() {
                return changed;
            }
            self.wake.notified().await;
        }
    }
}
