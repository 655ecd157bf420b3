//! The counts by which a canary is exact: living and reserved pods of a set, by revision.
//!
//! - [`Ledger::reserve`]: which revision a new pod gets, and the reservation that counts it until it is seen.
//! - [`Ledger::fold`]: the same ledger with what lives now; reservations of pods that were seen go.
//! - [`Ledger::claim`]: which pods may be updated, counted as updated before they are.
//!
//! Old is every revision that is not the newest, so a set that is edited meanwhile needs no new ledger. A decision never
//! leaves fewer old pods than [`pinned_target`] asks of all pods the ledger counts.

use std::collections::{BTreeMap, BTreeSet};

use pillion_api::{InjectionLedgerSpec, PodCount};

use crate::share::pinned_target;

mod ordinals;
#[cfg(test)]
mod tests;

pub use ordinals::Member;
use ordinals::Ordinals;

/// The most reservations a ledger has. A pod more gets the pinned revision uncounted, which takes nothing from it.
pub const MAX_RESERVATIONS: usize = 5_000;
/// The most `StatefulSets` whose ordinals are remembered.
const MAX_STATEFUL_SETS: usize = 1_000;

/// Living and reserved pods of a set, by revision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    set_uid: String,
    living: BTreeMap<String, u32>,
    reserved: BTreeMap<String, Vec<String>>,
    claimed: BTreeMap<String, Vec<String>>,
    ordinals: BTreeMap<String, BTreeMap<String, Ordinals>>,
}

/// What is shared between two revisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share<'a> {
    /// The newest revision of the set.
    pub newest: &'a str,
    /// The one it pins.
    pub pinned: &'a str,
    /// How many pods stay at an old one.
    pub partition: PodCount,
}

/// A pod that is about to be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Newcomer<'a> {
    /// The id of its reservation.
    pub id: &'a str,
    /// What it is of a `StatefulSet`.
    pub member: Option<Member<'a>>,
}

/// What a new pod gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given {
    /// The newest revision; it is reserved.
    Newest,
    /// The pinned one; it is reserved.
    Pinned,
    /// The pinned one, as there is no room for a reservation.
    Full,
}

/// A pod that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen<'a> {
    /// Its uid.
    pub uid: &'a str,
    /// The revision it has.
    pub revision: &'a str,
    /// The id of the reservation it was admitted with.
    pub reservation: Option<&'a str>,
    /// What it is of a `StatefulSet`.
    pub member: Option<Member<'a>>,
    /// Whether it stays: one that ends, or leaves with its `ReplicaSet`, is not counted.
    pub is_counted: bool,
}

/// How a canary stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Pods, living and reserved.
    pub pods: usize,
    /// Those that are not at the newest revision.
    pub pinned: usize,
    /// Those that are.
    pub newest: usize,
    /// How many should not be.
    pub target: usize,
    /// How many are at the newest revision and should not be, as others went meanwhile.
    pub excess: usize,
}

impl Ledger {
    /// An empty ledger of the set with this uid.
    pub fn of_set(uid: &str) -> Self {
        Self { set_uid: uid.to_owned(), ..Self::default() }
    }

    /// A ledger as it is stored. Ordinals that cannot be read are not remembered.
    pub fn read(stored: &InjectionLedgerSpec) -> Self {
        let InjectionLedgerSpec { set_uid, living, reserved, claimed, ordinals } = stored.clone();
        let read = |of: BTreeMap<String, String>| {
            of.into_iter().filter_map(|(revision, text)| Some((revision, Ordinals::parse(&text)?))).collect()
        };
        let ordinals = ordinals.into_iter().map(|(name, of)| (name, read(of))).collect();
        Self { set_uid, living, reserved, claimed, ordinals }
    }

    /// The form in which it is stored.
    pub fn stored(&self) -> InjectionLedgerSpec {
        let Self { set_uid, living, reserved, claimed, ordinals } = self.clone();
        let shown = |of: BTreeMap<String, Ordinals>| {
            of.into_iter().map(|(revision, own)| (revision, own.to_string())).collect()
        };
        let ordinals = ordinals.into_iter().map(|(name, of)| (name, shown(of))).collect();
        InjectionLedgerSpec { set_uid, living, reserved, claimed, ordinals }
    }

    /// The uid of the set it is about.
    pub fn set_uid(&self) -> &str {
        &self.set_uid
    }

    /// Ids of reservations, and uids of claims: all that ends after a time.
    pub fn pending(&self) -> impl Iterator<Item = &str> {
        self.reserved.values().chain(self.claimed.values()).flatten().map(String::as_str)
    }

    /// How many reservations there are.
    pub fn reservations(&self) -> usize {
        self.reserved.values().map(Vec::len).sum()
    }

    /// How the canary stands.
    pub fn summary(&self, share: &Share<'_>) -> Summary {
        let (pods, pinned) = self.count(share.newest);
        let target = pinned_target(share.partition, pods);
        Summary { pods, pinned, newest: pods - pinned, target, excess: target.saturating_sub(pinned) }
    }

    /// Decides about a new pod, and counts it. One that has its reservation already gets the same again.
    pub fn reserve(&mut self, share: &Share<'_>, newcomer: &Newcomer<'_>) -> Given {
        let mut own = self.reserved.iter().filter(|(_, ids)| ids.iter().any(|id| id == newcomer.id));
        if let Some((revision, _)) = own.next() {
            return if revision == share.newest { Given::Newest } else { Given::Pinned };
        }
        if self.reservations() >= MAX_RESERVATIONS {
            return Given::Full;
        }
        if let Some(member) = newcomer.member {
            self.forget(member);
        }
        let (pods, old) = self.count(share.newest);
        let (given, revision) = if old < pinned_target(share.partition, pods + 1) {
            (Given::Pinned, share.pinned)
        } else {
            (Given::Newest, share.newest)
        };
        self.reserved.entry(revision.to_owned()).or_default().push(newcomer.id.to_owned());
        given
    }

    /// Counts pods as updated that are about to be, in this order, as long as enough old ones stay. Gives the uids of
    /// those that may be updated.
    pub fn claim<'p>(&mut self, share: &Share<'_>, pods: impl IntoIterator<Item = Seen<'p>>) -> Vec<&'p str> {
        let mut granted = Vec::new();
        for pod in pods {
            if pod.revision == share.newest || self.is_claimed(share.newest, pod.uid) || self.take_over(share, &pod) {
                granted.push(pod.uid);
            }
        }
        granted
    }

    /// The ledger with the pods there are. What is pending and has expired goes; the rest of it stays until its pod is
    /// seen.
    #[must_use]
    pub fn fold<'p>(&self, pods: impl IntoIterator<Item = Seen<'p>>, expired: &BTreeSet<String>) -> Self {
        let mut folded = Self::of_set(&self.set_uid);
        let claims: BTreeMap<&str, &str> =
            self.claimed.iter().flat_map(|(to, uids)| uids.iter().map(|uid| (uid.as_str(), to.as_str()))).collect();
        let mut arrived = BTreeSet::new();
        for pod in pods {
            arrived.extend(pod.reservation);
            if !pod.is_counted {
                continue;
            }
            let claim = claims.get(pod.uid).filter(|to| **to != pod.revision && !expired.contains(pod.uid));
            let revision = match claim {
                Some(to) => {
                    folded.claimed.entry((*to).to_owned()).or_default().push(pod.uid.to_owned());
                    to
                }
                None => pod.revision,
            };
            *folded.living.entry(revision.to_owned()).or_default() += 1;
            if let Some(member) = pod.member {
                folded.remember(member, revision);
            }
        }
        for uids in folded.claimed.values_mut() {
            uids.sort_unstable();
        }
        for (revision, ids) in &self.reserved {
            let waiting = ids.iter().filter(|id| !arrived.contains(id.as_str()) && !expired.contains(*id));
            let waiting: Vec<String> = waiting.cloned().collect();
            if !waiting.is_empty() {
                folded.reserved.insert(revision.clone(), waiting);
            }
        }
        folded
    }

    /// All pods, and those that are not at the newest revision.
    fn count(&self, newest: &str) -> (usize, usize) {
        let living =
            self.living.iter().map(|(revision, pods)| (revision, usize::try_from(*pods).unwrap_or(usize::MAX)));
        let reserved = self.reserved.iter().map(|(revision, ids)| (revision, ids.len()));
        living.chain(reserved).fold((0, 0), |(all, old), (revision, pods)| {
            (all + pods, if revision == newest { old } else { old + pods })
        })
    }

    fn is_claimed(&self, revision: &str, uid: &str) -> bool {
        self.claimed.get(revision).is_some_and(|uids| uids.iter().any(|claimed| claimed == uid))
    }

    /// Counts an old pod as one of the newest. Not one that the ledger does not count yet.
    fn take_over(&mut self, share: &Share<'_>, pod: &Seen<'_>) -> bool {
        let (pods, old) = self.count(share.newest);
        if old <= pinned_target(share.partition, pods) {
            return false;
        }
        // Before the set was edited it may have been claimed for what was the newest then.
        let counted_as = self.drop_claim(pod.uid);
        let has_left = pod.reservation.is_some_and(|id| self.drop_reservation(id))
            || self.take_living(counted_as.as_deref().unwrap_or(pod.revision));
        if has_left {
            *self.living.entry(share.newest.to_owned()).or_default() += 1;
            self.claimed.entry(share.newest.to_owned()).or_default().push(pod.uid.to_owned());
        }
        has_left
    }

    fn take_living(&mut self, revision: &str) -> bool {
        let Some(pods) = self.living.get_mut(revision).filter(|pods| **pods > 0) else { return false };
        *pods -= 1;
        if *pods == 0 {
            self.living.remove(revision);
        }
        true
    }

    /// The revision it was claimed for.
    fn drop_claim(&mut self, uid: &str) -> Option<String> {
        let claimed = self.claimed.iter().find(|(_, uids)| uids.iter().any(|own| own == uid));
        let revision = claimed.map(|(revision, _)| revision.clone())?;
        self.claimed.get_mut(&revision)?.retain(|own| own != uid);
        self.claimed.retain(|_, uids| !uids.is_empty());
        Some(revision)
    }

    fn drop_reservation(&mut self, id: &str) -> bool {
        let mut is_there = false;
        self.reserved.retain(|_, ids| {
            let before = ids.len();
            ids.retain(|own| own != id);
            is_there |= ids.len() < before;
            !ids.is_empty()
        });
        is_there
    }

    /// A member that is created again has ended, whether or not anybody has told.
    fn forget(&mut self, member: Member<'_>) {
        let Some(of) = self.ordinals.get_mut(&member.key()) else { return };
        let revisions =
            of.iter_mut().filter_map(|(revision, own)| own.remove(member.ordinal).then(|| revision.clone()));
        for revision in revisions.collect::<Vec<_>>() {
            self.take_living(&revision);
        }
    }

    fn remember(&mut self, member: Member<'_>, revision: &str) {
        let key = member.key();
        if self.ordinals.len() < MAX_STATEFUL_SETS || self.ordinals.contains_key(&key) {
            self.ordinals.entry(key).or_default().entry(revision.to_owned()).or_default().insert(member.ordinal);
        }
    }
}
