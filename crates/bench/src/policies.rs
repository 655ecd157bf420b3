//! CPU time of the API server for an update of a pod's status, the most frequent write in a cluster: without policies, with each
//! policy of the chart alone, and with all of them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use pillion_testbed::{Look, apply, until};
use serde::Serialize;
use serde_json::{Value, json};

use crate::cluster::{APART, BenchCluster};
use crate::cost;
use crate::output::{print, say};
use crate::samples::Spread;

const PATIENCE: Duration = Duration::from_mins(1);
/// Updates before a measurement, for at least this long: the API server reads policies once a second.
const WARM_UP: Duration = Duration::from_secs(3);
/// The kinds of the objects that the chart limits requests with.
const KINDS: [&str; 2] = ["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"];

#[derive(Args)]
pub(crate) struct Arguments {
    /// Rounds; each runs all arms, every other one in the opposite order.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Updates per arm and round.
    #[arg(long, default_value_t = 1_500)]
    updates: usize,
    /// Where the samples go.
    #[arg(long, default_value = "docs/figures/policies.json")]
    output: PathBuf,
}

/// One arm in one round.
#[derive(Serialize)]
struct Sample {
    arm: String,
    round: usize,
    updates: usize,
    api_server_cpu_ms_per_update: f64,
}

/// The policies of the chart, each with its binding, by name.
type Policies = BTreeMap<String, Vec<Value>>;

/// Policies that are in the cluster together, under one name.
struct Arm {
    name: String,
    policies: Vec<String>,
}

struct Bench {
    cluster: BenchCluster,
    api_server: u32,
    policies: Policies,
    pods: Api<Pod>,
    updated: usize,
}

pub(crate) async fn run(arguments: &Arguments) -> Result<()> {
    let cluster = BenchCluster::start().await?;
    let api_server = cost::find("kube-apiserver", &cluster.bed.cluster().host().to_string())?;
    let rendered = rendered(&cluster)?;
    for parameters in rendered.iter().filter(|object| object["kind"] == "ConfigMap") {
        apply(&cluster.client, "bench", parameters).await?;
    }
    let policies = policies(rendered);
    let pods = Api::<Pod>::namespaced(cluster.client.clone(), "default");
    let pod = serde_json::from_value(pod())?;
    until("a pod to be created", PATIENCE, || async {
        let created = pods.create(&PostParams::default(), &pod).await;
        Ok(created.map_or_else(|error| Look::NotYet(error.to_string()), Look::Done))
    })
    .await?;
    let alone = policies.keys().map(|name| Arm { name: name.clone(), policies: vec![name.clone()] });
    let mut arms = vec![Arm { name: "none".to_owned(), policies: Vec::new() }];
    arms.extend(alone);
    arms.push(Arm { name: "all".to_owned(), policies: policies.keys().cloned().collect() });
    let mut bench = Bench { cluster, api_server, policies, pods, updated: 0 };
    let mut samples = Vec::new();
    for round in 0..arguments.rounds {
        let order: Vec<&Arm> = if round % 2 == 1 { arms.iter().rev().collect() } else { arms.iter().collect() };
        for Arm { name, policies } in order {
            bench.have(policies).await?;
            let cpu = bench.measure(arguments.updates).await?;
            say(&format!("round {round} {name:32} {cpu:.3} CPU-ms"));
            let updates = arguments.updates;
            samples.push(Sample { arm: name.clone(), round, updates, api_server_cpu_ms_per_update: cpu });
        }
    }
    fs::write(&arguments.output, format!("{:#}\n", json!({"command": "just bench policies", "samples": samples})))?;
    print(&table(&arms, &samples)?);
    bench.cluster.stop().await
}

/// A pod as a kubelet reports it: two containers, five conditions.
fn pod() -> Value {
    let container = |name: &str| {
        json!({"name": name, "image": "registry.example/app:1",
            "env": [{"name": "REGION", "value": "eu"}, {"name": "LEVEL", "value": "info"}],
            "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m", "memory": "512Mi"}},
            "readinessProbe": {"httpGet": {"path": "/ready", "port": 8080}}})
    };
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "measured", "labels": {"app": "web"}},
        "spec": {"schedulerName": "nobody", "containers": [container("app"), container("proxy")]}})
}

/// The objects of the chart with everything enabled.
fn rendered(cluster: &BenchCluster) -> Result<Vec<Value>> {
    let chart = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../charts/pillion");
    let output = cluster
        .bed
        .cluster()
        .helm(["--namespace", APART, "template", "pillion"])?
        .arg(&chart)
        .arg("--values")
        .arg(chart.join("ci/everything-values.yaml"))
        .output()?;
    ensure!(output.status.success(), "helm: {}", String::from_utf8_lossy(&output.stderr));
    let documents: Vec<Option<Value>> = serde_saphyr::from_multiple(std::str::from_utf8(&output.stdout)?)?;
    Ok(documents.into_iter().flatten().collect())
}

fn policies(rendered: Vec<Value>) -> Policies {
    let mut policies = Policies::new();
    for object in rendered.into_iter().filter(|object| KINDS.iter().any(|kind| object["kind"] == *kind)) {
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        policies.entry(name).or_default().push(object);
    }
    policies
}

impl Bench {
    /// Has exactly these policies in the cluster.
    async fn have(&mut self, names: &[String]) -> Result<()> {
        for (name, objects) in &self.policies {
            for object in objects {
                let kind = object["kind"].as_str().context("a kind")?;
                if names.contains(name) {
                    apply(&self.cluster.client, "bench", object).await?;
                    continue;
                }
                let resource =
                    ApiResource::from_gvk(&GroupVersionKind::gvk("admissionregistration.k8s.io", "v1", kind));
                let api = Api::<DynamicObject>::all_with(self.cluster.client.clone(), &resource);
                match api.delete(name, &DeleteParams::default()).await {
                    Err(kube::Error::Api(status)) if status.code == 404 => {}
                    answer => drop(answer?),
                }
            }
        }
        let began = Instant::now();
        while began.elapsed() < WARM_UP {
            self.update().await?;
        }
        Ok(())
    }

    /// Milliseconds of CPU time of the API server for one update.
    async fn measure(&mut self, updates: usize) -> Result<f64> {
        let before = cost::of(self.api_server)?;
        for _ in 0..updates {
            self.update().await?;
        }
        let spent = Duration::from_nanos(cost::of(self.api_server)? - before);
        #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
        let updates = updates as f64;
        Ok(spent.as_secs_f64() * 1_000.0 / updates)
    }

    /// An update of the status that changes one condition, as a kubelet writes it.
    async fn update(&mut self) -> Result<()> {
        self.updated += 1;
        let status = if self.updated.is_multiple_of(2) { "True" } else { "False" };
        let kinds = ["PodScheduled", "Initialized", "ContainersReady", "Ready", "PodReadyToStartContainers"];
        let conditions: Vec<Value> = kinds.iter().map(|kind| json!({"type": kind, "status": status})).collect();
        let patch = Patch::Strategic(json!({"status": {"conditions": conditions}}));
        self.pods.patch_status("measured", &PatchParams::default(), &patch).await?;
        Ok(())
    }
}

fn table(arms: &[Arm], samples: &[Sample]) -> Result<String> {
    let of = |arm: &str| -> BTreeMap<usize, f64> {
        samples.iter().filter(|it| it.arm == arm).map(|it| (it.round, it.api_server_cpu_ms_per_update)).collect()
    };
    let none = of("none");
    let mut table = "| policies | API server CPU-ms per update | times none, same round |\n|---|---|---|\n".to_owned();
    for Arm { name, .. } in arms {
        let all = of(name);
        let spread = Spread::of(all.values().copied()).context("no samples")?;
        let ratio = Spread::of(all.iter().map(|(round, cpu)| cpu / none[round])).context("no samples")?;
        writeln!(table, "| {name} | {} | {} |", spread.text(3), ratio.text(2))?;
    }
    Ok(table)
}
