//! Places that the API server does not let us write: tried again later and later, and never at the cost of others.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::board::{Content, Place};
use crate::pause::{Pauses, spread};
use crate::talk::tell;

const FIRST_PAUSE: Duration = Duration::from_secs(10);
const LONGEST_PAUSE: Duration = Duration::from_mins(2);

#[derive(Debug, Default)]
pub(super) struct Refusals(BTreeMap<Place, Refusal>);

#[derive(Debug)]
struct Refusal {
    until: Instant,
    pauses: Pauses,
}

impl Refusals {
    /// Leaves out what is not to be tried yet.
    pub(super) fn leave_out(&self, changes: &mut BTreeMap<Place, Option<Content>>, now: Instant) {
        changes.retain(|place, _| self.0.get(place).is_none_or(|refusal| refusal.until <= now));
    }

    /// It was refused.
    pub(super) fn add(&mut self, place: &Place, status: u16, message: &str, now: Instant) {
        let refusal = self.0.entry(place.clone()).or_insert_with(|| {
            // Said once; it is tried again in silence.
            tell(format_args!("the API server does not let the agent write {place}: {status}: {message}"));
            Refusal { until: now, pauses: Pauses::new(FIRST_PAUSE, LONGEST_PAUSE) }
        });
        refusal.until = now + spread(refusal.pauses.grow());
    }

    /// It was taken.
    pub(super) fn forget(&mut self, place: &Place) {
        if self.0.remove(place).is_some() {
            tell(format_args!("the API server lets the agent write {place} now"));
        }
    }

    /// When the next one is to be tried again.
    pub(super) fn next(&self, now: Instant) -> Option<Instant> {
        self.0.values().map(|refusal| refusal.until).filter(|until| *until > now).min()
    }
}
