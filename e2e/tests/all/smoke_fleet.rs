//! Simulated pods at scale behave like real ones where rollouts look: a changed image takes a container down and up.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams, Patch, PatchParams, WatchEvent, WatchParams};
use pillion_e2e::{Scene, pods};
use pillion_testbed::Look;
use serde_json::json;

const PODS: i32 = 1000;
const PATCHED: usize = 100;

/// In ci: `rollout_scenarios_own_bed` patches images on simulated nodes, with few pods.
#[tokio::test]
async fn nightly_a_thousand_pods_run_and_a_patched_image_takes_a_container_down_and_up() -> Result<()> {
    let scene = Scene::open("fleet").await?;
    let (nodes, ready) = scene.cluster.nodes().await?;
    assert!(ready.contains(&"real-0".to_owned()), "the real node is in the same cluster: {nodes:?}");

    let template = pods::on_fleet(pods::pod("", &[pods::sidecar("side", &[])], &[pods::container("app", &[])]));
    let began = Instant::now();
    scene
        .apply(json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "many"}, "spec": {
            "replicas": PODS, "selector": {"matchLabels": {"app": "many"}},
            "template": {"metadata": {"labels": {"app": "many"}}, "spec": template["spec"]}}}))
        .await?;
    scene
        .until("many", "to be available", |deployment: &Deployment| {
            let available = deployment.status.as_ref().and_then(|status| status.available_replicas);
            if available == Some(PODS) { Look::Done(()) } else { Look::NotYet(format!("{available:?} of {PODS}")) }
        })
        .await?;
    let took = began.elapsed();
    assert!(took < Duration::from_mins(1), "{PODS} pods took {took:?}");

    let pods_api = scene.api::<Pod>();
    let listed = pods_api.list(&ListParams::default()).await?;
    let version = listed.metadata.resource_version.context("a list has a version")?;
    let mut names = listed.items.into_iter().filter_map(|pod| pod.metadata.name);
    let apps: BTreeSet<String> = names.by_ref().take(PATCHED).collect();
    let sides: BTreeSet<String> = names.take(PATCHED).collect();
    patch(&pods_api, &apps, "/spec/containers/0/image").await?;
    patch(&pods_api, &sides, "/spec/initContainers/0/image").await?;
    let histories = histories(&pods_api, &version, &apps, &sides).await?;

    let expected = [
        "ready app v1x0 side v1x0",
        "not ready app DOWN",
        "ready app v2x1 side v1x0",
        "not ready side DOWN",
        "ready app v1x0 side v2x1",
    ];
    for name in &apps {
        assert_eq!(histories[name], [expected[0], expected[1], expected[2]], "{name}");
    }
    for name in &sides {
        assert_eq!(histories[name], [expected[0], expected[3], expected[4]], "{name}");
    }
    scene.close().await?;
    Ok(())
}

async fn patch(api: &Api<Pod>, names: &BTreeSet<String>, path: &str) -> Result<()> {
    let operations = json!([{"op": "replace", "path": path, "value": pods::V2}]);
    let patch: &Patch<()> = &Patch::Json(serde_json::from_value(operations)?);
    stream::iter(names)
        .map(|name| async move { api.patch(name, &PatchParams::default(), patch).await })
        .buffer_unordered(8)
        .try_for_each(|_| async { Ok(()) })
        .await?;
    Ok(())
}

/// What a watch saw of each patched pod, from before its patch until it runs the new image.
async fn histories(
    api: &Api<Pod>,
    version: &str,
    apps: &BTreeSet<String>,
    sides: &BTreeSet<String>,
) -> Result<BTreeMap<String, Vec<String>>> {
    let mut histories: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut unfinished: BTreeSet<&String> = apps.union(sides).collect();
    let mut events = api.watch(&WatchParams::default().timeout(60), version).await?.boxed();
    while !unfinished.is_empty() {
        let event = events.try_next().await?.with_context(|| format!("{} pods never came back", unfinished.len()))?;
        let WatchEvent::Modified(pod) = event else { continue };
        let name = pod.metadata.name.clone().context("a pod has a name")?;
        if !apps.contains(&name) && !sides.contains(&name) {
            continue;
        }
        let history = histories.entry(name.clone()).or_default();
        let now = picture(&pod)?;
        if history.last() != Some(&now) {
            history.push(now);
        }
        if history.len() == 3 {
            unfinished.remove(&name);
        }
    }
    Ok(histories)
}

/// A pod in a few words: `ready app v1x0 side v1x0` (version x restarts), or which container is down.
fn picture(pod: &Pod) -> Result<String> {
    let status = |name| pods::status(pod, name).with_context(|| format!("no status of {name}"));
    if !pods::is_ready(pod) {
        let down: Vec<&str> = ["app", "side"].into_iter().filter(|name| pods::waits_for(pod, name).is_some()).collect();
        ensure!(down.len() == 1, "not ready, and down are {down:?}");
        return Ok(format!("not ready {} DOWN", down[0]));
    }
    let mut words = "ready".to_owned();
    for name in ["app", "side"] {
        let status = status(name)?;
        let version = status.image.rsplit(':').next().unwrap_or_default();
        words = format!("{words} {name} {version}x{}", status.restart_count);
    }
    Ok(words)
}
