//! Carries repairs out, one after another, beside the passes.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ApiResource, DynamicObject, PostParams};
use kube::{Api, Client};
use pillion_inject::marks;
use pillion_runtime::lease::Leadership;
use serde_json::{Value, json};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::time::timeout;
use tracing::{info, warn};

use super::super::Context;
use super::super::metrics::{ControllerMetrics, Repair};
use super::super::news::{News, NewsDesk};
use super::super::pods::KeptPod;
use super::super::reconcile::{PodKey, Pods};
use super::plan::{Budget, Evict, Fleet, History, MissedPod, Outcome, repair};
use super::rehearsal::{carries, created_again};

/// How long one request may take; an eviction is not begun by one who leads for less.
const PATIENCE: Duration = Duration::from_secs(5);

/// Plans repairs and hears what became of them.
pub(in super::super) struct Sweeper {
    /// None where repair was not asked for.
    work: Option<Work>,
}

struct Work {
    budget: Budget,
    history: History,
    jobs: UnboundedSender<Evict>,
    done: UnboundedReceiver<(Evict, Outcome)>,
}

struct Hand {
    client: Client,
    leadership: Leadership,
    metrics: ControllerMetrics,
    desk: NewsDesk,
}

impl Sweeper {
    /// Works while the future runs.
    pub(in super::super) fn new(context: &Context, desk: NewsDesk) -> (Self, BoxFuture<'static, ()>) {
        let settings = &context.settings;
        if !settings.recreate_missed {
            return (Self { work: None }, std::future::ready(()).boxed());
        }
        let (jobs, mut waiting) = mpsc::unbounded_channel::<Evict>();
        let (done_tx, done) = mpsc::unbounded_channel();
        let apart = SignedDuration::from_millis(60_000 / i64::from(settings.evictions_per_minute.max(1)));
        let budget = Budget { per_workload: settings.evictions_per_workload, apart };
        let hand = Hand {
            client: context.writer.clone(),
            leadership: context.leadership.clone(),
            metrics: context.metrics.clone(),
            desk,
        };
        let driver = async move {
            while let Some(evict) = waiting.recv().await {
                let outcome = hand.recreate(&evict).await;
                // Whoever listened is gone with this future.
                let _ = done_tx.send((evict, outcome));
            }
        };
        (Self { work: Some(Work { budget, history: History::default(), jobs, done }) }, driver.boxed())
    }

    /// Has missed pods created again, as far as may be. Whether nothing is left to be done.
    pub(in super::super) fn sweep(
        &mut self,
        missed: &BTreeMap<&PodKey, Vec<&str>>,
        pods: &Pods,
        now: Timestamp,
    ) -> bool {
        let Some(work) = &mut self.work else { return true };
        while let Ok((evict, outcome)) = work.done.try_recv() {
            work.history.ended(&evict, outcome, now);
        }
        if missed.is_empty() {
            return true;
        }
        let missed: Vec<MissedPod> = missed
            .iter()
            .filter_map(|(pod, sets)| {
                let kept = pods.get(pod)?;
                Some(MissedPod {
                    key: pod.key.clone(),
                    uid: kept.pod.uid.to_string(),
                    created: kept.living.created,
                    owner: kept.owner(),
                    sets: sets.iter().map(|set| (*set).to_owned()).collect(),
                })
            })
            .collect();
        let fleets = fleets(&missed, pods);
        for evict in repair(&missed, &fleets, &work.history, work.budget, now) {
            work.history.begins(&evict, now);
            let _ = work.jobs.send(evict);
        }
        false
    }
}

/// The pods of the owners of missed pods.
fn fleets(missed: &[MissedPod], pods: &Pods) -> BTreeMap<String, Fleet> {
    let owners = missed.iter().filter_map(|pod| pod.owner.as_ref());
    let mut fleets: BTreeMap<String, Fleet> = owners.map(|owner| (owner.uid.clone(), Fleet::default())).collect();
    pods.each(|pod: &KeptPod| {
        let fleet = pod.pod.owner.as_ref().and_then(|owner| fleets.get_mut(&*owner.uid));
        let Some(fleet) = fleet else { return };
        // Of pods without our label it is not known whether they are ready.
        let is_settled = !pod.living.is_deleting && (pod.living.is_ready || !pod.is_labelled());
        fleet.present += usize::from(!pod.living.is_deleting);
        fleet.unsettled += usize::from(!is_settled);
    });
    fleets
}

impl Hand {
    async fn recreate(&self, evict: &Evict) -> Outcome {
        let (outcome, why) = match self.try_recreate(evict).await {
            Ok(()) => (Outcome::Evicted, String::new()),
            Err((outcome, why)) => (outcome, why),
        };
        let counted = match outcome {
            Outcome::Evicted => Repair::Evicted,
            Outcome::Budget => Repair::Budget,
            Outcome::Rehearsal => Repair::Rehearsal,
            Outcome::Failed => Repair::Failed,
        };
        self.metrics.repaired(counted);
        let pod = &evict.pod.key;
        match outcome {
            Outcome::Evicted => {
                info!(%pod, sets = ?evict.pod.sets, "evicted, to be created again with its sidecars");
                self.tell(evict, false, "Recreated", "was evicted, to be created again with the sidecars");
            }
            Outcome::Rehearsal => {
                warn!(%pod, why, "would not come back with its sidecars: left as it is");
                self.tell(evict, true, "NotRecreated", &format!("is left as it is: {why}"));
            }
            Outcome::Budget | Outcome::Failed => info!(%pod, why, "cannot be evicted now"),
        }
        outcome
    }

    fn tell(&self, evict: &Evict, is_warning: bool, reason: &str, what: &str) {
        for set in &evict.pod.sets {
            self.desk.tell(News {
                set: set.clone(),
                namespace: evict.pod.key.namespace.to_string(),
                owner: Some(evict.owner.clone()),
                is_warning,
                reason: reason.to_owned(),
                action: "Recreate",
                message: format!("pod {} {what}", evict.pod.key),
            });
        }
    }

    async fn try_recreate(&self, evict: &Evict) -> Result<(), (Outcome, String)> {
        let failed = |why: String| (Outcome::Failed, why);
        let (name, namespace) = (&*evict.pod.key.name, &*evict.pod.key.namespace);
        let pods =
            Api::<DynamicObject>::namespaced_with(self.client.clone(), namespace, &ApiResource::erase::<Pod>(&()));
        let live = within(pods.get(name)).await.map_err(|error| failed(error.to_string()))?;
        let version = live.metadata.resource_version.clone().unwrap_or_default();
        let is_labelled = live.metadata.labels.as_ref().is_some_and(|it| it.contains_key(marks::INJECTED_LABEL));
        if live.metadata.uid.as_deref() != Some(&evict.pod.uid)
            || live.metadata.deletion_timestamp.is_some()
            || is_labelled
        {
            return Err(failed("it is another pod by now".to_owned()));
        }
        let again =
            serde_json::to_value(&live).map(|live| created_again(&live)).map_err(|error| failed(error.to_string()))?;
        let again: DynamicObject = serde_json::from_value(again).map_err(|error| failed(error.to_string()))?;
        let dry = PostParams { dry_run: true, ..PostParams::default() };
        let refused = |error: Problem| match error {
            Problem::Api(_) => (Outcome::Rehearsal, format!("the API server would not take it: {error}")),
            Problem::Late => failed(error.to_string()),
        };
        let came = within(pods.create(&dry, &again)).await.map_err(refused)?;
        let came = serde_json::to_value(&came).unwrap_or_default();
        if !carries(&came, &evict.pod.sets) {
            let why = "it would come back without the sidecars: see whether the webhook is well".to_owned();
            return Err((Outcome::Rehearsal, why));
        }
        if !self.leadership.is_held_for(PATIENCE) {
            return Err(failed("this replica does not lead for long enough".to_owned()));
        }
        // Not by `Api::evict`, which writes the options under a name that the API server does not know, and so without
        // their preconditions.
        let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": {"preconditions": {"uid": evict.pod.uid, "resourceVersion": version}}});
        let answer: Result<Value, Problem> =
            within(pods.create_subresource("eviction", name, &PostParams::default(), &eviction)).await;
        match answer {
            Ok(_) => Ok(()),
            Err(Problem::Api(kube::Error::Api(status))) if status.code == 429 => {
                Err((Outcome::Budget, status.message.clone()))
            }
            Err(error) => Err(failed(error.to_string())),
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum Problem {
    #[error("{0}")]
    Api(kube::Error),
    #[error("no answer in time")]
    Late,
}

async fn within<T>(request: impl Future<Output = kube::Result<T>>) -> Result<T, Problem> {
    timeout(PATIENCE, request).await.map_err(|_| Problem::Late)?.map_err(Problem::Api)
}
