//! Whether upstream's Vertical Pod Autoscaler is in the cluster, and applies what it, or we, recommend.
//!
//! Its webhook and its updater look at no recommender's name: what we recommend they would apply, and what we apply they
//! would change again. Beside them we only recommend, except for objects that they take for Off.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use k8s_openapi::api::coordination::v1::Lease;
use kube::core::PartialObjectMeta;
use kube::{Api, Client};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

/// The registration of its webhook.
const WEBHOOK: &str = "vpa-webhook-config";
/// The leases of its updater: of its manifests, and of its chart.
const UPDATER_LEASES: [&str; 2] = ["vpa-updater", "vpa-updater-lease"];
const UPDATER_NAMESPACE: &str = "kube-system";
/// An updater that runs renews its lease more often.
const FRESH: SignedDuration = SignedDuration::from_secs(60);
/// How often it is looked for.
const AGAIN: Duration = Duration::from_secs(30);
/// How soon after a look that failed.
const RETRY: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_secs(5);

const UNKNOWN: u8 = 0;
const ABSENT: u8 = 1;
const PRESENT: u8 = 2;

/// Whether upstream's autoscaler is there. Clones see the same.
#[derive(Clone, Default)]
pub(crate) struct Upstream {
    state: Arc<AtomicU8>,
    looked: Arc<Notify>,
}

impl Upstream {
    /// Looks for it now and then while the future runs.
    pub(crate) fn watch(client: &Client) -> (Self, BoxFuture<'static, ()>) {
        let upstream = Self::default();
        let (own, client) = (upstream.clone(), client.clone());
        let driver = async move {
            loop {
                let pause = match look(&client).await {
                    Ok(is_there) => {
                        own.found(is_there);
                        AGAIN
                    }
                    Err(why) => {
                        warn!(why, "cannot tell whether upstream's autoscaler is there");
                        RETRY
                    }
                };
                sleep(pause).await;
            }
        };
        (upstream, driver.boxed())
    }

    /// Whether it is there; also where that is not known yet, as then nothing may be applied.
    pub(crate) fn is_beside(&self) -> bool {
        self.state.load(Ordering::Relaxed) != ABSENT
    }

    /// Waits until it is known.
    pub(crate) async fn completed(&self) {
        loop {
            let looked = self.looked.notified();
            if self.state.load(Ordering::Relaxed) != UNKNOWN {
                return;
            }
            looked.await;
        }
    }

    fn found(&self, is_there: bool) {
        let state = if is_there { PRESENT } else { ABSENT };
        if self.state.swap(state, Ordering::Relaxed) != state {
            info!(is_there, "upstream's autoscaler");
        }
        self.looked.notify_waiters();
    }
}

async fn look(client: &Client) -> Result<bool, String> {
    let webhooks = Api::<PartialObjectMeta<MutatingWebhookConfiguration>>::all(client.clone());
    if asked(webhooks.get_metadata_opt(WEBHOOK)).await?.is_some() {
        return Ok(true);
    }
    let leases = Api::<Lease>::namespaced(client.clone(), UPDATER_NAMESPACE);
    for name in UPDATER_LEASES {
        let lease = asked(leases.get_opt(name)).await?;
        if lease.is_some_and(|lease| is_fresh(&lease, Timestamp::now(), FRESH)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a lease was renewed lately.
pub(crate) fn is_fresh(lease: &Lease, now: Timestamp, within: SignedDuration) -> bool {
    let renewed = lease.spec.as_ref().and_then(|spec| spec.renew_time.as_ref());
    // Clocks of nodes differ: one that is ahead has renewed it all the same.
    renewed.is_some_and(|renewed| now.duration_since(renewed.0) < within)
}

async fn asked<T>(request: impl Future<Output = kube::Result<T>>) -> Result<T, String> {
    let asked = timeout(PATIENCE, request).await;
    asked.map_err(|_| "no answer in time".to_owned())?.map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn nothing_is_applied_before_it_is_known() {
        let upstream = Upstream::default();
        assert!(upstream.is_beside());
        let waiting = upstream.clone();
        let waiting = tokio::spawn(async move { waiting.completed().await });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        upstream.found(false);
        waiting.await.unwrap();
        assert!(!upstream.is_beside());
        upstream.found(true);
        assert!(upstream.is_beside());
        upstream.completed().await;
    }

    #[test]
    fn a_lease_is_fresh_for_a_minute() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let lease: Lease =
            serde_json::from_value(json!({"metadata": {}, "spec": {"renewTime": "2026-01-02T03:04:05.000000Z"}}))
                .unwrap();
        assert!(is_fresh(&lease, at("2026-01-02T03:05:04Z"), FRESH));
        assert!(!is_fresh(&lease, at("2026-01-02T03:05:05Z"), FRESH));
        assert!(is_fresh(&lease, at("2026-01-02T03:00:00Z"), FRESH));
        assert!(!is_fresh(&Lease::default(), at("2026-01-02T03:04:05Z"), FRESH));
    }
}
