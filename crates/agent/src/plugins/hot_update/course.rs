//! The course of an update, as data in, data out: what is to be made of what was asked, and what comes next after what
//! came of the last step.
//!
//! ```text
//!  Look ─ stored ──────────► Place ─► Reload ─► Check ─► done
//!    └─ not stored ─► Fetch ──┘ │        │        │
//!                      │        └────────┴────────┴─► Restore ─► failed
//!                      └─► failed, nothing was touched
//! ```

use pillion_agent_api::{OutcomeState, Wanted};

use super::failure::{Failure, Kind};
use super::record::{Asked, Record};

/// What is to be made of what was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// All is as it was asked, or cannot be helped.
    Rest,
    /// An update.
    Update {
        wanted: Wanted,
        /// Whether it may be downloaded: what only our own record says may not.
        may_fetch: bool,
        /// Whether it has been tried before.
        again: bool,
    },
}

/// Decides what is to be made of what the record says and the owner asks for now.
///
/// The last word wins, the owner's or a request's. The owner may ask for any version, also a lower one.
pub(super) fn next(record: &Record, owner: Option<&Wanted>) -> Next {
    if let Some(wanted) = owner.filter(|wanted| record.owner.as_ref() != Some(wanted)) {
        return Next::Update { wanted: wanted.clone(), may_fetch: true, again: false };
    }
    match &record.asked {
        None | Some(Asked { state: OutcomeState::Done, .. } | Asked { given_up: true, .. }) => Next::Rest,
        Some(Asked { wanted, .. }) => {
            Next::Update { wanted: wanted.clone(), may_fetch: owner == Some(wanted), again: true }
        }
    }
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// See whether the version is stored.
    Look,
    /// Download it into the store.
    Fetch,
    /// Give it to the app.
    Place,
    /// Have the app load it.
    Reload,
    /// See whether the app has loaded it.
    Check,
    /// Give the app what it had, and have it load that.
    Restore,
    /// Nothing more.
    End(Result<String, Failure>),
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Event {
    Looked {
        is_stored: bool,
    },
    Fetched(Result<(), Failure>),
    Placed(Result<(), Failure>),
    /// With what is to be known of it.
    Reloaded(Result<Reloaded, Failure>),
    Checked(Result<String, Failure>),
    /// With what the app has now.
    Restored(String),
}

/// How an app was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reloaded {
    /// It was.
    Told(String),
    /// There is no app yet, and there was no version before: it will load the file when it starts.
    NotThereYet(String),
}

/// An update on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Course {
    may_fetch: bool,
    /// How the app was told.
    told: String,
    failure: Option<Failure>,
}

impl Course {
    /// The course, and its first step.
    pub(super) fn begin(may_fetch: bool) -> (Self, Action) {
        (Self { may_fetch, told: String::new(), failure: None }, Action::Look)
    }

    /// Takes what came of the last step.
    pub(super) fn take(&mut self, event: Event) -> Action {
        match event {
            Event::Looked { is_stored: true } | Event::Fetched(Ok(())) => Action::Place,
            Event::Looked { is_stored: false } if self.may_fetch => Action::Fetch,
            Event::Looked { is_stored: false } => Action::End(Err(Failure::new(
                Kind::NotLoaded,
                "the agent was started again before the file was there, and nobody asks for it now: ask again",
            ))),
            Event::Fetched(Err(failure)) => Action::End(Err(failure)),
            Event::Placed(Ok(())) => Action::Reload,
            Event::Reloaded(Ok(Reloaded::NotThereYet(message))) => Action::End(Ok(message)),
            Event::Reloaded(Ok(Reloaded::Told(message))) => {
                self.told = message;
                Action::Check
            }
            Event::Checked(Ok(message)) => Action::End(Ok(format!("{}; {message}", self.told))),
            // It stands as it is, and is looked at again after the start.
            Event::Reloaded(Err(failure)) | Event::Checked(Err(failure)) if failure.kind == Kind::Stopped => {
                Action::End(Err(failure))
            }
            Event::Placed(Err(failure)) | Event::Reloaded(Err(failure)) | Event::Checked(Err(failure)) => {
                self.failure = Some(failure);
                Action::Restore
            }
            Event::Restored(now) => {
                let failure = self.failure.take().unwrap_or_else(|| Failure::not_loaded("it was not loaded"));
                Action::End(Err(Failure { message: format!("{}; {now}", failure.message), ..failure }))
            }
        }
    }
}

#[cfg(test)]
mod tests;
