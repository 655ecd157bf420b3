//! One who wants to hold the lease, as a value: told what was answered and what time it is, it says what to do next.
//!
//! Why two never hold at once. A holder counts from the moment *before it sent* its last successful write, and stops
//! believing a margin before the lease's duration is over. The others count the whole duration from the moment
//! they *first saw* that very write, which is later. No clock is compared with another machine's; clocks need only run
//! at about the same speed. Every write names the version it replaces, so a late one changes nothing.

use std::time::Duration;

use super::moment::Moment;

/// How a lease is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    duration: Duration,
    /// How long the holder believes: the duration less a margin.
    belief: Duration,
    retry: Duration,
}

/// Terms that cannot be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TermsError {
    /// The API stores whole seconds.
    #[error("a lease lasts whole seconds, at least one, not {0:?}")]
    Duration(Duration),
    /// A holder must be able to fail at least once and still renew in time.
    #[error("the retry period must fit three times into the duration less the margin: shorten it")]
    Retry,
}

/// The lease as it was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// `resourceVersion`: any write makes another.
    pub version: String,
    /// Who holds it; nobody after a release.
    pub holder: Option<String>,
    /// How long after its last write others must wait.
    pub duration: Duration,
}

/// What is known of the lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Observed {
    /// There is none, and there was none.
    Never,
    /// There is none now. Someone deleted it, and its holder may not know yet.
    Gone(Record),
    /// It is there.
    Present(Record),
}

/// How a lease can be written by one who wants to hold it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseWrite {
    /// Make it, as its first holder.
    Create,
    /// Take it over: it is free, or its holder is gone.
    Take,
    /// Hold it longer.
    Renew,
}

/// What may be done about a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseAction {
    /// It may be written.
    Write(LeaseWrite),
    /// It is someone else's until then, as far as is known.
    Wait {
        /// When it could be free.
        until: Moment,
    },
}

/// What a candidate does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Read the lease.
    Look,
    /// Write it.
    Write(LeaseWrite),
    /// Do nothing for now.
    Rest {
        /// When to ask again.
        until: Moment,
    },
}

/// What became of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The lease as it was read; none if there is none.
    Seen(Option<Record>),
    /// The lease as this candidate wrote it.
    Written(Record),
    /// Someone else wrote first.
    Conflict,
    /// No answer, or one that does not tell whether the write took place.
    Unknown,
}

/// One who wants to hold the lease.
#[derive(Clone, Debug)]
pub struct Candidate {
    identity: String,
    terms: Terms,
    observed: Observed,
    observed_at: Moment,
    held_until: Option<Moment>,
    rest_until: Moment,
    /// What is known must be read again before anything is written.
    stale: bool,
}

/// What may be done now about a lease seen as `observed`, first at `observed_at`.
pub fn decide(observed: &Observed, observed_at: Moment, now: Moment, identity: &str) -> LeaseAction {
    let record = match observed {
        Observed::Never => return LeaseAction::Write(LeaseWrite::Create),
        Observed::Gone(record) | Observed::Present(record) => record,
    };
    let until = observed_at + record.duration;
    let is_ours = record.holder.as_deref() == Some(identity);
    if record.holder.is_some() && !is_ours && now < until {
        return LeaseAction::Wait { until };
    }
    LeaseAction::Write(match observed {
        Observed::Never | Observed::Gone(_) => LeaseWrite::Create,
        Observed::Present(_) if is_ours => LeaseWrite::Renew,
        Observed::Present(_) => LeaseWrite::Take,
    })
}

impl Terms {
    /// Others wait `duration` after a write; the holder stops `margin` before that; both look every `retry`.
    pub fn new(duration: Duration, margin: Duration, retry: Duration) -> Result<Self, TermsError> {
        if duration.subsec_nanos() != 0 || duration.is_zero() || i32::try_from(duration.as_secs()).is_err() {
            return Err(TermsError::Duration(duration));
        }
        let belief = duration.saturating_sub(margin);
        if retry.is_zero() || belief < retry.saturating_mul(3) {
            return Err(TermsError::Retry);
        }
        Ok(Self { duration, belief, retry })
    }

    /// How long after a write others must wait.
    pub const fn duration(&self) -> Duration {
        self.duration
    }

    /// How long to wait for one answer: a holder whose first try is lost has time for another.
    pub fn patience(&self) -> Duration {
        self.belief / 3
    }
}

/// As the controllers of Kubernetes do: 15 s, given up after 10 s, renewed every 2 s.
impl Default for Terms {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self { duration: seconds(15), belief: seconds(10), retry: seconds(2) }
    }
}

impl Candidate {
    /// A candidate that knows nothing yet. No other process may ever have the same identity.
    pub fn new(identity: String, terms: Terms) -> Self {
        let nothing = Moment::default();
        Self {
            identity,
            terms,
            observed: Observed::Never,
            observed_at: nothing,
            held_until: None,
            rest_until: nothing,
            stale: true,
        }
    }

    /// Until when it may act as the holder; nothing if it is not.
    pub fn held_until(&self) -> Option<Moment> {
        self.held_until
    }

    /// Who holds the lease, as far as is known.
    pub fn holder(&self) -> Option<&str> {
        match &self.observed {
            Observed::Never => None,
            Observed::Gone(record) | Observed::Present(record) => record.holder.as_deref(),
        }
    }

    /// What to do now.
    pub fn step(&mut self, now: Moment) -> Step {
        if now < self.rest_until {
            return Step::Rest { until: self.rest_until };
        }
        if self.stale {
            return Step::Look;
        }
        match decide(&self.observed, self.observed_at, now, &self.identity) {
            LeaseAction::Wait { until } => {
                self.stale = true;
                self.rest_until = until.min(now + self.terms.retry);
                Step::Rest { until: self.rest_until }
            }
            LeaseAction::Write(write) => Step::Write(write),
        }
    }

    /// What became of the last step, which was sent at `sent_at` and answered `now`.
    pub fn answered(&mut self, answer: Answer, sent_at: Moment, now: Moment) {
        match answer {
            Answer::Seen(record) => {
                self.see(record, now);
                self.stale = false;
            }
            Answer::Written(record) => {
                self.see(Some(record), now);
                self.stale = false;
                self.held_until = Some(sent_at + self.terms.belief);
                self.rest_until = sent_at + self.terms.retry;
            }
            Answer::Conflict => self.stale = true,
            Answer::Unknown => {
                self.stale = true;
                self.rest_until = now + self.terms.retry;
            }
        }
    }

    /// Stops to be the holder, before anybody is told.
    pub fn give_up(&mut self) {
        self.held_until = None;
    }

    fn see(&mut self, record: Option<Record>, now: Moment) {
        let before = std::mem::replace(&mut self.observed, Observed::Never);
        self.observed = match (before, record) {
            (Observed::Present(before), Some(record)) if before.version == record.version => Observed::Present(before),
            (_, Some(record)) => {
                self.observed_at = now;
                Observed::Present(record)
            }
            // The clock goes on from the last time there was something to see.
            (Observed::Present(before) | Observed::Gone(before), None) => Observed::Gone(before),
            (Observed::Never, None) => Observed::Never,
        };
        if self.holder() != Some(&self.identity) {
            self.held_until = None;
        }
    }
}
