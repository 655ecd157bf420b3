//! A slot: the number that keeps beds on one machine apart. Every name and address of a bed follows from it.

use std::fs::{self, File, TryLockError};
use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// How many beds may run at once; a bed with a node takes about 1 GiB.
const SLOTS: u8 = 32;

/// The number of a bed on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Slot(u8);

/// A slot that is ours until this value is dropped.
#[derive(Debug)]
pub(crate) struct HeldSlot {
    pub(crate) slot: Slot,
    /// Locked as long as it is open; the kernel lets go of it however the process ends.
    _lock: File,
}

impl Slot {
    /// Takes the first slot that no living bed holds. Lock files stay in `folder`: removing one while
    /// another process opens it would let two beds hold the same slot.
    pub(crate) fn take(folder: &Path) -> io::Result<HeldSlot> {
        fs::create_dir_all(folder)?;
        for slot in Self::all() {
            if let Some(held) = slot.try_hold(folder)? {
                return Ok(held);
            }
        }
        Err(io::Error::other(format!("all {SLOTS} slots for beds are taken: stop one")))
    }

    /// Takes this slot unless a living bed holds it.
    pub(crate) fn try_hold(self, folder: &Path) -> io::Result<Option<HeldSlot>> {
        let lock = File::create(folder.join(format!("slot-{}.lock", self.0)))?;
        match lock.try_lock() {
            Ok(()) => Ok(Some(HeldSlot { slot: self, _lock: lock })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    pub(crate) fn all() -> impl Iterator<Item = Self> {
        (0..SLOTS).map(Self)
    }

    /// Name of the bed's network namespace and of its cgroups.
    pub fn name(self) -> String {
        format!("pillion-bed-{}", self.0)
    }

    /// The bed's folder for everything that dies with it. Short, because sockets live in it, and not under
    /// `/var` or `/run`, which a node sees through mounts of its own.
    pub fn folder(self) -> PathBuf {
        PathBuf::from("/tmp").join(self.name())
    }

    /// The interface on the host's side.
    pub(crate) fn host_interface(self) -> String {
        format!("plbed{}", self.0)
    }

    /// The bed's address on the host's side: control plane, webhooks of tests.
    pub fn host(self) -> Ipv4Addr {
        Ipv4Addr::new(10, 213, self.0, 1)
    }

    /// The real node's address.
    pub fn node(self) -> Ipv4Addr {
        Ipv4Addr::new(10, 213, self.0, 2)
    }

    /// The network of the real node's pods.
    pub(crate) fn pod_network(self) -> String {
        format!("10.214.{}.0/24", self.0)
    }

    /// A loopback address of the bed's own, so that ports need not differ between beds.
    pub(crate) fn loopback(self) -> Ipv4Addr {
        Ipv4Addr::new(127, 213, self.0, 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_holders_get_two_slots_and_a_dropped_one_is_free_again() {
        let folder = tempfile::tempdir().unwrap();
        let first = Slot::take(folder.path()).unwrap();
        let second = Slot::take(folder.path()).unwrap();
        assert_eq!((first.slot, second.slot), (Slot(0), Slot(1)));
        assert!(Slot(0).try_hold(folder.path()).unwrap().is_none(), "it is held");
        drop(first);
        assert_eq!(Slot::take(folder.path()).unwrap().slot, Slot(0));
    }

    #[test]
    fn no_address_is_shared_by_two_slots() {
        let mut seen = std::collections::BTreeSet::new();
        for slot in Slot::all() {
            for address in
                [slot.host().to_string(), slot.node().to_string(), slot.loopback().to_string(), slot.pod_network()]
            {
                assert!(seen.insert(address.clone()), "{address} is used twice");
            }
        }
    }
}
