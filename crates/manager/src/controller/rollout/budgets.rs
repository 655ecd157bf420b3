//! `PodDisruptionBudget`s, as far as an update looks at them.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::{Api, Client};
use pillion_api::Selector;
use pillion_rollout::{DisruptionBudget, Pod};
use pillion_runtime::watch::{Freshness, Selection, Store, WatchMetrics, watch};

pub(super) fn watch_budgets(
    client: &Client,
    metrics: &WatchMetrics,
) -> (Store<Arc<DisruptionBudget>>, impl Future<Output = ()> + Send + use<>) {
    let selection = Selection { freshness: Freshness::Latest, ..Selection::default() };
    let api = Api::<PodDisruptionBudget>::all(client.clone());
    watch("disruption_budgets", api, selection, metrics, |budget| slim(budget).map(Arc::new))
}

/// `None` for one that selects nothing.
fn slim(budget: PodDisruptionBudget) -> Option<DisruptionBudget> {
    let selector = serde_json::to_value(budget.spec?.selector?).ok()?;
    let allowed = budget.status.map_or(0, |status| status.disruptions_allowed);
    Some(DisruptionBudget {
        namespace: budget.metadata.namespace?.into(),
        name: budget.metadata.name?.into(),
        // One without requirements selects all pods of its namespace.
        selector: Selector::compile(&serde_json::from_value(selector).ok()?),
        allowed: usize::try_from(allowed).unwrap_or_default(),
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
