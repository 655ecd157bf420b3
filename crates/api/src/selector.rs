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
    /// Compiles what rules have accepted; `None` for a selector that requires nothing.
    pub(crate) fn compile(stored: &LabelSelector) -> Option<Self> {
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
}
