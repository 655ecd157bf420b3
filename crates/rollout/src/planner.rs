//! Which pods are updated next, and how the update stands: one function of a set, its pods and the time.
//!
//! Rules, the first that holds a pod being the one that is told:
//!
//! - Everything waits while the set or the installation says so, and while the health gate is closed.
//! - A pod follows in place only by images, and by resources where the set allows it; otherwise when it is created again.
//! - The partition keeps as many pods as they are, counting those that cannot follow in place.
//! - Until one pod has run the newest revision well for a while, one pod at a time is tried: a ready one if the budget has
//!   room for it.
//! - A ready pod is updated if fewer pods are unavailable than may be, whoever made them so: of the set, of its workload, and
//!   of each `PodDisruptionBudget`. A pod that is not ready becomes no worse by it, so what counts for it are the pods that
//!   are under way; and for one that is not ready and under way itself, those on the way to the same revision: otherwise
//!   pods that are stuck would keep each other from what mends them.
//! - A pod that was updated a few seconds ago, or does not run yet what it was given, is left alone, unless that has failed.

use pillion_plan::{Action, Plan};

use crate::fleet::Fleet;
use crate::progress::Progress;

mod allowance;
mod gate;
mod ground;
mod hold;
mod roster;
mod starts;
mod telling;
mod write;

pub use ground::ground;

use gate::GateView;
use hold::Holds;
use roster::Roster;

/// What is to be written now, and how the update stands.
pub fn plan(fleet: &Fleet<'_>) -> (Plan, Progress) {
    let roster = Roster::of(fleet);
    let gate = GateView::of(fleet, &roster);
    let mut holds = Holds::default();
    let mut actions: Vec<Action> = Vec::new();
    match hold::of_all(fleet, &gate) {
        Some(reason) => holds.all(reason, roster.waiting()),
        None => actions.extend(starts::starts(fleet, &roster, &mut holds).into_iter().map(Action::Update)),
    }
    if gate.is_closed() && hold::by_word(fleet).is_none() {
        actions.extend(starts::restores(fleet, &roster, &gate).into_iter().map(Action::Restore));
    }
    let progress: Progress = telling::progress(fleet, &roster, &gate, holds, actions.len());
    (Plan { actions }, progress)
}
