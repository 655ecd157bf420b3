//! What the pod is to show of an update.

use pillion_agent_api::{Outcome, OutcomeState, Storage, names};

use crate::board::{Condition, ConditionStatus, Marks, cut};
use crate::finding::Finding;

use super::reload::Ability;

/// More of a reason is for the log.
const LONGEST_MESSAGE: usize = 900;

/// What the pod is to show of what became of an update.
pub(super) fn of_outcome(outcome: &Outcome, ability: &Ability, storage: &Storage) -> Marks {
    let mut outcome = outcome.clone();
    cut(&mut outcome.message, LONGEST_MESSAGE);
    let (status, word) = match outcome.state {
        OutcomeState::Working => (ConditionStatus::False, "Working"),
        OutcomeState::Done => (ConditionStatus::True, "Done"),
        OutcomeState::Failed => (ConditionStatus::False, "Failed"),
    };
    let reason = match (outcome.state, ability) {
        (OutcomeState::Done, Ability::Fallback(_)) => "DoneByFallback",
        (OutcomeState::Failed, Ability::Nothing(_)) => "CannotSignal",
        _ => word,
    };
    let Outcome { version, message, current, state } = &outcome;
    let text = match (state, version.is_empty()) {
        (OutcomeState::Failed, true) => format!("{word}: {message}"),
        (OutcomeState::Failed, false) => format!("{word} {version}: {message}"),
        _ => format!("{word} {version}"),
    };
    let lead = if version.is_empty() || message.is_empty() { "" } else { ": " };
    let mut marks = with_condition(status, reason, format!("{version}{lead}{message}"), (storage, word));
    let result = serde_json::to_string(&outcome).expect("texts and enums are JSON");
    marks.annotations.insert(names::RESULT.to_owned(), result);
    if let Some(key) = &storage.annotation_key {
        marks.annotations.insert(key.clone(), text);
    }
    if let (Some(key), Some(current)) = (&storage.label_key, current) {
        marks.labels.insert(key.clone(), current.clone());
    }
    marks
}

/// What the pod is to show while nothing is asked for: what the agent could do.
pub(super) fn of_ability(ability: &Ability, storage: &Storage) -> Marks {
    let (status, reason, message) = match ability {
        Ability::Full => (ConditionStatus::True, "NothingAsked", "no version is asked for".to_owned()),
        Ability::Fallback(why) => (
            ConditionStatus::True,
            "Fallback",
            format!("no version is asked for; the app will be asked by URL, as no signal can be sent: {why}"),
        ),
        Ability::Nothing(why) => (ConditionStatus::False, "CannotSignal", why.clone()),
    };
    let mut marks = with_condition(status, reason, message, (storage, reason));
    // That nothing was asked for is no result.
    if let Some(key) = &storage.annotation_key {
        marks.annotations.remove(key);
    }
    marks
}

/// The condition under both its names, and what the state has set besides. The label is the version, never a state.
fn with_condition(status: ConditionStatus, reason: &str, message: String, (storage, state): (&Storage, &str)) -> Marks {
    let mut marks = Finding::new(state, status, reason).marks(storage);
    if let Some(key) = &storage.label_key {
        marks.labels.remove(key);
    }
    let condition = Condition { status, reason: reason.to_owned(), message };
    if let Some(kind) = &storage.condition_type {
        marks.conditions.insert(kind.clone(), condition.clone());
    }
    marks.conditions.insert(names::CONDITION.to_owned(), condition);
    marks
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn outcome(state: OutcomeState, message: &str) -> Outcome {
        Outcome { version: "v3".to_owned(), state, current: Some("v2".to_owned()), message: message.to_owned() }
    }

    fn storage() -> Storage {
        Storage { annotation_key: Some("a".to_owned()), label_key: Some("l".to_owned()), ..Storage::default() }
    }

    fn condition(marks: &Marks) -> (ConditionStatus, &str, &str) {
        let condition = &marks.conditions[names::CONDITION];
        (condition.status, &condition.reason, &condition.message)
    }

    #[test]
    fn a_failure_says_what_the_app_has_and_why() {
        let marks = of_outcome(&outcome(OutcomeState::Failed, "why"), &Ability::Full, &storage());
        assert_eq!(condition(&marks), (ConditionStatus::False, "Failed", "v3: why"));
        assert_eq!(marks.labels, BTreeMap::from([("l".to_owned(), "v2".to_owned())]));
        let expected = [
            ("a", "Failed v3: why"),
            (names::RESULT, r#"{"version":"v3","state":"Failed","current":"v2","message":"why"}"#),
        ];
        assert_eq!(marks.annotations, expected.map(|(key, value)| (key.to_owned(), value.to_owned())).into());
    }

    #[test]
    fn a_success_says_how_the_app_was_told() {
        let by = |ability| of_outcome(&outcome(OutcomeState::Done, "told"), &ability, &storage());
        assert_eq!(condition(&by(Ability::Full)), (ConditionStatus::True, "Done", "v3: told"));
        assert_eq!(by(Ability::Full).annotations["a"], "Done v3");
        assert_eq!(condition(&by(Ability::Fallback(String::new()))).1, "DoneByFallback");
    }

    #[test]
    fn what_the_agent_cannot_do_is_said_before_it_is_asked() {
        let why = "the agent sees nothing".to_owned();
        let marks = of_ability(&Ability::Nothing(why.clone()), &Storage::default());
        assert_eq!(condition(&marks), (ConditionStatus::False, "CannotSignal", why.as_str()));
        let marks = of_ability(&Ability::Full, &Storage::default());
        assert_eq!(condition(&marks), (ConditionStatus::True, "NothingAsked", "no version is asked for"));
        assert!(marks.annotations.is_empty());
    }

    #[test]
    fn long_reasons_are_cut_between_characters() {
        let marks = of_outcome(&outcome(OutcomeState::Failed, &"ü".repeat(900)), &Ability::Full, &storage());
        assert_eq!(condition(&marks).2.chars().count(), "v3: ".len() + 450);
    }
}
