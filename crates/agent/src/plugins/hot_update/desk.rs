//! One update at a time: whoever begins one takes the only place there is, and gives it back when the update has ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;

use pillion_agent_api::Wanted;

use super::failure::Failure;

/// The place.
#[derive(Clone, Debug, Default)]
pub(super) struct Desk(Arc<AtomicBool>);

/// The place, taken.
#[derive(Debug)]
pub(super) struct Seat(Arc<AtomicBool>);

/// An update that a request asks for.
#[derive(Debug)]
pub(super) struct Order {
    pub(super) wanted: Wanted,
    /// Held until the update has ended.
    pub(super) seat: Seat,
    /// What came of it.
    pub(super) outcome_tx: Sender<Result<String, Failure>>,
}

impl Desk {
    /// Takes the place, if nobody has.
    pub(super) fn take(&self) -> Option<Seat> {
        let taken = self.0.swap(true, Ordering::AcqRel);
        (!taken).then(|| Seat(Arc::clone(&self.0)))
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_place() {
        let desk = Desk::default();
        let seat = desk.take();
        assert!(seat.is_some() && desk.take().is_none() && desk.clone().take().is_none());
        drop(seat);
        assert!(desk.take().is_some());
    }
}
