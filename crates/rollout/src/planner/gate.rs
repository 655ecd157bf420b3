//! The health gate: whether the pods that were updated are well.

use pillion_api::Template;

use super::roster::{Member, Roster};
use crate::difference::Place;
use crate::fleet::Fleet;
use crate::progress::Gate;
use crate::share::effective_max_unavailable;
use crate::swap::{PATIENCE, crashes};

/// The health gate.
pub(super) struct GateView {
    /// Places in the roster of pods that are not well.
    pub(super) unhealthy: Vec<usize>,
    limit: usize,
    restored: usize,
}

impl GateView {
    pub(super) fn of(fleet: &Fleet<'_>, roster: &Roster<'_>) -> Self {
        let places = roster.members.iter().enumerate();
        let unhealthy = places.filter(|(_, member)| member.is_unhealthy).map(|(place, _)| place);
        Self {
            unhealthy: unhealthy.collect(),
            limit: effective_max_unavailable(fleet.set.update.gate.max_unhealthy, roster.members.len()).max(1),
            restored: roster.members.iter().filter(|member| member.is_restored).count(),
        }
    }

    /// One pod that remembers that the newest revision failed keeps it closed: otherwise it would be tried again and again.
    pub(super) fn is_closed(&self) -> bool {
        self.unhealthy.len() >= self.limit || self.restored > 0
    }

    pub(super) fn told(&self) -> Gate {
        Gate {
            unhealthy: self.unhealthy.len(),
            limit: self.limit,
            restored: self.restored,
            is_closed: self.is_closed(),
        }
    }
}

/// The revision a pod that is not well can get back.
pub(super) fn way_back<'a>(fleet: &Fleet<'a>, member: &Member<'a>) -> Option<(&'a str, &'a Template)> {
    let from = member.given?.from.as_deref()?;
    Some((from, fleet.templates.get(from)?))
}

/// Only what we changed is to blame on the update: of pods that were updated in place, the containers that were changed. A pod with
/// containers that somebody else has changed tells nothing about the revision.
pub(super) fn is_unhealthy(fleet: &Fleet<'_>, places: &[Place], member: &Member<'_>) -> bool {
    let is_altered = member.given.is_some_and(|given| given.altered);
    let is_updated = member.has_newest() && !member.is_unseen && !is_altered;
    let (Some(given), Some(since)) = (member.given.filter(|_| is_updated), member.since) else { return false };
    let is_late = fleet.now.as_second() - since >= PATIENCE.as_secs();
    let is_bad = |name: &str, was: Option<&String>| {
        let Some(container) = member.pod.container(name) else { return false };
        let Some(status) = &container.status else { return is_late };
        (is_late && !status.is_running_and_ready()) || crashes(status, was.map_or("", |was| was), given, fleet.now)
    };
    if given.was.is_empty() {
        // Only resources were changed, and the record does not tell of which.
        places.iter().any(|place| is_bad(&place.name, None))
    } else {
        given.was.iter().any(|(name, was)| is_bad(name, Some(was)))
    }
}
