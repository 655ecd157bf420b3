//! The watch on pods with an agent: metadata only, as all that is looked at is there.

use std::collections::BTreeSet;
use std::sync::Arc;

use arc_swap::ArcSwap;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::PartialObjectMeta;
use kube::{Api, Client};
use pillion_agent_api::names::{RESULT, WANTED};
use pillion_inject::marks;
use pillion_inject::{Origins, Workload};
use pillion_runtime::watch::{Freshness, Selection, Store, WatchMetrics, watch};

use crate::controller::NOT_ENDED;

/// The names of the sets that add agents.
pub(super) type AgentSets = Arc<ArcSwap<BTreeSet<String>>>;

/// What is kept of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct AgentPod {
    /// Whoever is told is told by it: another pod may have its name by then.
    pub(super) uid: String,
    /// The workloads it belongs to.
    pub(super) workloads: Vec<Workload>,
    /// The version it was told of, as its annotation says it.
    pub(super) wanted: Option<String>,
    /// What its agent says became of it, as it says it.
    pub(super) result: Option<String>,
    /// Whether it is on its way out.
    pub(super) is_deleting: bool,
}

/// Pods that have a sidecar of a set that adds agents. Whoever adds to the sets lists the pods again.
pub(super) fn watch_pods(
    client: &Client,
    sets: AgentSets,
    metrics: &WatchMetrics,
) -> (Store<Arc<AgentPod>>, impl Future<Output = ()> + Send + use<>) {
    let labels = Some(format!("{}=true", marks::INJECTED_LABEL));
    let selection = Selection { labels, fields: Some(NOT_ENDED.to_owned()), freshness: Freshness::Latest };
    let api = Api::<PartialObjectMeta<Pod>>::all(client.clone());
    watch("agent_pods", api, selection, metrics, move |pod: PartialObjectMeta<Pod>| {
        kept(pod.metadata, &sets.load()).map(Arc::new)
    })
}

fn kept(metadata: ObjectMeta, sets: &BTreeSet<String>) -> Option<AgentPod> {
    let mut annotations = metadata.annotations.unwrap_or_default();
    let of_pod = marks::names(annotations.get(marks::INJECTED_SETS).map(String::as_str));
    if of_pod.is_disjoint(sets) {
        return None;
    }
    let labels = metadata.labels.unwrap_or_default();
    let owners = metadata.owner_references.unwrap_or_default();
    let owner = owners.iter().find(|owner| owner.controller == Some(true));
    let owner = owner.map(|owner| (owner.api_version.as_str(), owner.kind.as_str(), owner.name.as_str()));
    let workloads = Origins::new(owner, |key| labels.get(key).map(String::as_str)).workloads();
    Some(AgentPod {
        uid: metadata.uid.unwrap_or_default(),
        workloads,
        wanted: annotations.remove(WANTED),
        result: annotations.remove(RESULT),
        is_deleting: metadata.deletion_timestamp.is_some(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pods_of_an_agents_set_are_kept_with_their_workloads() {
        let metadata = |sets: &str| -> ObjectMeta {
            serde_json::from_value(json!({"name": "web-5d-x", "uid": "u-1", "labels": {"pod-template-hash": "5d"},
                "annotations": {"kruise.io/sidecarset-injected-list": sets, "pillion.dev/hot-update": "w",
                    "pillion.dev/hot-update-result": "r", "other": "x"},
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5d", "uid": "u-2", "controller": true}]}))
            .unwrap()
        };
        let sets = BTreeSet::from(["game".to_owned()]);
        assert_eq!(kept(metadata("mesh"), &sets), None);
        assert_eq!(kept(ObjectMeta::default(), &sets), None);
        let pod = kept(metadata("game,mesh"), &sets).unwrap();
        let owner = Some(("apps/v1", "ReplicaSet", "web-5d"));
        assert_eq!(
            pod,
            AgentPod {
                uid: "u-1".to_owned(),
                workloads: Origins { owner, template_hash: Some("5d"), game_server_set: None }.workloads(),
                wanted: Some("w".to_owned()),
                result: Some("r".to_owned()),
                is_deleting: false,
            }
        );
    }
}
