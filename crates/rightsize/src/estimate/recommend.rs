//! What is recommended for the containers of a pod.

use crate::amounts::Amounts;
use crate::policy::ContainerPolicy;
use crate::recommendation::{ContainerRecommendation, Recommendation};

use super::aggregate::Aggregate;
use super::settings::Settings;
use super::steps::{Bound, Way};

/// What a container is to its pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ContainerType {
    /// One of `spec.containers`.
    App,
    /// One of `spec.initContainers` that goes on beside them: its `restartPolicy` is Always.
    NativeSidecar,
}

impl ContainerType {
    /// Whether it is observed at all: recommended for, kept in checkpoints, applied.
    pub const fn is_served(self, settings: &Settings) -> bool {
        match self {
            Self::App => true,
            Self::NativeSidecar => settings.native_sidecars,
        }
    }
}

/// How many containers share the floor of a pod: app containers that are not Off. Native sidecars are not among them, so
/// that the gate does not change what apps get.
pub fn count_of_apps<'a>(
    containers: impl IntoIterator<Item = (&'a str, ContainerType)>,
    policy: impl Fn(&str) -> ContainerPolicy,
) -> usize {
    let is_app = |(name, kind): &(&str, ContainerType)| *kind == ContainerType::App && !policy(name).is_off;
    containers.into_iter().filter(is_app).count()
}

/// What is recommended for the containers of a pod. One without samples has no recommendation, nor has one that is Off.
pub fn recommend(
    containers: &[(&str, ContainerType, &Aggregate)],
    policy: impl Fn(&str) -> ContainerPolicy,
    settings: &Settings,
) -> Recommendation {
    let apps = count_of_apps(containers.iter().map(|(name, kind, _)| (*name, *kind)), &policy);
    let mut all: Vec<ContainerRecommendation> = containers
        .iter()
        .filter_map(|(name, kind, aggregate)| {
            let policy = policy(name);
            let way = Way { kind: *kind, aggregate, policy: &policy, apps, settings };
            (kind.is_served(settings) && !policy.is_off).then(|| way.recommend(name)).flatten()
        })
        .collect();
    all.sort_by(|one, other| one.container.cmp(&other.container));
    Recommendation { containers: all }
}

impl Way<'_> {
    fn recommend(self, name: &str) -> Option<ContainerRecommendation> {
        let mut own = ContainerRecommendation { container: name.to_owned(), ..ContainerRecommendation::default() };
        for resource in Amounts::RESOURCES.into_iter().filter(|resource| self.policy.sizes(*resource)) {
            let arrived = |bound| self.walk(resource, bound, |_| ());
            own.lower.set(resource, arrived(Bound::Lower).map(|arrived| arrived.capped));
            own.upper.set(resource, arrived(Bound::Upper).map(|arrived| arrived.capped));
            let target = arrived(Bound::Target);
            own.target.set(resource, target.map(|arrived| arrived.capped));
            own.uncapped.set(resource, target.map(|arrived| arrived.uncapped));
        }
        (!own.target.is_empty()).then_some(own)
    }
}

#[cfg(test)]
mod tests;
