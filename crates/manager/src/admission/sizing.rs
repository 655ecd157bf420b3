//! Which autoscaler sizes a pod that is about to be created.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pillion_inject::Origins;
use pillion_rightsize::{Autoscaler, Gates, LimitRanges, Mode, Sizing};
use serde::Deserialize;

/// The autoscalers of all namespaces, by what they size.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Autoscalers(BTreeMap<String, Targets>);

/// The autoscalers of a namespace, by kind and name of what they size.
type Targets = BTreeMap<(String, String), Vec<Arc<Autoscaler>>>;

/// By what pods of a namespace are sized.
#[derive(Clone, Copy, Debug)]
pub struct Rightsizing<'a> {
    /// All autoscalers.
    pub autoscalers: &'a Autoscalers,
    /// The bounds of the pod's namespace.
    pub limits: &'a LimitRanges,
    /// What is switched on.
    pub gates: Gates,
    /// The most cpu a container gets for its start, in millicores.
    pub max_boost: Option<i64>,
    /// Whether upstream's autoscaler sizes pods as well.
    pub is_beside_upstream: bool,
}

/// What of a pod tells whose it is.
#[derive(Deserialize)]
struct Owned<'a> {
    #[serde(borrow, default)]
    metadata: Option<OwnedMetadata<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OwnedMetadata<'a> {
    #[serde(borrow, default)]
    labels: Option<BTreeMap<Cow<'a, str>, Cow<'a, str>>>,
    #[serde(borrow, default)]
    owner_references: Option<Vec<OwnerReference<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OwnerReference<'a> {
    #[serde(borrow, default)]
    api_version: Cow<'a, str>,
    #[serde(borrow, default)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(default)]
    controller: Option<bool>,
}

impl FromIterator<Autoscaler> for Autoscalers {
    fn from_iter<I: IntoIterator<Item = Autoscaler>>(all: I) -> Self {
        let mut own = Self::default();
        for autoscaler in all {
            let target = (autoscaler.target.kind.clone(), autoscaler.target.name.clone());
            let of_namespace = own.0.entry(autoscaler.namespace.clone()).or_default();
            of_namespace.entry(target).or_default().push(Arc::new(autoscaler));
        }
        for all in own.0.values_mut().flat_map(BTreeMap::values_mut) {
            all.sort_by(|one, other| (one.created, &one.name).cmp(&(other.created, &other.name)));
        }
        own
    }
}

impl Autoscalers {
    /// Whether pods of a namespace may be sized.
    pub fn has(&self, namespace: &str) -> bool {
        self.0.contains_key(namespace)
    }

    /// The one that sizes pods of these origins. Of several that do, the oldest; of the same second, the first by name.
    fn of(&self, namespace: &str, origins: Origins<'_>, acts: impl Fn(&Autoscaler) -> bool) -> Option<&Autoscaler> {
        let targets = self.0.get(namespace)?;
        let all = origins.workloads().into_iter().flat_map(|workload| {
            let named = targets.get(&(workload.kind().to_owned(), workload.name().to_owned()));
            let same_group = move |autoscaler: &&Arc<Autoscaler>| {
                let version = &autoscaler.target.api_version;
                version.is_empty() || version.split_once('/').map_or("", |(group, _)| group) == workload.group()
            };
            named.into_iter().flatten().filter(same_group)
        });
        let acting = all.filter(|autoscaler| acts(autoscaler));
        acting.min_by(|one, other| (one.created, &one.name).cmp(&(other.created, &other.name))).map(AsRef::as_ref)
    }
}

impl<'a> Rightsizing<'a> {
    /// How a pod is sized; `None` for one that is not.
    pub fn of_pod(&self, namespace: &str, pod: &str) -> Option<Sizing<'a>> {
        // A pod that cannot be read is somebody else's trouble.
        let metadata = serde_json::from_str::<Owned<'_>>(pod).ok()?.metadata?;
        let owners = metadata.owner_references.as_deref().unwrap_or_default();
        let owner = owners.iter().find(|owner| owner.controller == Some(true));
        let owner = owner.map(|owner| (&*owner.api_version, &*owner.kind, &*owner.name));
        let labels = metadata.labels.as_ref();
        let origins = Origins::new(owner, |key| labels.and_then(|labels| labels.get(key)).map(AsRef::as_ref));
        let mode = |autoscaler: &Autoscaler| autoscaler.effective_mode(self.is_beside_upstream);
        let acts = |autoscaler: &Autoscaler| mode(autoscaler) != Mode::Off || self.boosts(autoscaler);
        let autoscaler = self.autoscalers.of(namespace, origins, acts)?;
        let Self { limits, gates, max_boost, .. } = *self;
        Some(Sizing { autoscaler, mode: mode(autoscaler), limits, gates, max_boost })
    }

    /// More cpu at the start is given in every mode; beside upstream that is upstream's.
    fn boosts(&self, autoscaler: &Autoscaler) -> bool {
        let policies = autoscaler.containers.iter().map(|(_, policy)| policy.boost);
        self.gates.startup_boost
            && !self.is_beside_upstream
            && policies.chain([autoscaler.boost]).any(|it| it.is_some())
    }
}

/// The containers an autoscaler has a size for.
pub(super) fn sized_containers(sizing: &Sizing<'_>) -> BTreeSet<String> {
    let autoscaler = sizing.autoscaler;
    let all = autoscaler.recommendation.iter().flat_map(|all| &all.containers).map(|own| &own.container);
    let all = all.filter(|name| sizing.mode != Mode::Off && !autoscaler.policy(name).is_off);
    all.cloned().collect()
}

#[cfg(test)]
mod tests {
    use pillion_api::VerticalPodAutoscaler;
    use serde_json::{Value, json};

    use super::*;

    fn autoscaler(name: &str, created: &str, kind: &str, target: &str, mode: &str) -> Autoscaler {
        let object: VerticalPodAutoscaler = serde_json::from_value(json!({
            "metadata": {"name": name, "namespace": "shop", "creationTimestamp": created},
            "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": kind, "name": target},
                "updatePolicy": {"updateMode": mode}},
        }))
        .unwrap();
        Autoscaler::read(&object).unwrap()
    }

    fn pod(owner: &Value) -> String {
        json!({"metadata": {"labels": {"pod-template-hash": "5d"}, "ownerReferences": [
            {"apiVersion": "v1", "kind": "Deployment", "name": "web"}, owner]}})
        .to_string()
    }

    fn found(all: &[Autoscaler], pod: &str, is_beside_upstream: bool) -> Option<(String, Mode)> {
        let autoscalers: Autoscalers = all.iter().cloned().collect();
        let limits = LimitRanges::default();
        let gates = Gates::default();
        let sizing =
            Rightsizing { autoscalers: &autoscalers, limits: &limits, gates, max_boost: None, is_beside_upstream };
        sizing.of_pod("shop", pod).map(|sizing| (sizing.autoscaler.name.clone(), sizing.mode))
    }

    #[test]
    fn the_oldest_that_acts_sizes_the_pod_and_then_the_first_by_name() {
        let replica_set = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5d", "controller": true});
        let pod = pod(&replica_set);
        let first = autoscaler("off", "2026-01-01T00:00:00Z", "Deployment", "web", "Off");
        let second = autoscaler("b", "2026-01-02T00:00:00Z", "Deployment", "web", "Initial");
        let third = autoscaler("a", "2026-01-02T00:00:00Z", "Deployment", "web", "Recreate");
        let last = autoscaler("0", "2026-01-03T00:00:00Z", "Deployment", "web", "Recreate");
        let all = [last, second, first, third];
        assert_eq!(found(&all, &pod, false), Some(("a".to_owned(), Mode::Recreate)));
        assert_eq!(found(&all[1..3], &pod, false), Some(("b".to_owned(), Mode::Initial)));
        assert_eq!(found(&all[2..3], &pod, false), None);
    }

    #[test]
    fn a_pod_is_found_by_the_owner_that_controls_it() {
        let of = |kind: &str, target: &str| [autoscaler("vpa", "2026-01-01T00:00:00Z", kind, target, "Initial")];
        let stateful = pod(&json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "controller": true}));
        assert_eq!(found(&of("StatefulSet", "web"), &stateful, false), Some(("vpa".to_owned(), Mode::Initial)));
        assert_eq!(found(&of("Deployment", "web"), &stateful, false), None);
        // Of another group, a kind of the same name is another kind.
        let other = pod(
            &json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "StatefulSet", "name": "web", "controller": true}),
        );
        assert_eq!(found(&of("StatefulSet", "web"), &other, false), None);
        assert_eq!(found(&of("StatefulSet", "web"), r#"{"metadata": 3}"#, false), None);
        assert_eq!(found(&of("StatefulSet", "web"), "{}", false), None);
    }

    #[test]
    fn beside_upstream_only_what_upstream_takes_for_off_is_ours() {
        let replica_set = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5d", "controller": true});
        let pod = pod(&replica_set);
        let mut own = autoscaler("a", "2026-01-02T00:00:00Z", "Deployment", "web", "Recreate");
        assert_eq!(found(&[own.clone()], &pod, true), None);
        own.mode = Mode::Off;
        own.own_mode = Some(Mode::InPlace);
        assert_eq!(found(&[own], &pod, true), Some(("a".to_owned(), Mode::InPlace)));
    }
}
