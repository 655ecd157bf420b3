//! How much a manager that looks after many pods needs, and one beside many that it does not.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{Bench, image, pod, say};

const SET: &str = "kept";
/// A process is idle after so long; nothing tells that it is.
const IDLE: Duration = Duration::from_secs(15);

pub(super) async fn measure(bench: &mut Bench, pods: usize) -> Result<Value> {
    bench.set(SET, &image(0), &json!({})).await?;
    bench.until_injecting(SET, &image(0)).await?;
    let empty = settled(bench).await?;
    bench.create("default", (0..pods).map(|at| pod(&format!("foreign-{at}"), "foreign", None))).await?;
    let foreign = settled(bench).await?;
    let names: Vec<String> = (0..pods).map(|at| format!("{SET}-{at}")).collect();
    bench.create("default", names.iter().map(|name| pod(name, SET, None))).await?;
    bench.play_statuses("default", &names).await?;
    bench.until_updated(SET, pods).await?;
    let matched = settled(bench).await?;
    // Another one, which lists all of them at once.
    bench.cluster.end_last();
    bench.start_manager()?;
    bench.edit(SET, &image(1)).await?;
    bench.until_injecting(SET, &image(1)).await?;
    bench.edit(SET, &image(0)).await?;
    bench.until_updated(SET, pods).await?;
    let again = settled(bench).await?;
    let peak = field(bench, "VmHWM")?;
    #[expect(clippy::cast_precision_loss, reason = "figures for people")]
    let each = |before: u64, after: u64| after.saturating_sub(before) as f64 / pods as f64;
    #[expect(clippy::cast_precision_loss, reason = "figures for people")]
    let ratio = peak as f64 / again as f64;
    Ok(
        json!({"pods_of_either_kind": pods, "resident_kib": {"empty": empty, "with_foreign": foreign, "with_matched_too": matched, "started_anew": again},
        "peak_kib_started_anew": peak, "kib_per_foreign_pod": each(empty, foreign), "kib_per_matched_pod": each(foreign, matched),
        "peak_over_resident": ratio}),
    )
}

async fn settled(bench: &Bench) -> Result<u64> {
    sleep(IDLE).await;
    let resident = field(bench, "VmRSS")?;
    say(&format!("the manager has {resident} KiB"));
    Ok(resident)
}

fn field(bench: &Bench, name: &str) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{}/status", bench.manager))?;
    let line = status.lines().find(|line| line.starts_with(name)).context("a status has it")?;
    line.split_whitespace().nth(1).context("a number follows")?.parse().context("a number")
}
