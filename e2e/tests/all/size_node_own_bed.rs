//! Right-sizing on a real node, with metrics-server and real load: a native sidecar that burns cpu and holds memory is
//! recommended for, and gets what it needs while it runs, or by a new pod. All roles run with the rights of the chart.

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use pillion_e2e::sizing::{
    amount, asks, autoscaler, deployment, install, names, pods_of, pods_until, reason, recommended, rightsizer,
    status_until,
};
use pillion_e2e::{Manager, pods};
use pillion_quantity::Resource;
use pillion_testbed::{Bed, Config, apply};
use serde_json::{Value, json};

const MEBIBYTE: i128 = 1 << 20;
const WEB: (&str, &str) = ("default", "web");

fn uids(pods: &[Pod]) -> Vec<String> {
    let mut uids: Vec<String> = pods.iter().filter_map(ResourceExt::uid).collect();
    uids.sort();
    uids
}

/// What the node says a container has.
fn has(pod: &Pod, container: &str) -> Value {
    json!(pods::status(pod, container))["resources"].clone()
}

/// Whether the node gave the sidecar what it uses.
fn side_has_grown(pod: &Pod) -> bool {
    amount(Resource::Memory, &has(pod, "side")["requests"]["memory"]).is_ok_and(|memory| memory >= 48 * MEBIBYTE)
}

#[tokio::test]
async fn ci_a_native_sidecar_is_recommended_for_and_resized_in_place() -> Result<()> {
    let bed = Bed::start(Config::control_plane("size-node").with_node().with_metrics()).await?;
    let client = install(&bed).await?;
    for object in [deployment("default", "web", 2), autoscaler("default", "web", "InPlaceOrRecreate")] {
        apply(&client, "e2e", &object).await?;
    }
    let before = pods_until(&client, WEB, "two pods to be ready", |pods| {
        (pods.len() == 2 && pods.iter().all(pods::is_ready)).then(|| pods.to_vec())
    })
    .await?;

    // With the gate off the sidecar does not exist.
    let off = rightsizer(bed.cluster(), false, &[]).await?;
    let names_off =
        status_until(&client, WEB, "a recommendation", |status| recommended(status, "app").map(|_| names(status)))
            .await?;
    assert_eq!(names_off, ["app"]);
    off.stop().await?;

    let _on = rightsizer(bed.cluster(), true, &[]).await?;
    let (found, target) = status_until(&client, WEB, "the sidecar to be recommended for", |status| {
        recommended(status, "side").map(|own| (names(status), json!(own.target)))
    })
    .await?;
    assert_eq!(found, ["app", "side"], "a plain init container is not recommended for");
    let memory = amount(Resource::Memory, &target["memory"])?;
    assert!((48 * MEBIBYTE..128 * MEBIBYTE).contains(&memory), "48Mi are held: {target}");
    assert!(amount(Resource::Cpu, &target["cpu"])? >= 50, "100m are burnt: {target}");

    let after = pods_until(&client, WEB, "the node to have resized the sidecars", |pods| {
        (pods.len() == 2 && pods.iter().all(side_has_grown)).then(|| pods.to_vec())
    })
    .await?;
    assert_eq!(uids(&after), uids(&before), "no pod was evicted");
    for pod in &after {
        let restarts = |name: &str| pods::status(pod, name).map(|status| status.restart_count);
        assert_eq!((restarts("side"), restarts("app")), (Some(0), Some(0)));
        assert_eq!(asks(pod, "setup"), asks(&before[0], "setup"), "a plain init container is left alone");
        assert_eq!(pod.annotations()["vpaInPlaceUpdated"], "true");
        // The container itself reads what its cgroup says.
        let limit = amount(Resource::Memory, &has(pod, "side")["limits"]["memory"])?;
        let mut state = bed.cluster().kubectl([
            "exec",
            &pod.name_any(),
            "-c",
            "side",
            "--",
            "/testapp",
            "probe",
            "http://127.0.0.1:9000/state",
        ])?;
        let output = state.output()?;
        let state: Value = serde_json::from_slice(&output.stdout)
            .with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
        // The kernel counts in pages.
        assert_eq!(state["cgroup"]["memoryLimitBytes"], json!(u64::try_from(limit / 4096 * 4096)?), "{state}");
    }
    // Nobody sizes new pods here, so none may be evicted, and the object says so.
    let why = status_until(&client, WEB, "the condition", |it| reason(it, "pillion.dev/Applying", "False")).await?;
    assert_eq!(why, "WebhookDown");
    Ok(())
}

/// In ci: Tests of `crates/rightsize/src/apply`; `size_fence_own_bed` for the write.
#[tokio::test]
async fn nightly_in_mode_recreate_pods_are_evicted_where_a_new_one_is_sized_and_nowhere_else() -> Result<()> {
    let bed = Bed::start(Config::control_plane("size-evict").with_node().with_metrics()).await?;
    let client = install(&bed).await?;
    let system = ("kube-system", "web");
    for (namespace, name) in [WEB, system] {
        for object in [deployment(namespace, name, 2), autoscaler(namespace, name, "Recreate")] {
            apply(&client, "e2e", &object).await?;
        }
    }
    let ready = |pods: &[Pod]| (pods.len() == 2 && pods.iter().all(pods::is_ready)).then(|| uids(pods));
    let before = pods_until(&client, WEB, "two pods to be ready", ready).await?;
    let of_system = pods_until(&client, system, "two pods of the system to be ready", ready).await?;

    // Without a webhook nothing is evicted, however far off pods are.
    let rightsizer = rightsizer(bed.cluster(), true, &[]).await?;
    for which in [WEB, system] {
        status_until(&client, which, "a recommendation", |status| recommended(status, "side").map(|_| ())).await?;
    }
    let why = status_until(&client, WEB, "the condition", |it| reason(it, "pillion.dev/Applying", "False")).await?;
    assert_eq!(why, "WebhookDown");
    assert_eq!(uids(&pods_of(&client, "default", "web").await?), before);

    // A fence keeps the webhook's own account from being called under a URL, as it is here.
    let flags = ["--rightsizing", "--feature-gates=NativeSidecar=true"];
    let _webhook = Manager::ready(bed.cluster(), &["webhook"], &flags).await?;
    let after = pods_until(&client, WEB, "both pods to be new and sized", |pods| {
        let is_new = pods.iter().all(|pod| !before.contains(&pod.uid().unwrap_or_default()));
        (is_new && pods.len() == 2 && pods.iter().all(side_has_grown)).then(|| pods.to_vec())
    })
    .await?;
    for pod in &after {
        assert_eq!(pod.annotations()["vpaObservedContainers"], "app, side");
    }
    assert!(rightsizer.metric("vpa_updater_evicted_pods_total").await? >= 2.0);
    // Pods of the system's namespace are never reviewed.
    let why = status_until(&client, system, "the condition", |it| reason(it, "pillion.dev/Applying", "False")).await?;
    assert_eq!(why, "NamespaceNotReviewed");
    assert_eq!(uids(&pods_of(&client, "kube-system", "web").await?), of_system);
    Ok(())
}

/// In ci: `ours_12_checkpoints_of_upstream_go_on_here` in `crates/rightsize`.
#[tokio::test]
async fn nightly_ours_10_what_was_learned_outlives_a_kill_and_an_outage_of_metrics() -> Result<()> {
    let bed = Bed::start(Config::control_plane("size-kill").with_node().with_metrics()).await?;
    let client = install(&bed).await?;
    for object in [deployment("default", "web", 1), autoscaler("default", "web", "Off")] {
        apply(&client, "e2e", &object).await?;
    }
    let first = rightsizer(bed.cluster(), true, &[]).await?;
    status_until(&client, WEB, "a recommendation", |status| recommended(status, "side").map(|_| ())).await?;
    let checkpoints = "/apis/autoscaling.k8s.io/v1/namespaces/default/verticalpodautoscalercheckpoints";
    let samples = |stored: Option<&Value>| stored?["status"]["totalSamplesCount"].as_u64();
    // One sample is little history, and its status says so: both containers need two.
    let mut kept = Vec::new();
    for container in ["app", "side"] {
        let checkpoint = format!("{checkpoints}/web-{container}");
        let two = |stored: Option<&Value>| samples(stored).filter(|count| *count >= 2);
        kept.push((
            pillion_e2e::agents::seen(&client, &checkpoint, "a checkpoint of two samples", two).await?,
            checkpoint,
        ));
    }
    first.kill()?;

    // Metrics are gone, too: nothing is lost, and nothing is said that is not known.
    let service = "/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.metrics.k8s.io";
    let request = http::Request::delete(service).body(Vec::new())?;
    client.request::<Value>(request).await?;
    let published = status_until(&client, WEB, "the status", |status| Some(status.clone())).await?;
    let second = rightsizer(bed.cluster(), true, &[]).await?;
    let passes = "vpa_recommender_passes_total";
    pillion_testbed::until("three passes", pillion_e2e::sizing::PATIENCE, || async {
        let done = second.metric(passes).await.unwrap_or_default();
        Ok(if done >= 3.0 { pillion_testbed::Look::Done(()) } else { pillion_testbed::Look::NotYet(done.to_string()) })
    })
    .await?;
    let still = status_until(&client, WEB, "the status", |status| Some(status.clone())).await?;
    assert_eq!(still, published);
    for (kept, checkpoint) in &kept {
        let now = pillion_e2e::agents::seen(&client, checkpoint, "the checkpoint", samples).await?;
        assert!(now >= *kept, "{checkpoint}: {now} samples are kept, {kept} were");
    }
    assert!(second.metric("vpa_recommender_metric_server_responses_total{is_error=\"true\"}").await? >= 3.0);
    Ok(())
}
