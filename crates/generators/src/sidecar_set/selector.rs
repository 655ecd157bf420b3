//! Label selectors, with all operators.

use serde_json::{Map, Value, json};

use crate::draw::Draw;
use crate::json::{given, object, pair};
use crate::pool;

type Pairs = [(&'static str, &'static [&'static str])];

impl Draw<'_> {
    pub(super) fn pod_selector(&mut self) -> Value {
        self.selector(&pool::LABELS)
    }

    pub(super) fn namespace_selector(&mut self) -> Value {
        self.selector(&pool::NAMESPACE_LABELS)
    }

    /// Most name one label, as people do.
    fn selector(&mut self, pairs: &Pairs) -> Value {
        let (labels, expressions) = match self.random.below(10) {
            0..=5 => (1, 0),
            6 => (2, 0),
            7 => (1, 1),
            8 => (0, 1),
            _ => (0, 2),
        };
        let labels: Map<String, Value> = (0..labels).map(|_| pair(self.random, pairs)).collect();
        let expressions: Vec<Value> = (0..expressions).map(|_| self.requirement(pairs)).collect();
        object([
            ("matchLabels", (!labels.is_empty()).then(|| labels.into())),
            ("matchExpressions", (!expressions.is_empty()).then(|| expressions.into())),
        ])
        .into()
    }

    fn requirement(&mut self, pairs: &Pairs) -> Value {
        let (key, values) = self.random.one_of(pairs);
        let operator = self.random.one_of(&["In", "NotIn", "Exists", "DoesNotExist"]);
        if matches!(operator, "In" | "NotIn") {
            let count = 1 + self.random.up_to(1);
            return json!({"key": key, "operator": operator, "values": self.random.some_of(values, count)});
        }
        let empty = self.maybe(20, |_| json!([]));
        object([given("key", key), given("operator", operator), ("values", empty)]).into()
    }
}
