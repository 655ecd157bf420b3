//! Fields of other objects: written where they differ, looked at again as often as the pod is.

use std::time::{Duration, Instant};

use pillion_agent_api::Target;

use super::as_chain;
use super::budget::Budget;
use crate::api_server::ApiError;
use crate::board::Board;
use crate::board::sink::Sink;
use crate::pause::{Pauses, lengthen, spread};
use crate::talk::tell;

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// What was last done about each.
#[derive(Debug, Default)]
pub(super) struct Targets(Vec<State>);

#[derive(Debug)]
struct State {
    target: Target,
    /// What the field is known to hold.
    settled: Option<String>,
    /// When to look again.
    look_at: Instant,
    wait_until: Option<Instant>,
    pauses: Pauses,
    told: Option<String>,
}

impl Targets {
    /// Does what is to be done now; returns when there will be more.
    pub(super) fn step(
        &mut self,
        board: &Board,
        sink: &mut impl Sink,
        budget: &mut Budget,
        now: Instant,
    ) -> Option<Instant> {
        let wanted = board.targets();
        self.0.retain(|state| wanted.iter().any(|(target, _)| *target == state.target));
        for (target, value) in &wanted {
            let at = self.0.iter().position(|state| state.target == *target).unwrap_or_else(|| {
                self.0.push(State::new(target, now));
                self.0.len() - 1
            });
            self.0[at].step(board, sink, budget, value, now);
        }
        self.0.iter().map(|state| state.wait_until.unwrap_or(state.look_at)).min()
    }
}

impl State {
    fn new(target: &Target, now: Instant) -> Self {
        Self {
            target: target.clone(),
            settled: None,
            look_at: now,
            wait_until: None,
            pauses: Pauses::new(FIRST_PAUSE, LONGEST_PAUSE),
            told: None,
        }
    }

    fn step(&mut self, board: &Board, sink: &mut impl Sink, budget: &mut Budget, value: &str, now: Instant) {
        if self.wait_until.is_some_and(|until| now < until) {
            return;
        }
        self.wait_until = None;
        let is_settled = self.settled.as_deref() == Some(value);
        if is_settled && now < self.look_at {
            return;
        }
        if !is_settled && !budget.take(now) {
            self.wait_until = Some(budget.next(now));
            return;
        }
        match self.look_and_write(board, sink, value, is_settled) {
            Ok(()) => {
                self.settled = Some(value.to_owned());
                self.look_at = now + lengthen(board.reassert());
                self.pauses.reset();
                self.told = None;
            }
            Err(error) => self.fail(board, &error, now),
        }
    }

    fn look_and_write(
        &self,
        board: &Board,
        sink: &mut impl Sink,
        value: &str,
        is_settled: bool,
    ) -> Result<(), ApiError> {
        if sink.look_at(&self.target)?.as_deref() == Some(value) {
            return Ok(());
        }
        sink.write_to(&self.target, value)?;
        board.count(|counters| {
            counters.writes += 1;
            if is_settled {
                *counters.reasserts.entry(self.target.resource.clone()).or_default() += 1;
            }
        });
        Ok(())
    }

    fn fail(&mut self, board: &Board, error: &ApiError, now: Instant) {
        board.count(|counters| counters.failures += 1);
        self.wait_until = Some(now + spread(self.pauses.grow()));
        let Target { group, resource, namespace, name, pointer, .. } = &self.target;
        let message = match error {
            ApiError::Refused { status: 403, message } => format!(
                "the agent may not patch {resource} {namespace}/{name}: list {group}/{resource} in the chart's \
                 agent.targets, and its values in the configuration: {message}"
            ),
            ApiError::Refused { status: 404, .. } => {
                format!("there is no {resource} {namespace}/{name} to write {pointer} of; will try again")
            }
            error => {
                format!("cannot write {pointer} of {resource} {namespace}/{name}, will try again: {}", as_chain(error))
            }
        };
        if self.told.as_ref() != Some(&message) {
            tell(format_args!("{message}"));
            self.told = Some(message);
        }
    }
}
