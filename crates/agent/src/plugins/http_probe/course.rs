//! What answers make of a state: one is not enough where a configuration wants more.

use pillion_agent_api::Endpoint;

use crate::asking::Failure;
use crate::board::ConditionStatus;
use crate::finding::Finding;
use crate::tally::Tally;

/// A good answer that holds no state.
pub(super) const NO_STATE: &str = "NoState";

/// The state of one endpoint over time.
#[derive(Debug)]
pub(super) struct Course {
    success_threshold: u32,
    failure_threshold: u32,
    failure_state: String,
    /// The state of good answers; none for all that are not good.
    tally: Tally<Option<String>>,
    current: Option<Finding>,
}

impl Course {
    pub(super) fn new(endpoint: &Endpoint) -> Self {
        let Endpoint { success_threshold, failure_threshold, failure_state, .. } = endpoint;
        Self {
            success_threshold: *success_threshold,
            failure_threshold: *failure_threshold,
            failure_state: failure_state.clone(),
            tally: Tally::default(),
            current: None,
        }
    }

    /// Takes an answer; returns what is new.
    pub(super) fn take(&mut self, answer: Result<String, Failure>) -> Option<&Finding> {
        let (threshold, finding) = match &answer {
            Ok(state) => (self.success_threshold, Finding::new(state, ConditionStatus::True, "Answered")),
            Err(failure) => {
                let status = if failure.reason == NO_STATE { ConditionStatus::Unknown } else { ConditionStatus::False };
                (self.failure_threshold, Finding::new(&self.failure_state, status, failure.reason))
            }
        };
        if self.tally.add(answer.ok()) < threshold {
            return None;
        }
        // Another reason for the same state is not worth a write.
        let is_same =
            self.current.as_ref().is_some_and(|now| (&now.state, now.status) == (&finding.state, finding.status));
        if is_same {
            return None;
        }
        self.current = Some(finding);
        self.current.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use pillion_agent_api::{Address, Storage};

    use super::*;

    fn course(success_threshold: u32, failure_threshold: u32) -> Course {
        Course::new(&Endpoint {
            address: Address::Tcp { host: String::new(), port: 0 },
            timeout_seconds: 1,
            success_threshold,
            failure_threshold,
            failure_state: "unknown".to_owned(),
            json_path: None,
            storage: Storage::default(),
        })
    }

    /// What each answer makes new: `!x` is a failure for the reason x.
    fn follow(mut course: Course, answers: &[&'static str]) -> Vec<Option<(String, ConditionStatus)>> {
        let answers = answers.iter().map(|answer| match answer.strip_prefix('!') {
            Some(reason) => Err(Failure::new(reason, "")),
            None => Ok((*answer).to_owned()),
        });
        answers.map(|answer| course.take(answer).map(|finding| (finding.state.clone(), finding.status))).collect()
    }

    fn new(state: &str, status: ConditionStatus) -> (String, ConditionStatus) {
        (state.to_owned(), status)
    }

    #[test]
    fn a_state_is_new_once() {
        use ConditionStatus::True;
        assert_eq!(
            follow(course(1, 1), &["idle", "idle", "allocated", "idle"]),
            [Some(new("idle", True)), None, Some(new("allocated", True)), Some(new("idle", True))]
        );
    }

    /// Another implementation leaves the last good state for ever when the app no longer answers.
    #[test]
    fn b03_failures_make_a_state_too() {
        use ConditionStatus::{False, True, Unknown};
        assert_eq!(
            follow(course(1, 3), &["allocated", "!A", "!B", "!A", "!B", "allocated"]),
            [Some(new("allocated", True)), None, None, Some(new("unknown", False)), None, Some(new("allocated", True))]
        );
        // A good answer with no state in it is no failure of the app.
        assert_eq!(
            follow(course(1, 1), &["!TimedOut", "!NoState", "!NoState", "!TimedOut"]),
            [Some(new("unknown", False)), Some(new("unknown", Unknown)), None, Some(new("unknown", False))]
        );
    }

    #[test]
    fn a_state_must_stay_as_long_as_is_wanted() {
        use ConditionStatus::{False, True};
        assert_eq!(
            follow(course(2, 2), &["a", "b", "b", "a", "b", "!A", "b", "!A", "!A"]),
            [None, None, Some(new("b", True)), None, None, None, None, None, Some(new("unknown", False))]
        );
    }
}
