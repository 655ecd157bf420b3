//! What comes in the way of a new size, on a real node: a budget, too few replicas, a node without room, now or ever. Each time
//! the object says why its pods do not move, and they move when the reason is gone. And more cpu for a start.
//!
//! What is wanted is fixed by bounds, and what was learned comes from checkpoints: nobody measures here.

use anyhow::Result;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt};
use pillion_e2e::sizing::{
    amount, asks, autoscaler, checkpoint, fix, install, message, pods_until, recommended, rightsizer_with, status_until,
};
use pillion_e2e::{Manager, pods};
use pillion_quantity::Resource;
use pillion_testbed::{Bed, Config, apply};
use serde_json::{Value, json};

const SPACE: &str = "default";

/// A Deployment of one container that asks for this much.
fn deployment(name: &str, replicas: u32, cpu: &str) -> Value {
    let mut app = pods::container("app", &[]);
    app["resources"] = json!({"requests": {"cpu": cpu, "memory": "16Mi"}});
    let labels = json!({"app": name});
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": SPACE}, "spec": {
        "replicas": replicas, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": {
            "terminationGracePeriodSeconds": 1, "containers": [app]}}}})
}

/// An autoscaler that wants this much cpu for the app of a Deployment.
fn wanting(name: &str, mode: &str, cpu: &str) -> Value {
    let mut own = autoscaler(SPACE, name, mode);
    fix(&mut own, "app", cpu, "16Mi");
    own
}

/// How much cpu the node has for pods.
async fn node_millicores(client: &Client) -> Result<i128> {
    let nodes = Api::<Node>::all(client.clone()).list(&ListParams::default()).await?;
    let allocatable = nodes.items.first().map(|node| json!(node.status)["allocatable"]["cpu"].clone());
    amount(Resource::Cpu, &allocatable.unwrap_or_default())
}

/// The cpu the node has given.
fn given(pod: &Pod, container: &str) -> Value {
    json!(pods::status(pod, container))["resources"]["requests"]["cpu"].clone()
}

async fn run(client: &Client, name: &str, replicas: usize) -> Result<Vec<Pod>> {
    pods_until(client, (SPACE, name), "pods to be ready", |all| {
        (all.len() == replicas && all.iter().all(pods::is_ready)).then(|| all.to_vec())
    })
    .await
}

/// Waits until the object says why its pods do not move.
async fn told(client: &Client, name: &str, reason: &str) -> Result<String> {
    status_until(client, (SPACE, name), reason, |status| message(status, reason)).await
}

/// Waits until all pods have this much cpu from their node, and the object has nothing to tell any more.
async fn moved(client: &Client, name: &str, replicas: usize, cpu: &str) -> Result<Vec<Pod>> {
    let after = pods_until(client, (SPACE, name), "pods to be sized", |all| {
        let is_done = |pod: &Pod| given(pod, "app") == cpu && pods::is_ready(pod);
        (all.len() == replicas && all.iter().all(is_done)).then(|| all.to_vec())
    })
    .await?;
    status_until(client, (SPACE, name), "nothing to be in the way", |status| {
        let mut conditions = status.conditions.iter().flatten();
        (!conditions.any(|it| it.kind == "pillion.dev/Applying")).then_some(())
    })
    .await?;
    Ok(after)
}

/// In ci: `size_node_own_bed`, and the tests of `crates/rightsize/src/apply`.
#[tokio::test]
async fn nightly_pods_that_cannot_move_say_why_and_move_when_they_can() -> Result<()> {
    let bed = Bed::start(Config::control_plane("size-wait").with_node()).await?;
    let client = install(&bed).await?;
    let flags = ["--rightsizing", "--feature-gates=NativeSidecar=true"];
    let _webhook = Manager::ready(bed.cluster(), &["webhook"], &flags).await?;
    let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "all", "namespace": SPACE},
        "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "guarded"}}}});
    apply(&client, "e2e", &budget).await?;
    // The filler leaves so little of the node that what is crowded cannot grow.
    let millicores = node_millicores(&client).await?;
    let (most, half) = (format!("{}m", millicores * 6 / 10), format!("{}m", millicores * 45 / 100));
    for (name, replicas, cpu) in
        [("guarded", 2, "20m"), ("single", 1, "20m"), ("large", 1, "20m"), ("crowded", 1, "100m"), ("filler", 1, &most)]
    {
        apply(&client, "e2e", &deployment(name, replicas, cpu)).await?;
    }
    let guarded = run(&client, "guarded", 2).await?;
    let single = run(&client, "single", 1).await?;
    let large = run(&client, "large", 1).await?;
    let crowded = run(&client, "crowded", 1).await?;
    run(&client, "filler", 1).await?;
    let wants = [
        wanting("guarded", "Recreate", "40m"),
        wanting("single", "Recreate", "40m"),
        wanting("large", "InPlace", "1k"),
        wanting("crowded", "InPlace", &half),
    ];
    for own in &wants {
        let name = own["metadata"]["name"].as_str().unwrap_or_default();
        apply(&client, "e2e", &checkpoint(SPACE, name, "app")).await?;
        apply(&client, "e2e", own).await?;
    }
    let rightsizer = rightsizer_with(bed.cluster(), "NativeSidecar=true", &[]).await?;

    // A budget: nothing is evicted until it is gone.
    let first = guarded.iter().map(ResourceExt::name_any).min().unwrap_or_default();
    let said = told(&client, "guarded", "DisruptionBudget").await?;
    assert_eq!(said, format!("pod {first} waits: PodDisruptionBudget all allows no more"));
    // A single replica is not evicted where the object does not say that it may be.
    let said = told(&client, "single", "TooFewReplicas").await?;
    let only = "so few of its kind (1) are not disturbed: set spec.updatePolicy.minReplicas to allow it";
    assert_eq!(said, format!("pod {} waits: {only}", single[0].name_any()));
    // More than the node has is refused by the API server, which says so of no pod.
    let said = told(&client, "large", "Infeasible").await?;
    assert_eq!(said, format!("pod {} waits: its node has no such room at all", large[0].name_any()));
    assert!(rightsizer.metric("vpa_updater_failed_in_place_update_attempts_total").await? >= 1.0);
    // More than is free is accepted, and waits on the node.
    let said = told(&client, "crowded", "Deferred").await?;
    assert_eq!(said, format!("pod {} waits: its node has no room now", crowded[0].name_any()));

    for path in [
        "/apis/policy/v1/namespaces/default/poddisruptionbudgets/all",
        "/apis/apps/v1/namespaces/default/deployments/filler",
    ] {
        client.request::<Value>(http::Request::delete(path).body(Vec::new())?).await?;
    }
    let mut single_may = wants[1].clone();
    single_may["spec"]["updatePolicy"]["minReplicas"] = json!(1);
    apply(&client, "e2e", &single_may).await?;
    apply(&client, "e2e", &wanting("large", "InPlace", "60m")).await?;

    let uids = |pods: &[Pod]| pods.iter().filter_map(ResourceExt::uid).collect::<Vec<_>>();
    let new = moved(&client, "guarded", 2, "40m").await?;
    assert!(uids(&new).iter().all(|uid| !uids(&guarded).contains(uid)), "by eviction");
    assert_ne!(uids(&moved(&client, "single", 1, "40m").await?), uids(&single), "by eviction");
    assert_eq!(uids(&moved(&client, "large", 1, "60m").await?), uids(&large), "in place");
    assert_eq!(uids(&moved(&client, "crowded", 1, &half).await?), uids(&crowded), "in place");
    Ok(())
}

/// In ci: Tests of `crates/rightsize/src/apply`.
#[tokio::test]
async fn nightly_a_start_gets_more_cpu_until_the_pod_is_ready_for_a_while() -> Result<()> {
    let bed = Bed::start(Config::control_plane("size-boost").with_node()).await?;
    let client = install(&bed).await?;
    let gates = "NativeSidecar=true,CPUStartupBoost=true";
    let all = format!("--feature-gates={gates}");
    let _webhook =
        Manager::ready(bed.cluster(), &["webhook"], &["--rightsizing", &all, "--max-allowed-cpu-boost=150m"]).await?;
    let _rightsizer = rightsizer_with(bed.cluster(), gates, &["--max-allowed-cpu-boost=150m"]).await?;
    let mut own = wanting("web", "InPlace", "60m");
    fix(&mut own, "side", "30m", "16Mi");
    // Long enough to be seen.
    own["spec"]["startupBoost"] = json!({"cpu": {"type": "Factor", "factor": 3, "durationSeconds": 15}});
    for container in ["app", "side"] {
        apply(&client, "e2e", &checkpoint(SPACE, "web", container)).await?;
    }
    // Known before the first pod comes: the Deployment's own selector finds none yet.
    let mut none = deployment("web", 0, "20m");
    let mut side = pods::sidecar("side", &["--port=9000"]);
    side["resources"] = json!({"requests": {"cpu": "10m", "memory": "16Mi"}});
    none["spec"]["template"]["spec"]["initContainers"] = json!([side]);
    apply(&client, "e2e", &none).await?;
    apply(&client, "e2e", &own).await?;
    status_until(&client, (SPACE, "web"), "a recommendation", |status| recommended(status, "side").map(|_| ())).await?;

    let mut one = none.clone();
    one["spec"]["replicas"] = json!(1);
    apply(&client, "e2e", &one).await?;
    let cpu = |pod: &Pod, container: &str| asks(pod, container)["requests"]["cpu"].clone();
    let boosted = pods_until(&client, (SPACE, "web"), "a pod with more cpu for its start", |all| {
        let [pod] = all else { return None };
        (given(pod, "app") == "150m").then(|| pod.clone())
    })
    .await?;
    // Three times as much, and not above what the installation allows.
    assert_eq!((cpu(&boosted, "app"), cpu(&boosted, "side")), (json!("150m"), json!("90m")));

    // The resize and its annotations are two writes, and the node may report the first before the second arrives.
    let is_marked = |pod: &Pod| pod.annotations().keys().any(|key| key.starts_with("vpaCpuStartupBoost"));
    let after = pods_until(&client, (SPACE, "web"), "the cpu of the start and its marks to be taken back", |all| {
        let [pod] = all else { return None };
        (given(pod, "app") == "60m" && given(pod, "side") == "30m" && !is_marked(pod)).then(|| pod.clone())
    })
    .await?;
    assert_eq!(after.uid(), boosted.uid(), "in place");
    let restarts = |name: &str| pods::status(&after, name).map(|status| status.restart_count);
    assert_eq!((restarts("app"), restarts("side")), (Some(0), Some(0)));
    Ok(())
}
