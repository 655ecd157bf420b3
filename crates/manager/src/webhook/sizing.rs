//! What pods are sized by, and the sign that they are.
//!
//! Sizing is an extra: a replica that does not know all autoscalers yet answers reviews all the same, and sizes nothing. It
//! gives no sign either, so that no pod is evicted for a size it would not get.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use pillion_rightsize::{Gates as SizingGates, LimitRanges};
use pillion_runtime::gates::Gates;
use pillion_runtime::telemetry::Checks;
use pillion_runtime::watch::{Freshness, Store, WatchMetrics};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use tracing::warn;

use crate::admission::{Autoscalers, Rightsizing};
use crate::autoscalers::{Claimed, watch_autoscalers};
use crate::gates::{CPU_STARTUP_BOOST, NATIVE_SIDECAR};
use crate::limit_ranges::NamespaceLimits;
use crate::names;
use crate::settings::Settings;
use crate::switch::Switch;
use crate::upstream::Upstream;

/// How often the sign is given.
const RENEWED: Duration = Duration::from_secs(10);
const PATIENCE: Duration = Duration::from_secs(5);
/// For so long a sign counts.
const LASTS: Duration = Duration::from_mins(1);

/// What pods are sized by. Clones see the same.
#[derive(Clone)]
pub(super) struct Sizer {
    table: Arc<ArcSwap<Autoscalers>>,
    autoscalers: Store<Arc<Claimed>>,
    limits: NamespaceLimits,
    upstream: Upstream,
    gates: SizingGates,
    max_boost: Option<i64>,
}

/// What pods of one namespace are sized by.
pub(super) struct NamespaceSizer {
    table: Arc<Autoscalers>,
    limits: LimitRanges,
    gates: SizingGates,
    max_boost: Option<i64>,
    is_beside_upstream: bool,
}

impl Sizer {
    /// Watches all of it while the future runs.
    pub(super) fn watch(
        client: &Client,
        settings: &Settings,
        gates: &Gates,
        metrics: &WatchMetrics,
    ) -> (Self, BoxFuture<'static, ()>) {
        let (autoscalers, autoscalers_driver) = watch_autoscalers(client, &settings.sizing, Freshness::Any, metrics);
        let (limits, limits_driver) = NamespaceLimits::watch(client, metrics);
        let (upstream, upstream_driver) = Upstream::watch(client);
        let gates = SizingGates {
            native_sidecar: gates.is_on(&NATIVE_SIDECAR),
            startup_boost: gates.is_on(&CPU_STARTUP_BOOST),
        };
        let max_boost = settings.sizing.max_allowed_cpu_boost;
        let sizer = Self { table: Arc::default(), autoscalers, limits, upstream, gates, max_boost };
        let indexing = sizer.clone();
        let driver = async move {
            tokio::join!(autoscalers_driver, limits_driver, upstream_driver, indexing.index());
        };
        (sizer, driver.boxed())
    }

    /// What pods of a namespace are sized by; `None` where no autoscaler is there.
    pub(super) fn of(&self, namespace: &str) -> Option<NamespaceSizer> {
        let table = self.table.load_full();
        table.has(namespace).then(|| NamespaceSizer {
            limits: self.limits.of(namespace),
            gates: self.gates,
            max_boost: self.max_boost,
            is_beside_upstream: self.upstream.is_beside(),
            table,
        })
    }

    async fn index(self) {
        tokio::join!(self.autoscalers.completed(), self.limits.completed());
        let mut changes = self.autoscalers.changes();
        loop {
            changes.next().await;
            let table = self.autoscalers.read(|all| {
                let usable = all.iter().filter_map(|(_, claimed)| claimed.meaning.as_ref().ok());
                usable.cloned().collect::<Autoscalers>()
            });
            self.table.store(Arc::new(table));
        }
    }

    /// Says now and then that new pods are sized, as long as they are.
    pub(super) async fn tell(self, client: Client, settings: Arc<Settings>, readiness: Checks, switch: Switch) {
        let leases = Api::<Lease>::namespaced(client, &settings.namespace);
        tokio::join!(self.autoscalers.completed(), self.limits.completed(), self.upstream.completed());
        let parameters = PatchParams::apply(names::FIELD_MANAGER).force();
        loop {
            if readiness.report().0 && !switch.is_off() {
                let lease = Patch::Apply(lease(&settings.name, Timestamp::now()));
                let written = leases.patch(names::WEBHOOK_ALIVE_LEASE, &parameters, &lease);
                match timeout(PATIENCE, written).await {
                    Ok(Ok(_)) => {}
                    Ok(Err(error)) => warn!(%error, "cannot tell that pods are sized"),
                    Err(_) => warn!("cannot tell that pods are sized: no answer in time"),
                }
            }
            sleep(RENEWED).await;
        }
    }
}

impl NamespaceSizer {
    pub(super) fn rightsizing(&self) -> Rightsizing<'_> {
        Rightsizing {
            autoscalers: &self.table,
            limits: &self.limits,
            gates: self.gates,
            max_boost: self.max_boost,
            is_beside_upstream: self.is_beside_upstream,
        }
    }
}

/// The sign: all replicas give the same, and the last one is the holder.
fn lease(name: &str, now: Timestamp) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": names::WEBHOOK_ALIVE_LEASE,
            "labels": {"app.kubernetes.io/name": "pillion", "app.kubernetes.io/managed-by": "pillion-manager"}},
        "spec": {"holderIdentity": name, "leaseDurationSeconds": LASTS.as_secs(),
            "renewTime": now.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sign_is_a_lease_with_the_time() {
        let written = lease("pillion-webhook-1", "2026-11-15T22:40:05.1234567Z".parse().unwrap());
        let read: Lease = serde_json::from_value(written.clone()).unwrap();
        assert_eq!(written["spec"]["renewTime"], "2026-11-15T22:40:05.123456Z");
        assert_eq!(read.spec.unwrap().holder_identity.as_deref(), Some("pillion-webhook-1"));
    }
}
