//! The memory that bodies of requests may take.

use tokio::sync::{Semaphore, SemaphorePermit};

use super::Limits;

/// A body of more bytes is large. Pods of people are a tenth of it.
pub const LARGE_BODY: usize = 256 << 10;
/// Bytes of one permit.
const UNIT: usize = 1 << 10;

/// Bytes of bodies in flight. Large bodies have a share of their own, so that small ones do not wait for them.
#[derive(Debug)]
pub(super) struct Bodies {
    small: Pool,
    large: Pool,
}

#[derive(Debug)]
struct Pool {
    permits: Semaphore,
    all: usize,
}

impl Bodies {
    pub(super) fn new(limits: &Limits) -> Self {
        Self { small: Pool::new(limits.small_bodies), large: Pool::new(limits.large_bodies) }
    }

    /// Waits until a body of so many bytes has room. The room is free again when the permit is dropped.
    pub(super) async fn reserve(&self, bytes: usize) -> SemaphorePermit<'_> {
        let pool = if bytes > LARGE_BODY { &self.large } else { &self.small };
        let permits = bytes.div_ceil(UNIT).min(pool.all);
        let permits = u32::try_from(permits).unwrap_or(u32::MAX);
        pool.permits.acquire_many(permits).await.expect("nobody closes it")
    }
}

impl Pool {
    fn new(bytes: usize) -> Self {
        let all = bytes / UNIT;
        Self { permits: Semaphore::new(all), all }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn bodies_wait_for_those_of_their_size_alone() {
        let limits = Limits { small_bodies: 512 << 10, large_bodies: 1 << 20, ..Limits::default() };
        let bodies = Bodies::new(&limits);
        let reserve = |bytes| bodies.reserve(bytes).now_or_never();
        let small = [reserve(LARGE_BODY), reserve(LARGE_BODY)];
        assert!(small.iter().all(Option::is_some) && reserve(1).is_none());
        // An empty body needs no room, and one that is larger than all room takes all of it.
        assert!(reserve(0).is_some());
        let large = reserve(8 << 20);
        assert!(large.is_some() && reserve(LARGE_BODY + 1).is_none());
        drop(small);
        assert!(reserve(1).is_some());
        drop(large);
        assert!(reserve(LARGE_BODY + 1).is_some());
    }
}
