//! The two watches on pods, and what is kept of each.
//!
//! Pods with our label are read as far as they are looked at here. All others come as metadata only, are matched on
//! arrival, and are kept only if a set matches them: a cluster has many more pods than sets have.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod as KubePod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::PartialObjectMeta;
use kube::{Api, Client, Resource};
use pillion_inject::coverage::{LivingPod, Marks};
use pillion_inject::marks;
use pillion_rollout::{Pod, RawPod};
use pillion_runtime::watch::{Freshness, Selection, Store, WatchMetrics, watch};
use serde::Deserialize;

use super::ledgers::Arrivals;
use crate::admission::pods::Owner;
use crate::view::View;

/// Pods that have ended are nobody's business.
pub(crate) const NOT_ENDED: &str = "status.phase!=Succeeded,status.phase!=Failed";

/// What is kept of a pod.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct KeptPod {
    /// How it stands to sets.
    pub(super) living: LivingPod,
    /// How far it is with its revisions. Of pods without our label only the metadata are known.
    pub(super) pod: Pod,
}

impl KeptPod {
    /// Whether it has our label.
    pub(super) fn is_labelled(&self) -> bool {
        self.living.labels.iter().any(|(key, value)| **key == *marks::INJECTED_LABEL && **value == *"true")
    }

    /// The object that makes it anew.
    pub(super) fn owner(&self) -> Option<Owner> {
        self.pod.owner.as_ref().map(Owner::from)
    }

    /// `None` for the copy of a static pod.
    pub(super) fn new<'a>(pod: Pod, is_labelled: bool, annotation: impl Fn(&str) -> Option<&'a str>) -> Option<Self> {
        let living = LivingPod {
            labels: Arc::clone(&pod.labels),
            created: pod.created,
            is_deleting: pod.is_deleting,
            is_ready: pod.is_ready,
            marks: Marks::read(annotation, is_labelled, !pod.containers.is_empty())?.into(),
        };
        Some(Self { living, pod })
    }
}

/// Pods with our label. Whoever comes is told to the arrivals, however short it stays.
pub(super) fn watch_injected(
    client: &Client,
    arrivals: &Arrivals,
    metrics: &WatchMetrics,
) -> (Store<Arc<KeptPod>>, impl Future<Output = ()> + Send + use<>) {
    let selection = selection(format!("{}=true", marks::INJECTED_LABEL));
    let api = Api::<SlimPod>::all(client.clone());
    let arrivals = arrivals.clone();
    watch("pods", api, selection, metrics, move |pod: SlimPod| {
        let kept = pod.kept?;
        arrivals.saw(&kept.pod);
        Some(Arc::new(kept))
    })
}

/// Pods without our label that a set matches.
pub(super) fn watch_bare(
    client: &Client,
    view: View,
    metrics: &WatchMetrics,
) -> (Store<Arc<KeptPod>>, impl Future<Output = ()> + Send + use<>) {
    // Without the label, or with a value that we do not write.
    let selection = selection(format!("{}!=true", marks::INJECTED_LABEL));
    let api = Api::<PartialObjectMeta<KubePod>>::all(client.clone());
    watch("bare_pods", api, selection, metrics, move |pod: PartialObjectMeta<KubePod>| {
        let namespace = pod.metadata.namespace.clone().unwrap_or_default();
        let kept = bare(pod.metadata)?;
        // A namespace that is not known yet may be one that a set means.
        let matches = view
            .known_namespace(&namespace)
            .is_none_or(|namespace| !view.sets().matching(&kept.living.labels, &namespace).is_empty());
        matches.then(|| Arc::new(kept))
    })
}

fn selection(labels: String) -> Selection {
    Selection { labels: Some(labels), fields: Some(NOT_ENDED.to_owned()), freshness: Freshness::Latest }
}

fn bare(metadata: ObjectMeta) -> Option<KeptPod> {
    let annotations = metadata.annotations.unwrap_or_default();
    let owners = metadata.owner_references.unwrap_or_default();
    let owner = owners.into_iter().find(|owner| owner.controller == Some(true));
    let labels = metadata.labels.unwrap_or_default();
    let pod = Pod {
        namespace: metadata.namespace.unwrap_or_default().into(),
        name: metadata.name.unwrap_or_default().into(),
        uid: metadata.uid.unwrap_or_default().into(),
        labels: labels.into_iter().map(|(key, value)| (key.into(), value.into())).collect(),
        created: metadata.creation_timestamp.map_or(Timestamp::UNIX_EPOCH, |time| time.0),
        is_deleting: metadata.deletion_timestamp.is_some(),
        owner: owner.map(|owner| pillion_rollout::Owner {
            api_version: owner.api_version.into(),
            kind: owner.kind.into(),
            name: owner.name.into(),
            uid: owner.uid.into(),
        }),
        ..Pod::default()
    };
    KeptPod::new(pod, false, |key| annotations.get(key).map(String::as_str))
}

/// A pod, read only as far as it is looked at here: of the metadata a watch sees only what it needs, as who wrote which
/// field takes longer to read than all the rest.
#[derive(Clone, Debug, Deserialize, Resource)]
#[resource(inherit = KubePod)]
#[serde(from = "RawPod")]
pub(super) struct SlimPod {
    metadata: ObjectMeta,
    pub(super) kept: Option<KeptPod>,
}

impl From<RawPod> for SlimPod {
    fn from(raw: RawPod) -> Self {
        let mut metadata =
            ObjectMeta { resource_version: raw.resource_version().map(str::to_owned), ..ObjectMeta::default() };
        let annotations = [marks::MIRROR, marks::INJECTED_SETS, marks::DECISION]
            .map(|key| (key, raw.annotation(key).map(str::to_owned)));
        let pod = Pod::read(raw);
        metadata.name = Some(pod.name.to_string());
        metadata.namespace = Some(pod.namespace.to_string());
        let is_labelled = pod.label(marks::INJECTED_LABEL) == Some("true");
        let annotation = |key: &str| annotations.iter().find(|(own, _)| *own == key).and_then(|(_, it)| it.as_deref());
        Self { metadata, kept: KeptPod::new(pod, is_labelled, annotation) }
    }
}

#[cfg(test)]
mod tests {
    use pillion_inject::coverage::{Standing, standings};
    use pillion_inject::{Installation, Namespace, SetIndex};
    use serde_json::{Value, json};

    use super::*;

    fn read(pod: Value) -> KeptPod {
        serde_json::from_value::<SlimPod>(pod).unwrap().kept.unwrap()
    }

    fn injected() -> Value {
        json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "web-1", "namespace": "shop", "uid": "u-1", "creationTimestamp": "2026-01-02T03:04:05Z",
                "labels": {"app": "web", "pillion.dev/injected": "true"},
                "annotations": {"kruise.io/sidecarset-injected-list": "mesh", "other": "x".repeat(1000)},
                "ownerReferences": [{"apiVersion": "v1", "kind": "Other", "name": "o", "uid": "u-0"},
                    {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u-2", "controller": true}]},
            "spec": {"containers": [{"name": "app"}],
                "initContainers": [{"name": "proxy", "env": [{"name": "IS_INJECTED", "value": "true"}]}]},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}})
    }

    #[test]
    fn of_a_pod_is_kept_what_is_looked_at() {
        let kept = read(injected());
        assert_eq!((&*kept.pod.uid, kept.living.is_ready, kept.living.is_deleting), ("u-1", true, false));
        assert_eq!(kept.living.created, "2026-01-02T03:04:05Z".parse().unwrap());
        let owner = kept.owner().unwrap();
        assert_eq!(
            (&*owner.api_version, &*owner.kind, &*owner.name, &*owner.uid),
            ("apps/v1", "ReplicaSet", "web", "u-2")
        );
    }

    #[test]
    fn a_label_without_a_sidecar_carries_nothing() {
        let set = pillion_api::review(&json!({"metadata": {"name": "mesh"}, "spec": {
            "selector": {"matchLabels": {"app": "web"}}, "containers": [{"name": "proxy", "image": "proxy:1"}]}}));
        let sets = SetIndex::new(set.meaning);
        let stands = |kept: &KeptPod| {
            let since = |_: &_| Some(Timestamp::UNIX_EPOCH);
            standings(&kept.living, &Namespace::named("shop"), &sets, Installation::default(), since)["mesh"]
        };
        assert_eq!(stands(&read(injected())), Standing::Carries);
        let mut forged = injected();
        forged["spec"]["initContainers"] = json!([]);
        assert_eq!(stands(&read(forged)), Standing::Missed);
    }
}
