//! What a pass of a recommender costs: upstream's and ours, on the same API server, pods, autoscalers and samples.
//!
//! One runs at a time. Both go on with the checkpoints of the other, as they can.

use std::fmt::Write as _;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::{Args, ValueEnum};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use pillion_api::VerticalPodAutoscaler;
use pillion_testbed::{Look, apply, until};
use pillion_tools::Cache;
use serde::Serialize;
use serde_json::{Value, json};

use crate::cluster::BenchCluster;
use crate::cost;
use crate::output::say;
use crate::samples::Spread;

use arm::Sample;
use feed::Feed;

mod arm;
mod feed;
mod history;
pub(crate) mod synthetic;

const PATIENCE: Duration = Duration::from_mins(1);
const AUTOSCALERS: usize = 100;
const NAMESPACE: &str = "default";
/// So many requests at a time while pods are made.
const AT_ONCE: usize = 16;

#[derive(Args)]
pub(crate) struct Arguments {
    /// Rounds; each runs both recommenders, every other one in the opposite order.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Pods of two containers, in steps.
    #[arg(long, value_delimiter = ',', default_values_t = [1_000, 10_000])]
    pods: Vec<usize>,
    /// Passes that are measured, of each recommender in each round.
    #[arg(long, default_value_t = 4)]
    passes: u64,
    /// Seconds between passes.
    #[arg(long, default_value_t = 15)]
    interval: u64,
    /// Who is measured, in the order of the first round.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Recommender::Upstream, Recommender::Ours])]
    recommenders: Vec<Recommender>,
    /// Where the samples go.
    #[arg(long, default_value = "docs/figures/recommender.json")]
    output: PathBuf,
}

/// Who recommends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
enum Recommender {
    /// The upstream Vertical Pod Autoscaler's.
    Upstream,
    /// The manager's.
    Ours,
}

/// What is measured on.
struct Bench {
    cluster: BenchCluster,
    api_server: u32,
    passes: u64,
    interval: Duration,
}

pub(crate) async fn run(arguments: &Arguments) -> Result<()> {
    let cluster = BenchCluster::start().await?;
    let api_server = cost::find("kube-apiserver", &cluster.bed.cluster().host().to_string())?;
    let interval = Duration::from_secs(arguments.interval);
    let mut bench = Bench { cluster, api_server, passes: arguments.passes, interval };
    let feed = Feed::start(&bench.cluster.client, bench.cluster.bed.cluster().host()).await?;
    bench.make_autoscalers().await?;
    history::write(&bench.cluster.client).await?;
    let load = fs::read_to_string("/proc/loadavg")?;
    let mut samples = Vec::new();
    let mut made = 0;
    for pods in &arguments.pods {
        bench.make_pods(made..*pods).await?;
        made = *pods;
        feed.set(made);
        for round in 0..arguments.rounds {
            let mut order = arguments.recommenders.clone();
            if round % 2 == 1 {
                order.reverse();
            }
            for recommender in order {
                let sample = arm::measure(&mut bench, recommender, round, made).await?;
                say(&format!(
                    "round {round} {made} pods {recommender:?}: {:.3} s, {:.0} CPU-ms, {:.1} writes a pass; {:.1} MiB",
                    sample.seconds_per_pass, sample.cpu_ms_per_pass, sample.writes_per_pass, sample.resident_mib
                ));
                samples.push(sample);
            }
        }
    }
    let loads = [load, fs::read_to_string("/proc/loadavg")?];
    let report = json!({"command": "just bench recommender", "autoscalers": AUTOSCALERS, "containers_per_pod": 2,
        "interval_seconds": arguments.interval, "load_before_and_after": loads, "samples": samples,
        "without_a_cluster": synthetic::measure()?});
    fs::write(&arguments.output, format!("{report:#}\n"))?;
    say(&table(&samples)?);
    say(&format!("{:#}", report["without_a_cluster"]));
    bench.cluster.stop().await
}

fn pod_name(number: usize) -> String {
    format!("{}-{number:05}", app(number))
}

fn app(number: usize) -> String {
    format!("app-{:02}", number % AUTOSCALERS)
}

impl Bench {
    /// Starts a recommender; its process, and where it tells of itself.
    fn start(&mut self, recommender: Recommender) -> Result<(u32, SocketAddr)> {
        match recommender {
            Recommender::Upstream => {
                let program = Cache::of_user().program("vpa-recommender")?;
                let kubeconfig = self.cluster.bed.cluster().kubeconfig().display().to_string();
                self.cluster.start_program(&program, "vpa-recommender", |address| {
                    vec![
                        format!("--kubeconfig={kubeconfig}"),
                        format!("--recommender-interval={}s", self.interval.as_secs()),
                        // Else 300 writes take four seconds of waiting.
                        "--kube-api-qps=1000".to_owned(),
                        "--kube-api-burst=2000".to_owned(),
                        format!("--address={address}"),
                    ]
                })
            }
            Recommender::Ours => self.cluster.start_rightsizer(&[
                format!("--recommender-interval={}s", self.interval.as_secs()),
                "--claim-all".to_owned(),
                "--lease=5s".to_owned(),
            ]),
        }
    }

    /// Workloads of no pods, and an autoscaler for each: pods are made by hand, with the workload's labels.
    async fn make_autoscalers(&self) -> Result<()> {
        let client = &self.cluster.client;
        for definition in
            [pillion_api::vertical_pod_autoscaler_crd(), pillion_api::vertical_pod_autoscaler_checkpoint_crd()]
        {
            apply(client, "bench", &definition).await?;
        }
        let autoscalers = Api::<VerticalPodAutoscaler>::namespaced(client.clone(), NAMESPACE);
        until("VerticalPodAutoscalers to be served", PATIENCE, || async {
            let listed = autoscalers.list(&ListParams::default()).await;
            Ok(listed.map_or_else(|error| Look::NotYet(error.to_string()), |_| Look::Done(())))
        })
        .await?;
        for number in 0..AUTOSCALERS {
            let name = app(number);
            let labels = json!({"app": name});
            let template = json!({"metadata": {"labels": labels}, "spec": {"containers": containers()}});
            apply(
                client,
                "bench",
                &json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": NAMESPACE},
                    "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}}),
            )
            .await?;
            apply(
                client,
                "bench",
                &json!({"apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscaler",
                    "metadata": {"name": name, "namespace": NAMESPACE},
                    "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
                        "updatePolicy": {"updateMode": "Off"}}}),
            )
            .await?;
        }
        Ok(())
    }

    /// Pods that no scheduler looks at, with statuses as a node would write them.
    async fn make_pods(&self, numbers: std::ops::Range<usize>) -> Result<()> {
        let api = &Api::<Pod>::namespaced(self.cluster.client.clone(), NAMESPACE);
        let running = |name: &str| {
            json!({"name": name, "image": "x", "imageID": "x", "containerID": format!("bench://{name}"), "ready": true,
                "started": true, "restartCount": 0, "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}})
        };
        let condition =
            |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"});
        let status = &json!({"status": {"phase": "Running",
            "conditions": [condition("Ready"), condition("ContainersReady"), condition("PodScheduled")],
            "containerStatuses": [running("app"), running("helper")]}});
        stream::iter(numbers)
            .map(|number| async move {
                let pod: Pod = serde_json::from_value(
                    json!({"metadata": {"name": pod_name(number), "labels": {"app": app(number)}},
                    "spec": {"schedulerName": "nobody", "containers": containers()}}),
                )?;
                api.create(&PostParams::default(), &pod).await.context("cannot create a pod")?;
                api.patch_status(&pod_name(number), &PatchParams::default(), &Patch::Merge(status)).await?;
                anyhow::Ok(())
            })
            .buffer_unordered(AT_ONCE)
            .try_for_each(|()| async { Ok(()) })
            .await
    }
}

fn containers() -> Value {
    let container = |name: &str, cpu: &str, memory: &str| {
        json!({"name": name, "image": format!("registry.example/{name}:1"),
            "env": [{"name": "REGION", "value": "eu"}, {"name": "LEVEL", "value": "info"}],
            "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": cpu, "memory": memory}}})
    };
    json!([container("app", "100m", "200Mi"), container("helper", "10m", "50Mi")])
}

fn table(samples: &[Sample]) -> Result<String> {
    let mut text = String::from("| pods | recommender | s per pass | CPU-ms per pass | RSS MiB | writes per pass |\n");
    text.push_str("|---|---|---|---|---|---|\n");
    let mut arms: Vec<(usize, Recommender)> = Vec::new();
    for sample in samples {
        if !arms.contains(&(sample.pods, sample.recommender)) {
            arms.push((sample.pods, sample.recommender));
        }
    }
    for (pods, recommender) in arms {
        let spread = |value: fn(&Sample) -> f64, digits: usize| {
            let own = samples.iter().filter(|sample| (sample.pods, sample.recommender) == (pods, recommender));
            Spread::of(own.map(value)).map_or_else(|| "-".to_owned(), |spread| spread.text(digits))
        };
        writeln!(
            text,
            "| {pods} | {recommender:?} | {} | {} | {} | {} |",
            spread(|sample| sample.seconds_per_pass, 3),
            spread(|sample| sample.cpu_ms_per_pass, 0),
            spread(|sample| sample.resident_mib, 1),
            spread(|sample| sample.writes_per_pass, 1)
        )?;
    }
    Ok(text)
}
