//! `PodDisruptionBudget`s, as far as an update looks at them.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::{Api, Client};
use pillion_rollout::{DisruptionBudget, Pod};
use pillion_runtime::watch::{Freshness, Selection, Store, WatchMetrics, watch};

pub(super) fn watch_budgets(
    client: &Client,
    metrics: &WatchMetrics,
) -> (Store<Arc<DisruptionBudget>>, impl Future<Output = ()> + Send + use<>) {
    let selection = Selection { freshness: Freshness::Latest, ..Selection::default() };
    let api = Api::<PodDisruptionBudget>::all(client.clone());
    watch("disruption_budgets", api, selection, metrics, |budget| {
        // A type of k8s-openapi always serialises.
        DisruptionBudget::read(&serde_json::to_value(&budget).unwrap_or_default()).map(Arc::new)
    })
}

/// Those of the namespaces of these pods.
pub(super) fn of_namespaces(budgets: &Store<Arc<DisruptionBudget>>, pods: &[&Pod]) -> Vec<DisruptionBudget> {
    if budgets.is_empty() {
        return Vec::new();
    }
    let namespaces: BTreeSet<&str> = pods.iter().map(|pod| &*pod.namespace).collect();
    budgets.read(|all| {
        let ours = namespaces.into_iter().flat_map(|namespace| all.in_namespace(namespace));
        ours.map(|(_, budget)| DisruptionBudget::clone(budget)).collect()
    })
}
