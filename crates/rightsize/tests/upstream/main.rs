//! What the upstream Vertical Pod Autoscaler makes of samples, and that this crate makes the same of them.
//!
//! `golden` needs no Go. The others run upstream's library: the program named by `PILLION_GO_VPA`, or one they build from
//! `testbed/go/vpa`.
#![expect(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "the test, unlike the crate, runs a program"
)]

mod golden;
mod random;
mod series;

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use std::time::Duration;

use pillion_api::{HistogramCheckpoint, VerticalPodAutoscalerCheckpointStatus};
use pillion_generators::settings;
use random::Random;
use series::{Both, Series, Verdict};

#[test]
fn size_golden_series_give_upstreams_numbers() {
    let rows = golden::rows();
    assert_eq!(rows.len(), 23, "series were lost");
    for row in rows {
        let ours = row.series().ours();
        assert_eq!((ours.bare, ours.floored), (row.bare, row.floored), "{}", row.name);
        assert_eq!(ours.percentiles, row.percentiles, "{}", row.name);
    }
}

#[test]
fn size_golden_series_are_still_upstreams() {
    let rows = golden::rows();
    let verdicts = ask_upstream(&rows.iter().map(golden::Row::series).collect::<Vec<_>>());
    for (row, theirs) in rows.iter().zip(verdicts) {
        assert_eq!((theirs.bare, theirs.floored), (row.bare, row.floored), "{}", row.name);
        assert_eq!(short(theirs.percentiles), short(row.percentiles), "{}", row.name);
    }
}

#[test]
fn size_random_series_give_upstreams_numbers() {
    let series = random_series();
    let verdicts = ask_upstream(&series);
    for (series, theirs) in series.iter().zip(&verdicts) {
        agree(series, theirs);
    }
}

#[test]
fn ours_12_checkpoints_of_upstream_go_on_here() {
    let (before, after) = halves(&random_series());
    let saved = ask_upstream(&before);
    let after: Vec<Series> = after
        .into_iter()
        .zip(saved)
        .map(|(series, saved)| Series { checkpoint: Some(saved.checkpoint), ..series })
        .collect();
    for (series, theirs) in after.iter().zip(ask_upstream(&after)) {
        agree(series, &theirs);
    }
}

#[test]
fn ours_12_checkpoints_of_ours_go_on_with_upstream() {
    let (before, after) = halves(&random_series());
    let after: Vec<Series> = before
        .iter()
        .zip(after)
        .map(|(before, after)| Series { checkpoint: Some(before.ours().checkpoint), ..after })
        .collect();
    for (series, theirs) in after.iter().zip(ask_upstream(&after)) {
        agree(series, &theirs);
    }
}

/// The numbers of a recommendation are the same to the unit. In checkpoints, a weight of just so much and a half may be
/// rounded either way.
fn agree(series: &Series, theirs: &Verdict) {
    let ours = series.ours();
    assert_eq!(ours.name, theirs.name, "answers come in order");
    assert_eq!((ours.bare, ours.floored), (theirs.bare, theirs.floored), "{}", ours.name);
    assert_eq!(short(ours.percentiles), short(theirs.percentiles), "{}", ours.name);
    let facts = |saved: &VerticalPodAutoscalerCheckpointStatus| {
        (saved.first_sample_start.clone(), saved.last_sample_start.clone(), saved.total_samples_count)
    };
    assert_eq!(facts(&ours.checkpoint), facts(&theirs.checkpoint), "{}", ours.name);
    let settings = series.settings.settings();
    let (own, other) = (ours.checkpoint, theirs.checkpoint.clone());
    for (ours, theirs, half_life) in [
        (own.cpu_histogram.unwrap(), other.cpu_histogram.unwrap(), settings.cpu_half_life),
        (own.memory_histogram.unwrap(), other.memory_histogram.unwrap(), settings.memory_half_life),
    ] {
        let buckets: BTreeSet<&u32> = ours.bucket_weights.keys().chain(theirs.bucket_weights.keys()).collect();
        for bucket in buckets {
            let weight = |own: &HistogramCheckpoint| own.bucket_weights.get(bucket).copied().unwrap_or_default();
            let apart = weight(&ours).abs_diff(weight(&theirs));
            assert!(apart <= 1, "{}: bucket {bucket} of {ours:?} and {theirs:?}", series.name);
        }
        let (ours, theirs) = (total(series, &ours, half_life), total(series, &theirs, half_life));
        // The logarithm of nothing, on both sides, is no difference.
        let is_nothing = ours.is_infinite() && theirs.is_infinite();
        assert!(is_nothing || (ours - theirs).abs() <= 1e-6, "{}: {ours} and {theirs}", series.name);
    }
}

/// The logarithm of the weight of a histogram, as of the start of the series: upstream lets what it loaded wait for what it saw, so that the
/// moment that weights refer to may be another one.
fn total(series: &Series, saved: &HistogramCheckpoint, half_life: Duration) -> f64 {
    let moved = saved.reference_timestamp.as_ref().unwrap().0.duration_since(series.start).as_secs_f64();
    saved.total_weight.unwrap_or_default().log2() + moved / half_life.as_secs_f64()
}

/// JSON is read to the last bit but one.
fn short(numbers: Both<[f64; 3]>) -> Both<[f64; 3]> {
    let round = |number: f64| format!("{number:.12e}").parse().unwrap();
    both(numbers.cpu.map(round), numbers.memory.map(round))
}

fn random_series() -> Vec<Series> {
    let seed = settings::number("PILLION_SEED").unwrap_or_else(settings::seed_from_clock);
    let count = settings::number("PILLION_SERIES").unwrap_or(40);
    println!("PILLION_SEED={seed} PILLION_SERIES={count}");
    let mut random = Random::new(seed);
    (0..count).map(|number| random.series(format!("random {number}"))).collect()
}

/// What happened before the checkpoint, and, with other containers, after it.
fn halves(series: &[Series]) -> (Vec<Series>, Vec<Series>) {
    let half = |series: &Series, is_first: bool| {
        let middle = series.events.len().div_ceil(2);
        let events = if is_first { &series.events[..middle] } else { &series.events[middle..] };
        let now = series.events[middle - 1].second;
        Series { events: events.to_vec(), now: if is_first { now } else { series.now }, ..series.clone() }
    };
    (series.iter().map(|own| half(own, true)).collect(), series.iter().map(|own| half(own, false)).collect())
}

fn ask_upstream(series: &[Series]) -> Vec<Verdict> {
    let program = PROGRAM.as_path();
    let mut child = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("cannot run {}: {error}", program.display()));
    let mut stdin = child.stdin.take().unwrap();
    let lines: String = series.iter().map(|series| serde_json::to_string(series).unwrap() + "\n").collect();
    // The program answers while it reads, so somebody else must write.
    let writer = std::thread::spawn(move || stdin.write_all(lines.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success(), "{} failed", program.display());
    let verdicts: Vec<Verdict> =
        String::from_utf8(output.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(verdicts.len(), series.len(), "one answer for each series");
    verdicts
}

static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| {
    if let Some(named) = std::env::var_os("PILLION_GO_VPA") {
        return named.into();
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testbed/go/vpa");
    let built = Path::new(env!("CARGO_TARGET_TMPDIR")).join("go-vpa");
    // Tests of this file may run as processes of their own, and at once: the first one builds, the others find it built.
    let lock = std::fs::File::create(built.with_extension("lock")).unwrap();
    lock.lock().unwrap();
    let status = Command::new("go")
        .args(["build", "-o"])
        .arg(&built)
        .arg(".")
        .current_dir(&source)
        .status()
        .expect("go is needed: install it, or name a built program in PILLION_GO_VPA");
    assert!(status.success(), "go build failed in testbed/go/vpa");
    built
});

/// The resources of a verdict, for tables.
pub(crate) const fn both<T: Copy>(cpu: T, memory: T) -> Both<T> {
    Both { cpu, memory }
}
