//! What a review costs. Arms are told apart by namespace and label, so that nothing is configured between them but the
//! number of sets.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, PostParams};
use kube::{Api, ResourceExt};
use pillion_api::{SidecarSet, review};
use pillion_inject::{Candidate, Installation, Namespace, inject};
use pillion_testbed::{Look, apply, until};
use serde_json::{Value, json};

use crate::cluster::{APART, ARM, BenchCluster};
use crate::cost;
use crate::output::{print, say};
use crate::samples::{Sample, Spread, percentile};

const PATIENCE: Duration = Duration::from_mins(1);

#[derive(Args)]
pub(crate) struct Arguments {
    /// Rounds; each runs all arms, every other one in the opposite order.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Pods per arm with one client.
    #[arg(long, default_value_t = 300)]
    pods: usize,
    /// Pods per arm with sixteen clients.
    #[arg(long, default_value_t = 1_000)]
    pods_at_once: usize,
    /// Where the samples go.
    #[arg(long, default_value = "docs/figures/webhook.json")]
    output: PathBuf,
}

/// An arm: where its pods are created, and how many sets there are.
#[derive(Clone, Copy)]
struct Arm {
    name: &'static str,
    namespace: &'static str,
    sets: Option<usize>,
}

const ARMS: [Arm; 6] = [
    Arm { name: "none", namespace: APART, sets: None },
    Arm { name: "no-op", namespace: APART, sets: None },
    Arm { name: "constant", namespace: APART, sets: None },
    Arm { name: "ours-1", namespace: "default", sets: Some(1) },
    Arm { name: "ours-100", namespace: "default", sets: Some(100) },
    Arm { name: "ours-1000", namespace: "default", sets: Some(1_000) },
];

struct Bench {
    cluster: BenchCluster,
    api_server: u32,
    hooks: BTreeMap<&'static str, u32>,
}

pub(crate) async fn run(arguments: &Arguments) -> Result<()> {
    let mut cluster = BenchCluster::start().await?;
    let api_server = cost::find("kube-apiserver", &cluster.bed.cluster().host().to_string())?;
    let manager = cluster.start_manager()?;
    let mut hooks = BTreeMap::from([("ours-1", manager), ("ours-100", manager), ("ours-1000", manager)]);
    hooks.insert("no-op", cluster.start_hook("no-op", None).await?);
    let patch = our_patch(&cluster).await?;
    hooks.insert("constant", cluster.start_hook("constant", Some(&patch)).await?);
    let bench = Bench { cluster, api_server, hooks };
    bench.get_ready().await?;
    let mut samples = Vec::new();
    for round in 0..arguments.rounds {
        let mut arms = ARMS;
        if round % 2 == 1 {
            arms.reverse();
        }
        for arm in arms {
            if let Some(sets) = arm.sets {
                bench.have_sets(sets).await?;
            }
            for (clients, pods) in [(1, arguments.pods), (16, arguments.pods_at_once)] {
                let sample = bench.measure(arm, clients, pods, round).await?;
                say(&format!(
                    "round {round} {:10} {clients:2} clients: p50 {:.2} ms, {:.0} pods/s, {:.3} CPU-ms",
                    arm.name,
                    sample.p50_ms,
                    sample.pods_per_second,
                    sample.webhook_cpu_ms_per_review.unwrap_or_default()
                ));
                samples.push(sample);
            }
        }
    }
    fs::write(&arguments.output, format!("{:#}\n", json!({"command": "just bench webhook", "samples": samples})))?;
    print(&table(&samples)?);
    bench.cluster.stop().await
}

fn pod(arm: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "bench-", "labels": {"app": "web", ARM: arm}},
        "spec": {"containers": [{"name": "app", "image": "registry.example/app:1",
            "env": [{"name": "REGION", "value": "eu"}, {"name": "LEVEL", "value": "info"}],
            "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m", "memory": "512Mi"}},
            "readinessProbe": {"httpGet": {"path": "/ready", "port": 8080}}}]}})
}

/// The set that matches, or one of those that do not.
fn set(number: usize) -> Value {
    let app = if number == 0 { "web".to_owned() } else { format!("app-{number}") };
    json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "SidecarSet", "metadata": {"name": format!("set-{number:04}")},
        "spec": {"selector": {"matchLabels": {"app": app}},
            "containers": [{"name": "proxy", "image": "registry.example/proxy:1", "env": [{"name": "MODE", "value": "mesh"}],
                "volumeMounts": [{"name": "proxy-data", "mountPath": "/data"}],
                "resourcesPolicy": {"targetContainersMode": "sum", "targetContainersNameRegex": ".*", "resourceExpr": {
                    "limits": {"cpu": "max(cpu*50%, 50m)", "memory": "200Mi"},
                    "requests": {"cpu": "max(cpu*50%, 50m)", "memory": "100Mi"}}}}],
            "volumes": [{"name": "proxy-data", "emptyDir": {}}]}})
}

/// What ours answers, for the arm that answers the same without deciding.
async fn our_patch(cluster: &BenchCluster) -> Result<Value> {
    let set = review(&set(0)).meaning.context("the set is valid")?;
    // As the API server shows it to webhooks: with the token mounted.
    let api = Api::<Pod>::namespaced(cluster.client.clone(), APART);
    let parameters = PostParams { dry_run: true, ..PostParams::default() };
    let shown: Pod = serde_json::from_value(pod("none"))?;
    let pod = until("a pod to be shown", PATIENCE, || async {
        Ok(api.create(&parameters, &shown).await.map_or_else(|error| Look::NotYet(error.to_string()), Look::Done))
    })
    .await?;
    let pod = serde_json::to_value(pod)?;
    let decision = inject(&pod, &Namespace::named("default"), [Candidate::latest(&set)], Installation::default());
    ensure!(!decision.patch.is_empty(), "the set was not applied");
    let mut patch = json!(decision.patch);
    // The volume of the token has another name in every pod; the API server mounts it itself.
    for operation in patch.as_array_mut().into_iter().flatten() {
        if let Some(mounts) = operation.pointer_mut("/value/volumeMounts").and_then(Value::as_array_mut) {
            mounts.retain(|mount| mount["name"] == "proxy-data");
        }
    }
    Ok(patch)
}

impl Bench {
    fn pods(&self, namespace: &str) -> Api<Pod> {
        Api::namespaced(self.cluster.client.clone(), namespace)
    }

    /// Waits until every arm does what it should.
    async fn get_ready(&self) -> Result<()> {
        self.have_sets(1).await?;
        for arm in ARMS {
            let pod: Pod = serde_json::from_value(pod(arm.name))?;
            let wanted = usize::from(arm.name == "constant" || arm.sets.is_some()) + 1;
            let parameters = PostParams { dry_run: true, ..PostParams::default() };
            until(arm.name, PATIENCE, || async {
                Ok(match self.pods(arm.namespace).create(&parameters, &pod).await {
                    Ok(created) if containers(&created) == wanted => Look::Done(()),
                    Ok(created) => Look::NotYet(format!("{} containers", containers(&created))),
                    Err(error) => Look::NotYet(error.to_string()),
                })
            })
            .await?;
        }
        Ok(())
    }

    async fn have_sets(&self, wanted: usize) -> Result<()> {
        let client = &self.cluster.client;
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &ApiResource::erase::<SidecarSet>(&()));
        let there = api.list_metadata(&ListParams::default()).await?.items.len();
        let missing =
            stream::iter(there..wanted).map(|number| async move { apply(client, "bench", &set(number)).await });
        missing.buffer_unordered(8).try_collect::<Vec<_>>().await?;
        let surplus = stream::iter(wanted..there).map(|number| {
            let api = api.clone();
            async move { api.delete(&format!("set-{number:04}"), &DeleteParams::default()).await.map(drop) }
        });
        surplus.buffer_unordered(8).try_collect::<Vec<_>>().await?;
        Ok(())
    }

    async fn measure(&self, arm: Arm, clients: usize, pods: usize, round: usize) -> Result<Sample> {
        self.rest(arm.namespace).await?;
        let hook = self.hooks.get(arm.name).copied();
        let before = (hook.map(cost::of).transpose()?, cost::of(self.api_server)?);
        let began = Instant::now();
        let mut took: Vec<f64> = stream::iter(0..clients)
            .map(|client| self.create(arm, pods / clients + usize::from(client < pods % clients)))
            .buffer_unordered(clients)
            .try_concat()
            .await?;
        let elapsed = began.elapsed();
        let after = (hook.map(cost::of).transpose()?, cost::of(self.api_server)?);
        took.sort_unstable_by(f64::total_cmp);
        #[expect(clippy::cast_precision_loss, reason = "nanoseconds of minutes")]
        let milliseconds_per_pod = |before: u64, after: u64| (after - before) as f64 / 1e6 / pods as f64;
        #[expect(clippy::cast_precision_loss, reason = "thousands of pods")]
        let pods_per_second = pods as f64 / elapsed.as_secs_f64();
        Ok(Sample {
            arm: arm.name.to_owned(),
            clients,
            round,
            pods,
            p50_ms: percentile(&took, 50),
            p99_ms: percentile(&took, 99),
            pods_per_second,
            webhook_cpu_ms_per_review: before.0.zip(after.0).map(|(before, after)| milliseconds_per_pod(before, after)),
            api_server_cpu_ms_per_pod: milliseconds_per_pod(before.1, after.1),
        })
    }

    /// One client: creates pods one after the other, and says how many milliseconds each took.
    async fn create(&self, arm: Arm, pods: usize) -> Result<Vec<f64>> {
        let api = self.pods(arm.namespace);
        let pod: Pod = serde_json::from_value(pod(arm.name))?;
        let wanted = usize::from(arm.name == "constant" || arm.sets.is_some()) + 1;
        let mut took = Vec::with_capacity(pods);
        for _ in 0..pods {
            let began = Instant::now();
            let created = api.create(&PostParams::default(), &pod).await?;
            took.push(began.elapsed().as_secs_f64() * 1e3);
            ensure!(containers(&created) == wanted, "{} got {} containers", created.name_any(), containers(&created));
        }
        Ok(took)
    }

    /// Takes the pods of the arm before away, and lets the cluster come to rest.
    async fn rest(&self, namespace: &str) -> Result<()> {
        for namespace in [APART, "default", namespace] {
            let now = DeleteParams::default().grace_period(0);
            self.pods(namespace).delete_collection(&now, &ListParams::default()).await?;
        }
        tokio::time::sleep(Duration::from_secs(3)).await;
        Ok(())
    }
}

fn containers(pod: &Pod) -> usize {
    pod.spec.as_ref().map_or(0, |spec| spec.containers.len())
}

/// The table that is published.
fn table(samples: &[Sample]) -> Result<String> {
    let mut text = String::new();
    for clients in [1, 16] {
        writeln!(text, "\n**{clients} client{}**\n", if clients == 1 { "" } else { "s" })?;
        writeln!(
            text,
            "| arm | p50 ms | p99 ms | p50 over constant | pods/s | pods/s, share of constant | webhook CPU-ms per review | CPU, times constant | API server CPU-ms per pod |"
        )?;
        writeln!(text, "|---|---|---|---|---|---|---|---|---|")?;
        for arm in ARMS {
            let of = |name: &str| {
                samples.iter().filter(move |it| it.arm == name && it.clients == clients).collect::<Vec<_>>()
            };
            let (own, constant) = (of(arm.name), of("constant"));
            let each = |value: fn(&Sample) -> f64, digits| {
                Spread::of(own.iter().map(|it| value(it))).map_or_else(String::new, |it| it.text(digits))
            };
            // Against the constant arm of the same round: what disturbed the one disturbed the other.
            let against = |value: &dyn Fn(&Sample, &Sample) -> Option<f64>, digits| {
                let pairs = own.iter().zip(&constant).filter_map(|(own, constant)| value(own, constant));
                Spread::of(pairs).map_or_else(|| "-".to_owned(), |it| it.text(digits))
            };
            let cpu = Spread::of(own.iter().filter_map(|it| it.webhook_cpu_ms_per_review))
                .map_or_else(|| "-".to_owned(), |it| it.text(3));
            writeln!(
                text,
                "| {} | {} | {} | {} | {} | {} | {cpu} | {} | {} |",
                arm.name,
                each(|it| it.p50_ms, 2),
                each(|it| it.p99_ms, 1),
                against(&|own, constant| Some(own.p50_ms - constant.p50_ms), 2),
                each(|it| it.pods_per_second, 0),
                against(&|own, constant| Some(own.pods_per_second / constant.pods_per_second), 2),
                against(&|own, constant| Some(own.webhook_cpu_ms_per_review? / constant.webhook_cpu_ms_per_review?), 2),
                each(|it| it.api_server_cpu_ms_per_pod, 2),
            )?;
        }
    }
    Ok(text)
}
