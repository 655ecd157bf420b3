//! What the pod is to show of an update.

use std::collections::BTreeMap;

use pillion_agent_api::{Outcome, OutcomeState, Storage, names};

use crate::board::{Condition, ConditionStatus, Marks};

use super::reload::Ability;

/// More of a reason is for the log.
const LONGEST_MESSAGE: usize = 900;

/// What the pod is to show of what became of an update.
pub(super) fn of_outcome(outcome: &Outcome, ability: &Ability, storage: &Storage) -> Marks {
    let outcome = Outcome { message: shortened(&outcome.message), ..outcome.clone() };
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
    let version = &outcome.version;
    let mut text = if version.is_empty() { word.to_owned() } else { format!("{word} {version}") };
    if outcome.state == OutcomeState::Failed {
        text = format!("{text}: {}", outcome.message);
    }
    let lead = if outcome.message.is_empty() { "" } else { ": " };
    let condition = Condition {
        status,
        reason: reason.to_owned(),
        message: format!("{}{lead}{}", outcome.version, outcome.message),
    };
    let result = serde_json::to_string(&outcome).expect("texts and enums are JSON");
    let mut marks = with_condition(condition, storage);
    marks.annotations.insert(names::RESULT.to_owned(), result);
    if let Some(key) = &storage.annotation_key {
        marks.annotations.insert(key.clone(), text);
    }
    if let (Some(key), Some(current)) = (&storage.label_key, &outcome.current) {
        marks.labels.insert(key.clone(), current.clone());
    }
    let policy = storage.marker_policies.iter().find(|policy| policy.state.as_deref() == Some(word));
    if let Some(policy) = policy.or_else(|| storage.marker_policies.iter().find(|policy| policy.state.is_none())) {
        marks.labels.extend(policy.labels.clone());
        marks.annotations.extend(policy.annotations.clone());
        if let (Some(target), Some(value)) = (&storage.target, &policy.value) {
            marks.targets.push((target.clone(), value.clone()));
        }
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
            format!("no version is asked for; the app will be asked by URL, as {why}"),
        ),
        Ability::Nothing(why) => (ConditionStatus::False, "CannotSignal", why.clone()),
    };
    with_condition(Condition { status, reason: reason.to_owned(), message: shortened(&message) }, storage)
}

fn with_condition(condition: Condition, storage: &Storage) -> Marks {
    let mut conditions = BTreeMap::new();
    if let Some(kind) = &storage.condition_type {
        conditions.insert(kind.clone(), condition.clone());
    }
    conditions.insert(names::CONDITION.to_owned(), condition);
    Marks { conditions, ..Marks::default() }
}

fn shortened(message: &str) -> String {
    let mut end = message.len().min(LONGEST_MESSAGE);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    message[..end].to_owned()
}

#[cfg(test)]
mod tests {
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
