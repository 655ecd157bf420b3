//! How an update stands: numbers, what holds it, and what to do about it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use pillion_api::Reason;

/// How the update of a set stands.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    /// How many pods there are of each kind.
    pub counts: Counts,
    /// Pods by the revision they have, or were given. Those whose revision is not known are not among them.
    pub revisions: BTreeMap<String, RevisionCount>,
    /// How many pods stay as they are because of the partition.
    pub pinned: usize,
    /// How many pods may be unavailable at a time.
    pub max_unavailable: usize,
    /// Pods that are to be updated and are not, by what holds them; the most first.
    pub blocked: Vec<Blocked>,
    /// What keeps the update from ever ending by itself.
    pub stalled: Option<Stalled>,
    /// How the health gate stands.
    pub gate: Gate,
    /// Pods of which nothing tells why they are not done, by uid: their events may. Only a few.
    pub ask_events: Vec<Box<str>>,
    /// Pods the watch should have shown by now, by uid: to be read.
    pub read_again: Vec<Box<str>>,
    /// When the next plan may be another one though nothing else has changed.
    pub wake_at: Option<Timestamp>,
}

/// How many pods there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// That carry the set.
    pub pods: usize,
    /// That are ready, and run what they were given.
    pub ready: usize,
    /// That have the newest revision, or all of it that a running pod can see.
    pub updated: usize,
    /// Of those, that are ready and run it.
    pub updated_ready: usize,
    /// That were given something which they do not run yet.
    pub updating: usize,
    /// That follow only when they are created again.
    pub needs_recreate: usize,
    /// That can be updated as they are and are not yet.
    pub waiting: usize,
    /// That are not ready, or do not run what they were given.
    pub unavailable: usize,
    /// That this plan writes to.
    pub starting: usize,
}

/// Pods of one revision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RevisionCount {
    /// All.
    pub pods: usize,
    /// Those that are ready, and run what they were given.
    pub ready: usize,
}

/// Pods that are held by one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// By what.
    pub reason: Reason,
    /// How many.
    pub pods: usize,
    /// Which exactly, and one of the pods.
    pub words: String,
}

/// What keeps an update from ever ending by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stalled {
    /// What it is.
    pub reason: Reason,
    /// How many pods, one of them, its container and image, why, and the cure.
    pub message: String,
}

/// How the health gate stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gate {
    /// Updated pods that are not well.
    pub unhealthy: usize,
    /// From so many on, no pod is updated.
    pub limit: usize,
    /// Pods that were not well and got the revision back that they had.
    pub restored: usize,
    /// Whether no pod is updated for one of these reasons.
    pub is_closed: bool,
}
