//! The gate in two tiers: runs their steps, records the time of each, and says what ran, what was skipped and what was slow.
//!
//! [`Tier`] is the only place that says what a tier consists of. A step is a recipe of the `justfile`, so that everybody can
//! run it alone.

pub mod e2e_tests;
pub mod nightly;
pub mod quick;
pub mod steps;
pub mod touched;

use std::collections::BTreeSet;
use std::fs;
use std::process::{Child, Command};
use std::thread;
use std::time::{Instant, SystemTime};

use anyhow::{Context, anyhow};
use clap::ValueEnum;
use pillion_stopwatch::{Elapsed, Stopwatch};

use crate::source_tree::SourceTree;
use crate::times::{Entry, Kind, Records, Run, table};
use crate::workspace::Workspace;

use steps::Step;

/// The tiers of the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Tier {
    /// Before every commit to main: everything without a cluster, and e2e tests that cover every role, every object of the
    /// chart and every promise of the README.
    Ci,
    /// Every night, and by hand for what a change touches: every e2e test, large runs, fuzzing, a share of the mutants.
    Nightly,
}

/// Clock ticks per second in `/proc`.
const TICKS_PER_SECOND: f64 = 100.0;
/// Entries that a run ends with.
const SLOWEST: usize = 10;

impl Tier {
    /// The name in test names and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ci => "ci",
            Self::Nightly => "nightly",
        }
    }
}

/// Runs the rows of the tier `ci` one after the other, and stops at the first in which a step fails. `say` gets lines for people.
pub fn run_ci(workspace: &Workspace, say: &mut dyn FnMut(&str)) -> anyhow::Result<bool> {
    // The seed with which laws are repeated everywhere; the tier nightly draws others.
    let seed = variable_or("PILLION_SEED", || "1".to_owned());
    let stopwatch = Stopwatch::start();
    let records = Records::of(workspace);
    records.clear()?;
    introduce(Tier::Ci, &seed, say);
    for line in skipped(&SourceTree::of_git(&workspace.root)?) {
        say(&format!("gate: skipped: {line}"));
    }
    let mut times = Vec::new();
    let mut failed = None;
    let mut flaky = BTreeSet::new();
    for row in steps::ci() {
        for (step, outcome) in row.iter().zip(run_row(workspace, &records, &row, &seed, say)?) {
            times.push(outcome.time);
            flaky.extend(outcome.flaky);
            if !outcome.is_passed {
                failed = Some(step.clone());
            }
        }
        if failed.is_some() {
            break;
        }
    }
    finish(workspace, &records, "just ci", stopwatch, times, say)?;
    for test in flaky {
        say(&format!("gate: FLAKY: {test} failed, and passed when it was tried again"));
    }
    if let Some(step) = &failed {
        say(&format!("gate: step {} failed; run it alone with `{}`", step.name, step.command()));
    }
    Ok(failed.is_none())
}

/// The result of one step.
struct Outcome {
    is_passed: bool,
    time: Entry,
    /// Tests that failed and passed when they were tried again.
    flaky: BTreeSet<String>,
    /// Every failure of the step is one of them.
    is_flaky_alone: bool,
}

fn introduce(tier: Tier, seed: &str, say: &mut dyn FnMut(&str)) {
    say(&format!("gate: tier {}, PILLION_SEED={seed}", tier.name()));
}

/// The value of a variable of the environment, or another if it is not set.
fn variable_or(variable: &str, other: impl FnOnce() -> String) -> String {
    std::env::var(variable).ok().filter(|text| !text.is_empty()).unwrap_or_else(other)
}

/// A seed that differs from run to run.
fn seed_from_clock() -> String {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs()).to_string()
}

/// Everything that the tier `ci` leaves to others, and why.
fn skipped(tree: &SourceTree) -> Vec<String> {
    let tests = e2e_tests::list(tree);
    let nightly = tests.iter().filter(|test| test.tier == Some(Tier::Nightly)).count();
    vec![
        format!("{nightly} of {} e2e tests are in the tier nightly (CONTRIBUTING.md lists them)", tests.len()),
        "10,000-pod runs, fuzzing and mutants take hours: `just nightly`".to_owned(),
        "advisories of dependencies need their database: `just advisories`".to_owned(),
    ]
}

/// Runs steps at the same time. The CPU time of all of them counts for the first.
fn run_row(
    workspace: &Workspace,
    records: &Records,
    row: &[Step],
    seed: &str,
    say: &mut dyn FnMut(&str),
) -> anyhow::Result<Vec<Outcome>> {
    for step in row {
        say(&format!("gate: step {}", step.name));
    }
    let (began, cpu) = (Instant::now(), children_cpu_seconds()?);
    let children: Vec<Child> =
        row.iter().map(|step| start(workspace, records, step, seed)).collect::<Result<_, _>>()?;
    let ended = thread::scope(|scope| -> anyhow::Result<Vec<_>> {
        let waiting: Vec<_> = children
            .into_iter()
            .map(|mut child| scope.spawn(move || (child.wait(), began.elapsed().as_secs_f64())))
            .collect();
        waiting.into_iter().map(|it| it.join().map_err(|_| anyhow!("waiting for a step panicked"))).collect()
    })?;
    let mut cpu = Some(children_cpu_seconds()? - cpu);
    let mut outcomes = Vec::new();
    for (step, (status, wall)) in row.iter().zip(ended) {
        let status = status.with_context(|| format!("cannot wait for step {}", step.name))?;
        let time = Entry { kind: Kind::Step, name: step.name.clone(), wall, cpu: cpu.take() };
        let verdict = if status.success() { "passed" } else { "FAILED" };
        say(&format!("gate: step {} {verdict} after {wall:.0} s", step.name));
        let cases = records.collect(&step.name)?;
        let flaky: BTreeSet<String> = cases.iter().filter(|case| case.is_flaky).map(|case| case.name.clone()).collect();
        let is_flaky_alone = !flaky.is_empty() && !cases.iter().any(|case| case.is_failed);
        outcomes.push(Outcome { is_passed: status.success(), time, flaky, is_flaky_alone });
    }
    Ok(outcomes)
}

fn start(workspace: &Workspace, records: &Records, step: &Step, seed: &str) -> anyhow::Result<Child> {
    Command::new("just")
        .args(&step.arguments)
        .current_dir(&workspace.root)
        .env("PILLION_SEED", seed)
        .envs(records.environment())
        .envs(step.environment.iter().copied())
        .spawn()
        .context("cannot run just: CONTRIBUTING.md says how to install it")
}

/// Stores the times of a run, and prints the steps and the slowest entries.
fn finish(
    workspace: &Workspace,
    records: &Records,
    command: &str,
    stopwatch: Stopwatch,
    mut entries: Vec<Entry>,
    say: &mut dyn FnMut(&str),
) -> anyhow::Result<()> {
    entries.extend(records.entries()?);
    let Elapsed { wall, stolen } = stopwatch.elapsed();
    let (commit, command) = (commit(workspace)?, command.to_owned());
    let run = Run { commit, command, wall: wall.as_secs_f64(), stolen, entries };
    records.store(&run)?;
    say(&format!("gate: steps; {}", table::duration(&run)));
    for entry in run.entries.iter().filter(|entry| entry.kind == Kind::Step) {
        let cpu = entry.cpu.map_or(String::new(), |cpu| format!(" ({cpu:.0} of CPU)"));
        say(&format!("{:8.0} s{cpu}  {}", entry.wall, entry.name));
    }
    say(&format!("gate: the {SLOWEST} slowest entries; `just ci-times NAME` writes all of them"));
    say(table::slowest(&run, SLOWEST).trim_end());
    Ok(())
}

/// Writes the times of the last run to `docs/figures/ci-times-NAME.md` and `.json`.
pub fn write_times(workspace: &Workspace, name: &str) -> anyhow::Result<String> {
    let run = Records::of(workspace).load()?;
    let stem = format!("docs/figures/ci-times-{name}");
    let title = format!("Times of the gate: {name}");
    fs::write(workspace.root.join(format!("{stem}.md")), table::page(&title, &run))
        .with_context(|| format!("cannot write {stem}.md"))?;
    let mut json = serde_json::to_string(&run)?.replace("{\"kind\"", "\n{\"kind\"");
    json.push('\n');
    fs::write(workspace.root.join(format!("{stem}.json")), json)
        .with_context(|| format!("cannot write {stem}.json"))?;
    Ok(stem)
}

/// The commit, with `+` if files differ from it.
fn commit(workspace: &Workspace) -> anyhow::Result<String> {
    let commit = workspace.git(&["rev-parse", "--short", "HEAD"])?;
    let is_changed = !workspace.git(&["status", "--porcelain"])?.is_empty();
    Ok(format!("{}{}", commit.trim(), if is_changed { "+" } else { "" }))
}

/// CPU time of the children of this process that have ended, with theirs.
fn children_cpu_seconds() -> anyhow::Result<f64> {
    let stat = fs::read_to_string("/proc/self/stat").context("cannot read /proc/self/stat")?;
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let ticks = fields.split_whitespace().skip(13).take(2).filter_map(|field| field.parse::<f64>().ok());
    Ok(ticks.sum::<f64>() / TICKS_PER_SECOND)
}
