//! What counting costs: pods of a set that counts against pods of one that does not, in turns, sixteen at a time.
//!
//! `PILLION_FIGURES=docs/figures/canary.json` writes what was measured, with the spread of a draw on the same work.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use pillion_e2e::canary::{Canary, SHOP, Stage, create, middle_and_slow, pod, pods_per_case};
use pillion_testbed::{Bed, Config};
use serde_json::{Value, json};

const AT_ONCE: usize = 16;
const ROUNDS: usize = 5;
/// Pods of a batch of which the newest revision is counted, to compare the two kinds of proportion.
const BATCH: usize = 20;

/// One arm of one round.
struct Round {
    took: Vec<Duration>,
    lasted: Duration,
    created: Vec<Pod>,
}

async fn round(bed: &Bed, canary: &Canary, number: usize, at_once: usize) -> Result<Round> {
    let mut clients = Vec::new();
    for _ in 0..4 {
        clients.push(Api::<Pod>::namespaced(bed.client().await?, SHOP));
    }
    let began = Instant::now();
    let work = stream::iter(0..pods_per_case()).map(|at| {
        let (pods, pod) = (&clients[at % clients.len()], pod(canary, &format!("{}-{number}-{at}", canary.name)));
        async move { create(pods, &pod).await }
    });
    let all: Vec<(Pod, Duration)> = work.buffered(at_once).try_collect().await?;
    let lasted = began.elapsed();
    let (created, took) = all.into_iter().unzip();
    Ok(Round { took, lasted, created })
}

fn millis(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e5).round() / 100.0
}

fn number(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::INFINITY, f64::from)
}

fn summary(rounds: &[Round]) -> Value {
    let (middle, slow) = middle_and_slow(rounds.iter().flat_map(|round| round.took.clone()).collect());
    let rates = rounds.iter().map(|round| (number(round.took.len()) / round.lasted.as_secs_f64()).round());
    json!({"p50_ms": millis(middle), "p99_ms": millis(slow), "pods_per_second": rates.collect::<Vec<f64>>()})
}

/// In ci: `canary_exact_own_bed` counts the ledger; the number of writes is a figure.
#[tokio::test]
async fn nightly_sixteen_at_a_time_share_a_write_of_the_ledger() -> Result<()> {
    let bed = Bed::start(Config::control_plane("canary-cost")).await?;
    let stage = Stage::set_up(bed.cluster()).await?;
    let partition = json!("90%");
    let counted = stage.canary("counted", &partition, &json!({})).await?;
    let drawn = stage.canary("drawn", &partition, &json!({"proportion": "Random"})).await?;
    let (mut counting, mut drawing) = (Vec::new(), Vec::new());
    for number in 0..ROUNDS {
        // In turns, and each as often first.
        for is_counted in [number % 2 == 0, number % 2 != 0] {
            let (canary, rounds) = if is_counted { (&counted, &mut counting) } else { (&drawn, &mut drawing) };
            rounds.push(round(&bed, canary, number, AT_ONCE).await?);
        }
    }
    let (mut counting_alone, mut drawing_alone) = (Vec::new(), Vec::new());
    for number in ROUNDS..2 * ROUNDS {
        counting_alone.push(round(&bed, &counted, number, 1).await?);
        drawing_alone.push(round(&bed, &drawn, number, 1).await?);
    }
    let metric = async |name: &str| -> Result<f64> {
        Ok(stage.webhooks[0].metric(name).await? + stage.webhooks[1].metric(name).await?)
    };
    let reservations = metric("pillion_ledger_reservations_total").await?;
    let (writes, conflicts) =
        (metric("pillion_ledger_writes_total").await?, metric("pillion_ledger_conflicts_total").await?);
    let alone = number(ROUNDS * pods_per_case());
    let shared = (reservations - alone) / (writes - conflicts - alone);
    let batches = |canary: &Canary, rounds: &[Round]| -> Result<Vec<usize>> {
        let all: Vec<&Pod> = rounds.iter().flat_map(|round| &round.created).collect();
        all.chunks(BATCH).map(|batch| Ok(canary.count(batch.iter().copied())?.1)).collect()
    };
    let entries = stage.entries().await?;
    let largest = entries.iter().max_by_key(|entry| entry.bytes).context("a ledger was written")?;
    let seen = json!({
        "command": "PILLION_FIGURES=docs/figures/canary.json just e2e canary_cost",
        "build": if cfg!(debug_assertions) { "debug" } else { "release" },
        "load_average": std::fs::read_to_string("/proc/loadavg")?.trim(),
        "pods_per_round": pods_per_case(), "rounds": ROUNDS, "at_once": AT_ONCE, "replicas": 2,
        "counted": summary(&counting), "drawn": summary(&drawing),
        "counted_one_at_a_time": summary(&counting_alone), "drawn_one_at_a_time": summary(&drawing_alone),
        "admissions_per_write": (shared * 100.0).round() / 100.0,
        "conflicts_per_write": (conflicts / writes * 100.0).round() / 100.0,
        "unavailable": metric("pillion_ledger_unavailable_total").await?,
        "largest_ledger": {"bytes": largest.bytes, "reservations": largest.spec.reserved.values().map(Vec::len).sum::<usize>()},
        "newest_per_batch": {"batch": BATCH, "wanted": BATCH / 10,
            "counted": batches(&counted, &counting_alone)?, "drawn": batches(&drawn, &drawing_alone)?},
    });
    println!("{seen:#}");
    if let Some(path) = std::env::var_os("PILLION_FIGURES") {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
        std::fs::write(path, format!("{seen:#}\n"))?;
    }
    ensure!(shared > 1.5, "{shared} admissions share a write");
    counted.check_exact(&stage.living(&counted).await?)?;
    stage.check_every_write(&counted).await?;
    bed.stop().await?;
    Ok(())
}
