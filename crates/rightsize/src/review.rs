//! What is wrong with a `VerticalPodAutoscaler`: what upstream's webhook refuses, and what is not supported here.

use std::fmt;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Written;
use pillion_api::{ContainerResourcePolicy, PodUpdatePolicy, ResourceList, StartupBoost, VerticalPodAutoscaler};
use pillion_quantity::{Quantity, Resource};

use crate::amounts::Amounts;
use crate::policy::Mode;

/// One thing a person should put right, or know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Whether the object cannot be used as it is; else it is used, and only the person is told.
    pub is_error: bool,
    /// Where it is, as `spec.updatePolicy.updateMode`.
    pub path: String,
    /// What is wrong, and the way out.
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

/// What is wrong with an object, in the order of its fields.
pub fn review(object: &VerticalPodAutoscaler) -> Vec<Finding> {
    let mut review = Review::default();
    let spec = &object.spec;
    if let Some(update) = &spec.update_policy {
        review.update(update);
    }
    let policies = spec.resource_policy.iter().flat_map(|policy| policy.container_policies.iter().flatten());
    let mut names: Vec<&str> = Vec::new();
    for (at, policy) in policies.enumerate() {
        let path = format!("spec.resourcePolicy.containerPolicies[{at}]");
        let name = policy.container_name.as_deref().unwrap_or_default();
        if name.is_empty() {
            review.error(format!("{path}.containerName"), "is missing: name a container, or * for all others");
        } else if names.contains(&name) {
            let message = format!("{name:?} has a policy above, which holds: remove one of the two");
            review.warning(format!("{path}.containerName"), message);
        }
        names.push(name);
        review.policy(policy, &path);
    }
    if let Some(boost) = &spec.startup_boost {
        review.boost(boost, "spec.startupBoost");
    }
    if spec.recommenders.iter().flatten().count() > 1 {
        review.error("spec.recommenders", "names more than one recommender: keep one");
    }
    review.findings
}

#[derive(Default)]
struct Review {
    findings: Vec<Finding>,
}

impl Review {
    fn error(&mut self, path: impl Into<String>, message: impl Into<String>) {
        self.findings.push(Finding { is_error: true, path: path.into(), message: message.into() });
    }

    fn warning(&mut self, path: impl Into<String>, message: impl Into<String>) {
        self.findings.push(Finding { is_error: false, path: path.into(), message: message.into() });
    }

    fn unsupported(&mut self, path: String, is_said: bool, flag: &str) {
        if is_said {
            self.warning(path, format!("is not supported for one object and has no effect: use the flag {flag}"));
        }
    }

    fn update(&mut self, update: &PodUpdatePolicy) {
        let path = "spec.updatePolicy";
        let modes = "use Off, Initial, Recreate, InPlaceOrRecreate or InPlace";
        match update.update_mode.as_deref() {
            None => self.error(format!("{path}.updateMode"), format!("is missing: {modes}")),
            Some("Auto") => self.warning(format!("{path}.updateMode"), "Auto is deprecated and means Recreate: say so"),
            Some(word) if Mode::parse(word).is_none() => {
                self.error(format!("{path}.updateMode"), format!("{word:?} is no mode: {modes}"));
            }
            Some(_) => {}
        }
        if update.min_replicas.is_some_and(|least| least <= 0) {
            self.error(format!("{path}.minReplicas"), "must be 1 or more");
        }
        let oom = update.evict_after_oom_seconds.is_some();
        self.unsupported(format!("{path}.evictAfterOOMSeconds"), oom, "--evict-after-oom-threshold");
        for (at, requirement) in update.eviction_requirements.iter().flatten().enumerate() {
            let path = format!("{path}.evictionRequirements[{at}]");
            let unknown = requirement.resources.iter().find(|name| name.parse::<Resource>().is_err());
            if let Some(name) = unknown {
                self.warning(format!("{path}.resources"), format!("{name:?} is not sized: use cpu or memory"));
            }
        }
    }

    fn policy(&mut self, policy: &ContainerResourcePolicy, path: &str) {
        let mode = policy.mode.as_deref();
        if let Some(word) = mode.filter(|word| !["Auto", "Off"].contains(word)) {
            self.error(format!("{path}.mode"), format!("{word:?} is no mode: use Auto or Off"));
        }
        for (side, list) in [("minAllowed", &policy.min_allowed), ("maxAllowed", &policy.max_allowed)] {
            for (resource, amount) in list.iter().flatten() {
                self.whole(resource, amount, format!("{path}.{side}[{resource}]"));
            }
        }
        self.bounds(policy.min_allowed.as_ref(), policy.max_allowed.as_ref(), path);
        let values = policy.controlled_values.as_deref();
        if let Some(word) = values.filter(|word| !["RequestsAndLimits", "RequestsOnly"].contains(word)) {
            let message = format!("{word:?} is neither RequestsAndLimits nor RequestsOnly");
            self.error(format!("{path}.controlledValues"), message);
        }
        if (mode, values) == (Some("Off"), Some("RequestsAndLimits")) {
            let message = "nothing is controlled where mode is Off: remove one of the two";
            self.error(format!("{path}.controlledValues"), message);
        }
        for (at, name) in policy.controlled_resources.iter().flatten().enumerate() {
            if name.parse::<Resource>().is_err() {
                let message = format!("{name:?} is not sized: use cpu or memory");
                self.error(format!("{path}.controlledResources[{at}]"), message);
            }
        }
        for (field, is_said, flag) in [
            ("oomBumpUpRatio", policy.oom_bump_up_ratio.is_some(), "--oom-bump-up-ratio"),
            ("oomMinBumpUp", policy.oom_min_bump_up.is_some(), "--oom-min-bump-up-bytes"),
            (
                "memoryAggregationIntervalSeconds",
                policy.memory_aggregation_interval_seconds.is_some(),
                "--memory-aggregation-interval",
            ),
            (
                "memoryAggregationIntervalCount",
                policy.memory_aggregation_interval_count.is_some(),
                "--memory-aggregation-interval-count",
            ),
        ] {
            self.unsupported(format!("{path}.{field}"), is_said, flag);
        }
        if let Some(boost) = &policy.startup_boost {
            self.boost(boost, &format!("{path}.startupBoost"));
        }
    }

    fn bounds(&mut self, min: Option<&ResourceList>, max: Option<&ResourceList>, path: &str) {
        let read = |list: Option<&ResourceList>| list.map(Amounts::from_list).unwrap_or_default();
        let (min, max) = (read(min), read(max));
        for (resource, most) in max.iter() {
            if let Some(least) = min.get(resource).filter(|least| most < *least) {
                let (most, least) = (Amounts::write(resource, most), Amounts::write(resource, least));
                let message = format!("{most} is less than minAllowed, {least}: raise it");
                self.error(format!("{path}.maxAllowed[{resource}]"), message);
            }
        }
    }

    /// Amounts are whole millicores and bytes.
    fn whole(&mut self, resource: &str, amount: &Written, path: String) {
        let Ok(resource) = resource.parse::<Resource>() else { return };
        match amount.0.parse::<Quantity>() {
            Err(error) => self.error(path, format!("{:?} is no quantity: {error}", amount.0)),
            Ok(quantity) if quantity.nano() % resource.step() != 0 => {
                let unit = match resource {
                    Resource::Cpu => "millicores",
                    Resource::Memory => "bytes",
                };
                self.error(path, format!("{:?} is not a whole number of {unit}: round it", amount.0));
            }
            Ok(_) => {}
        }
    }

    fn boost(&mut self, boost: &StartupBoost, path: &str) {
        let Some(cpu) = &boost.cpu else { return };
        let path = format!("{path}.cpu");
        match (cpu.kind.as_str(), cpu.factor, &cpu.quantity) {
            ("Factor", None, _) => self.error(format!("{path}.factor"), "is missing for type Factor"),
            ("Factor", Some(factor), _) if factor < 1 => self.error(format!("{path}.factor"), "must be 1 or more"),
            ("Quantity", _, None) => self.error(format!("{path}.quantity"), "is missing for type Quantity"),
            ("Quantity", _, Some(quantity)) => self.whole("cpu", quantity, format!("{path}.quantity")),
            ("Factor", ..) => {}
            (word, ..) => self.error(format!("{path}.type"), format!("{word:?} is neither Factor nor Quantity")),
        }
    }
}

#[cfg(test)]
mod tests;
