//! The one thread that makes updates: it looks at what the owner asks for, takes orders of requests, and keeps the record.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use pillion_agent_api::{HotUpdate, Outcome, OutcomeState, Version, Wanted};

use crate::board::Board;
use crate::pause::{Pauses, spread};
use crate::stop::Stop;
use crate::talk::tell;

use super::course::{Next, next};
use super::desk::{Desk, Order};
use super::failure::{Failure, Kind};
use super::fetch::Resolver;
use super::marks;
use super::record::{Asked, Record};
use super::reload::{Ability, Reloader};
use super::store::Store;
use super::update::{Target, Updater};
use super::wanted::{Trigger, Word};

/// The name results are posted under.
pub(super) const SOURCE: &str = "hot_update";
/// How often it is looked at what the owner asks for.
const LOOK: Duration = Duration::from_secs(1);
const FIRST_PAUSE: Duration = Duration::from_secs(10);
const LONGEST_PAUSE: Duration = Duration::from_mins(10);

/// Makes updates.
pub(super) struct Worker<'a> {
    config: &'a HotUpdate,
    store: &'a Store,
    reloader: &'a Reloader,
    resolver: &'a dyn Resolver,
    board: Arc<Board>,
    stop: Stop,
    desk: Desk,
    ability: Ability,
    record: Record,
    /// When the last update began.
    began: Option<Instant>,
    /// When what failed is tried again; `None` for not in this life.
    again_at: Option<Instant>,
    pauses: Pauses,
    /// Whether the owner's last word made no sense, which is what the pod shows.
    is_odd: bool,
}

impl<'a> Worker<'a> {
    pub(super) fn new(
        config: &'a HotUpdate,
        store: &'a Store,
        reloader: &'a Reloader,
        resolver: &'a dyn Resolver,
        (board, stop, desk): (Arc<Board>, Stop, Desk),
    ) -> Self {
        let mut record = Record::parse(store.read_state().as_deref());
        let ability = reloader.ability();
        let worker = Self {
            config,
            store,
            reloader,
            resolver,
            board,
            stop,
            desk,
            ability,
            record: Record::default(),
            began: None,
            // What an earlier agent left undone is done at once.
            again_at: Some(Instant::now()),
            pauses: Pauses::new(FIRST_PAUSE, LONGEST_PAUSE),
            is_odd: false,
        };
        // What was done is looked at once: the folder is shared.
        if let Some(Asked { state: state @ OutcomeState::Done, .. }) = &mut record.asked {
            let is_there = record.good.as_ref().is_some_and(|good| {
                store.current().as_deref() == Some(&good.entry().folder) && worker.updater().is_stored(good)
            });
            if !is_there {
                *state = OutcomeState::Working;
            }
        }
        Self { record, ..worker }
    }

    /// Works until the agent ends.
    pub(super) fn run(&mut self, trigger: &Trigger, order_rx: &Receiver<Order>) {
        self.post();
        while !self.stop.is_stopped() {
            self.look(trigger.look());
            match order_rx.recv_timeout(LOOK) {
                Ok(order) => self.serve(order),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    self.stop.wait(LOOK);
                }
            }
        }
    }

    /// Sees what the owner asks for.
    pub(super) fn look(&mut self, word: Word) {
        let owner = match word {
            // It will be known, and what is there stays until then.
            Word::Unknown => return,
            Word::Odd(why) => {
                self.is_odd = true;
                return self.post_odd(&why);
            }
            Word::Nothing => None,
            Word::Wanted(wanted) => Some(wanted),
        };
        if std::mem::take(&mut self.is_odd) {
            self.post();
        }
        if owner.is_none() && (self.record.owner.is_some() || self.store.read_state().is_none()) {
            // To ask for the same again is then a new word. And `ready` sees that somebody has looked.
            self.record.owner = None;
            self.save();
        }
        let Next::Update { wanted, may_fetch, again } = next(&self.record, owner.as_ref()) else { return };
        let is_due = !again || self.again_at.is_some_and(|at| at <= Instant::now());
        if !is_due || self.too_soon().is_some() {
            return;
        }
        let Some(_seat) = self.desk.take() else { return };
        if !again {
            self.record.owner = owner;
            self.pauses.reset();
        }
        // The outcome is told where everybody looks.
        let _ = self.update(&wanted, may_fetch);
    }

    /// Does what a request asks for.
    pub(super) fn serve(&mut self, order: Order) {
        let Order { wanted, seat, outcome_tx } = order;
        let refusal = self.too_soon().or_else(|| self.downgrade(&wanted));
        let outcome = match refusal {
            Some(refusal) => Err(refusal),
            // What the rules refuse is no update: it changes nothing of what was asked before.
            None => Target::of(&wanted, self.config).and_then(|_| self.update(&wanted, true)),
        };
        drop(seat);
        // A caller that went away has its outcome on the pod.
        let _ = outcome_tx.send(outcome);
    }

    fn too_soon(&self) -> Option<Failure> {
        let seconds = self.config.bounds.min_interval_seconds;
        let is_too_soon = self.began.is_some_and(|began| began.elapsed() < Duration::from_secs(seconds.into()));
        is_too_soon.then(|| Failure::new(Kind::Busy, format!("the last update began less than {seconds} s ago")))
    }

    /// A request may not bring back an old version with its old faults; the owner may.
    fn downgrade(&self, wanted: &Wanted) -> Option<Failure> {
        let current = &self.record.good.as_ref()?.version;
        let is_lower = wanted.version.parse::<Version>().ok()?.is_below(&current.parse().ok()?);
        (is_lower && !self.config.allow_downgrade).then(|| {
            Failure::refused(format!(
                "{} is lower than {current}, which the app has: set allowDowngrade, or ask by the annotation of the pod",
                wanted.version
            ))
        })
    }

    fn update(&mut self, wanted: &Wanted, may_fetch: bool) -> Result<String, Failure> {
        self.began = Some(Instant::now());
        let asked = |state, message: &str, given_up| {
            Some(Asked { wanted: wanted.clone(), state, message: message.to_owned(), given_up })
        };
        let target = Target::of(wanted, self.config);
        self.updater().settle(target.as_ref().ok(), self.record.good.as_ref());
        self.record.asked = asked(OutcomeState::Working, "", false);
        let outcome = match &target {
            Ok(target) => {
                self.save();
                self.post();
                self.updater().run(target, self.record.good.as_ref(), may_fetch)
            }
            Err(refusal) => Err(refusal.clone()),
        };
        match (&outcome, target) {
            // It stands as it stands, and goes on after the start.
            (Err(Failure { kind: Kind::Stopped, .. }), _) | (Ok(_), Err(_)) => return outcome,
            (Ok(message), Ok(target)) => {
                tell(format_args!("hot_update: {} is in place: {message}", wanted.version));
                self.record.asked = asked(OutcomeState::Done, message, false);
                self.updater().tidy(&target.good);
                self.record.good = Some(target.good);
                self.pauses.reset();
            }
            (Err(failure), _) => {
                tell(format_args!("hot_update: {} failed: {failure}", wanted.version));
                let may_pass = failure.kind.may_pass() && may_fetch;
                self.again_at = may_pass.then(|| Instant::now() + spread(self.pauses.grow()));
                let message = if may_pass { format!("{failure}; it will be tried again") } else { failure.to_string() };
                // What the rules refuse is looked at again when the agent or its rules are new.
                let given_up = !may_pass && failure.kind != Kind::Refused;
                self.record.asked = asked(OutcomeState::Failed, &message, given_up);
            }
        }
        // The app may have come since the agent's start.
        self.ability = self.reloader.ability();
        self.save();
        self.post();
        outcome
    }

    fn updater(&self) -> Updater<'_> {
        let Self { config, store, reloader, resolver, stop, .. } = self;
        Updater { config, store, reloader, resolver: *resolver, stop }
    }

    fn save(&self) {
        if let Err(error) = self.store.write_state(&self.record.to_text()) {
            tell(format_args!("hot_update: cannot keep the record in {}: {error}", self.config.file_dir));
        }
    }

    /// Tells what became of what was asked.
    fn post(&self) {
        let storage = &self.config.storage;
        let marks = match &self.record.asked {
            Some(Asked { wanted, state, message, .. }) => {
                marks::of_outcome(&self.outcome(&wanted.version, *state, message), &self.ability, storage)
            }
            None => marks::of_ability(&self.ability, storage),
        };
        self.board.post(SOURCE, marks);
    }

    fn post_odd(&self, why: &str) {
        let outcome = self.outcome("", OutcomeState::Failed, why);
        self.board.post(SOURCE, marks::of_outcome(&outcome, &self.ability, &self.config.storage));
    }

    fn outcome(&self, version: &str, state: OutcomeState, message: &str) -> Outcome {
        let current = self.record.good.as_ref().map(|good| good.version.clone());
        Outcome { version: version.to_owned(), state, current, message: message.to_owned() }
    }
}

#[cfg(test)]
mod tests;
