//! `pillion size` on a real node with metrics-server: what sidecars cost, why a number is what it is, and the way back.
//!
//! What was printed is kept in the target folder, `tmp/size-cli`, for the docs.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{Api, ListParams, Patch, PatchParams};
use pillion_e2e::{Manager, pods, programs};
use pillion_rightsize::{Aggregate, Instance, Settings, Usage};
use pillion_testbed::{Bed, Cluster, Config, Look, apply, until};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_mins(3);

fn deployment(name: &str) -> Value {
    let sized = |mut container: Value, cpu: &str, memory: &str| {
        container["resources"] = json!({"requests": {"cpu": cpu, "memory": memory}});
        container
    };
    let spec = json!({
        "terminationGracePeriodSeconds": 1,
        "initContainers": [sized(pods::sidecar("vault", &["--hold=24Mi"]), "50m", "64Mi")],
        "containers": [
            sized(pods::container("app", &["--burn=20"]), "100m", "64Mi"),
            sized(pods::container("mesh", &["--hold=32Mi", "--burn=10"]), "150m", "128Mi"),
        ],
    });
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "default"}, "spec": {
        "replicas": 1, "selector": {"matchLabels": {"app": name}},
        "template": {"metadata": {"labels": {"app": name}}, "spec": spec}}})
}

fn autoscaler(mode: &str) -> Value {
    json!({"apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "updatePolicy": {"updateMode": mode}}})
}

/// What a day leaves behind of a container that uses between 20 and 90 millicores.
fn checkpoint() -> Value {
    let settings = Settings::default();
    let start = Timestamp::now().as_second() - 86_400;
    let at = |minute: i64| Timestamp::from_second(start + 60 * minute).unwrap_or_default();
    let mut aggregate = Aggregate::new(at(0), &settings);
    let mut instance = Instance::default();
    for minute in 0..24 * 60 {
        let usage = Usage { at: at(minute), cpu: Some(20 + minute * 7 % 70), memory: Some((40 + minute / 90) << 20) };
        aggregate.add(&mut instance, &usage, &settings);
    }
    json!({"apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscalerCheckpoint",
        "metadata": {"name": "web-app", "namespace": "default"},
        "spec": {"vpaObjectName": "web", "containerName": "app"},
        "status": aggregate.save([], at(24 * 60))})
}

fn pillion(cluster: &Cluster, arguments: &[&str]) -> Result<Output> {
    let mut command = Command::new(programs::path("pillion")?);
    command.args(arguments).arg("--kubeconfig").arg(cluster.kubeconfig()).env_remove("COLUMNS");
    Ok(command.output()?)
}

/// What it prints where all is well.
fn said(cluster: &Cluster, arguments: &[&str]) -> Result<String> {
    let output = pillion(cluster, arguments)?;
    ensure!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

async fn pod_of(client: &Client, workload: &str) -> Result<Pod> {
    let api = Api::<Pod>::namespaced(client.clone(), "default");
    let labels = ListParams::default().labels(&format!("app={workload}"));
    let waited = until("the pod to run", PATIENCE, || async {
        let listed = api.list(&labels).await.map(|listed| listed.items).unwrap_or_default();
        Ok(match listed.into_iter().find(pods::is_ready) {
            Some(pod) => Look::Done(pod),
            None => Look::NotYet("it is not ready".to_owned()),
        })
    });
    Ok(waited.await?)
}

#[tokio::test]
async fn ci_sidecars_are_counted_numbers_explained_and_sizes_taken_back() -> Result<()> {
    let bed = Bed::start(Config::control_plane("size-cli").with_node().with_metrics()).await?;
    let (cluster, client) = (bed.cluster(), bed.client().await?);
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join("size-cli");
    fs::create_dir_all(&kept)?;
    for crd in [pillion_api::vertical_pod_autoscaler_crd(), pillion_api::vertical_pod_autoscaler_checkpoint_crd()] {
        apply(&client, "e2e", &crd).await?;
    }
    Manager::until_served(&client, &["/apis/autoscaling.k8s.io/v1/verticalpodautoscalers"]).await?;
    for name in ["web", "api"] {
        apply(&client, "e2e", &deployment(name)).await?;
    }
    let pod = pod_of(&client, "web").await?;
    pod_of(&client, "api").await?;

    // Nothing of ours is in the cluster: the native sidecar is known by its place, the other by being in two workloads.
    let report = until("all sidecars to be measured", PATIENCE, || async {
        let text = match said(cluster, &["size", "report", "-n", "default", "-o", "json"]) {
            Ok(text) => text,
            Err(error) => return Ok(Look::NotYet(error.to_string())),
        };
        let report: Value = serde_json::from_str(&text).unwrap_or_default();
        Ok(match (report["sidecars"]["sidecars"].as_u64(), report["sidecars"]["measured"].as_u64()) {
            (Some(4), Some(4)) => Look::Done(report),
            _ => Look::NotYet(report["sidecars"].to_string()),
        })
    })
    .await?;
    assert_eq!(report["sidecars"]["requested"], json!({"cpuMillicores": 400, "memoryBytes": 384 << 20}));
    let from = |name: &str| {
        let all = report["containers"].as_array().into_iter().flatten();
        all.into_iter().find(|line| line["name"] == name).map(|line| line["from"].clone())
    };
    assert_eq!((from("vault"), from("mesh"), from("app")), (Some(json!("native")), Some(json!("shared")), None));
    let used = report["sidecars"]["used"]["memoryBytes"].as_u64().context("memory in use")?;
    assert!((112 << 20..384 << 20).contains(&used), "2 × (24 + 32) MiB are held, {used} are told");
    for (name, columns) in [("80", "80"), ("120", "120")] {
        let text = said(cluster, &["size", "report", "-n", "default", "--columns", columns])?;
        assert_eq!(text.lines().find(|line| line.chars().count() > columns.parse().unwrap_or(0)), None);
        fs::write(kept.join(format!("size-report-{name}.txt")), text)?;
    }

    // The way to a number, from a checkpoint.
    apply(&client, "e2e", &autoscaler("Recreate")).await?;
    apply(&client, "e2e", &checkpoint()).await?;
    let picture = kept.join("size-explain.svg");
    let svg = picture.to_str().context("a path")?;
    let text = said(cluster, &["size", "explain", "vpa/web", "-n", "default", "--container", "app", "--svg", svg])?;
    fs::write(kept.join("size-explain-80.txt"), &text)?;
    assert!(text.contains("container app\n  1440 samples of cpu from "), "{text}");
    assert!(text.contains("request 100m (1 pod)"), "{text}");
    assert!(fs::read_to_string(&picture)?.starts_with("<svg "));
    let text = said(cluster, &["size", "explain", "web", "-n", "default", "--columns", "120"])?;
    fs::write(kept.join("size-explain-120.txt"), text)?;

    // The way back. Somebody has given the pod another size.
    let name = pod.metadata.name.clone().context("a pod has a name")?;
    let larger = json!({"spec": {"initContainers": [{"name": "vault", "resources": {"requests": {"cpu": "60m"}}}],
        "containers": [{"name": "app", "resources": {"requests": {"cpu": "200m"}}}]}});
    let api = Api::<Pod>::namespaced(client.clone(), "default");
    api.patch_subresource("resize", &name, &PatchParams::default(), &Patch::Strategic(larger)).await?;
    let refused = pillion(cluster, &["size", "revert", "deploy/web", "-n", "default", "--yes"])?;
    assert_eq!(refused.status.code(), Some(1));
    let why = String::from_utf8(refused.stderr)?;
    assert!(why.contains("VerticalPodAutoscaler default/web would size the pods again"), "{why}");
    apply(&client, "e2e", &autoscaler("Off")).await?;
    let plan = said(cluster, &["size", "revert", "deploy/web", "-n", "default"])?;
    fs::write(kept.join("size-revert.txt"), &plan)?;
    let expected = format!(
        "pod default/{name}\n  ~ vault requests.cpu: 60m → 50m\n  ~ app requests.cpu: 200m → 100m\n\
         1 pod to resize, 0 as the template says\n"
    );
    assert_eq!(plan, expected);
    let done = said(cluster, &["size", "revert", "deploy/web", "-n", "default", "--yes"])?;
    assert_eq!(done, format!("{expected}pod/{name} resized\n"));
    let after = json!(api.get(&name).await?);
    assert_eq!(after["spec"]["containers"][0]["resources"]["requests"]["cpu"], "100m");
    assert_eq!(after["spec"]["initContainers"][0]["resources"]["requests"]["cpu"], "50m");
    assert_eq!(
        said(cluster, &["size", "revert", "deploy/web", "-n", "default"])?,
        "0 pods to resize, 1 as the template says\n"
    );
    bed.stop().await?;
    Ok(())
}
