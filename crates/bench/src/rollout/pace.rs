//! Ten at a time over simulated pods, beside pods that are nobody's business: how soon the next one follows.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Instant;

use anyhow::{Context as _, Result};
use futures::{StreamExt as _, TryStreamExt as _};
use kube::ResourceExt as _;
use kube::api::{ListParams, WatchEvent, WatchParams};
use serde::Serialize;
use serde_json::{Value, json};

use super::{Bench, image, pod, spread};
use crate::cost;
use crate::output::say;
use crate::samples::percentile;

const SET: &str = "pace";
const PODS: usize = 200;
const AT_A_TIME: usize = 10;
const ROUNDS: usize = 3;

/// One round.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Sample {
    foreign: usize,
    round: usize,
    seconds: f64,
    done_to_next_ms_p50: f64,
    done_to_next_ms_p90: f64,
    done_to_next_ms_max: f64,
    manager_cpu_ms_per_pod: f64,
}

pub(super) async fn measure(bench: &Bench, foreign: &[usize]) -> Result<Vec<Sample>> {
    bench.set(SET, &image(0), &json!({"maxUnavailable": AT_A_TIME})).await?;
    bench.until_injecting(SET, &image(0)).await?;
    let on_fleet = |at: usize| {
        let mut pod = pod(&format!("{SET}-{at}"), SET, None);
        pod["spec"]["schedulerName"] = "default-scheduler".into();
        pod["spec"]["nodeSelector"] = json!({"pillion.dev/node": "fleet"});
        pod["spec"]["tolerations"] = json!([{"key": "pillion.dev/fleet", "operator": "Exists"}]);
        pod
    };
    bench.create("default", (0..PODS).map(on_fleet)).await?;
    bench.until_updated(SET, PODS).await?;
    let (mut samples, mut there, mut edits) = (Vec::new(), 0, 0);
    for &foreign in foreign {
        bench.create("default", (there..foreign).map(|at| pod(&format!("foreign-{at}"), "foreign", None))).await?;
        there = foreign;
        for round in 0..ROUNDS {
            edits += 1;
            let sample = one(bench, foreign, round, &image(edits)).await?;
            say(&format!(
                "{foreign} foreign pods, round {round}: {:.1} s, done to next p50 {:.1} ms, {:.2} CPU-ms per pod",
                sample.seconds, sample.done_to_next_ms_p50, sample.manager_cpu_ms_per_pod
            ));
            samples.push(sample);
        }
    }
    bench.remove("default", SET).await?;
    bench.remove("default", "foreign").await?;
    Ok(samples)
}

async fn one(bench: &Bench, foreign: usize, round: usize, to: &str) -> Result<Sample> {
    let api = bench.pods("default");
    let version = api.list(&ListParams::default().limit(1)).await?.metadata.resource_version.context("a version")?;
    let ours = WatchParams::default().labels(&format!("app={SET}")).timeout(280);
    let mut events = api.watch(&ours, &version).await?.boxed();
    let before = cost::of(bench.manager)?;
    let began = Instant::now();
    bench.edit(SET, to).await?;
    let (mut patched, mut done): (BTreeMap<String, f64>, BTreeMap<String, f64>) = (BTreeMap::new(), BTreeMap::new());
    while done.len() < PODS {
        let event = events.try_next().await?.with_context(|| format!("only {} of {PODS} pods are done", done.len()))?;
        let now = began.elapsed().as_secs_f64() * 1e3;
        let WatchEvent::Modified(pod) = event else { continue };
        let (name, pod): (String, Value) = (pod.name_any(), json!(pod));
        if pod["spec"]["initContainers"][0]["image"] != to {
            continue;
        }
        patched.entry(name.clone()).or_insert(now);
        let status = &pod["status"]["initContainerStatuses"][0];
        if status["image"] == to && status["ready"] == true && status["state"].get("running").is_some() {
            done.entry(name).or_insert(now);
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    let sorted = |times: BTreeMap<String, f64>| {
        let mut times: Vec<f64> = times.into_values().collect();
        times.sort_unstable_by(f64::total_cmp);
        times
    };
    let (patched, done) = (sorted(patched), sorted(done));
    // The first is alone; ten follow it, and from then on each that is done lets one more begin.
    let mut gaps: Vec<f64> =
        done.iter().skip(1).zip(patched.iter().skip(AT_A_TIME + 1)).map(|(done, next)| next - done).collect();
    gaps.sort_unstable_by(f64::total_cmp);
    #[expect(clippy::cast_precision_loss, reason = "figures for people")]
    let manager_cpu_ms_per_pod = (cost::of(bench.manager)? - before) as f64 / 1e6 / PODS as f64;
    Ok(Sample {
        foreign,
        round,
        seconds,
        done_to_next_ms_p50: percentile(&gaps, 50),
        done_to_next_ms_p90: percentile(&gaps, 90),
        done_to_next_ms_max: percentile(&gaps, 100),
        manager_cpu_ms_per_pod,
    })
}

pub(super) fn table(samples: &[Sample]) -> String {
    let mut table = "| foreign pods | time s | done to next ms p50 | p90 | max | manager CPU-ms per pod |\n|---|---|---|---|---|---|".to_owned();
    let mut foreign: Vec<usize> = samples.iter().map(|sample| sample.foreign).collect();
    foreign.dedup();
    for count in foreign {
        let of = |value: fn(&Sample) -> f64| samples.iter().filter(move |it| it.foreign == count).map(value);
        // Writing to a String cannot fail.
        let _ = write!(
            table,
            "\n| {count} | {} | {} | {} | {} | {} |",
            spread(of(|it| it.seconds), 1),
            spread(of(|it| it.done_to_next_ms_p50), 1),
            spread(of(|it| it.done_to_next_ms_p90), 1),
            spread(of(|it| it.done_to_next_ms_max), 1),
            spread(of(|it| it.manager_cpu_ms_per_pod), 2)
        );
    }
    table
}
