//! What is wrong with a `VerticalPodAutoscaler`: what upstream's webhook refuses, and what is not supported here.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Written;
use pillion_api::{
    ContainerResourcePolicy, FieldPath, PodUpdatePolicy, Problem, Reason, ResourceList, StartupBoost,
    VerticalPodAutoscaler,
};
use pillion_quantity::{Quantity, Resource};

use crate::amounts::Amounts;
use crate::policy::{Mode, UPDATE_MODE};

/// What is wrong with an object, in the order of its fields.
pub fn review(object: &VerticalPodAutoscaler) -> Vec<Problem> {
    let mut review = Review::default();
    let spec = &object.spec;
    let own_mode = object.metadata.annotations.as_ref().and_then(|annotations| annotations.get(UPDATE_MODE));
    if let Some(text) = own_mode.filter(|text| text.is_empty() || Mode::parse(text).is_none()) {
        let path = FieldPath::of("metadata.annotations").key(UPDATE_MODE);
        review.invalid(path, format!("{text:?} is no mode"), "use Initial, Recreate, InPlaceOrRecreate or InPlace");
    }
    if let Some(update) = &spec.update_policy {
        review.update(update);
    }
    let policies = spec.resource_policy.iter().flat_map(|policy| policy.container_policies.iter().flatten());
    let all = FieldPath::of("spec.resourcePolicy.containerPolicies");
    let mut names: Vec<&str> = Vec::new();
    for (at, policy) in policies.enumerate() {
        let path = all.index(at);
        let field = path.field("containerName");
        let name = policy.container_name.as_deref().unwrap_or_default();
        if name.is_empty() {
            review.invalid(field, "is missing", "name a container, or * for all others");
        } else if let Some(first) = names.iter().position(|other| *other == name) {
            let message = format!("{name:?} has a policy above, which holds");
            let problem = Problem::warning(Reason::AutoscalerFieldIgnored, field, message, "remove one of the two");
            review.problems.push(problem.with_also(all.index(first).field("containerName")));
        }
        names.push(name);
        review.policy(policy, &path);
    }
    if let Some(boost) = &spec.startup_boost {
        review.boost(boost, &FieldPath::of("spec.startupBoost"));
    }
    if spec.recommenders.iter().flatten().count() > 1 {
        review.invalid(FieldPath::of("spec.recommenders"), "names more than one recommender", "keep one");
    }
    review.problems
}

#[derive(Default)]
struct Review {
    problems: Vec<Problem>,
}

impl Review {
    fn invalid(&mut self, path: FieldPath, message: impl Into<String>, help: impl Into<String>) {
        self.problems.push(Problem::error(Reason::AutoscalerInvalid, path, message, help));
    }

    fn ignored(&mut self, path: FieldPath, message: impl Into<String>, help: impl Into<String>) {
        self.problems.push(Problem::warning(Reason::AutoscalerFieldIgnored, path, message, help));
    }

    fn unsupported(&mut self, path: FieldPath, is_said: bool, flag: &str) {
        if is_said {
            self.ignored(
                path,
                "this field has no effect: it is not supported for one object",
                format!("use the flag {flag}"),
            );
        }
    }

    fn update(&mut self, update: &PodUpdatePolicy) {
        let path = FieldPath::of("spec.updatePolicy");
        let mode = path.field("updateMode");
        let modes = "use Off, Initial, Recreate, InPlaceOrRecreate or InPlace";
        match update.update_mode.as_deref() {
            None => self.invalid(mode, "is missing", modes),
            Some("Auto") => {
                let message = "Auto is deprecated and means Recreate";
                self.problems.push(Problem::warning(Reason::AutoscalerModeDeprecated, mode, message, "write Recreate"));
            }
            Some(word) if Mode::parse(word).is_none() => self.invalid(mode, format!("{word:?} is no mode"), modes),
            Some(_) => {}
        }
        if let Some(least) = update.min_replicas.filter(|least| *least <= 0) {
            self.invalid(path.field("minReplicas"), format!("{least} is too small"), "write 1 or more");
        }
        let oom = update.evict_after_oom_seconds.is_some();
        self.unsupported(path.field("evictAfterOOMSeconds"), oom, "--evict-after-oom-threshold");
        for (at, requirement) in update.eviction_requirements.iter().flatten().enumerate() {
            let unknown = requirement.resources.iter().position(|name| name.parse::<Resource>().is_err());
            if let Some(which) = unknown {
                let path = path.field("evictionRequirements").index(at).field("resources").index(which);
                self.ignored(path, format!("{:?} is not sized", requirement.resources[which]), "use cpu or memory");
            }
        }
    }

    fn policy(&mut self, policy: &ContainerResourcePolicy, path: &FieldPath) {
        let mode = policy.mode.as_deref();
        if let Some(word) = mode.filter(|word| !["Auto", "Off"].contains(word)) {
            self.invalid(path.field("mode"), format!("{word:?} is no mode"), "use Auto or Off");
        }
        for (side, list) in [("minAllowed", &policy.min_allowed), ("maxAllowed", &policy.max_allowed)] {
            for (resource, amount) in list.iter().flatten() {
                self.whole(resource, amount, path.field(side).key(resource));
            }
        }
        self.bounds(policy.min_allowed.as_ref(), policy.max_allowed.as_ref(), path);
        let values = policy.controlled_values.as_deref();
        if let Some(word) = values.filter(|word| !["RequestsAndLimits", "RequestsOnly"].contains(word)) {
            let path = path.field("controlledValues");
            self.invalid(path, format!("{word:?} is not known"), "use RequestsAndLimits or RequestsOnly");
        }
        if (mode, values) == (Some("Off"), Some("RequestsAndLimits")) {
            let message = "nothing is controlled where mode is Off";
            let path = path.field("controlledValues");
            self.invalid(path, message, "remove one of the two");
        }
        for (at, name) in policy.controlled_resources.iter().flatten().enumerate() {
            if name.parse::<Resource>().is_err() {
                let path = path.field("controlledResources").index(at);
                self.invalid(path, format!("{name:?} is not sized"), "use cpu or memory");
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
            self.unsupported(path.field(field), is_said, flag);
        }
        if let Some(boost) = &policy.startup_boost {
            self.boost(boost, &path.field("startupBoost"));
        }
    }

    fn bounds(&mut self, min: Option<&ResourceList>, max: Option<&ResourceList>, path: &FieldPath) {
        let read = |list: Option<&ResourceList>| list.map(Amounts::from_list).unwrap_or_default();
        let (min, max) = (read(min), read(max));
        for (resource, most) in max.iter() {
            if let Some(least) = min.get(resource).filter(|least| most < *least) {
                let (most, least) = (Amounts::write(resource, most), Amounts::write(resource, least));
                let message = format!("maxAllowed {most} is less than minAllowed {least}");
                let problem = Problem::error(
                    Reason::AutoscalerInvalid,
                    path.field("maxAllowed").key(resource.name()),
                    message,
                    "raise it, or lower the other",
                );
                self.problems.push(problem.with_also(path.field("minAllowed").key(resource.name())));
            }
        }
    }

    /// Amounts are whole millicores and bytes.
    fn whole(&mut self, resource: &str, amount: &Written, path: FieldPath) {
        let Ok(resource) = resource.parse::<Resource>() else { return };
        match amount.0.parse::<Quantity>() {
            Err(error) => {
                self.invalid(path, format!("{:?} is no quantity: {error}", amount.0), "write it as 100m or 1Gi");
            }
            Ok(quantity) if quantity.nano() % resource.step() != 0 => {
                let unit = match resource {
                    Resource::Cpu => "millicores",
                    Resource::Memory => "bytes",
                };
                self.invalid(path, format!("{:?} is not a whole number of {unit}", amount.0), "round it");
            }
            Ok(_) => {}
        }
    }

    fn boost(&mut self, boost: &StartupBoost, path: &FieldPath) {
        let Some(cpu) = &boost.cpu else { return };
        let path = path.field("cpu");
        let (factor, quantity) = (path.field("factor"), path.field("quantity"));
        match (cpu.kind.as_str(), cpu.factor, &cpu.quantity) {
            ("Factor", None, _) => self.invalid(factor, "is missing for type Factor", "write it, as 2"),
            ("Factor", Some(by), _) if by < 1 => self.invalid(factor, format!("{by} is too small"), "write 1 or more"),
            ("Quantity", _, None) => self.invalid(quantity, "is missing for type Quantity", "write it, as 500m"),
            ("Quantity", _, Some(by)) => self.whole("cpu", by, quantity),
            ("Factor", ..) => {}
            (word, ..) => self.invalid(path.field("type"), format!("{word:?} is not known"), "use Factor or Quantity"),
        }
    }
}

#[cfg(test)]
mod tests;
