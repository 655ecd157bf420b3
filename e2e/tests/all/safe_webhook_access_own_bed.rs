//! Only the API server calls the webhook; whoever else reaches its port harms no pod.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::Client;
use kube::api::{Api, Patch, PatchParams, PostParams};
use pillion_e2e::canary::{Canary, SHOP, Stage};
use pillion_e2e::{Caller, Manager, pods};
use pillion_testbed::{Bed, Config, Look, WEBHOOK_CLIENT, apply, until};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::sleep;

const PATIENCE: Duration = Duration::from_mins(2);
/// The memory that the chart gives a replica of the webhook.
const MEMORY_LIMIT: u64 = 256 << 20;
/// Between two pods, and between two reviews whose latency counts.
const PACE: Duration = Duration::from_millis(50);

fn review(namespace: &str, pod: &Value) -> String {
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "00000000-0000-0000-0000-000000000001", "operation": "CREATE", "namespace": namespace,
        "resource": {"group": "", "version": "v1", "resource": "pods"}, "object": pod}})
    .to_string()
}

fn is_injected(pod: &Pod) -> bool {
    let spec = pod.spec.as_ref();
    spec.is_some_and(|spec| spec.containers.iter().any(|container| container.name == "proxy"))
}

/// In the path of each webhook is a token of its own. Somebody without it gets nothing, also while tokens are replaced, and no
/// pod misses its sidecar meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ci_a_call_without_the_path_of_the_registration_is_rejected() -> Result<()> {
    let bed = Bed::start(Config::control_plane("access").with_controllers()).await?;
    let client = bed.client().await?;
    Manager::prepare(&client).await?;
    let manager = Manager::ready(bed.cluster(), &["webhook"], &[]).await?;
    apply(&client, "e2e", &set()).await?;
    let old = Caller::new(&client, manager.webhook()).await?;
    until_injected(&client).await?;
    for path in [&old.pods, &old.sets] {
        let token = path.rsplit('/').next().unwrap_or_default();
        ensure!(token.len() == 64 && !old.pods.ends_with(&old.sets), "{path} has no token of its own");
    }

    let body = review("default", &labelled("p"));
    let last = old.pods.len() - 1;
    let wrong = format!("{}{}", &old.pods[..last], if old.pods.ends_with('0') { '1' } else { '0' });
    for path in ["/pods", "/pods/", "/sidecarsets", "/", &wrong] {
        let answered = old.connect().await?.post(path, body.clone()).await?;
        ensure!(answered == (404, "unknown path\n".into()), "{path}: {answered:?}");
    }
    let (status, answer) = old.connect().await?.review_pod(body.clone()).await?;
    ensure!(status == 200 && String::from_utf8_lossy(&answer).contains("JSONPatch"), "{status} {answer:?}");
    ensure!(manager.metric("pillion_server_refusals_total{server=\"webhook\",reason=\"Path\"}").await? >= 5.0);

    // The owner of the installation asks for a new authority. All pods of the meantime have their sidecar.
    let asked = json!({"metadata": {"annotations": {"pillion.dev/rotate": "now"}}});
    let secrets = Api::<Secret>::namespaced(client.clone(), pillion_e2e::manager::NAMESPACE);
    secrets.patch("pillion-webhook-ca", &PatchParams::default(), &Patch::Merge(&asked)).await?;
    let began = Instant::now();
    let new = loop {
        ensure!(is_injected(&created(&client, "default", labelled("while")).await?), "a pod has no sidecar");
        let now = Caller::new(&client, manager.webhook()).await?;
        if now.pods != old.pods {
            break now;
        }
        ensure!(began.elapsed() < PATIENCE, "the paths stay the same");
        sleep(PACE).await;
    };
    ensure!(new.sets != old.sets && new.pods.len() == old.pods.len(), "{} {}", new.sets, new.pods);
    for path in [&old.pods, &new.pods] {
        let (status, _) = new.connect().await?.post(path, body.clone()).await?;
        ensure!(status == 200, "{path}: {status}");
    }
    ensure!(is_injected(&created(&client, "default", labelled("after")).await?), "a pod has no sidecar");

    // A namespace becomes a part of a URL.
    for namespace in ["../secrets", "a/b", "A", "x?y", ""] {
        let (status, answer) = new.connect().await?.review_pod(review(namespace, &labelled("p"))).await?;
        let answer = String::from_utf8_lossy(&answer).into_owned();
        ensure!(
            status == 500 && answer.ends_with("this is no name of a namespace\n"),
            "{namespace}: {status} {answer}"
        );
    }
    manager.stop().await?;
    bed.stop().await?;
    Ok(())
}

/// With `--webhook-client-ca` only the API server is served, by its certificate; somebody who knows the path is not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ci_only_a_client_with_the_certificate_is_served() -> Result<()> {
    let bed = Bed::start(Config::control_plane("clients").with_controllers()).await?;
    let client = bed.client().await?;
    Manager::prepare(&client).await?;
    let kubeconfig: Value = serde_json::from_slice(&fs::read(bed.cluster().kubeconfig())?)?;
    let authority = &kubeconfig["clusters"][0]["cluster"]["certificate-authority"];
    let flag = format!("--webhook-client-ca={}", authority.as_str().context("the kubeconfig names the authority")?);
    let names = format!("--webhook-client-names=somebody,{WEBHOOK_CLIENT}");
    let manager = Manager::ready(bed.cluster(), &["webhook"], &[&flag, &names]).await?;
    // Its validation fails closed, so that this write is a call of the API server, too.
    apply(&client, "e2e", &set()).await?;
    until_injected(&client).await?;
    let stranger = Caller::new(&client, manager.webhook()).await?;
    let answered = async { stranger.connect().await?.review_pod(review("default", &labelled("p"))).await };
    ensure!(answered.await.is_err(), "a caller without a certificate was answered");
    ensure!(manager.metric("pillion_server_refusals_total{server=\"webhook\",reason=\"Handshake\"}").await? >= 1.0);
    manager.stop().await?;

    // A certificate with another name is not enough.
    let flags = [flag.as_str(), "--webhook-client-names=somebody"];
    let manager = Manager::ready(bed.cluster(), &["webhook"], &flags).await?;
    let waited = until("pods to have no sidecar", PATIENCE, || async {
        Ok(match created(&client, "default", labelled("second")).await {
            Ok(pod) if !is_injected(&pod) => Look::Done(()),
            other => Look::NotYet(format!("{other:?}")),
        })
    });
    waited.await?;
    ensure!(manager.metric("pillion_server_refusals_total{server=\"webhook\",reason=\"Client\"}").await? >= 1.0);
    manager.stop().await?;
    bed.stop().await?;
    Ok(())
}

fn set() -> Value {
    json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "SidecarSet", "metadata": {"name": "mesh"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "containers": [{"name": "proxy", "image": pods::V1}]}})
}

fn labelled(name: &str) -> Value {
    let mut pod = pods::pod(name, &[], &[pods::container("app", &[])]);
    pod["metadata"]["labels"] = json!({"app": "web"});
    pod
}

/// A pod that the API server would create.
async fn created(client: &Client, namespace: &str, pod: Value) -> Result<Pod> {
    let parameters = PostParams { dry_run: true, ..PostParams::default() };
    Ok(Api::namespaced(client.clone(), namespace).create(&parameters, &serde_json::from_value(pod)?).await?)
}

async fn until_injected(client: &Client) -> Result<()> {
    let waited = until("a pod to get its sidecar", PATIENCE, || async {
        Ok(match created(client, "default", labelled("first")).await {
            Ok(pod) if is_injected(&pod) => Look::Done(()),
            Ok(_) => Look::NotYet("it has none".to_owned()),
            Err(error) => Look::NotYet(error.to_string()),
        })
    });
    Ok(waited.await?)
}

/// An attacker with everything that can be had: the path of the webhook, and as many connections as it likes. It runs at the
/// lowest priority, as all share two cores.
struct Attacker {
    over: Arc<AtomicBool>,
    forged: Arc<AtomicUsize>,
    large: Arc<AtomicUsize>,
    opened: Arc<AtomicUsize>,
    threads: Vec<thread::JoinHandle<()>>,
}

const FORGED: usize = 10_000;
const LARGE: usize = 200;
const CONNECTIONS: usize = 1_000;

impl Attacker {
    fn start(callers: &[Caller], canary: &Canary) -> Self {
        let mut attacker = Self {
            over: Arc::default(),
            forged: Arc::default(),
            large: Arc::default(),
            opened: Arc::default(),
            threads: Vec::new(),
        };
        for (at, caller) in callers.iter().enumerate() {
            let forged = review("evil", &of_canary(canary, "forged"));
            attacker.forge(caller.clone(), forged);
            attacker.send_large(caller.clone());
            if at == 0 {
                attacker.send_sets(caller.clone());
            }
            attacker.connect(caller.clone(), CONNECTIONS / callers.len());
        }
        attacker
    }

    fn spawn<F: Future<Output = ()>>(&mut self, attack: impl FnOnce() -> F + Send + 'static) {
        self.threads.push(thread::spawn(move || {
            // Of this thread alone.
            rustix::process::setpriority_process(None, 19).expect("a lower priority is allowed");
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(attack());
        }));
    }

    fn forge(&mut self, caller: Caller, body: String) {
        let (over, forged) = (Arc::clone(&self.over), Arc::clone(&self.forged));
        self.spawn(async move || {
            let mut senders = JoinSet::new();
            for _ in 0..8 {
                let (caller, body, over, forged) =
                    (caller.clone(), body.clone(), Arc::clone(&over), Arc::clone(&forged));
                senders.spawn(async move {
                    let goes_on = || !over.load(Ordering::Relaxed) && forged.load(Ordering::Relaxed) < FORGED;
                    while goes_on() {
                        let Ok(mut connection) = caller.connect().await else { continue };
                        while goes_on() && connection.review_pod(body.clone()).await.is_ok() {
                            forged.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                });
            }
            senders.join_all().await;
        });
    }

    /// Bodies of 8 MiB: some that take a hundred times as much when they are read, some that come slowly.
    fn send_large(&mut self, caller: Caller) {
        let (over, large) = (Arc::clone(&self.over), Arc::clone(&self.large));
        let many = format!(r#"{{"spec":{{"containers":[{}]}}}}"#, vec!["{\"\":0}"; 1_000_000].join(","));
        let bodies = [
            review("evil", &json!("x".repeat((8 << 20) - 500))),
            review("evil", &json!(0)).replace(":0}", &format!(":{many}}}")),
        ];
        self.spawn(async move || {
            let mut senders = JoinSet::new();
            for position in 0..8 {
                let (caller, over, large) = (caller.clone(), Arc::clone(&over), Arc::clone(&large));
                let body = bodies[position % 2].clone();
                senders.spawn(async move {
                    while !over.load(Ordering::Relaxed) && large.fetch_add(1, Ordering::Relaxed) < LARGE {
                        if let Ok(mut connection) = caller.connect().await {
                            // Whatever it is answered.
                            let _ = connection.review_pod(body.clone()).await;
                        }
                    }
                });
            }
            senders.join_all().await;
        });
    }

    /// Sets with as many problems as fit into 5 MiB.
    fn send_sets(&mut self, caller: Caller) {
        let over = Arc::clone(&self.over);
        let body = costly_set_review();
        self.spawn(async move || {
            while !over.load(Ordering::Relaxed) {
                if let Ok(mut connection) = caller.connect().await {
                    let _ = connection.post(&caller.sets, body.clone()).await;
                }
                sleep(PACE).await;
            }
        });
    }

    /// Connections that are opened and say nothing; every other one does not even begin TLS.
    fn connect(&mut self, caller: Caller, most: usize) {
        let (over, opened) = (Arc::clone(&self.over), Arc::clone(&self.opened));
        self.spawn(async move || {
            let (mut silent, mut spoken) = (Vec::new(), Vec::new());
            while !over.load(Ordering::Relaxed) {
                for number in 0..10 {
                    let Ok(stream) = TcpStream::connect(caller.address()).await else { continue };
                    opened.fetch_add(1, Ordering::Relaxed);
                    if number % 2 == 0 {
                        silent.push(stream);
                    } else if let Ok(mut stream) = caller.tls(stream).await {
                        let _ = stream.write_all(b"POST /pods HTTP/1.1\r\nHost: x\r\n").await;
                        spoken.push(stream);
                    }
                }
                let (first, second) = (silent.len().saturating_sub(most / 2), spoken.len().saturating_sub(most / 2));
                silent.drain(..first);
                spoken.drain(..second);
                sleep(PACE).await;
            }
        });
    }

    fn end(self) -> Result<String> {
        self.over.store(true, Ordering::Relaxed);
        let [forged, large, opened] = [self.forged, self.large, self.opened].map(|count| count.load(Ordering::Relaxed));
        for thread in self.threads {
            thread.join().ok().context("an attacker failed")?;
        }
        Ok(format!("{forged} forged reviews, {} large bodies, {opened} connections", large.min(LARGE)))
    }
}

/// A review of a set with tens of thousands of problems: unknown fields, wrong values, names twice.
fn costly_set_review() -> String {
    let containers: Vec<Value> = (0..6_000)
        .map(|number| {
            json!({"name": format!("c{}", number % 3_000), "image": "", "imagePullPolicy": "Foo", "livenesProbe": {},
                "volumeMounts": [{"name": format!("v{number}"), "mountPath": ""}], "env": [{"name": "A=B"}],
                "ports": [{"containerPort": 99_999}]})
        })
        .collect();
    let volumes: Vec<Value> = (0..6_000).map(|number| json!({"name": format!("v{number}"), "emptyDir": {}})).collect();
    let set = json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "SidecarSet", "metadata": {"name": "costly"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "containers": containers, "volumes": volumes}});
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "00000000-0000-0000-0000-000000000002", "operation": "CREATE",
        "resource": {"group": "apps.kruise.io", "version": "v1alpha1", "resource": "sidecarsets"}, "object": set}})
    .to_string()
}

fn of_canary(canary: &Canary, name: &str) -> Value {
    let mut pod = pods::pod(name, &[], &[pods::container("app", &[])]);
    pod["metadata"]["labels"] = json!({"canary": canary.name});
    pod
}

/// Latencies of reviews at the pace of a busy cluster, sorted.
async fn latencies(callers: &[Caller], body: &str, is_over: impl Fn() -> bool) -> Result<Vec<Duration>> {
    let mut connections = Vec::new();
    for caller in callers {
        connections.push(caller.connect().await?);
    }
    let mut took = Vec::new();
    while !is_over() {
        for connection in &mut connections {
            let began = Instant::now();
            let (status, answer) = connection.review_pod(body.to_owned()).await?;
            took.push(began.elapsed());
            ensure!(status == 200, "a normal review was answered {status}");
            ensure!(String::from_utf8_lossy(&answer).contains("JSONPatch"), "a normal pod was not injected");
            sleep(PACE).await;
        }
    }
    took.sort_unstable();
    Ok(took)
}

fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    sorted[(sorted.len() - 1) * percent / 100]
}

fn most_memory(manager: &Manager) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{}/status", manager.pid()?.as_raw_nonzero()))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("no VmHWM")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? << 10)
}

/// In ci: `ci_a_call_without_the_path_of_the_registration_is_rejected`, and the tests `attack_*` of `crates/runtime` and
/// `crates/manager`, each of one limit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nightly_an_attacker_who_knows_the_path_costs_no_pod_its_sidecar() -> Result<()> {
    let bed = Bed::start(Config::control_plane("attack")).await?;
    let stage = Stage::set_up(bed.cluster()).await?;
    for object in [
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "evil"}}),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": "evil"}}),
    ] {
        apply(&stage.client, "e2e", &object).await?;
    }
    let canary = stage.canary("mesh", &json!("50%"), &json!({})).await?;
    let mut callers = Vec::new();
    for webhook in &stage.webhooks {
        callers.push(Caller::new(&stage.client, webhook.webhook()).await?);
    }
    let normal = {
        let mut review: Value = serde_json::from_str(&review(SHOP, &of_canary(&canary, "normal")))?;
        review["request"]["dryRun"] = true.into();
        review.to_string()
    };
    let until_over = |seconds: u64| {
        let end = Instant::now() + Duration::from_secs(seconds);
        move || Instant::now() > end
    };
    let before = latencies(&callers, &normal, until_over(15)).await?;

    let attacker = Attacker::start(&callers, &canary);
    let (forged, large) = (Arc::clone(&attacker.forged), Arc::clone(&attacker.large));
    let end = until_over(300);
    let is_over = || {
        let is_done = forged.load(Ordering::Relaxed) >= FORGED && large.load(Ordering::Relaxed) >= LARGE;
        is_done || end()
    };
    let creating = async {
        let api = stage.pods();
        let mut count = 0_usize;
        while !is_over() {
            let pod = serde_json::from_value(of_canary(&canary, &format!("pod-{count}")))?;
            let pod = api.create(&PostParams::default(), &pod).await?;
            ensure!(is_injected(&pod), "pod-{count} has no sidecar");
            count += 1;
            sleep(PACE).await;
        }
        Result::<usize>::Ok(count)
    };
    let (created, during) = tokio::join!(creating, latencies(&callers, &normal, &is_over));
    let (created, during) = (created?, during?);
    let attack = attacker.end()?;
    let after = latencies(&callers, &normal, until_over(15)).await?;
    for (when, took) in [("before", &before), ("during", &during), ("after", &after)] {
        let [p50, p99, longest] = [50, 99, 100].map(|percent| percentile(took, percent));
        println!("{when}: {} reviews, p50 {p50:?}, p99 {p99:?}, longest {longest:?}", took.len());
    }
    println!("{attack}; {created} pods created, all with their sidecar");
    for webhook in &stage.webhooks {
        let most = most_memory(webhook)?;
        println!("most memory of a replica: {} MiB", most >> 20);
        ensure!(most < MEMORY_LIMIT, "a replica had {most} bytes");
    }
    ensure!(created > 100, "only {created} pods");
    // The API server waits three seconds. How much slower reviews are is printed: docs/webhook.md has the figures, and what limits them.
    let slowest = percentile(&during, 100);
    ensure!(slowest < Duration::from_secs(3), "a review took {slowest:?}");
    let ledger = stage.ledger(&canary, "a ledger with room", |_| true).await?;
    let reserved: usize = ledger.reserved.values().map(Vec::len).sum();
    ensure!(reserved < 4_900, "forged reviews have filled the ledger: {reserved}");
    bed.stop().await?;
    Ok(())
}
