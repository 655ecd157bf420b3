//! What is published for containers.

use pillion_api::{RecommendedContainerResources, RecommendedPodResources};

use crate::amounts::Amounts;

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
