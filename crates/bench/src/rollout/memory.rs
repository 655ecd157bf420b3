//! How much a manager that looks after many pods needs, and one beside many that it does not.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{Bench, image, pod};
use crate::output::say;

const SET: &str = "kept";
/// A process is idle after so long; nothing tells that it is.
const IDLE: Duration = Duration::from_secs(15);

pub(super) async fn measure(bench: &mut Bench, pods: usize) -> Result<Value> {
    bench.set(SET, &image(0), &json!({})).await?;
    bench.until_injecting(SET, &image(0)).await?;
    // Each time another one, which lists all of them at once: what was freed before would hide what is needed now.
    let (empty, _) = anew(bench).await?;
    bench.create("default", (0..pods).map(|at| pod(&format!("foreign-{at}"), "foreign", None))).await?;
    let (foreign, _) = anew(bench).await?;
    let names: Vec<String> = (0..pods).map(|at| format!("{SET}-{at}")).collect();
    bench.create("default", names.iter().map(|name| pod(name, SET, None))).await?;
    bench.play_statuses("default", &names).await?;
    bench.until_updated(SET, pods).await?;
    let (matched, peak) = anew(bench).await?;
    #[expect(clippy::cast_precision_loss, reason = "figures for people")]
    let each = |before: u64, after: u64| after.saturating_sub(before) as f64 / pods as f64;
    #[expect(clippy::cast_precision_loss, reason = "figures for people")]
    let ratio = peak as f64 / matched as f64;
    Ok(
        json!({"pods_of_either_kind": pods, "resident_kib": {"empty": empty, "with_foreign": foreign, "with_matched_too": matched},
        "peak_kib_of_the_last": peak, "kib_per_foreign_pod": each(empty, foreign), "kib_per_matched_pod": each(foreign, matched),
        "peak_over_resident": ratio}),
    )
}

/// Resident memory of a manager that was started anew and is idle, and its peak.
async fn anew(bench: &mut Bench) -> Result<(u64, u64)> {
    bench.cluster.end_last();
    bench.start_manager()?;
    bench.until_injecting(SET, &image(0)).await?;
    sleep(IDLE).await;
    let (resident, peak) = (field(bench, "VmRSS")?, field(bench, "VmHWM")?);
    say(&format!("the manager has {resident} KiB, and had {peak} KiB"));
    Ok((resident, peak))
}

fn field(bench: &Bench, name: &str) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{}/status", bench.manager))?;
    let line = status.lines().find(|line| line.starts_with(name)).context("a status has it")?;
    line.split_whitespace().nth(1).context("a number follows")?.parse().context("a number")
}
