//! The limits of a server.

use std::io;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Limits of a server. No limit rejects the request of a caller who is known: it waits, or the connection that has rested
/// longest makes room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Open connections on which a request was accepted. One more closes the one that has rested longest.
    pub connections: usize,
    /// The same for one peer. All API servers of a cluster may be one peer, behind konnectivity or NAT.
    pub peer_connections: usize,
    /// Open connections on which no request was accepted yet. One more closes the oldest one of the peer that has most.
    pub new_connections: usize,
    /// Requests answered at once; more wait until their deadline.
    pub requests: usize,
    /// The same for one peer.
    pub peer_requests: usize,
    /// Bytes of a body where the path does not decide; a larger one is answered 413.
    pub body: usize,
    /// Bytes of all small bodies that are being read or answered; more wait until their deadline.
    pub small_bodies: usize,
    /// The same for bodies of more than 256 KiB.
    pub large_bodies: usize,
    /// Longest duration of a TLS handshake.
    pub handshake: Duration,
    /// Longest duration of the head of a connection's first request.
    pub headers: Duration,
    /// Longest rest of a connection between requests. Longer than callers keep one (the API server: 90 s), so that
    /// it is they who close it and no request is sent into a closed one.
    pub idle: Duration,
    /// Longest time for one request, also where its caller would wait longer; then it is answered 504.
    pub answer: Duration,
    /// After this long the next answer closes the connection, so that callers spread over replicas that came later.
    pub age: Duration,
}

/// For webhooks. An API server has up to 200 writing requests at once by default, and five of them may share one address.
/// Bodies take 48 MiB at most, of the 256 MiB that the chart gives.
impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 1_500,
            peer_connections: 1_000,
            new_connections: 1_000,
            requests: 200,
            peer_requests: 150,
            body: 8 << 20,
            small_bodies: 32 << 20,
            large_bodies: 16 << 20,
            handshake: Duration::from_secs(5),
            headers: Duration::from_secs(5),
            idle: Duration::from_mins(2),
            answer: Duration::from_secs(10),
            age: Duration::from_mins(10),
        }
    }
}

impl Limits {
    /// For pages that a kubelet and Prometheus read.
    pub fn of_admin() -> Self {
        Self {
            connections: 64,
            peer_connections: 32,
            new_connections: 64,
            requests: 8,
            peer_requests: 4,
            body: 1 << 10,
            small_bodies: 64 << 10,
            large_bodies: 0,
            ..Self::default()
        }
    }
}

/// Raises the number of files that this process may have open to the most that it is allowed: each connection is one, and some
/// container runtimes begin with 1,024.
pub fn raise_open_files() -> io::Result<()> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    Ok(setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_files_may_be_open_as_the_process_is_allowed() {
        let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: Some(200), maximum }).unwrap();
        raise_open_files().unwrap();
        assert_eq!(getrlimit(Resource::Nofile), Rlimit { current: maximum, maximum });
    }
}
