//! What we have written and the watch has not shown yet.
//!
//! Without it a plan made right after a write would still see the pod as it was before, and begin one more than is allowed.
//! Nothing here can wait for ever: a write is forgotten when the watch shows that it arrived, or anything newer, or that the
//! pod is gone; when it has not for [`READ_AFTER`], the pod is to be read from the API server; and after [`FORGET_AFTER`] it
//! no longer counts, whatever happened.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use pillion_api::{PodRevision, PodRevisions};
use pillion_plan::PodUpdate;

use crate::pod::Pod;

/// A watch that is well shows a write much sooner.
const READ_AFTER: SignedDuration = SignedDuration::from_secs(10);
/// Whoever was to read the pod has had its time.
const FORGET_AFTER: SignedDuration = SignedDuration::from_secs(60);

/// Writes of ours that the API server has taken and the watch has not shown yet, by the uid of the pod.
#[derive(Clone, Debug, Default)]
pub struct OwnWrites(BTreeMap<Box<str>, OwnWrite>);

#[derive(Clone, Debug)]
struct OwnWrite {
    /// What the pod's record says since.
    revisions: PodRevisions,
    /// Records the pod had before. The watch shows one of them as long as it is behind.
    replaced: Vec<Option<Box<str>>>,
    at: Timestamp,
    /// When it was last written or read.
    looked_at: Timestamp,
}

impl OwnWrites {
    /// The API server has taken a write, or may have: no answer came.
    pub fn wrote(&mut self, update: &PodUpdate, now: Timestamp) {
        let revisions = PodRevisions::parse(&update.record_after).unwrap_or_default();
        let before = update.record_before.as_deref().map(Box::from);
        let write = self.0.entry(update.uid.as_str().into()).or_insert_with(|| OwnWrite {
            revisions: PodRevisions::default(),
            replaced: Vec::new(),
            at: now,
            looked_at: now,
        });
        write.replaced.push(before);
        write.revisions = revisions;
        (write.at, write.looked_at) = (now, now);
    }

    /// A pod was read from the API server. What never arrived is forgotten; what did counts until the watch shows it as well,
    /// because it is the watch that plans are made from.
    pub fn read(&mut self, pod: &Pod, now: Timestamp) {
        if let Some(write) = self.0.get_mut(&pod.uid) {
            write.looked_at = now;
            if write.replaced.contains(&pod.record) {
                self.0.remove(&pod.uid);
            }
        }
    }

    /// The watch has shown a pod.
    pub fn saw(&mut self, pod: &Pod) {
        if self.0.get(&pod.uid).is_some_and(|write| !write.replaced.contains(&pod.record)) {
            self.0.remove(&pod.uid);
        }
    }

    /// The pod of this uid is gone, or the API server has not taken the write.
    pub fn forget(&mut self, uid: &str) {
        self.0.remove(uid);
    }

    /// All pods were listed anew; what is not on the list is gone.
    pub fn retain(&mut self, is_there: impl Fn(&str) -> bool) {
        self.0.retain(|uid, _| is_there(uid));
    }

    /// Pods to be read, because the watch should have shown them by now.
    pub fn overdue(&self, now: Timestamp) -> impl Iterator<Item = &str> {
        let is_overdue = move |write: &OwnWrite| now.duration_since(write.looked_at) >= READ_AFTER;
        self.0.iter().filter(move |(_, write)| is_overdue(write)).map(|(uid, _)| &**uid)
    }

    /// Whether nothing is outstanding.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What we have written to a pod about a set, if the watch has not shown it yet.
    pub(crate) fn of(&self, uid: &str, set: &str, now: Timestamp) -> Option<&PodRevision> {
        if self.0.is_empty() {
            return None;
        }
        let write = self.0.get(uid).filter(|write| now.duration_since(write.at) < FORGET_AFTER)?;
        write.revisions.of(set)
    }

    /// When the next write is overdue or forgotten.
    pub(crate) fn next_change(&self, now: Timestamp) -> Option<Timestamp> {
        let times = self.0.values().flat_map(|write| [write.looked_at + READ_AFTER, write.at + FORGET_AFTER]);
        times.filter(|time| *time > now).min()
    }
}

#[cfg(test)]
mod tests;
