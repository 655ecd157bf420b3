//! One recommender at work: started, waited for, measured over some passes, and ended.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Seek as _, SeekFrom};
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde::Serialize;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::sleep;

use super::{Bench, Recommender};
use crate::cost;

/// How often a recommender is asked how far it is. Each question costs it something, the same for both.
const LOOK: Duration = Duration::from_secs(1);
/// Passes that are not measured: the first one reads all there is.
const FIRST: u64 = 2;

/// What passes of one recommender cost.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Sample {
    pub(super) recommender: Recommender,
    pub(super) round: usize,
    pub(super) pods: usize,
    pub(super) passes: u64,
    /// From the start of the process to the end of the first pass.
    pub(super) seconds_to_first_pass: f64,
    pub(super) cpu_ms_to_first_pass: f64,
    pub(super) seconds_per_pass: f64,
    /// By step, as the recommender counts it itself.
    pub(super) seconds_per_pass_by_step: BTreeMap<String, f64>,
    /// Of all that the process does between the ends of two passes.
    pub(super) cpu_ms_per_pass: f64,
    pub(super) api_server_cpu_ms_per_pass: f64,
    pub(super) resident_mib: f64,
    pub(super) peak_mib: f64,
    pub(super) writes_per_pass: f64,
    /// By resource, in all passes.
    pub(super) writes: BTreeMap<String, u64>,
}

/// How far a recommender is: the count and the seconds of all passes, and seconds by step.
struct Progress {
    passes: u64,
    seconds: BTreeMap<String, f64>,
}

/// What was spent until now.
struct Spent {
    cpu: u64,
    api_server: u64,
    audited: u64,
}

pub(super) async fn measure(bench: &mut Bench, recommender: Recommender, round: usize, pods: usize) -> Result<Sample> {
    let begun = Instant::now();
    let (pid, address) = bench.start(recommender)?;
    let first = until_passes(address, 1, bench.patience(1)).await?;
    let (seconds_to_first_pass, cpu_to_first_pass) = (begun.elapsed().as_secs_f64(), cost::of(pid)?);
    let before = until_passes(address, first.passes + FIRST - 1, bench.patience(FIRST)).await?;
    let spent = bench.spent(pid)?;
    let after = until_passes(address, before.passes + bench.passes, bench.patience(bench.passes)).await?;
    let now = bench.spent(pid)?;
    let passes = after.passes - before.passes;
    let writes = writes(bench.cluster.bed.cluster().audit_log(), spent.audited, now.audited)?;
    let (resident_mib, peak_mib) = (mebibytes(pid, "VmRSS")?, mebibytes(pid, "VmHWM")?);
    bench.cluster.end_last();
    let steps = after.seconds.iter().map(|(step, seconds)| {
        let earlier = before.seconds.get(step).copied().unwrap_or_default();
        (step.clone(), (seconds - earlier) / float(passes))
    });
    let seconds_per_pass_by_step: BTreeMap<String, f64> = steps.collect();
    Ok(Sample {
        recommender,
        round,
        pods,
        passes,
        seconds_to_first_pass,
        cpu_ms_to_first_pass: float(cpu_to_first_pass) / 1e6,
        seconds_per_pass: seconds_per_pass_by_step.get("total").copied().unwrap_or_default(),
        seconds_per_pass_by_step,
        cpu_ms_per_pass: float(now.cpu - spent.cpu) / 1e6 / float(passes),
        api_server_cpu_ms_per_pass: float(now.api_server - spent.api_server) / 1e6 / float(passes),
        resident_mib,
        peak_mib,
        writes_per_pass: float(writes.values().sum()) / float(passes),
        writes,
    })
}

#[expect(clippy::cast_precision_loss, reason = "figures for people")]
pub(super) fn float(number: u64) -> f64 {
    number as f64
}

impl Bench {
    fn spent(&self, pid: u32) -> Result<Spent> {
        let audited = fs::metadata(self.cluster.bed.cluster().audit_log())?.len();
        Ok(Spent { cpu: cost::of(pid)?, api_server: cost::of(self.api_server)?, audited })
    }

    /// How long so many passes may take.
    fn patience(&self, passes: u64) -> Duration {
        Duration::from_mins(2) + self.interval * u32::try_from(passes).unwrap_or(u32::MAX)
    }
}

/// Waits until so many passes have ended.
async fn until_passes(address: SocketAddr, passes: u64, patience: Duration) -> Result<Progress> {
    let begun = Instant::now();
    loop {
        let seen = match page(address).await {
            Ok(text) => Some(progress(&text)),
            Err(_) if begun.elapsed() < patience => None,
            Err(error) => return Err(error.context("the recommender does not answer")),
        };
        if let Some(seen) = seen.filter(|seen| seen.passes >= passes) {
            return Ok(seen);
        }
        ensure!(begun.elapsed() < patience, "after {patience:?} there were not {passes} passes");
        sleep(LOOK).await;
    }
}

/// The metrics of a process, without a client of HTTP: one question, one answer, and the end.
async fn page(address: SocketAddr) -> Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(format!("GET /metrics HTTP/1.0\r\nHost: {address}\r\n\r\n").as_bytes()).await?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await?;
    Ok(text)
}

/// Reads the metric that upstream has, and ours has by the same name.
fn progress(page: &str) -> Progress {
    let values = |suffix: &str| -> BTreeMap<String, f64> {
        let start = format!("vpa_recommender_execution_latency_seconds_{suffix}{{step=\"");
        let read = |line: &str| {
            let (step, value) = line.strip_prefix(&start)?.split_once("\"}")?;
            Some((step.to_owned(), value.trim().parse().ok()?))
        };
        page.lines().filter_map(read).collect()
    };
    let count = values("count").get("total").copied().unwrap_or_default();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
    Progress { passes: count as u64, seconds: values("sum") }
}

/// Writes between two places of the audit log, by resource. Nobody else writes in the meantime but controllers, to other
/// objects; leases are not in the log.
fn writes(log: &Path, from: u64, to: u64) -> Result<BTreeMap<String, u64>> {
    let mut file = BufReader::new(File::open(log)?);
    file.seek(SeekFrom::Start(from))?;
    let mut writes = BTreeMap::new();
    let mut at = from;
    let mut line = String::new();
    while at < to {
        line.clear();
        at += u64::try_from(file.read_line(&mut line)?)?;
        let Ok(entry) = serde_json::from_str::<Value>(&line) else { continue };
        if entry["user"]["username"] != "admin" {
            continue;
        }
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (resource, part) = (text(&entry["objectRef"]["resource"]), text(&entry["objectRef"]["subresource"]));
        let name = if part.is_empty() { resource } else { format!("{resource}/{part}") };
        *writes.entry(format!("{} {name}", text(&entry["verb"]))).or_default() += 1;
    }
    Ok(writes)
}

/// A size of a process, as the kernel tells it.
pub(super) fn mebibytes(pid: u32, name: &str) -> Result<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find(|line| line.starts_with(name)).context("a status has it")?;
    let kibibytes: u64 = line.split_whitespace().nth(1).context("a number follows")?.parse()?;
    Ok(float(kibibytes) / 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_read_from_the_page_of_metrics() {
        let page = concat!(
            "HTTP/1.0 200 OK\r\n\r\n",
            "# TYPE vpa_recommender_execution_latency_seconds histogram\n",
            "vpa_recommender_execution_latency_seconds_bucket{step=\"total\",le=\"0.01\"} 1\n",
            "vpa_recommender_execution_latency_seconds_sum{step=\"LoadPods\"} 0.25\n",
            "vpa_recommender_execution_latency_seconds_sum{step=\"total\"} 3.5\n",
            "vpa_recommender_execution_latency_seconds_count{step=\"total\"} 7\n",
        );
        let read = progress(page);
        let seconds = BTreeMap::from([("LoadPods".to_owned(), 0.25), ("total".to_owned(), 3.5)]);
        assert_eq!((read.passes, read.seconds), (7, seconds));
        assert_eq!(progress("").passes, 0);
    }
}
