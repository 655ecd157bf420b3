//! The open connections of a server: who holds them, and which of them is closed when there are too many.
//!
//! A connection is new until a request on it was accepted. New connections have a limit of their own: whoever opens many and
//! says nothing takes no place of those who call.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::Limits;

/// The address of a caller. Addresses of one IPv6 network of 64 bits count as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Peer(pub IpAddr);

/// All open connections. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct Connections {
    table: Arc<Mutex<Table>>,
    limits: Arc<Limits>,
}

/// One open connection; dropped when it is closed.
#[derive(Debug)]
pub(super) struct Connection {
    id: u64,
    pub(super) peer: Peer,
    /// Cancelled when this connection has to make room.
    pub(super) evicted: CancellationToken,
    /// Requests that the peer may have answered at once.
    pub(super) requests: Arc<Semaphore>,
    all: Connections,
}

/// A connection that answers a request; it rests when this is dropped.
pub(super) struct Busy<'a>(&'a Connection);

#[derive(Debug, Default)]
struct Table {
    /// Ids grow, so that the lowest is the oldest.
    next_id: u64,
    /// Requests answered so far: a connection that rests remembers when it began.
    clock: u64,
    open: BTreeMap<u64, Open>,
    requests: BTreeMap<Peer, Arc<Semaphore>>,
}

#[derive(Debug)]
struct Open {
    peer: Peer,
    state: State,
    evicted: CancellationToken,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    New,
    Busy,
    Resting { since: u64 },
}

impl Peer {
    /// The peer of an address.
    pub fn of(address: SocketAddr) -> Self {
        match address.ip().to_canonical() {
            IpAddr::V6(address) => Self(IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)))),
            v4 @ IpAddr::V4(_) => Self(v4),
        }
    }
}

impl Connections {
    pub(super) fn new(limits: &Arc<Limits>) -> Self {
        Self { table: Arc::default(), limits: Arc::clone(limits) }
    }

    /// Enters a new connection; returns whether another one had to make room.
    pub(super) fn enter(&self, peer: Peer) -> (Connection, bool) {
        let mut table = self.table.lock();
        let is_full = table.count(|open| open.state == State::New) >= self.limits.new_connections;
        let made_room = is_full && table.evict_new();
        let (id, evicted) = (table.next_id, CancellationToken::new());
        table.next_id += 1;
        table.open.insert(id, Open { peer, state: State::New, evicted: evicted.clone() });
        let permits = self.limits.peer_requests;
        let requests = table.requests.entry(peer).or_insert_with(|| Arc::new(Semaphore::new(permits)));
        let requests = Arc::clone(requests);
        drop(table);
        (Connection { id, peer, evicted, requests, all: self.clone() }, made_room)
    }
}

impl Connection {
    /// Begins a request that was accepted; `None` if there is no room for one more connection, as all others are busy.
    pub(super) fn begin(&self) -> Option<Busy<'_>> {
        let Limits { connections, peer_connections, .. } = *self.all.limits;
        let mut table = self.all.table.lock();
        if table.open.get(&self.id)?.state == State::New {
            let is_known = |open: &Open| open.state != State::New;
            let is_of_peer = |open: &Open| is_known(open) && open.peer == self.peer;
            if table.count(is_of_peer) >= peer_connections && !table.evict_resting(|open| open.peer == self.peer) {
                return None;
            }
            if table.count(is_known) >= connections && !table.evict_resting(|_| true) {
                return None;
            }
        }
        table.open.get_mut(&self.id)?.state = State::Busy;
        Some(Busy(self))
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        let mut table = self.0.all.table.lock();
        table.clock += 1;
        let since = table.clock;
        if let Some(open) = table.open.get_mut(&self.0.id) {
            open.state = State::Resting { since };
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut table = self.all.table.lock();
        table.open.remove(&self.id);
        if table.count(|open| open.peer == self.peer) == 0 {
            table.requests.remove(&self.peer);
        }
    }
}

impl Table {
    /// Counts connections one by one: the limits keep them to a few thousand, and only a new connection is counted against them.
    fn count(&self, is_meant: impl Fn(&Open) -> bool) -> usize {
        self.open.values().filter(|open| is_meant(open)).count()
    }

    /// Evicts the oldest new connection of the peer that has most of them.
    fn evict_new(&mut self) -> bool {
        let mut by_peer: BTreeMap<Peer, (usize, u64)> = BTreeMap::new();
        for (id, open) in self.open.iter().filter(|(_, open)| open.state == State::New) {
            by_peer.entry(open.peer).or_insert((0, *id)).0 += 1;
        }
        let oldest = by_peer.values().max_by_key(|(count, _)| *count).map(|(_, id)| *id);
        oldest.is_some_and(|id| self.evict(id))
    }

    /// Evicts the connection that has rested longest.
    fn evict_resting(&mut self, is_meant: impl Fn(&Open) -> bool) -> bool {
        let resting = self.open.iter().filter_map(|(id, open)| match open.state {
            State::Resting { since } if is_meant(open) => Some((since, *id)),
            _ => None,
        });
        let longest = resting.min().map(|(_, id)| id);
        longest.is_some_and(|id| self.evict(id))
    }

    fn evict(&mut self, id: u64) -> bool {
        let evicted = self.open.remove(&id);
        if let Some(open) = &evicted {
            open.evicted.cancel();
        }
        evicted.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connections(connections: usize, peer_connections: usize, new_connections: usize) -> Connections {
        Connections::new(&Arc::new(Limits { connections, peer_connections, new_connections, ..Limits::default() }))
    }

    fn peer(last: u8) -> Peer {
        Peer::of(([10, 0, 0, last], 5_000).into())
    }

    fn evicted(connections: &[&Connection]) -> Vec<bool> {
        connections.iter().map(|connection| connection.evicted.is_cancelled()).collect()
    }

    #[test]
    fn attack_many_new_connections_take_the_places_of_their_own_peer() {
        let all = connections(10, 10, 4);
        let (quiet, _) = all.enter(peer(1));
        let loud: Vec<Connection> = (0..3).map(|_| all.enter(peer(2)).0).collect();
        let (fifth, made_room) = all.enter(peer(2));
        assert!(made_room);
        assert_eq!(evicted(&[&quiet, &loud[0], &loud[1], &loud[2], &fifth]), [false, true, false, false, false]);
        // The quiet one speaks, and takes none of their places any more.
        drop(quiet.begin().unwrap());
        let (sixth, made_room) = all.enter(peer(3));
        assert!(!made_room && !sixth.evicted.is_cancelled());
    }

    #[test]
    fn the_connection_that_rested_longest_makes_room_and_a_busy_one_never() {
        let all = connections(3, 2, 10);
        let [first, second, third, fourth] = [1, 1, 2, 3].map(|last| all.enter(peer(last)).0);
        for connection in [&second, &first, &third] {
            drop(connection.begin().unwrap());
        }
        let busy = fourth.begin().unwrap();
        assert_eq!(evicted(&[&first, &second, &third, &fourth]), [false, true, false, false]);
        let (fifth, _) = all.enter(peer(1));
        let _third = third.begin().unwrap();
        let _first = first.begin().unwrap();
        // All three are busy.
        assert!(fifth.begin().is_none());
        drop(busy);
        assert!(fifth.begin().is_some());
        assert_eq!(evicted(&[&first, &third, &fourth, &fifth]), [false, false, true, false]);
        assert!(fourth.begin().is_none(), "an evicted connection begins nothing");
    }

    #[test]
    fn a_peer_has_a_limit_of_its_own() {
        let all = connections(10, 1, 10);
        let [a, b, other] = [1, 1, 2].map(|last| all.enter(peer(last)).0);
        drop(other.begin().unwrap());
        let busy = a.begin().unwrap();
        assert!(b.begin().is_none());
        drop(busy);
        assert!(b.begin().is_some());
        assert_eq!(evicted(&[&a, &b, &other]), [true, false, false]);
    }

    #[test]
    fn nothing_is_remembered_of_a_peer_that_is_gone() {
        let all = connections(10, 10, 10);
        let (one, two) = (all.enter(peer(1)).0, all.enter(peer(1)).0);
        assert!(Arc::ptr_eq(&one.requests, &two.requests));
        drop(one);
        assert_eq!(all.table.lock().requests.len(), 1);
        drop(two);
        let table = all.table.lock();
        assert_eq!((table.requests.len(), table.open.len()), (0, 0));
    }

    #[test]
    fn a_peer_is_an_address_or_a_network() {
        let of = |text: &str| Peer::of(text.parse().unwrap());
        assert_eq!(of("10.0.0.1:1"), of("[::ffff:10.0.0.1]:2"));
        assert_ne!(of("10.0.0.1:1"), of("10.0.0.2:1"));
        assert_eq!(of("[fd00::1]:1"), of("[fd00::2]:1"));
        assert_ne!(of("[fd00::1]:1"), of("[fd00:0:0:1::1]:1"));
    }
}
