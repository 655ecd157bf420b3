//! The `LimitRange`s of all namespaces.

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::LimitRange;
use kube::{Api, Client};
use pillion_rightsize::LimitRanges;
use pillion_runtime::watch::{Freshness, Selection, Store, WatchMetrics, watch};
use serde_json::Value;

/// The `LimitRange`s of all namespaces. Clones see the same.
#[derive(Clone)]
pub(crate) struct NamespaceLimits {
    objects: Store<Arc<Value>>,
}

impl NamespaceLimits {
    /// Watches them while the future runs.
    pub(crate) fn watch(client: &Client, metrics: &WatchMetrics) -> (Self, BoxFuture<'static, ()>) {
        let selection = Selection { freshness: Freshness::Any, ..Selection::default() };
        let api = Api::<LimitRange>::all(client.clone());
        let (objects, driver) = watch("limit_ranges", api, selection, metrics, |range: LimitRange| {
            let name = range.metadata.name.clone();
            Some(Arc::new(serde_json::json!({"metadata": {"name": name}, "spec": range.spec})))
        });
        (Self { objects }, driver.boxed())
    }

    /// Waits until all of them are known.
    pub(crate) async fn completed(&self) {
        self.objects.completed().await;
    }

    /// Those of a namespace, as one.
    pub(crate) fn of(&self, namespace: &str) -> LimitRanges {
        self.objects.read(|all| LimitRanges::read(all.in_namespace(namespace).map(|(_, range)| &**range)))
    }
}
