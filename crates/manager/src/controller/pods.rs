//! The two watches on pods, and what is kept of each.
//!
//! Pods with our label are read as far as they are looked at here. All others come as metadata only, are matched on
//! arrival, and are kept only if a set matches them: a cluster has many more pods than sets have.

use std::borrow::Cow;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::{NamespaceResourceScope, PartialObjectMeta};
use kube::{Api, Client, Resource};
use pillion_inject::coverage::{LivingPod, Marks};
use pillion_inject::marks;
use pillion_runtime::watch::{Freshness, Selection, Store, WatchMetrics, watch};
use serde::Deserialize;

use crate::admission::pods::Owner;
use crate::view::View;

/// Pods that have ended are nobody's business.
pub(super) const NOT_ENDED: &str = "status.phase!=Succeeded,status.phase!=Failed";

/// What is kept of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeptPod {
    pub(super) uid: Box<str>,
    pub(super) living: LivingPod,
    /// The object that makes it anew.
    pub(super) owner: Option<Owner>,
}

impl KeptPod {
    /// Whether it has our label.
    pub(super) fn is_labelled(&self) -> bool {
        self.living.labels.iter().any(|(key, value)| **key == *marks::INJECTED_LABEL && **value == *"true")
    }
}

/// Pods with our label.
pub(super) fn watch_injected(
    client: &Client,
    metrics: &WatchMetrics,
) -> (Store<Arc<KeptPod>>, impl Future<Output = ()> + Send + use<>) {
    let selection = selection(format!("{}=true", marks::INJECTED_LABEL));
    watch("pods", Api::<SlimPod>::all(client.clone()), selection, metrics, |pod: SlimPod| {
        let has_injected = pod.has_injected_container();
        keep(pod.metadata, true, has_injected, pod.status.is_ready()).map(Arc::new)
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
    let api = Api::<PartialObjectMeta<Pod>>::all(client.clone());
    watch("bare_pods", api, selection, metrics, move |pod: PartialObjectMeta<Pod>| {
        let namespace = pod.metadata.namespace.clone().unwrap_or_default();
        let kept = keep(pod.metadata, false, false, false)?;
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

fn keep(metadata: ObjectMeta, is_labelled: bool, has_injected: bool, is_ready: bool) -> Option<KeptPod> {
    let annotations = metadata.annotations.unwrap_or_default();
    let annotation = |key: &str| annotations.get(key).map(String::as_str);
    let owners = metadata.owner_references.unwrap_or_default();
    let owner = owners.into_iter().find(|owner| owner.controller == Some(true));
    let labels = metadata.labels.unwrap_or_default();
    Some(KeptPod {
        uid: metadata.uid.unwrap_or_default().into(),
        living: LivingPod {
            labels: labels.into_iter().map(|(key, value)| (key.into(), value.into())).collect(),
            created: metadata.creation_timestamp.map_or(Timestamp::UNIX_EPOCH, |time| time.0),
            is_deleting: metadata.deletion_timestamp.is_some(),
            is_ready,
            marks: Marks::read(annotation, is_labelled, has_injected)?,
        },
        owner: owner.map(|owner| Owner {
            api_version: owner.api_version,
            kind: owner.kind,
            name: owner.name,
            uid: owner.uid,
        }),
    })
}

/// A pod, read only as far as it is looked at here.
#[derive(Clone, Debug, Deserialize)]
struct SlimPod {
    #[serde(default)]
    metadata: ObjectMeta,
    #[serde(default)]
    spec: SlimSpec,
    #[serde(default)]
    status: SlimStatus,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SlimSpec {
    containers: Option<Vec<SlimContainer>>,
    init_containers: Option<Vec<SlimContainer>>,
}

#[derive(Clone, Debug, Deserialize)]
struct SlimContainer {
    env: Option<Vec<SlimVariable>>,
}

#[derive(Clone, Debug, Deserialize)]
struct SlimVariable {
    name: String,
    value: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct SlimStatus {
    conditions: Option<Vec<SlimCondition>>,
}

#[derive(Clone, Debug, Deserialize)]
struct SlimCondition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
}

impl SlimPod {
    fn has_injected_container(&self) -> bool {
        let all = self.spec.containers.iter().chain(&self.spec.init_containers).flatten();
        let mut variables = all.filter_map(|container| container.env.as_ref()).flatten();
        variables.any(|variable| marks::is_injected_variable(&variable.name, variable.value.as_deref()))
    }
}

impl SlimStatus {
    fn is_ready(&self) -> bool {
        let mut conditions = self.conditions.iter().flatten();
        conditions.any(|condition| condition.kind == "Ready" && condition.status == "True")
    }
}

impl Resource for SlimPod {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        Pod::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        Pod::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        Pod::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        Pod::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[cfg(test)]
mod tests {
    use pillion_inject::coverage::{Standing, standings};
    use pillion_inject::{Installation, Namespace, SetIndex};
    use serde_json::{Value, json};

    use super::*;

    fn read(pod: Value) -> KeptPod {
        let pod: SlimPod = serde_json::from_value(pod).unwrap();
        let has_injected = pod.has_injected_container();
        keep(pod.metadata, true, has_injected, pod.status.is_ready()).unwrap()
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
        assert_eq!((&*kept.uid, kept.living.is_ready, kept.living.is_deleting), ("u-1", true, false));
        assert_eq!(kept.living.created, "2026-01-02T03:04:05Z".parse().unwrap());
        let owner = kept.owner.unwrap();
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
