//! What a rollout costs: how fast, how soon the next pod follows, and how much memory.
//!
//! - [`rate`]: as fast as may be, against a bare loop of image patches on as many pods.
//! - [`pace`]: ten at a time over simulated pods, beside many pods that are nobody's business.
//! - [`memory`]: with many pods of either kind.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::Args;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use pillion_api::SidecarSet;
use pillion_testbed::{Fleet, Look, apply, until};
use serde_json::{Value, json};

use crate::cluster::{APART, BenchCluster};
use crate::cost;
use crate::output::say;
use crate::samples::Spread;

mod memory;
mod pace;
mod rate;

const PATIENCE: Duration = Duration::from_mins(5);
/// So many clients at the same time, of either arm.
const AT_ONCE: usize = 16;

#[derive(Args)]
pub(crate) struct Arguments {
    /// Rounds; each runs both arms, every other one in the opposite order.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Pods per arm and round.
    #[arg(long, default_value_t = 500)]
    pods: usize,
    /// Pods that no set selects, in two steps.
    #[arg(long, value_delimiter = ',', default_values_t = [2_000, 11_000])]
    foreign: Vec<usize>,
    /// Pods of either kind whose memory is measured.
    #[arg(long, default_value_t = 10_000)]
    kept: usize,
    /// Where the samples go.
    #[arg(long, default_value = "docs/figures/rollout.json")]
    output: PathBuf,
}

/// What is measured on.
struct Bench {
    cluster: BenchCluster,
    api_server: u32,
    manager: u32,
}

pub(crate) async fn run(arguments: &Arguments) -> Result<()> {
    let fleet = Fleet::of(5).image_delay(Duration::from_millis(300));
    let cluster = BenchCluster::start_with(|config| config.with_fleet(fleet)).await?;
    let api_server = cost::find("kube-apiserver", &cluster.bed.cluster().host().to_string())?;
    let mut bench = Bench { cluster, api_server, manager: 0 };
    bench.start_manager()?;
    let load = fs::read_to_string("/proc/loadavg")?;
    let rates = rate::measure(&bench, arguments.rounds, arguments.pods).await?;
    let paces = pace::measure(&bench, &arguments.foreign).await?;
    let memory = memory::measure(&mut bench, arguments.kept).await?;
    let loads = [load, fs::read_to_string("/proc/loadavg")?];
    let report = json!({"command": "just bench rollout", "load_before_and_after": loads,
        "rate": rates, "pace": paces, "memory": memory});
    fs::write(&arguments.output, format!("{report:#}\n"))?;
    say(&rate::table(&rates));
    say(&pace::table(&paces));
    say(&format!("{memory:#}"));
    bench.cluster.stop().await
}

fn spread(values: impl IntoIterator<Item = f64>, digits: usize) -> String {
    Spread::of(values).map_or_else(|| "-".to_owned(), |spread| spread.text(digits))
}

impl Bench {
    fn start_manager(&mut self) -> Result<()> {
        self.manager = self.cluster.start_manager_with(&["controller", "--updates-per-second=10000", "--lease=5s"])?;
        Ok(())
    }

    fn pods(&self, namespace: &str) -> Api<Pod> {
        Api::namespaced(self.cluster.client.clone(), namespace)
    }

    /// Writes the set with this image and strategy.
    async fn set(&self, name: &str, image: &str, strategy: &Value) -> Result<()> {
        let set = json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "SidecarSet", "metadata": {"name": name}, "spec": {
            "selector": {"matchLabels": {"app": name}}, "updateStrategy": strategy,
            "initContainers": [{"name": "proxy", "image": image, "restartPolicy": "Always"}]}});
        apply(&self.cluster.client, "bench", &set).await?;
        Ok(())
    }

    async fn edit(&self, name: &str, image: &str) -> Result<()> {
        let patch = json!({"spec": {"initContainers": [{"name": "proxy", "image": image, "restartPolicy": "Always"}]}});
        let sets = Api::<SidecarSet>::all(self.cluster.client.clone());
        sets.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }

    /// Waits until a pod that is only tried gets the set with this image.
    async fn until_injecting(&self, set: &str, image: &str) -> Result<()> {
        let dry = PostParams { dry_run: true, ..PostParams::default() };
        let tried: Pod = serde_json::from_value(pod("tried", set, None))?;
        let api = self.pods("default");
        until("the webhook to inject", PATIENCE, || async {
            Ok(match api.create(&dry, &tried).await {
                Ok(pod) if json!(pod)["spec"]["initContainers"][0]["image"] == image => Look::Done(()),
                Ok(pod) => Look::NotYet(json!(pod)["spec"]["initContainers"].to_string()),
                Err(error) => Look::NotYet(error.to_string()),
            })
        })
        .await?;
        Ok(())
    }

    /// Waits until the status of a set says that so many pods have its newest revision.
    async fn until_updated(&self, set: &str, pods: usize) -> Result<()> {
        let api = Api::<DynamicObject>::all_with(self.cluster.client.clone(), &ApiResource::erase::<SidecarSet>(&()));
        until("the set to be up to date", PATIENCE, || async {
            Ok(match api.get(set).await {
                Ok(set)
                    if set.data["status"]["updatedReadyPods"] == pods
                        && set.data["status"]["observedGeneration"] == json!(set.metadata.generation) =>
                {
                    Look::Done(())
                }
                Ok(set) => Look::NotYet(set.data["status"].to_string()),
                Err(error) => Look::NotYet(error.to_string()),
            })
        })
        .await?;
        Ok(())
    }

    /// Creates pods, sixteen at a time.
    async fn create(&self, namespace: &str, pods: impl Iterator<Item = Value> + Send) -> Result<()> {
        let api = &self.pods(namespace);
        stream::iter(pods)
            .map(|pod| async move {
                let pod: Pod = serde_json::from_value(pod)?;
                api.create(&PostParams::default(), &pod).await.context("cannot create a pod")
            })
            .buffer_unordered(AT_ONCE)
            .try_for_each(|_| async { Ok(()) })
            .await
    }

    /// Writes statuses as a node would: all runs, and is ready.
    async fn play_statuses(&self, namespace: &str, names: &[String]) -> Result<()> {
        let api = &self.pods(namespace);
        let running = |name: &str| {
            json!({"name": name, "image": "x", "imageID": "x", "containerID": format!("bench://{name}-0"),
            "ready": true, "started": true, "restartCount": 0, "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}})
        };
        let condition =
            |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"});
        let status = &json!({"status": {"phase": "Running",
            "conditions": [condition("Ready"), condition("ContainersReady"), condition("Initialized"), condition("PodScheduled")],
            "initContainerStatuses": [running("proxy")], "containerStatuses": [running("app")]}});
        stream::iter(names)
            .map(|name| async move { api.patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await })
            .buffer_unordered(AT_ONCE)
            .try_for_each(|_| async { Ok(()) })
            .await?;
        Ok(())
    }

    async fn remove(&self, namespace: &str, set: &str) -> Result<()> {
        let (api, ours) = (self.pods(namespace), ListParams::default().labels(&format!("app={set}")));
        api.delete_collection(&DeleteParams::default().grace_period(0), &ours).await?;
        until("pods to be gone", PATIENCE, || async {
            Ok(match api.list(&ours).await {
                Ok(left) if left.items.is_empty() => Look::Done(()),
                Ok(left) => Look::NotYet(left.items.len().to_string()),
                Err(error) => Look::NotYet(error.to_string()),
            })
        })
        .await?;
        Ok(())
    }
}

/// A pod of a set; with its sidecar where no webhook adds it. No scheduler looks at it, unless it is sent to the fleet.
fn pod(name: &str, set: &str, sidecar: Option<&str>) -> Value {
    let sidecars: Vec<Value> =
        sidecar.iter().map(|image| json!({"name": "proxy", "image": image, "restartPolicy": "Always"})).collect();
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": set}},
        "spec": {"schedulerName": "nobody", "initContainers": sidecars, "containers": [{"name": "app", "image": "registry.example/app:1",
            "env": [{"name": "REGION", "value": "eu"}, {"name": "LEVEL", "value": "info"}],
            "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1m", "memory": "1Mi"}},
            "readinessProbe": {"httpGet": {"path": "/ready", "port": 8080}}}]}})
}

fn image(number: usize) -> String {
    format!("registry.example/proxy:{number}")
}

/// Where pods live that our webhook does not see.
const BARE: &str = APART;
