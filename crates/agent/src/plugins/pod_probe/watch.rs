//! A probe over time: asked again and again, and told as a condition.

use std::collections::BTreeMap;

use super::ask::Outcome;
use super::list::Probe;
use crate::board::{Condition, ConditionStatus, Marks};
use crate::plugin::Context;
use crate::talk::tell;
use crate::tally::Tally;

/// A probe that is run.
#[derive(Debug)]
pub(super) struct Watched {
    source: String,
    probe: Probe,
    tally: Tally<bool>,
    /// The outcome that enough answers have made.
    current: Option<bool>,
}

impl Watched {
    pub(super) fn new(source: String, probe: Probe) -> Self {
        Self { source, probe, tally: Tally::default(), current: None }
    }

    pub(super) fn source(&self) -> &str {
        &self.source
    }

    /// Asks until it is time to end.
    pub(super) fn watch(&mut self, context: &Context) {
        let mut told = None;
        if context.stop.wait(self.probe.initial_delay) {
            return;
        }
        loop {
            let outcome = self.probe.ask(context.board.facts().as_ref());
            if context.stop.is_stopped() {
                return;
            }
            if let Some(condition) = self.take(outcome) {
                if told.replace(condition.status) != Some(condition.status) {
                    let (kind, status) = (&self.probe.condition, condition.status.as_str());
                    tell(format_args!("condition {kind} is {status}: {:?}", condition.message));
                }
                let conditions = BTreeMap::from([(self.probe.condition.clone(), condition)]);
                context.board.post(&self.source, Marks { conditions, ..Marks::default() });
            }
            if context.stop.wait(self.probe.period) {
                return;
            }
        }
    }

    /// What the pod is to show after an answer, if it makes a difference.
    fn take(&mut self, outcome: Outcome) -> Option<Condition> {
        let condition = |status, reason: &str, message| Condition { status, reason: reason.to_owned(), message };
        match outcome {
            Outcome::NotYet => None,
            Outcome::Cannot { reason, message } => Some(condition(ConditionStatus::Unknown, reason, message)),
            Outcome::Answered { is_success, message } => {
                let Probe { success_threshold, failure_threshold, .. } = self.probe;
                let threshold = if is_success { success_threshold } else { failure_threshold };
                let count = self.tally.add(is_success);
                if self.current != Some(is_success) && count < threshold {
                    return None;
                }
                self.current = Some(is_success);
                Some(if is_success {
                    condition(ConditionStatus::True, "ProbeSucceeded", message)
                } else {
                    condition(ConditionStatus::False, "ProbeFailed", message)
                })
            }
        }
    }
}

#[cfg(test)]
mod tests;
