//! The time that a run of the gate took, from the reports that cargo, cargo-nextest and the test beds leave: one list of
//! [`Entry`]s, printed as one [`table`].
//!
//! [`Records`] is the directory with the reports of the last run. The gate empties it at its start and sets the variables by
//! which programs find it.

pub mod cargo_timings;
pub mod junit;
pub mod table;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::{Deserialize, Serialize};

use crate::workspace::Workspace;
use junit::Case;

/// The part of the gate that an entry belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A step of the gate.
    Step,
    /// An outside program that was built or installed.
    Tool,
    /// One crate in one profile, compiled and linked.
    Compile,
    /// A test without a cluster.
    Test,
    /// Start and stop of a test bed.
    Bed,
    /// A test on a cluster.
    E2e,
}

/// One thing that took time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The part of the gate.
    pub kind: Kind,
    /// Its name: a step, a crate with its profile, a test.
    pub name: String,
    /// Seconds from its start to its end.
    pub wall: f64,
    /// Seconds of CPU time with all its children, where known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cpu: Option<f64>,
}

/// One run of the gate, as it is committed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The commit, with `+` if files were changed.
    pub commit: String,
    /// The command that was run.
    pub command: String,
    /// Seconds from its start to its end.
    pub wall: f64,
    /// The share of the CPU time of this machine that its host gave to others meanwhile, from 0 to 1.
    pub stolen: f64,
    /// Every entry.
    pub entries: Vec<Entry>,
}

/// Seconds below which a unit of cargo counts as up to date.
const LEAST_COMPILE: f64 = 0.05;

/// The directory of reports.
#[derive(Clone, Debug)]
pub struct Records {
    directory: PathBuf,
    /// Cargo writes its reports here.
    cargo: PathBuf,
    /// cargo-nextest writes its reports here, one directory for each profile, over those of its last run.
    nextest: PathBuf,
}

/// A line of the file that test beds append to.
#[derive(Clone, Debug, PartialEq, Deserialize)]
struct BedRecord {
    test: String,
    start_seconds: f64,
    stop_seconds: f64,
    cpu_seconds: f64,
}

impl Records {
    /// Variable that names the file that beds append to; `crates/testbed/src/usage.rs` reads it.
    pub const BED_VARIABLE: &'static str = "PILLION_BED_USAGE";
    /// Variable that makes recipes pass `--timings` to cargo.
    pub const CARGO_VARIABLE: &'static str = "PILLION_TIMINGS";
    /// Variable that names the file that `just tools` appends to.
    pub const TOOL_VARIABLE: &'static str = "PILLION_TOOL_TIMES";

    /// The directory of a workspace.
    pub fn of(workspace: &Workspace) -> Self {
        let target = &workspace.target_directory;
        Self {
            directory: target.join("ci-times"),
            cargo: target.join("cargo-timings"),
            nextest: workspace.root.join("target/nextest"),
        }
    }

    /// Removes the reports of the last run.
    pub fn clear(&self) -> anyhow::Result<()> {
        for directory in [&self.directory, &self.cargo, &self.nextest] {
            if directory.exists() {
                fs::remove_dir_all(directory).with_context(|| format!("cannot remove {}", directory.display()))?;
            }
        }
        fs::create_dir_all(&self.directory).with_context(|| format!("cannot create {}", self.directory.display()))
    }

    /// The environment of a step, so that it leaves its reports here.
    pub fn environment(&self) -> [(&'static str, String); 3] {
        let file = |name: &str| self.directory.join(name).display().to_string();
        [
            (Self::BED_VARIABLE, file("beds.jsonl")),
            (Self::TOOL_VARIABLE, file("tools.jsonl")),
            (Self::CARGO_VARIABLE, "--timings".to_owned()),
        ]
    }

    /// Takes the reports of cargo-nextest that a step left, before the next step writes over them, and returns their tests.
    pub fn collect(&self, step: &str) -> anyhow::Result<Vec<Case>> {
        let kept = self.junit();
        fs::create_dir_all(&kept).with_context(|| format!("cannot create {}", kept.display()))?;
        let mut cases = Vec::new();
        for profile in files(&self.nextest)? {
            let report = profile.join("junit.xml");
            let Ok(text) = fs::read_to_string(&report) else { continue };
            cases.extend(junit::parse(&text).with_context(|| report.display().to_string())?);
            let name = profile.file_name().unwrap_or_default().to_string_lossy();
            let to = kept.join(format!("{}-{name}.xml", step.replace(['/', ' '], "-")));
            fs::rename(&report, &to).with_context(|| format!("cannot move {}", report.display()))?;
        }
        Ok(cases)
    }

    fn junit(&self) -> PathBuf {
        self.directory.join("junit")
    }

    /// Stores the run for a later `just ci-times`.
    pub fn store(&self, run: &Run) -> anyhow::Result<()> {
        let path = self.stored();
        fs::write(&path, serde_json::to_vec(run)?).with_context(|| format!("cannot write {}", path.display()))
    }

    /// The stored run.
    pub fn load(&self) -> anyhow::Result<Run> {
        let path = self.stored();
        let text = fs::read(&path).with_context(|| format!("cannot read {}: run `just ci` first", path.display()))?;
        serde_json::from_slice(&text).with_context(|| format!("{} is damaged: run `just ci` again", path.display()))
    }

    fn stored(&self) -> PathBuf {
        self.directory.join("run.json")
    }

    /// Every entry of the reports.
    pub fn entries(&self) -> anyhow::Result<Vec<Entry>> {
        let mut entries = self.tools()?;
        let mut reports = files(&self.cargo)?;
        reports.retain(|path| path.file_name().is_some_and(|name| name != "cargo-timing.html"));
        let mut units = BTreeMap::new();
        for report in reports {
            let text = fs::read_to_string(&report).with_context(|| format!("cannot read {}", report.display()))?;
            for (name, seconds) in cargo_timings::parse(&text).with_context(|| report.display().to_string())? {
                *units.entry(name).or_insert(0.0) += seconds;
            }
        }
        // Units that were up to date are in the reports too.
        units.retain(|_, wall| *wall >= LEAST_COMPILE);
        entries.extend(units.into_iter().map(|(name, wall)| Entry { kind: Kind::Compile, name, wall, cpu: None }));
        let beds = self.beds()?;
        for report in files(&self.junit())? {
            let text = fs::read_to_string(&report).with_context(|| format!("cannot read {}", report.display()))?;
            for case in junit::parse(&text).with_context(|| report.display().to_string())? {
                let is_e2e = case.suite.contains("pillion-e2e");
                let kind = if is_e2e { Kind::E2e } else { Kind::Test };
                let cpu = beds.iter().filter(|bed| is_e2e && bed.test == case.name).map(|bed| bed.cpu_seconds);
                let name = if is_e2e { case.name.clone() } else { format!("{} {}", case.suite, case.name) };
                entries.push(Entry { kind, name, wall: case.seconds, cpu: cpu.reduce(f64::max) });
            }
        }
        entries.extend(beds.iter().flat_map(|bed| {
            let entry =
                |what: &str, wall| Entry { kind: Kind::Bed, name: format!("{what} {}", bed.test), wall, cpu: None };
            [entry("start", bed.start_seconds), entry("stop", bed.stop_seconds)]
        }));
        Ok(entries)
    }

    fn beds(&self) -> anyhow::Result<Vec<BedRecord>> {
        lines(&self.directory.join("beds.jsonl"))
    }

    fn tools(&self) -> anyhow::Result<Vec<Entry>> {
        lines(&self.directory.join("tools.jsonl"))
    }
}

/// The files of a directory, by name; none if it does not exist.
fn files(directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if !directory.exists() {
        return Ok(Vec::new());
    }
    let read = fs::read_dir(directory).with_context(|| format!("cannot read {}", directory.display()))?;
    let mut files = read.map(|entry| Ok(entry?.path())).collect::<anyhow::Result<Vec<_>>>()?;
    files.sort();
    Ok(files)
}

/// The lines of a file, each a JSON value; none if it does not exist.
fn lines<T: serde::de::DeserializeOwned>(path: &Path) -> anyhow::Result<Vec<T>> {
    let Ok(text) = fs::read_to_string(path) else { return Ok(Vec::new()) };
    let parsed = text.lines().map(serde_json::from_str).collect::<Result<_, _>>();
    parsed.with_context(|| format!("{} has a line that is not a record", path.display()))
}

#[cfg(test)]
mod tests;
