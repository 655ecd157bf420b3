//! Which revision new pods get, and how running pods follow.

use serde_json::{Map, Value, json};

use crate::draw::Draw;
use crate::json::{given, object};

impl Draw<'_> {
    /// The strategy for new pods, in one of its two forms; most sets have none.
    pub(super) fn inject_strategy(&mut self) -> Map<String, Value> {
        if !self.random.chance(35) {
            return Map::new();
        }
        let paused = self.maybe(50, |draw| draw.random.chance(50).into());
        let proportion = self.maybe(20, |draw| json!(draw.random.one_of(&["Exact", "Random"])));
        let name = json!(self.random.one_of(&["mesh-5d8c", "logging-77f9", "gone"]));
        let pinned = self.random.chance(30);
        if self.random.chance(50) {
            let always = self.random.chance(50);
            let strategy = object([
                ("paused", paused),
                ("proportion", proportion),
                ("controllerRevision", (pinned && always).then(|| name.clone())),
                ("revision", (pinned && !always).then_some(name)),
            ]);
            return object([given("injectStrategy", strategy)]);
        }
        let pin = pinned.then(|| {
            let by_version = self.random.chance(30);
            let pin = object([
                ("revisionName", (!by_version).then_some(name)),
                ("customVersion", by_version.then(|| json!("v1"))),
                ("policy", self.maybe(60, |draw| json!(draw.random.one_of(&["Always", "Partial"])))),
            ]);
            Value::Object(pin)
        });
        let strategy = object([("paused", paused), ("proportion", proportion), ("revision", pin)]);
        object([given("injectionStrategy", strategy)])
    }

    pub(super) fn update_strategy(&mut self) -> Value {
        object([
            ("type", self.maybe(40, |draw| json!(draw.random.one_of(&["RollingUpdate", "NotUpdate"])))),
            ("paused", self.maybe(30, |draw| draw.random.chance(50).into())),
            ("selector", self.maybe(30, Self::pod_selector)),
            ("partition", self.maybe(50, Self::number_of_pods)),
            ("maxUnavailable", self.maybe(50, Self::number_of_pods)),
            ("priorityStrategy", self.maybe(30, Self::priority)),
            (
                "scatterStrategy",
                self.maybe(20, |_| json!([{"key": "app", "value": "web"}, {"key": "tier", "value": "*"}])),
            ),
            ("probe", self.maybe(30, |draw| draw.random.chance(50).into())),
            ("resize", self.maybe(30, |draw| draw.random.chance(50).into())),
            ("settleSeconds", self.maybe(30, |draw| json!(draw.random.below(3_601)))),
            ("healthGate", self.maybe(30, Self::health_gate)),
        ])
        .into()
    }

    fn health_gate(&mut self) -> Value {
        object([
            ("maxUnhealthy", self.maybe(60, Self::number_of_pods)),
            ("rollback", self.maybe(60, |draw| draw.random.chance(50).into())),
        ])
        .into()
    }

    fn number_of_pods(&mut self) -> Value {
        match self.random.below(2) {
            0 => json!(self.random.below(5)),
            _ => format!("{}%", self.random.one_of(&[0, 1, 20, 99, 100])).into(),
        }
    }

    fn priority(&mut self) -> Value {
        if self.random.chance(50) {
            return json!({"orderPriority": [{"orderedKey": "app"}]});
        }
        let term = object([given("weight", self.random.below(101)), given("matchSelector", self.pod_selector())]);
        json!({"weightPriority": [term]})
    }
}
