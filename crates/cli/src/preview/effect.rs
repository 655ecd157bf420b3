//! What a change of a pod means for the node it runs on.

use std::fmt;

use pillion_pod::{QosClass, Unreadable, effective_requests, qos_class};
use pillion_quantity::{Quantity, Resource};
use serde_json::{Value, json};

/// What a pod asks for before and after.
pub(crate) struct Effect {
    /// By resource: cpu and memory first.
    requests: Vec<(String, Quantity, Quantity)>,
    qos: (QosClass, QosClass),
}

impl Effect {
    /// Both pods with everything the API server fills in.
    pub(crate) fn between(before: &Value, after: &Value) -> Result<Self, Unreadable> {
        let (earlier, later) = (effective_requests(before)?, effective_requests(after)?);
        let others = earlier.keys().chain(later.keys()).map(String::as_str);
        let mut names: Vec<&str> = others.filter(|name| name.parse::<Resource>().is_err()).collect();
        names.sort_unstable();
        names.dedup();
        let amounts = |name: &str| [&earlier, &later].map(|amounts| amounts.get(name).copied().unwrap_or_default());
        let told = |name: &str| {
            let [before, after] = amounts(name);
            (name.to_owned(), before, after)
        };
        let always = [Resource::Cpu, Resource::Memory].map(Resource::name);
        let changed = names.into_iter().filter(|name| amounts(name)[0] != amounts(name)[1]);
        let requests = always.into_iter().chain(changed).map(told).collect();
        Ok(Self { requests, qos: (qos_class(before)?, qos_class(after)?) })
    }

    pub(crate) fn json(&self) -> Value {
        let requests = self.requests.iter().map(|(name, before, after)| {
            let amounts = json!({"before": shown(name, *before), "after": shown(name, *after)});
            (name.clone(), amounts)
        });
        json!({
            "requests": requests.collect::<serde_json::Map<_, _>>(),
            "qosClass": {"before": self.qos.0.to_string(), "after": self.qos.1.to_string()},
        })
    }
}

impl fmt::Display for Effect {
    /// `pod requests 150m → 225m cpu (+50%), 300Mi memory`, and on a line of its own `QoS Burstable`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told = self.requests.iter().map(|(name, before, after)| {
            if before == after {
                return format!("{} {name}", shown(name, *before));
            }
            format!("{} → {} {name}{}", shown(name, *before), shown(name, *after), percent(*before, *after))
        });
        write!(f, "pod requests {}\nQoS ", told.collect::<Vec<_>>().join(", "))?;
        let (before, after) = self.qos;
        if before == after { write!(f, "{before}") } else { write!(f, "{before} → {after}") }
    }
}

fn shown(name: &str, amount: Quantity) -> String {
    match name.parse::<Resource>() {
        Ok(resource) => amount.human(resource).to_string(),
        Err(_) => amount.to_string(),
    }
}

/// To the nearest whole one.
fn percent(before: Quantity, after: Quantity) -> String {
    let (before, after) = (before.nano(), after.nano());
    if before <= 0 {
        return String::new();
    }
    let more = (after - before).saturating_mul(100);
    match more.saturating_add(more.signum() * before / 2) / before {
        0 => " (under 1%)".to_owned(),
        rounded => format!(" ({rounded:+}%)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(requests: &Value) -> Value {
        json!({"spec": {"containers": [{"name": "app", "resources": {"requests": requests}}]}})
    }

    #[test]
    fn an_effect_is_two_lines() {
        for (before, after, line) in [
            (
                json!({"cpu": "150m", "memory": "300Mi"}),
                json!({"cpu": "225m", "memory": "400Mi"}),
                "pod requests 150m → 225m cpu (+50%), 300Mi → 400Mi memory (+33%)\nQoS Burstable",
            ),
            (json!({}), json!({"cpu": "1"}), "pod requests 0 → 1 cpu, 0 memory\nQoS BestEffort → Burstable"),
            (
                json!({"cpu": 3}),
                json!({"cpu": "3001m"}),
                "pod requests 3 → 3001m cpu (under 1%), 0 memory\nQoS Burstable",
            ),
            (json!({"cpu": 3}), json!({"cpu": "2"}), "pod requests 3 → 2 cpu (-33%), 0 memory\nQoS Burstable"),
            (
                json!({"a.b/gpu": 1, "a.b/c": 1}),
                json!({"a.b/gpu": 2, "a.b/c": 1}),
                "pod requests 0 cpu, 0 memory, 1 → 2 a.b/gpu (+100%)\nQoS BestEffort",
            ),
        ] {
            assert_eq!(Effect::between(&pod(&before), &pod(&after)).unwrap().to_string(), line);
        }
    }
}
