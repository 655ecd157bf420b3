//! The one thread that writes: it looks at the pod, compares, writes what differs, and looks again after a while.
//!
//! It is driven by levels, not by events: what counts is what is wanted and what is shown, so a lost wake-up, a failed
//! request or another writer costs time and nothing else. Each step is told the time, so that tests need not wait.

mod budget;
mod refusals;
mod targets;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use self::budget::Budget;
use self::refusals::Refusals;
use self::targets::Targets;
use super::difference::{Difference, patch_of};
use super::shown::Shown;
use super::sink::Sink;
use super::{Board, Content, Place, Woken};
use crate::api_server::ApiError;
use crate::pause::{Pauses, lengthen, spread};
use crate::talk::tell;
use crate::timestamp::Timestamp;

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// Brings what is wanted to the pod, and keeps it there.
pub(crate) struct Writer<S> {
    board: Arc<Board>,
    sink: S,
    /// The pod as the last answer told it.
    shown: Option<Shown>,
    /// When to look again; now, where nothing was seen yet.
    look_at: Instant,
    /// Not before then, after a failure.
    wait_until: Option<Instant>,
    pauses: Pauses,
    budget: Budget,
    /// Conditions that we have written.
    claimed: BTreeSet<String>,
    /// What we have seen in its place: where it is gone later, somebody has overwritten it.
    settled: BTreeMap<Place, Option<Content>>,
    refusals: Refusals,
    targets: Targets,
    /// The last failure, which is not said again.
    told: Option<String>,
    told_foreign: BTreeMap<String, String>,
}

impl<S: Sink> Writer<S> {
    pub(crate) fn new(board: Arc<Board>, sink: S, now: Instant) -> Self {
        Self {
            board,
            sink,
            shown: None,
            look_at: now,
            wait_until: None,
            pauses: Pauses::new(FIRST_PAUSE, LONGEST_PAUSE),
            budget: Budget::new(now),
            claimed: BTreeSet::new(),
            settled: BTreeMap::new(),
            refusals: Refusals::default(),
            targets: Targets::default(),
            told: None,
            told_foreign: BTreeMap::new(),
        }
    }

    /// Works until the board is closed.
    pub(crate) fn run(mut self) {
        let mut seen = 0;
        loop {
            let next = self.step(Instant::now(), Timestamp::now());
            if self.board.wait(&mut seen, next) == Woken::Closed {
                // What was posted last is not lost, if the API server takes it at once.
                self.step(Instant::now(), Timestamp::now());
                return;
            }
        }
    }

    /// Does what is to be done now, and returns when there will be more; never, if the board does not change.
    fn step(&mut self, now: Instant, clock: Timestamp) -> Option<Instant> {
        let of_pod = self.step_pod(now, clock);
        let of_targets = self.targets.step(&self.board, &mut self.sink, &mut self.budget, now);
        of_pod.into_iter().chain(of_targets).min()
    }

    fn step_pod(&mut self, now: Instant, clock: Timestamp) -> Option<Instant> {
        if !self.board.is_of_use() {
            return None;
        }
        if let Some(until) = self.wait_until.filter(|until| now < *until) {
            return Some(until);
        }
        match self.look_and_write(now, clock) {
            Ok(put_off) => {
                self.wait_until = None;
                self.pauses.reset();
                if self.told.take().is_some() {
                    tell(format_args!("the API server takes the agent's writes again"));
                }
                [Some(self.look_at), self.refusals.next(now), put_off].into_iter().flatten().min()
            }
            Err(error) => {
                self.fail(&error, now);
                self.wait_until
            }
        }
    }

    /// Returns until when a write is put off, if one is.
    fn look_and_write(&mut self, now: Instant, clock: Timestamp) -> Result<Option<Instant>, ApiError> {
        let is_look = self.shown.is_none() || now >= self.look_at;
        if is_look {
            let shown = self.sink.look()?;
            self.take(shown, now);
        }
        let shown = self.shown.as_ref().expect("it was looked at");
        let wanted = self.board.wanted();
        let Difference { changes, heartbeats, foreign } = Difference::of(&wanted, shown, &self.claimed, clock);
        if is_look {
            self.count_reasserts(&changes, shown);
        }
        self.tell_foreign(foreign);
        for (place, content) in wanted {
            if !changes.contains_key(&place) {
                self.settled.insert(place, content);
            }
        }
        let mut changes = changes;
        changes.extend(heartbeats);
        self.refusals.leave_out(&mut changes, now);
        if changes.is_empty() {
            return Ok(None);
        }
        if !self.budget.take(now) {
            return Ok(Some(self.budget.next(now)));
        }
        self.write(&changes, now, clock)?;
        Ok(None)
    }

    fn tell_foreign(&mut self, foreign: BTreeMap<String, String>) {
        for (kind, owner) in &foreign {
            if self.told_foreign.get(kind) != Some(owner) {
                tell(format_args!("condition {kind} of the pod is written by {owner}: this agent leaves it alone"));
            }
        }
        self.told_foreign = foreign;
    }

    fn write(
        &mut self,
        changes: &BTreeMap<Place, Option<Content>>,
        now: Instant,
        clock: Timestamp,
    ) -> Result<(), ApiError> {
        match self.send(changes, now, clock) {
            Err(ApiError::Refused { status: status @ (403 | 422), message }) if changes.len() == 1 => {
                let (place, _) = changes.first_key_value().expect("there is one");
                self.board.count(|counters| counters.failures += 1);
                self.refusals.add(place, status, &message, now);
                Ok(())
            }
            // One that is not allowed must not keep the others back.
            Err(ApiError::Refused { status: 403 | 422, .. }) => {
                for (place, content) in changes {
                    self.write(&BTreeMap::from([(place.clone(), content.clone())]), now, clock)?;
                }
                Ok(())
            }
            outcome => outcome,
        }
    }

    fn send(
        &mut self,
        changes: &BTreeMap<Place, Option<Content>>,
        now: Instant,
        clock: Timestamp,
    ) -> Result<(), ApiError> {
        let patch = patch_of(changes, self.shown.as_ref().unwrap_or(&Shown::default()), clock);
        let shown = self.sink.write(&patch)?;
        self.board.count(|counters| counters.writes += 1);
        for (place, content) in changes {
            self.refusals.forget(place);
            self.settled.insert(place.clone(), content.clone());
            if let (Place::Condition(kind), Some(_)) = (place, content) {
                self.claimed.insert(kind.clone());
            }
        }
        self.take(shown, now);
        Ok(())
    }

    fn take(&mut self, shown: Shown, now: Instant) {
        self.board.tell_facts(shown.facts());
        self.shown = Some(shown);
        self.look_at = now + lengthen(self.board.reassert());
    }

    /// Says who has overwritten what, and counts it.
    fn count_reasserts(&self, changes: &BTreeMap<Place, Option<Content>>, shown: &Shown) {
        for (place, _) in changes.iter().filter(|(place, content)| self.settled.get(place) == Some(content)) {
            let who = shown.who_changed(place);
            let mut count = 0;
            self.board.count(|counters| {
                let counter = counters.reasserts.entry(who.to_owned()).or_default();
                *counter += 1;
                count = *counter;
            });
            // A virtual kubelet does it again and again: said at 1, 2, 4, 8, …
            if count.is_power_of_two() {
                tell(format_args!("{place} was overwritten by {who}: it is set again; {count} so far by {who}"));
            }
        }
    }

    fn fail(&mut self, error: &ApiError, now: Instant) {
        self.board.count(|counters| counters.failures += 1);
        let pause = spread(self.pauses.grow());
        self.wait_until = Some(now + pause);
        let message = match error {
            ApiError::Refused { status: 403, message } => format!(
                "the agent may not patch pods/status of its pod: give its service account the verb patch on \
                 pods/status in its namespace, and let the fence know its keys: {message}"
            ),
            error => format!("cannot write to the pod, will try again: {:#}", as_chain(error)),
        };
        if self.told.as_ref() != Some(&message) {
            tell(format_args!("{message}"));
            self.told = Some(message);
        }
    }
}

/// With all its causes.
fn as_chain(error: &ApiError) -> String {
    match error {
        ApiError::Refused { .. } => error.to_string(),
        ApiError::Unreachable(error) => format!("{error:#}"),
    }
}

#[cfg(test)]
mod tests;
