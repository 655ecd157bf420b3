//! Objects for tests, each with what the test is about and nothing else.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::budget::{DisruptionBudget, Ground};
use super::check::check;
use super::limit_range::LimitRanges;
use super::pod::Pod;
use super::tries::Tries;
use super::updater::{UpdatePlan, UpdaterSettings, plan};
use super::wanted::{Gates, Sizing};
use crate::policy::Autoscaler;

pub(crate) const SIDECARS: Gates = Gates { native_sidecar: true, startup_boost: false };
pub(crate) const BOOSTS: Gates = Gates { native_sidecar: true, startup_boost: true };

/// A `VerticalPodAutoscaler` named web, with recommendations as a status has them.
pub(crate) fn autoscaler(spec: &Value, recommendations: &Value) -> Autoscaler {
    let mut spec = spec.clone();
    spec["targetRef"] = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    let mut own = recommendations.clone();
    for recommendation in own.as_array_mut().into_iter().flatten() {
        let (name, target) = (recommendation["name"].take(), recommendation["target"].clone());
        recommendation["containerName"] = name;
        for bound in ["lowerBound", "upperBound"] {
            if recommendation[bound].is_null() {
                recommendation[bound] = target.clone();
            }
        }
    }
    let object = json!({
        "apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "shop", "uid": "vpa-1"}, "spec": spec,
        "status": {"recommendation": {"containerRecommendations": own},
            "conditions": [{"type": "RecommendationProvided", "status": "True"}]},
    });
    Autoscaler::read(&serde_json::from_value(object).unwrap()).unwrap()
}

/// One recommendation for the container app.
pub(crate) fn app(cpu: &str, memory: &str) -> Value {
    json!([{"name": "app", "target": {"cpu": cpu, "memory": memory}}])
}

pub(crate) fn sizing<'a>(autoscaler: &'a Autoscaler, limits: &'a LimitRanges, gates: Gates) -> Sizing<'a> {
    Sizing { autoscaler, mode: autoscaler.effective_mode(false), limits, gates, max_boost: None }
}

/// A pod with these containers and init containers.
pub(crate) fn pod(containers: &Value, init: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web-1", "namespace": "shop"},
        "spec": {"containers": containers, "initContainers": init}})
}

/// A container that asks for amounts written as `cpu/memory` and may use as much as the second says; `-` is nothing.
pub(crate) fn container(name: &str, requests: &str, limits: &str) -> Value {
    let side = |text: &str| {
        let (cpu, memory) = text.split_once('/').unwrap_or(("-", "-"));
        let mut list = json!({});
        for (resource, amount) in [("cpu", cpu), ("memory", memory)] {
            if amount != "-" {
                list[resource] = amount.into();
            }
        }
        list
    };
    json!({"name": name, "image": "x", "resources": {"requests": side(requests), "limits": side(limits)}})
}

/// The same as a native sidecar.
pub(crate) fn sidecar(name: &str, requests: &str, limits: &str) -> Value {
    let mut own = container(name, requests, limits);
    own["restartPolicy"] = "Always".into();
    own
}

/// A `LimitRange` of one type.
pub(crate) fn limits(kind: &str, bounds: &Value) -> LimitRanges {
    let mut item = bounds.clone();
    item["type"] = kind.into();
    LimitRanges::read([&json!({"metadata": {"name": "a"}, "spec": {"limits": [item]}})])
}

/// The time in tests of the updater.
pub(crate) fn now() -> Timestamp {
    at("2026-03-01T12:00:00Z")
}

pub(crate) fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// A pod of `ReplicaSet` web that has run for an hour, with fields that differ merged over it.
pub(crate) fn running(name: &str, containers: &Value, init: &Value, fields: &Value) -> Pod {
    let mut own = pod(containers, init);
    own["metadata"]["name"] = name.into();
    own["metadata"]["uid"] = format!("uid-{name}").into();
    own["metadata"]["creationTimestamp"] = "2026-03-01T11:00:00Z".into();
    own["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "rs-1", "controller": true}]);
    own["spec"]["nodeName"] = "n".into();
    own["status"] = json!({"phase": "Running", "startTime": "2026-03-01T11:00:00Z",
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-03-01T11:01:00Z"}]});
    merge(&mut own, fields);
    Pod::read(serde_json::from_value(own).unwrap())
}

fn merge(into: &mut Value, fields: &Value) {
    match (into, fields) {
        (Value::Object(into), Value::Object(fields)) => {
            for (key, value) in fields {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (into, fields) => *into = fields.clone(),
    }
}

/// So many pods of one container app.
pub(crate) fn replicas(count: usize, requests: &str, limits: &str) -> Vec<Pod> {
    let one = |at| running(&format!("web-{at}"), &json!([container("app", requests, limits)]), &json!([]), &json!({}));
    (0..count).map(one).collect()
}

/// What the updater knows, with everything as a test wants it.
pub(crate) struct Scene {
    pub autoscaler: Autoscaler,
    pub limits: LimitRanges,
    pub gates: Gates,
    pub configured: BTreeMap<Box<str>, u32>,
    pub budgets: Vec<DisruptionBudget>,
    pub can_evict: Result<(), &'static str>,
    pub tries: Tries,
    pub settings: UpdaterSettings,
    pub used: BTreeMap<&'static str, i64>,
    pub now: Timestamp,
}

impl Scene {
    /// Of an object in this mode, where the `ReplicaSet` is to have so many pods.
    pub(crate) fn new(mode: &str, replicas: u32, recommendations: &Value) -> Self {
        let spec = json!({"updatePolicy": {"updateMode": mode}});
        Self {
            autoscaler: autoscaler(&spec, recommendations),
            limits: LimitRanges::default(),
            gates: SIDECARS,
            configured: BTreeMap::from([("rs-1".into(), replicas)]),
            budgets: Vec::new(),
            can_evict: Ok(()),
            tries: Tries::default(),
            settings: UpdaterSettings::default(),
            used: BTreeMap::new(),
            now: now(),
        }
    }

    pub(crate) fn ground<T>(&self, with: impl FnOnce(&Ground<'_>) -> T) -> T {
        let memory_used = |_: &str, container: &str| self.used.get(container).copied();
        with(&Ground {
            sizing: sizing(&self.autoscaler, &self.limits, self.gates),
            configured: &self.configured,
            budgets: &self.budgets,
            can_evict: self.can_evict,
            tries: &self.tries,
            settings: &self.settings,
            memory_used: &memory_used,
            now: self.now,
        })
    }

    /// The plan, which keeps every rule.
    pub(crate) fn plan(&self, pods: &[Pod]) -> UpdatePlan {
        self.ground(|ground| {
            let planned = plan(pods, ground);
            assert_eq!(check(&planned, pods, ground), Ok(()));
            planned
        })
    }

    /// The plan in words.
    pub(crate) fn words(&self, pods: &[Pod]) -> Vec<String> {
        let planned = self.plan(pods);
        let actions = planned.actions.iter().map(ToString::to_string);
        actions
            .chain(planned.waiting.iter().map(|waiting| format!("{} waits: {}", waiting.name, waiting.why)))
            .collect()
    }
}
