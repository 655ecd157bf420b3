//! Label selectors: as they are stored, and compiled.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Labels that objects must have. All parts must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LabelSelector {
    /// Labels with exactly these values.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maxProperties" = 32, "additionalProperties" = {"type": "string", "maxLength": 63}))]
    pub match_labels: Option<BTreeMap<String, String>>,
    /// Further requirements.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "atomic"))]
    pub match_expressions: Option<Vec<LabelSelectorRequirement>>,
}

/// What is required of one label.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LabelSelectorRequirement {
    /// The label.
    #[schemars(length(min = 1, max = 317))]
    pub key: String,
    /// In, NotIn, Exists or DoesNotExist.
    pub operator: SelectorOperator,
    /// Values for In and NotIn.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), inner(length(max = 63)), extend("x-kubernetes-list-type" = "atomic"))]
    pub values: Option<Vec<String>>,
}

/// How a label is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SelectorOperator {
    /// It has one of the values.
    In,
    /// It has none of the values, or is absent.
    NotIn,
    /// It is there.
    Exists,
    /// It is absent.
    DoesNotExist,
}

/// A selector that has been checked: requirements that must all hold. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    requirements: Vec<Requirement>,
}

/// What must hold of one label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// The label.
    pub key: String,
    /// What must hold of it.
    pub condition: Condition,
}

/// What must hold of a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// It has one of these values.
    In(BTreeSet<String>),
    /// It is absent or has none of these values.
    NotIn(BTreeSet<String>),
    /// It is there.
    Exists,
    /// It is absent.
    DoesNotExist,
}

impl Selector {
    /// Compiles what rules, or the API server, have accepted; `None` for a selector that requires nothing.
    pub fn compile(stored: &LabelSelector) -> Option<Self> {
        let labels = stored.match_labels.iter().flatten().map(|(key, value)| Requirement {
            key: key.clone(),
            condition: Condition::In(BTreeSet::from([value.clone()])),
        });
        let expressions = stored.match_expressions.iter().flatten().map(|stored| {
            let values = || stored.values.iter().flatten().cloned().collect();
            Requirement {
                key: stored.key.clone(),
                condition: match stored.operator {
                    SelectorOperator::In => Condition::In(values()),
                    SelectorOperator::NotIn => Condition::NotIn(values()),
                    SelectorOperator::Exists => Condition::Exists,
                    SelectorOperator::DoesNotExist => Condition::DoesNotExist,
                },
            }
        });
        let requirements: Vec<_> = labels.chain(expressions).collect();
        (!requirements.is_empty()).then_some(Self { requirements })
    }

    /// All of them must hold.
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// Whether labels, looked up by key, fulfil every requirement.
    pub fn matches<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.failing(label).is_none()
    }

    /// The first requirement that labels, looked up by key, do not fulfil.
    pub fn failing<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> Option<&Requirement> {
        self.requirements.iter().find(|requirement| !requirement.condition.holds(label(&requirement.key)))
    }
}

impl Selector {
    /// A label of which the requirements exclude each other, so that nothing can match.
    pub fn contradiction(&self) -> Option<&str> {
        contradiction(self.requirements.iter())
    }

    /// Whether some labels fulfil both selectors.
    pub fn overlaps(&self, other: &Self) -> bool {
        contradiction(self.requirements.iter().chain(&other.requirements)).is_none()
    }

    /// Returns true if all labels that fulfil this selector also fulfil the other one.
    pub fn implies(&self, other: &Self) -> bool {
        other.requirements.iter().all(|required| {
            let of_key = self.requirements.iter().filter(|own| own.key == required.key);
            let conditions: Vec<&Condition> = of_key.map(|own| &own.condition).collect();
            implies(&conditions, &required.condition)
        })
    }

    /// A selector of one value of one label.
    pub(crate) fn of_label(key: &str, value: &str) -> Self {
        let condition = Condition::In(BTreeSet::from([value.to_owned()]));
        Self { requirements: vec![Requirement { key: key.to_owned(), condition }] }
    }

    /// Whether some labels, this one among them, fulfil the selector.
    pub(crate) fn can_match_with(&self, key: &str, value: &str) -> bool {
        self.overlaps(&Self::of_label(key, value))
    }
}

/// The first label for which no value, nor its absence, fulfils all requirements. Labels do not depend on one another, so
/// if each of them can be fulfilled, all can.
fn contradiction<'a>(requirements: impl Iterator<Item = &'a Requirement>) -> Option<&'a str> {
    let mut by_key: BTreeMap<&str, Vec<&Condition>> = BTreeMap::new();
    for requirement in requirements {
        by_key.entry(&requirement.key).or_default().push(&requirement.condition);
    }
    by_key.into_iter().find(|(_, conditions)| !can_hold(conditions)).map(|(key, _)| key)
}

fn can_hold(conditions: &[&Condition]) -> bool {
    let all_hold = |value: Option<&str>| conditions.iter().all(|condition| condition.holds(value));
    let listed = conditions.iter().find_map(|condition| match condition {
        Condition::In(values) => Some(values),
        _ => None,
    });
    match listed {
        Some(values) => values.iter().any(|value| all_hold(Some(value))),
        // Some value is on no list of forbidden ones; only a label that must be absent has none.
        None => all_hold(None) || !conditions.contains(&&Condition::DoesNotExist),
    }
}

/// Returns true if every value of a label that fulfils all conditions fulfils the required one.
fn implies(conditions: &[&Condition], required: &Condition) -> bool {
    let all_hold = |value: Option<&str>| conditions.iter().all(|condition| condition.holds(value));
    let listed = |condition: &Condition| match condition {
        Condition::In(values) | Condition::NotIn(values) => values.clone(),
        Condition::Exists | Condition::DoesNotExist => BTreeSet::new(),
    };
    let mut values: BTreeSet<String> = conditions.iter().flat_map(|condition| listed(condition)).collect();
    values.extend(listed(required));
    // One value stands for all that no list names: no value of a label has a space.
    values.insert(" ".to_owned());
    let candidates = values.iter().map(|value| Some(value.as_str())).chain([None]);
    candidates.filter(|value| all_hold(*value)).all(|value| required.holds(value))
}

impl Condition {
    /// Whether it holds of a label with this value.
    pub fn holds(&self, value: Option<&str>) -> bool {
        match self {
            Self::In(values) => value.is_some_and(|value| values.contains(value)),
            Self::NotIn(values) => value.is_none_or(|value| !values.contains(value)),
            Self::Exists => value.is_some(),
            Self::DoesNotExist => value.is_none(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_operator_looks_at_presence_and_value() {
        let selector = |operator: &str, values: &[&str]| {
            let stored =
                serde_json::json!({"matchExpressions": [{"key": "k", "operator": operator, "values": values}]});
            Selector::compile(&serde_json::from_value(stored).unwrap()).unwrap()
        };
        // Absent, a, b.
        for (operator, expected) in [
            ("In", [false, true, false]),
            ("NotIn", [true, false, true]),
            ("Exists", [false, true, true]),
            ("DoesNotExist", [true, false, false]),
        ] {
            let selector = selector(operator, &["a"]);
            let seen = [None, Some("a"), Some("b")].map(|value| selector.matches(|key| value.filter(|_| key == "k")));
            assert_eq!(seen, expected, "{operator}");
        }
    }

    #[test]
    fn the_first_requirement_that_fails_is_named() {
        let stored = serde_json::json!({"matchLabels": {"a": "1", "b": "2"}});
        let selector = Selector::compile(&serde_json::from_value(stored).unwrap()).unwrap();
        let failing = selector.failing(|key| (key == "a").then_some("1")).unwrap();
        assert_eq!(failing.key, "b");
        assert_eq!(failing.condition, Condition::In(BTreeSet::from(["2".to_owned()])));
        assert_eq!(Selector::compile(&LabelSelector::default()), None);
    }

    /// Requirements on two labels, of three values each.
    fn any_selector() -> impl Strategy<Value = Selector> {
        let condition = (0..4_u8, prop::collection::btree_set(prop::sample::select(vec!["a", "b", "c"]), 1..4))
            .prop_map(|(kind, values)| {
                let values = values.into_iter().map(str::to_owned).collect();
                match kind {
                    0 => Condition::In(values),
                    1 => Condition::NotIn(values),
                    2 => Condition::Exists,
                    _ => Condition::DoesNotExist,
                }
            });
        let requirement = (prop::sample::select(vec!["x", "y"]), condition)
            .prop_map(|(key, condition)| Requirement { key: key.to_owned(), condition });
        prop::collection::vec(requirement, 1..5).prop_map(|requirements| Selector { requirements })
    }

    /// Absent, one of the three values, or another.
    const VALUES: [Option<&str>; 5] = [None, Some("a"), Some("b"), Some("c"), Some("other")];

    fn matched(selector: &Selector) -> Vec<(Option<&'static str>, Option<&'static str>)> {
        let all = VALUES.into_iter().flat_map(|x| VALUES.map(|y| (x, y)));
        all.filter(|(x, y)| selector.matches(|key| if key == "x" { *x } else { *y })).collect()
    }

    proptest! {
        #[test]
        fn what_can_match_is_what_some_labels_match(one in any_selector(), other in any_selector()) {
            let (of_one, of_other) = (matched(&one), matched(&other));
            prop_assert_eq!(one.contradiction().is_some(), of_one.is_empty());
            prop_assert_eq!(one.overlaps(&other), of_one.iter().any(|labels| of_other.contains(labels)));
            prop_assert_eq!(one.can_match_with("x", "a"), of_one.iter().any(|(x, _)| *x == Some("a")));
        }

        #[test]
        fn a_selector_implies_another_if_it_matches_no_other_labels(one in any_selector(), other in any_selector()) {
            let (of_one, of_other) = (matched(&one), matched(&other));
            let is_subset = of_one.iter().all(|labels| of_other.contains(labels));
            // Of a selector that matches nothing, not every implication is found.
            if of_one.is_empty() {
                prop_assert!(!one.implies(&other) || is_subset);
            } else {
                prop_assert_eq!(one.implies(&other), is_subset);
            }
        }
    }

    #[test]
    fn a_label_that_only_one_selector_names_keeps_nothing_apart() {
        let selector = |expressions: serde_json::Value| {
            Selector::compile(&serde_json::from_value(serde_json::json!({"matchExpressions": expressions})).unwrap())
                .unwrap()
        };
        let exists = selector(serde_json::json!([{"key": "team", "operator": "Exists"}]));
        let other = selector(serde_json::json!([{"key": "app", "operator": "In", "values": ["web"]}]));
        assert!(exists.overlaps(&other));
        let both = selector(serde_json::json!([
            {"key": "app", "operator": "In", "values": ["web", "api"]},
            {"key": "team", "operator": "Exists"},
            {"key": "team", "operator": "DoesNotExist"},
        ]));
        assert_eq!((both.contradiction(), both.overlaps(&other)), (Some("team"), false));
    }
}
