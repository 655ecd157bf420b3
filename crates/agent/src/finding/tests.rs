use std::collections::BTreeMap;

use pillion_agent_api::Target;

use super::*;

fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn set(keys: &[&str]) -> BTreeSet<String> {
    keys.iter().map(|key| (*key).to_owned()).collect()
}

fn policy(state: Option<&str>, idle: &str, more: &[(&str, &str)], value: Option<&str>) -> MarkerPolicy {
    MarkerPolicy {
        state: state.map(str::to_owned),
        labels: map(&[("gameserver-idle", idle)]),
        annotations: map(more),
        value: value.map(str::to_owned),
    }
}

fn target() -> Target {
    Target {
        group: "game.kruise.io".to_owned(),
        version: "v1alpha1".to_owned(),
        resource: "gameservers".to_owned(),
        namespace: "games".to_owned(),
        name: "g-0".to_owned(),
        pointer: "/spec/opsState".to_owned(),
    }
}

/// The game server of the proposal.
fn storage() -> Storage {
    Storage {
        annotation_key: Some("http_probe".to_owned()),
        label_key: Some("state".to_owned()),
        condition_type: Some("game.kruise.io/state".to_owned()),
        target: Some(target()),
        marker_policies: vec![
            policy(Some("idle"), "true", &[("cost", "-10"), ("free", "yes")], Some("None")),
            policy(Some("allocated"), "false", &[("cost", "10")], Some("Allocated")),
            policy(None, "false", &[], None),
        ],
        metric_name: Some("players".to_owned()),
    }
}

fn marks(state: &str) -> Marks {
    Finding::new(state, ConditionStatus::True, "Answered").marks(&storage())
}

#[test]
fn a_state_is_told_in_every_place_of_the_storage() {
    let condition =
        Condition { status: ConditionStatus::True, reason: "Answered".to_owned(), message: "idle".to_owned() };
    assert_eq!(
        marks(" idle\n"),
        Marks {
            labels: map(&[("gameserver-idle", "true"), ("state", "idle")]),
            annotations: map(&[("http_probe", "idle"), ("cost", "-10"), ("free", "yes")]),
            conditions: BTreeMap::from([("game.kruise.io/state".to_owned(), condition)]),
            targets: vec![(target(), "None".to_owned())],
            ..Marks::default()
        }
    );
}

/// Another implementation reads the pointer and never writes there.
#[test]
fn b01_the_field_of_the_target_gets_the_value_of_the_state() {
    assert_eq!(marks("idle").targets, [(target(), "None".to_owned())]);
    assert_eq!(marks("allocated").targets, [(target(), "Allocated".to_owned())]);
    // A state is not a value: one without is not written.
    assert_eq!(marks("drinking-tea").targets, []);
    // Nor are labels or annotations needed for it.
    let bare =
        MarkerPolicy { state: Some("idle".to_owned()), value: Some("None".to_owned()), ..MarkerPolicy::default() };
    let storage = Storage { target: Some(target()), marker_policies: vec![bare], ..Storage::default() };
    let finding = Finding::new("idle", ConditionStatus::True, "");
    assert_eq!(finding.marks(&storage), Marks { targets: vec![(target(), "None".to_owned())], ..Marks::default() });
}

/// Another implementation leaves the marks of every state the app was ever in.
#[test]
fn b04_marks_of_other_states_are_to_be_gone() {
    let allocated = marks("allocated");
    assert_eq!(allocated.annotations, map(&[("http_probe", "allocated"), ("cost", "10")]));
    assert_eq!((allocated.absent_labels, allocated.absent_annotations), (set(&[]), set(&["free"])));
    let other = marks("drinking-tea");
    assert_eq!(other.labels, map(&[("gameserver-idle", "false"), ("state", "drinking-tea")]));
    assert_eq!((other.absent_labels, other.absent_annotations), (set(&[]), set(&["cost", "free"])));
    // With no policy for all other states, all are gone.
    let storage = Storage { marker_policies: storage().marker_policies[..2].to_vec(), ..Storage::default() };
    let marks = Finding::new("x", ConditionStatus::True, "").marks(&storage);
    assert_eq!((marks.absent_labels, marks.absent_annotations), (set(&["gameserver-idle"]), set(&["cost", "free"])));
}

#[test]
fn a_number_is_a_metric_and_nothing_else_is() {
    assert_eq!(marks("7").metrics, BTreeMap::from([("players".to_owned(), 7.0)]));
    assert_eq!(marks("-0.5").metrics, BTreeMap::from([("players".to_owned(), -0.5)]));
    for state in ["idle", "NaN", "inf", ""] {
        assert_eq!(marks(state).metrics, BTreeMap::new(), "{state}");
    }
}

#[test]
fn what_cannot_be_a_label_is_removed_and_stays_elsewhere() {
    let long = "a".repeat(64);
    for state in ["two words", "-x", "x.", long.as_str(), "ü"] {
        let marks = marks(state);
        assert_eq!((marks.labels.get("state"), marks.absent_labels), (None, set(&["state"])), "{state}");
        assert_eq!(marks.annotations["http_probe"], state);
    }
    for state in ["", "a", "a-b_c.d", &long[..63]] {
        assert_eq!(marks(state).labels["state"], state);
    }
}

#[test]
fn a_state_is_bounded() {
    assert_eq!(Finding::new(&"ü".repeat(2_000), ConditionStatus::True, "").state, "ü".repeat(512));
}
