//! What is published for containers.

use pillion_api::{RecommendedContainerResources, RecommendedPodResources};

use crate::amounts::Amounts;
use crate::policy::ContainerPolicy;

/// What is recommended for a container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContainerRecommendation {
    /// The container.
    pub container: String,
    /// What it should ask for.
    pub target: Amounts,
    /// A pod that asks for less is changed.
    pub lower: Amounts,
    /// A pod that asks for more is changed.
    pub upper: Amounts,
    /// The target before the bounds of the policy.
    pub uncapped: Amounts,
}

/// What is recommended for the containers of a pod, in the order of their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recommendation {
    /// For each container.
    pub containers: Vec<ContainerRecommendation>,
}

impl ContainerRecommendation {
    /// The same within a policy that may have changed since: the target comes from what it was before the bounds.
    #[must_use]
    pub fn within(&self, policy: &ContainerPolicy) -> Self {
        let bounded = |amounts: &Amounts| {
            let mut within = Amounts::default();
            for (resource, amount) in amounts.iter().filter(|(resource, _)| policy.sizes(*resource)) {
                let amount = policy.min.bound(resource).map_or(amount, |least| amount.max(least));
                let amount = policy.max.bound(resource).map_or(amount, |most| amount.min(most));
                within.set(resource, Some(amount));
            }
            within
        };
        let target = if self.uncapped.is_empty() { &self.target } else { &self.uncapped };
        Self {
            container: self.container.clone(),
            target: bounded(target),
            lower: bounded(&self.lower),
            upper: bounded(&self.upper),
            uncapped: self.uncapped,
        }
    }
}

impl Recommendation {
    /// What is recommended for a container.
    pub fn of(&self, container: &str) -> Option<&ContainerRecommendation> {
        self.containers.iter().find(|own| own.container == container)
    }

    /// Reads what a status has.
    pub fn read(stored: &RecommendedPodResources) -> Self {
        let stored = stored.container_recommendations.iter().flatten();
        let read = |own: &RecommendedContainerResources| ContainerRecommendation {
            container: own.container_name.clone().unwrap_or_default(),
            target: Amounts::from_list(&own.target),
            lower: own.lower_bound.as_ref().map(Amounts::from_list).unwrap_or_default(),
            upper: own.upper_bound.as_ref().map(Amounts::from_list).unwrap_or_default(),
            uncapped: own.uncapped_target.as_ref().map(Amounts::from_list).unwrap_or_default(),
        };
        Self { containers: stored.map(read).collect() }
    }

    /// As a status has it.
    pub fn write(&self) -> RecommendedPodResources {
        let write = |own: &ContainerRecommendation| RecommendedContainerResources {
            container_name: Some(own.container.clone()),
            target: own.target.to_list(),
            lower_bound: Some(own.lower.to_list()),
            upper_bound: Some(own.upper.to_list()),
            uncapped_target: Some(own.uncapped.to_list()),
        };
        RecommendedPodResources { container_recommendations: Some(self.containers.iter().map(write).collect()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_policy_bounds_what_was_published_and_what_it_does_not_size_is_left_out() {
        let amounts = |cpu, memory| Amounts { cpu: Some(cpu), memory };
        let own = ContainerRecommendation {
            container: "app".to_owned(),
            target: amounts(4000, Some(100)),
            lower: amounts(1000, Some(50)),
            upper: amounts(8000, Some(200)),
            uncapped: amounts(500, Some(100)),
        };
        let policy = ContainerPolicy {
            min: amounts(0, None),
            max: amounts(2000, None),
            sizes_memory: false,
            ..ContainerPolicy::default()
        };
        let expected = ContainerRecommendation {
            container: "app".to_owned(),
            target: amounts(500, None),
            lower: amounts(1000, None),
            upper: amounts(2000, None),
            uncapped: amounts(500, Some(100)),
        };
        assert_eq!(own.within(&policy), expected);
        assert_eq!(own.within(&ContainerPolicy { min: amounts(3000, None), ..policy }).target, amounts(2000, None));
    }

    #[test]
    fn what_is_published_is_read_back() {
        let amounts = |cpu, memory| Amounts { cpu: Some(cpu), memory: Some(memory) };
        let own = ContainerRecommendation {
            container: "app".to_owned(),
            target: amounts(25, 262_144_000),
            lower: amounts(10, 1),
            upper: amounts(100_000_000_000_000, 100_000_000_000_000),
            uncapped: amounts(1, 2),
        };
        let published = Recommendation { containers: vec![own.clone()] };
        assert_eq!(Recommendation::read(&published.write()), published);
        assert_eq!((published.of("app"), published.of("other")), (Some(&own), None));
    }
}
