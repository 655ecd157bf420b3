//! What holds pods that are to be updated, and how many each thing holds.

use std::collections::BTreeMap;

use pillion_api::{Reason, SetMode, UpdateType};

use super::allowance::Spent;
use super::gate::GateView;
use super::roster::Member;
use crate::fleet::Fleet;
use crate::pod::Pod;

/// What holds pods, more exactly than a reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum By {
    Itself,
    Obstacle(usize),
    Spent(Spent),
}

/// How many pods each thing holds, and one of them.
#[derive(Default)]
pub(super) struct Holds<'a> {
    pub(super) of: BTreeMap<(Reason, By), (usize, Option<&'a Pod>)>,
}

impl<'a> Holds<'a> {
    pub(super) fn all(&mut self, reason: Reason, pods: usize) {
        if pods > 0 {
            self.of.insert((reason, By::Itself), (pods, None));
        }
    }

    pub(super) fn one(&mut self, reason: Reason, by: By, member: &Member<'a>) {
        let (count, example) = self.of.entry((reason, by)).or_default();
        *count += 1;
        example.get_or_insert(member.pod);
    }

    pub(super) fn spent(&mut self, spent: Spent, member: &Member<'a>) {
        let reason = match spent {
            Spent::Set | Spent::Workload(_) => Reason::BudgetSpent,
            Spent::Budget(_) => Reason::DisruptionBudget,
        };
        self.one(reason, By::Spent(spent), member);
    }
}

/// What holds all pods because someone said so.
pub(super) fn by_word(fleet: &Fleet<'_>) -> Option<Reason> {
    if fleet.is_off {
        Some(Reason::SwitchedOff)
    } else if fleet.set.mode == SetMode::Observe {
        Some(Reason::Observed)
    } else if fleet.set.update.kind == UpdateType::NotUpdate {
        Some(Reason::UpdateSwitchedOff)
    } else if fleet.set.update.paused {
        Some(Reason::UpdatePaused)
    } else {
        None
    }
}

/// What holds all pods.
pub(super) fn of_all(fleet: &Fleet<'_>, gate: &GateView) -> Option<Reason> {
    by_word(fleet).or_else(|| match gate.told() {
        told if !told.is_closed => None,
        told if told.restored > 0 => Some(Reason::GateRollback),
        _ => Some(Reason::HealthGate),
    })
}
