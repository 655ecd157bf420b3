//! The watch on pods of namespaces with an autoscaler of ours.
//!
//! Pods that have ended are kept where one of their containers ran out of memory: a job that ends so tells more by its end
//! than by all its samples.

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Pod as KubePod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Api, Client, Resource};
use pillion_rightsize::{Pod, RawPod};
use pillion_runtime::watch::{Freshness, Selection, Store, WatchMetrics, watch};
use serde::Deserialize;

use super::workloads::Namespaces;

/// Watches pods of these namespaces while the future runs. Whoever adds a namespace has them listed again.
pub(super) fn watch_pods(
    client: &Client,
    namespaces: &Namespaces,
    metrics: &WatchMetrics,
) -> (Store<Arc<Pod>>, BoxFuture<'static, ()>) {
    let selection = Selection { freshness: Freshness::Latest, ..Selection::default() };
    let namespaces = Arc::clone(namespaces);
    let api = Api::<SlimPod>::all(client.clone());
    let (store, driver) = watch("sized_pods", api, selection, metrics, move |pod: SlimPod| {
        (namespaces.load().contains(&pod.pod.namespace) && is_kept(&pod.pod)).then(|| Arc::new(pod.pod))
    });
    (store, driver.boxed())
}

fn is_kept(pod: &Pod) -> bool {
    !pod.is_ended || pod.containers.iter().any(|container| container.oom.is_some())
}

/// A pod, read only as far as it is looked at.
#[derive(Clone, Debug, Deserialize, Resource)]
#[resource(inherit = KubePod)]
#[serde(from = "RawPod")]
struct SlimPod {
    metadata: ObjectMeta,
    pod: Pod,
}

impl From<RawPod> for SlimPod {
    fn from(raw: RawPod) -> Self {
        let resource_version = raw.resource_version().map(str::to_owned);
        let pod = Pod::read(raw);
        let metadata = ObjectMeta {
            resource_version,
            name: Some(pod.name.to_string()),
            namespace: Some(pod.namespace.to_string()),
            ..ObjectMeta::default()
        };
        Self { metadata, pod }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn of_pods_that_have_ended_only_those_that_ran_out_of_memory_are_kept() {
        let pod = |phase: &str, reason: &str| -> Pod {
            let ended =
                json!({"reason": reason, "startedAt": "2026-01-02T03:04:05Z", "finishedAt": "2026-01-02T03:05:05Z"});
            let status =
                json!({"phase": phase, "containerStatuses": [{"name": "app", "state": {"terminated": ended}}]});
            let pod = json!({"metadata": {"name": "a", "namespace": "shop", "resourceVersion": "7"},
                "spec": {"containers": [{"name": "app"}]}, "status": status});
            let slim: SlimPod = serde_json::from_value(pod).unwrap();
            assert_eq!(slim.metadata.resource_version.as_deref(), Some("7"));
            slim.pod
        };
        assert!(is_kept(&pod("Running", "Error")));
        assert!(is_kept(&pod("Failed", "OOMKilled")));
        assert!(!is_kept(&pod("Failed", "Error")));
        assert!(!is_kept(&pod("Succeeded", "Completed")));
    }
}
