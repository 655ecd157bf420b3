//! What a ledger is asked about a pod, and what it says.

use pillion_api::PodCount;
use pillion_rollout::ledger::{Member, Newcomer, Share};

/// What is asked of the ledger of a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The set.
    pub set: String,
    /// Its uid.
    pub set_uid: String,
    /// Its newest revision.
    pub newest: String,
    /// The one it pins.
    pub pinned: String,
    /// How many pods stay at an old one.
    pub partition: PodCount,
    /// Where the pod is one of a `StatefulSet`: its namespace, the name of that, and its number.
    pub member: Option<(String, String, u32)>,
}

/// What a pod gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// Whether it is the newest revision; else the pinned one.
    pub is_newest: bool,
    /// By which the pod will be recognised.
    pub id: Option<String>,
    /// Why the ledger was not asked.
    pub trouble: Option<String>,
}

impl Ask {
    /// What is shared.
    pub(crate) fn share(&self) -> Share<'_> {
        Share { newest: &self.newest, pinned: &self.pinned, partition: self.partition }
    }

    /// The pod, with the id of its reservation.
    pub(crate) fn newcomer<'a>(&'a self, id: &'a str) -> Newcomer<'a> {
        let member = self.member.as_ref();
        Newcomer { id, member: member.map(|(namespace, name, ordinal)| Member { namespace, name, ordinal: *ordinal }) }
    }
}

impl Reservation {
    /// The pinned revision, as the ledger could not be asked.
    pub(crate) fn in_trouble(id: Option<String>, why: &str) -> Self {
        Self { is_newest: false, id, trouble: Some(why.to_owned()) }
    }
}
