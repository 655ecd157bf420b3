//! What the `LimitRange`s of a namespace come to.

use pillion_quantity::{Quantity, Resource};
use serde_json::Value;

use crate::amounts::Amounts;

/// All `LimitRange`s of a namespace as one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitRanges {
    /// For each container.
    pub container: LimitRange,
    /// For the containers of a pod together.
    pub pod: LimitRange,
}

/// Bounds of one type. The lowest of several maxima holds, and the highest of several minima.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitRange {
    /// Requests and limits are not below.
    pub min: Amounts,
    /// Limits are not above.
    pub max: Amounts,
    /// The limit of a container that says none; of several, that of the last object by name.
    pub default: Amounts,
    /// Limits are at most so many thousandths of requests.
    pub ratio: Amounts,
}

impl LimitRanges {
    /// Reads the objects of one namespace. What cannot be read bounds nothing.
    pub fn read<'a>(objects: impl IntoIterator<Item = &'a Value>) -> Self {
        let mut objects: Vec<&Value> = objects.into_iter().collect();
        // A watch gives them in any order, and which default holds must not depend on it.
        objects.sort_by_key(|object| object.pointer("/metadata/name").and_then(Value::as_str));
        let mut all = Self::default();
        for item in objects.iter().filter_map(|object| object.pointer("/spec/limits")?.as_array()).flatten() {
            match item.get("type").and_then(Value::as_str) {
                Some("Container") => all.container.add(item),
                Some("Pod") => all.pod.add(item),
                _ => {}
            }
        }
        all
    }
}

impl LimitRange {
    fn add(&mut self, item: &Value) {
        for resource in Amounts::RESOURCES {
            let text = |field: &str| item.get(field)?.get(resource.name())?.as_str();
            let amount = |field: &str| Amounts::read(resource, text(field)?).filter(|amount| *amount > 0);
            pick(&mut self.min, resource, amount("min"), i64::max);
            pick(&mut self.max, resource, amount("max"), i64::min);
            pick(&mut self.default, resource, amount("default"), |_, last| last);
            let ratio = text("maxLimitRequestRatio").and_then(thousandths).filter(|ratio| *ratio > 0);
            pick(&mut self.ratio, resource, ratio, i64::min);
        }
    }
}

fn pick(into: &mut Amounts, resource: Resource, more: Option<i64>, choose: impl Fn(i64, i64) -> i64) {
    if let Some(more) = more {
        into.set(resource, Some(into.get(resource).map_or(more, |present| choose(present, more))));
    }
}

fn thousandths(text: &str) -> Option<i64> {
    text.parse::<Quantity>().ok()?.milli_value().try_into().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn several_limit_ranges_come_to_the_narrowest_bounds_and_the_last_default() {
        let first = json!({"metadata": {"name": "a"}, "spec": {"limits": [
            {"type": "Container", "max": {"cpu": "2", "memory": "1Gi"}, "min": {"cpu": "10m"}, "default": {"cpu": "1"},
             "maxLimitRequestRatio": {"cpu": "4"}},
            {"type": "PersistentVolumeClaim", "max": {"cpu": "1m"}},
        ]}});
        let second = json!({"metadata": {"name": "b"}, "spec": {"limits": [
            {"type": "Container", "max": {"cpu": "1", "memory": "much"}, "min": {"cpu": "20m"}, "default": {"cpu": "500m"}},
            {"type": "Pod", "max": {"memory": "2Gi"}, "min": {"memory": "0"}},
        ]}});
        let cpu = |cpu| Amounts { cpu: Some(cpu), memory: None };
        let memory = |memory| Amounts { cpu: None, memory: Some(memory) };
        let expected = LimitRanges {
            container: LimitRange {
                min: cpu(20),
                max: Amounts { cpu: Some(1000), memory: Some(1 << 30) },
                default: cpu(500),
                ratio: cpu(4000),
            },
            pod: LimitRange { max: memory(2 << 30), ..LimitRange::default() },
        };
        assert_eq!(LimitRanges::read([&first, &second]), expected);
        assert_eq!(LimitRanges::read([&second, &first]), expected);
        assert_eq!(LimitRanges::read([&json!({"spec": 3})]), LimitRanges::default());
    }
}
