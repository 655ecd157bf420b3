//! Pods are created without a break while everything that happens to an installation happens: its replicas are replaced, its
//! authority changes, its leader goes, and one replica is killed. Installed by Helm, on a real node.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Pod, Secret, ServiceAccount};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use pillion_e2e::chart::{helm, said};
use pillion_e2e::manager::NAMESPACE;
use pillion_e2e::pods;
use pillion_testbed::{Bed, Cluster, Config, Look, apply, until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

const PATIENCE: Duration = Duration::from_mins(2);
/// Pods per second.
const RATE: u32 = 30;
/// At least so long.
const LASTS: Duration = Duration::from_mins(1);
/// How long a killed replica may be called: until the kubelet has seen that it is gone, and the API server has heard.
const KILL_IS_FELT: Duration = Duration::from_secs(8);

/// One creation: when it began, in seconds, and what came of it.
#[derive(Debug)]
struct Creation {
    namespace: &'static str,
    name: String,
    at: f64,
    /// Whether the pod was injected; or the refusal.
    outcome: Result<bool, String>,
}

fn pod(name: &str) -> Result<Pod> {
    let mut pod = pods::pod(name, &[], &[pods::container("app", &[])]);
    pod["metadata"]["labels"] = json!({"app": "web"});
    // Only whether they are made counts; there is no such node.
    pod["spec"]["nodeSelector"] = json!({"pillion.dev/node": "nowhere"});
    Ok(serde_json::from_value(pod)?)
}

async fn create_until(client: Client, began: Instant, stop: watch::Receiver<bool>) -> Result<Vec<Creation>> {
    let mut ticks = interval(Duration::from_secs(1) / RATE);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let mut creations = JoinSet::new();
    let mut number = 0;
    while !*stop.borrow() {
        ticks.tick().await;
        number += 1;
        let namespace = if number % 2 == 0 { "strict" } else { "loose" };
        let name = format!("pod-{number}");
        let (client, pod) = (client.clone(), pod(&name)?);
        creations.spawn(async move {
            let at = began.elapsed().as_secs_f64();
            let created = Api::<Pod>::namespaced(client, namespace).create(&PostParams::default(), &pod).await;
            let outcome = match created {
                Ok(pod) => Ok(pod.labels().contains_key("pillion.dev/injected")),
                Err(error) => Err(error.to_string()),
            };
            Creation { namespace, name, at, outcome }
        });
    }
    let mut all = Vec::new();
    while let Some(creation) = creations.join_next().await {
        all.push(creation?);
    }
    all.sort_by(|one, other| one.at.total_cmp(&other.at));
    Ok(all)
}

fn kubectl(cluster: &Cluster, arguments: &[&str]) -> Result<String> {
    let output = cluster.kubectl(["--namespace", NAMESPACE])?.args(arguments).output()?;
    ensure!(output.status.success(), "kubectl {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

/// The processes of webhook replicas in the containers of this bed's node.
fn webhook_processes(cluster: &Cluster) -> Result<Vec<Pid>> {
    let pods = kubectl(
        cluster,
        &["get", "pods", "-l", "app.kubernetes.io/component=webhook", "-o", "jsonpath={.items[*].metadata.uid}"],
    )?;
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")?.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        let read =
            |file: &str| fs::read_to_string(Path::new("/proc").join(pid.to_string()).join(file)).unwrap_or_default();
        let is_manager = read("cmdline").starts_with("/pillion-manager\0webhook");
        if is_manager && pods.split_whitespace().any(|uid| read("cgroup").contains(uid)) {
            found.extend(Pid::from_raw(pid));
        }
    }
    Ok(found)
}

/// What happened, and at which second it began.
type Marks = BTreeMap<&'static str, f64>;

/// Installs the chart, and waits until every replica knows the set.
async fn install(cluster: &Cluster, client: &Client) -> Result<()> {
    said(helm(cluster, "install", &["image.pullPolicy=Never"], &["--create-namespace", "--wait", "--timeout=120s"])?)?;
    for (name, labels) in [("strict", json!({"pillion.dev/injection": "required"})), ("loose", json!({}))] {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}});
        apply(client, "e2e", &namespace).await?;
        let accounts = Api::<ServiceAccount>::namespaced(client.clone(), name);
        until("the default service account", PATIENCE, || async {
            Ok(accounts.get("default").await.map_or_else(|error| Look::NotYet(error.to_string()), Look::Done))
        })
        .await?;
    }
    let set = json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "SidecarSet", "metadata": {"name": "mesh"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "containers": [{"name": "proxy", "image": pods::V1}]}});
    apply(client, "e2e", &set).await?;
    let tried = pod("tried")?;
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let strict = Api::<Pod>::namespaced(client.clone(), "strict");
    // Each replica hears of the set by itself, and the API server calls them in turn.
    let (mut in_a_row, began) = (0, Instant::now());
    while in_a_row < 50 {
        let is_injected = strict.create(&dry, &tried).await?.labels().contains_key("pillion.dev/injected");
        in_a_row = if is_injected { in_a_row + 1 } else { 0 };
        ensure!(began.elapsed() < PATIENCE, "the set does not reach the replicas");
    }
    Ok(())
}

fn replace_replicas(cluster: &Cluster) -> Result<()> {
    kubectl(cluster, &["rollout", "restart", "deployment/pillion-webhook"])?;
    kubectl(cluster, &["rollout", "status", "deployment/pillion-webhook", "--timeout=120s"])?;
    Ok(())
}

async fn change_authority(client: &Client) -> Result<()> {
    let secrets = Api::<Secret>::namespaced(client.clone(), NAMESPACE);
    let certificate = |secret: &Secret| secret.data.as_ref().and_then(|data| data.get("tls.crt").cloned());
    let before = certificate(&secrets.get("pillion-webhook-ca").await?);
    let ask = Patch::Merge(json!({"metadata": {"annotations": {"pillion.dev/rotate": "now"}}}));
    secrets.patch("pillion-webhook-ca", &PatchParams::default(), &ask).await?;
    until("the authority to change", PATIENCE, || async {
        Ok(match secrets.get("pillion-webhook-ca").await {
            Ok(secret) if certificate(&secret) != before => Look::Done(()),
            other => Look::NotYet(format!("{:?}", other.map(|secret| secret.resource_version()))),
        })
    })
    .await?;
    Ok(())
}

async fn remove_leader(client: &Client) -> Result<()> {
    let leases = Api::<Lease>::namespaced(client.clone(), NAMESPACE);
    let holder = |lease: &Lease| lease.spec.as_ref().and_then(|spec| spec.holder_identity.clone());
    let first = holder(&leases.get("pillion-controller").await?).context("nobody leads")?;
    let leader = first.rsplit_once('_').map_or(first.as_str(), |(pod, _)| pod);
    Api::<Pod>::namespaced(client.clone(), NAMESPACE).delete(leader, &DeleteParams::default()).await?;
    until("another leader", PATIENCE, || async {
        Ok(match leases.get("pillion-controller").await.map(|lease| holder(&lease)) {
            Ok(Some(now)) if now != first => Look::Done(()),
            other => Look::NotYet(format!("{other:?}")),
        })
    })
    .await?;
    Ok(())
}

async fn kill_a_replica(cluster: &Cluster) -> Result<()> {
    // One that was told to end before may still be ending.
    let processes = until("two replicas", PATIENCE, || async {
        let processes = webhook_processes(cluster).unwrap_or_default();
        let count = processes.len();
        Ok(if count == 2 { Look::Done(processes) } else { Look::NotYet(format!("{count} processes")) })
    })
    .await?;
    kill_process(processes[0], Signal::KILL)?;
    let of_pods = |path: &str| {
        let path = format!("jsonpath={{.items[*].status.containerStatuses[0].{path}}}");
        kubectl(cluster, &["get", "pods", "-l", "app.kubernetes.io/component=webhook", "-o", &path]).unwrap_or_default()
    };
    until("the killed replica to come back", PATIENCE, || async {
        let (restarts, ready) = (of_pods("restartCount"), of_pods("ready"));
        let is_back = restarts.contains('1') && ready == "true true";
        Ok(if is_back { Look::Done(()) } else { Look::NotYet(format!("restarts {restarts}, ready {ready}")) })
    })
    .await?;
    Ok(())
}

/// In ci: `safe_bystanders_own_bed` creates pods during an installation and restarts; the load is nightly's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nightly_nothing_is_missed_while_everything_happens() -> Result<()> {
    let bed = Bed::start(Config::control_plane("load").with_node()).await?;
    let (cluster, client) = (bed.cluster(), bed.client().await?);
    install(cluster, &client).await?;

    let began = Instant::now();
    let (stop, stopped) = watch::channel(false);
    let creating = tokio::spawn(create_until(bed.client().await?, began, stopped));
    let mut marks = Marks::new();
    let mut mark = |what: &'static str| {
        let now = began.elapsed().as_secs_f64();
        marks.insert(what, now);
        now
    };
    mark("1 replicas are replaced");
    replace_replicas(cluster)?;
    mark("2 the authority changes");
    change_authority(&client).await?;
    mark("3 the leader goes");
    remove_leader(&client).await?;
    let killed_at = mark("4 a replica is killed");
    kill_a_replica(cluster).await?;
    mark("5 all is well again");
    tokio::time::sleep(LASTS.saturating_sub(began.elapsed())).await;
    stop.send_replace(true);
    let creations = creating.await??;
    println!("{} pods in {:.0} s: {marks:?}", creations.len(), began.elapsed().as_secs_f64());

    let (lost, missed) = judge(&creations, killed_at)?;
    println!("by the kill: {lost} refused where injection is required, {missed} uninjected where it is not");
    // Whatever passed uninjected is found.
    let found_from = Instant::now();
    until("the missed pods to be counted", Duration::from_secs(30), || async {
        let arguments = ["get", "sidecarset", "mesh", "-o", "jsonpath={.status.missedPods}"];
        let counted = kubectl(cluster, &arguments).unwrap_or_default();
        Ok(if counted == missed.to_string() { Look::Done(()) } else { Look::NotYet(format!("{counted} of {missed}")) })
    })
    .await?;
    println!("{missed} missed pods counted {:?} after the last creation", found_from.elapsed());
    bed.stop().await?;
    Ok(())
}

/// No pod is lost or uninjected but by the kill, and where injection is required none at all is uninjected. Gives the
/// numbers of pods the kill cost: refused where injection is required, uninjected where it is not.
fn judge(creations: &[Creation], killed_at: f64) -> Result<(usize, usize)> {
    // What the killed replica had accepted is lost with it, and the API server refuses or lets pass what it cannot ask about.
    let felt = killed_at - 1.0..killed_at + KILL_IS_FELT.as_secs_f64();
    let refused = |creation: &&Creation| creation.outcome.is_err();
    let missed = |creation: &&Creation| matches!(creation.outcome, Ok(false));
    let (during, otherwise): (Vec<&Creation>, Vec<&Creation>) =
        creations.iter().partition(|creation| felt.contains(&creation.at));
    let of = |namespace: &'static str| move |creation: &&&Creation| creation.namespace == namespace;
    let disturbed: Vec<_> = otherwise.iter().filter(|it| refused(it) || missed(it)).collect();
    ensure!(disturbed.is_empty(), "besides the kill, at {killed_at}: {disturbed:?}");
    ensure!(creations.len() > 1_500, "{} pods", creations.len());
    let uninjected = during.iter().filter(of("strict")).filter(|it| missed(it)).count();
    ensure!(uninjected == 0, "{uninjected} pods passed uninjected where injection is required");
    let lost: Vec<_> = during.iter().filter(of("strict")).filter(|it| refused(it)).collect();
    for creation in &lost {
        let why = creation.outcome.as_ref().err().map(String::as_str).unwrap_or_default();
        ensure!(why.contains("failed calling webhook \"required-pods.pillion.dev\""), "{}: {why}", creation.name);
    }
    let refused_loose = during.iter().filter(of("loose")).filter(|it| refused(it)).count();
    ensure!(refused_loose == 0, "{refused_loose} pods were refused where injection is not required");
    let passed = during.iter().filter(of("loose")).filter(|it| missed(it)).count();
    Ok((lost.len(), passed))
}
