//! The tier `nightly`: runs every step even if one fails, remembers the steps that passed, and goes on from there when it is
//! started again on the same commit.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::slice;

use anyhow::Context;
use pillion_stopwatch::Stopwatch;
use serde::{Deserialize, Serialize};

use super::{Tier, commit, finish, introduce, run_row, seed_from_clock, steps, variable_or};
use crate::times::Records;
use crate::workspace::Workspace;

/// The result of a step or of a nightly run, from which its exit code follows.
/// The worst step decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Every step passed.
    Passed,
    /// Every failure was a test that passed when it was tried again.
    Flaky,
    /// A step failed.
    Failed,
}

/// The steps that passed on a commit.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Progress {
    commit: String,
    passed: BTreeSet<String>,
}

/// Seconds of a day: the share of the mutants changes with the date.
const DAY: u64 = 86_400;

/// Runs the steps of the tier that have not passed on this commit; all of them if `is_fresh`.
pub fn run(workspace: &Workspace, prefix: &str, is_fresh: bool, say: &mut dyn FnMut(&str)) -> anyhow::Result<Verdict> {
    let seed = variable_or("PILLION_SEED", seed_from_clock);
    let share =
        variable_or("PILLION_MUTANT_SHARE", || (seed_from_clock().parse::<u64>().unwrap_or(0) / DAY).to_string());
    let share = share.parse().context("PILLION_MUTANT_SHARE must be a number")?;
    let stopwatch = Stopwatch::start();
    let records = Records::of(workspace);
    records.clear()?;
    introduce(Tier::Nightly, &seed, say);
    let path = workspace.target_directory.join("nightly.json");
    let mut progress = Progress::resume(&path, &commit(workspace)?, is_fresh);
    let (mut results, mut times, mut flaky) = (Vec::new(), Vec::new(), BTreeSet::new());
    for step in steps::nightly(prefix, &fuzz_targets(workspace)?, share) {
        if progress.passed.contains(&step.name) {
            results.push((step, Verdict::Passed, "passed in an earlier run"));
            continue;
        }
        let row = run_row(workspace, &records, slice::from_ref(&step), &seed, say)?;
        let outcome = row.into_iter().next().context("a step has an outcome")?;
        times.push(outcome.time);
        let (verdict, shown) = match (outcome.is_passed, outcome.is_flaky_alone) {
            (true, _) => (Verdict::Passed, "passed"),
            (false, true) => (Verdict::Flaky, "FLAKY"),
            (false, false) => (Verdict::Failed, "FAILED"),
        };
        flaky.extend(outcome.flaky);
        if outcome.is_passed {
            progress.passed.insert(step.name.clone());
            progress.store(&path)?;
        }
        results.push((step, verdict, shown));
    }
    finish(workspace, &records, "just nightly", stopwatch, times, say)?;
    say("gate: summary of the tier nightly");
    for (step, verdict, shown) in &results {
        let how = if *verdict == Verdict::Passed { String::new() } else { format!(": run `{}`", step.command()) };
        say(&format!("  {shown:<24} {}{how}", step.name));
    }
    for test in &flaky {
        say(&format!("  flaky: {test}"));
    }
    Ok(worst(results.iter().map(|(_, verdict, _)| *verdict)))
}

fn worst(verdicts: impl Iterator<Item = Verdict>) -> Verdict {
    verdicts.max().unwrap_or(Verdict::Passed)
}

impl Progress {
    /// The progress on this commit. A commit with changed files (`+`) has none: nobody knows which files they were.
    fn resume(path: &Path, commit: &str, is_fresh: bool) -> Self {
        let stored: Option<Self> = fs::read(path).ok().and_then(|text| serde_json::from_slice(&text).ok());
        let is_same = |it: &Self| it.commit == commit && !commit.ends_with('+') && !is_fresh;
        stored.filter(is_same).unwrap_or_else(|| Self { commit: commit.to_owned(), passed: BTreeSet::new() })
    }

    fn store(&self, path: &Path) -> anyhow::Result<()> {
        fs::write(path, serde_json::to_vec(self)?).with_context(|| format!("cannot write {}", path.display()))
    }
}

fn fuzz_targets(workspace: &Workspace) -> anyhow::Result<Vec<String>> {
    let directory = workspace.root.join("fuzz/fuzz_targets");
    let read = fs::read_dir(&directory).with_context(|| format!("cannot read {}", directory.display()))?;
    let files = read.map(|entry| Ok(entry?.path())).collect::<anyhow::Result<Vec<_>>>()?;
    let mut targets: Vec<String> =
        files.iter().filter_map(|path| Some(path.file_stem()?.to_string_lossy().into_owned())).collect();
    targets.sort();
    Ok(targets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_failure_fails_a_run_and_a_flaky_test_alone_is_told_apart() {
        let (passed, flaky, failed) = (Verdict::Passed, Verdict::Flaky, Verdict::Failed);
        assert_eq!(worst([passed, passed].into_iter()), passed);
        assert_eq!(worst([flaky, passed].into_iter()), flaky);
        assert_eq!(worst([flaky, failed, passed].into_iter()), failed);
        assert_eq!(worst([].into_iter()), passed);
    }

    #[test]
    fn steps_that_passed_are_remembered_for_the_same_commit_without_changes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("nightly.json");
        let mut progress = Progress::resume(&path, "a", false);
        assert_eq!(progress, Progress { commit: "a".to_owned(), passed: BTreeSet::new() });
        progress.passed.insert("fuzz review".to_owned());
        progress.store(&path).unwrap();
        assert_eq!(Progress::resume(&path, "a", false), progress);
        for (commit, is_fresh) in [("a", true), ("b", false)] {
            assert_eq!(Progress::resume(&path, commit, is_fresh).passed, BTreeSet::new());
        }
        let changed = Progress { commit: "a+".to_owned(), ..progress };
        changed.store(&path).unwrap();
        assert_eq!(Progress::resume(&path, "a+", false).passed, BTreeSet::new());
    }
}
