//! As fast as may be: all pods may be unavailable, no first pod, statuses are not played while it runs.

use std::time::Instant;

use anyhow::{Context as _, Result};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams, WatchEvent, WatchParams};
use serde::Serialize;
use serde_json::{Value, json};

use super::{AT_ONCE, BARE, Bench, image, pod, spread};
use crate::cost;
use crate::output::say;

const SET: &str = "rate";

/// One arm in one round.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Sample {
    arm: &'static str,
    round: usize,
    pods: usize,
    pods_per_second: f64,
    manager_cpu_ms_per_pod: f64,
    api_server_cpu_ms_per_pod: f64,
}

pub(super) async fn measure(bench: &Bench, rounds: usize, pods: usize) -> Result<Vec<Sample>> {
    let strategy = json!({"maxUnavailable": "100%", "probe": false});
    bench.set(SET, &image(0), &strategy).await?;
    let names: Vec<String> = (0..pods).map(|at| format!("{SET}-{at}")).collect();
    let mut samples = Vec::new();
    for round in 0..rounds {
        bench.until_injecting(SET, &image(round)).await?;
        bench.create("default", names.iter().map(|name| pod(name, SET, None))).await?;
        bench.create(BARE, names.iter().map(|name| pod(name, SET, Some(&image(round))))).await?;
        for namespace in ["default", BARE] {
            bench.play_statuses(namespace, &names).await?;
        }
        bench.until_updated(SET, pods).await?;
        let mut arms = ["ours", "bare"];
        if round % 2 == 1 {
            arms.reverse();
        }
        for arm in arms {
            let sample = one(bench, arm, round, &names).await?;
            say(&format!(
                "round {round} {arm}: {:.0} pods/s, manager {:.2} ms, API server {:.2} ms",
                sample.pods_per_second, sample.manager_cpu_ms_per_pod, sample.api_server_cpu_ms_per_pod
            ));
            samples.push(sample);
        }
        for namespace in ["default", BARE] {
            bench.remove(namespace, SET).await?;
        }
    }
    Ok(samples)
}

async fn one(bench: &Bench, arm: &'static str, round: usize, names: &[String]) -> Result<Sample> {
    let to = image(round + 1);
    let (manager, api_server) = (cost::of(bench.manager)?, cost::of(bench.api_server)?);
    let seconds = if arm == "ours" {
        let api = bench.pods("default");
        let version =
            api.list(&ListParams::default().limit(1)).await?.metadata.resource_version.context("a version")?;
        let began = Instant::now();
        bench.edit(SET, &to).await?;
        until_changed(&api, &version, &to, names.len()).await?;
        began.elapsed().as_secs_f64()
    } else {
        let began = Instant::now();
        patch_all(&bench.pods(BARE), names, &to).await?;
        began.elapsed().as_secs_f64()
    };
    #[expect(clippy::cast_precision_loss, reason = "figures for people")]
    let per_pod = |before: u64, after: u64| (after - before) as f64 / 1e6 / names.len() as f64;
    #[expect(clippy::cast_precision_loss, reason = "figures for people")]
    let pods_per_second = names.len() as f64 / seconds;
    Ok(Sample {
        arm,
        round,
        pods: names.len(),
        pods_per_second,
        manager_cpu_ms_per_pod: per_pod(manager, cost::of(bench.manager)?),
        api_server_cpu_ms_per_pod: per_pod(api_server, cost::of(bench.api_server)?),
    })
}

async fn patch_all(api: &Api<Pod>, names: &[String], to: &str) -> Result<()> {
    let operations = json!([{"op": "replace", "path": "/spec/initContainers/0/image", "value": to}]);
    let patch: &Patch<()> = &Patch::Json(serde_json::from_value(operations)?);
    stream::iter(names)
        .map(|name| async move { api.patch_metadata(name, &PatchParams::default(), patch).await })
        .buffer_unordered(AT_ONCE)
        .try_for_each(|_| async { Ok(()) })
        .await?;
    Ok(())
}

/// Waits until a watch has shown the image in so many pods.
async fn until_changed(api: &Api<Pod>, version: &str, to: &str, pods: usize) -> Result<()> {
    let ours = WatchParams::default().labels(&format!("app={SET}")).timeout(280);
    let mut events = api.watch(&ours, version).await?.boxed();
    let mut changed = 0;
    while changed < pods {
        let event = events.try_next().await?.with_context(|| format!("only {changed} of {pods} pods were updated"))?;
        let WatchEvent::Modified(pod) = event else { continue };
        let spec: Value = json!(pod.spec);
        changed += usize::from(spec["initContainers"][0]["image"] == to);
    }
    Ok(())
}

pub(super) fn table(samples: &[Sample]) -> String {
    let of = |arm: &'static str, value: fn(&Sample) -> f64| samples.iter().filter(move |it| it.arm == arm).map(value);
    let row = |arm: &'static str| {
        format!(
            "| {arm} | {} | {} | {} |",
            spread(of(arm, |it| it.pods_per_second), 0),
            spread(of(arm, |it| it.manager_cpu_ms_per_pod), 2),
            spread(of(arm, |it| it.api_server_cpu_ms_per_pod), 2)
        )
    };
    let bare: Vec<f64> = of("bare", |it| it.pods_per_second).collect();
    let ratios = of("ours", |it| it.pods_per_second).zip(bare).map(|(ours, bare)| ours / bare);
    format!(
        "| arm | pods/s | manager CPU-ms per pod | API server CPU-ms per pod |\n|---|---|---|---|\n{}\n{}\nours / bare, paired: {}",
        row("ours"),
        row("bare"),
        spread(ratios, 2)
    )
}
