//! Mutants: small changes that make the code wrong. A test must notice each of them.
//!
//! The list is `crates/xtask/mutants.yaml`. [`run`] makes a copy of the repository below the target folder, changes one
//! place of it at a time, and runs the tests of the crate that was changed and of those that rely on it.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};
use serde::Deserialize;

use crate::source_tree::SourceTree;
use crate::workspace::{Workspace, cargo};
use crate::yaml;

const LIST: &str = "crates/xtask/mutants.yaml";
/// After this a test that does not end counts as one that failed.
const PATIENCE: &str = "10m";

/// Where mutants live, and whose tests must notice them, the quickest first.
const TESTED_BY: [(&str, &[&str]); 11] = [
    ("crates/quantity/src", &["pillion-quantity"]),
    ("crates/yaml/src", &["pillion-yaml"]),
    ("crates/api/src", &["pillion-api"]),
    ("crates/agent-api/src", &["pillion-agent-api"]),
    ("crates/rightsize/src", &["pillion-rightsize"]),
    ("crates/pod/src", &["pillion-pod", "pillion-inject"]),
    ("crates/inject/src", &["pillion-inject"]),
    ("crates/expr/src", &["pillion-expr", "pillion-inject"]),
    ("crates/plan/src", &["pillion-plan", "pillion-rollout"]),
    ("crates/rollout/src", &["pillion-rollout", "pillion-sim"]),
    ("crates/sim/src", &["pillion-sim"]),
];

/// One change that makes the code wrong.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mutant {
    /// The file, relative to the root.
    pub file: PathBuf,
    /// What is changed; it must be there exactly once.
    pub find: String,
    /// What it becomes.
    pub replace: String,
    /// What is wrong then.
    pub means: String,
}

/// What became of a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// A test failed.
    Caught,
    /// A test did not end.
    Hung,
    /// No test noticed.
    Survived,
    /// It is no program any more.
    DoesNotBuild,
    /// What it changes is there so many times.
    DoesNotApply(usize),
}

impl Fate {
    /// Whether the tests did what they are for.
    pub fn is_good(self) -> bool {
        matches!(self, Self::Caught | Self::Hung)
    }
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Caught => f.write_str("caught"),
            Self::Hung => f.write_str("caught (a test did not end)"),
            Self::Survived => f.write_str("SURVIVED: add a test that fails with it"),
            Self::DoesNotBuild => f.write_str("does not build: mend the replacement"),
            Self::DoesNotApply(times) => write!(f, "is there {times} times: mend `find`"),
        }
    }
}

/// All mutants of a tree.
pub fn list(tree: &SourceTree) -> anyhow::Result<Vec<Mutant>> {
    let text = tree.text(LIST).with_context(|| format!("no {LIST}"))?;
    serde_json::from_value(yaml::parse(text)?).with_context(|| format!("cannot read {LIST}"))
}

impl Mutant {
    /// The text with the change, or how often what is to be changed is there.
    pub fn apply(&self, text: &str) -> Result<String, usize> {
        match text.matches(&self.find).count() {
            1 => Ok(text.replacen(&self.find, &self.replace, 1)),
            times => Err(times),
        }
    }

    /// The packages whose tests must notice it.
    pub fn tested_by(&self) -> anyhow::Result<&'static [&'static str]> {
        let found = TESTED_BY.iter().find(|(folder, _)| self.file.starts_with(folder));
        Ok(found.with_context(|| format!("{} is in no crate whose mutants are tested", self.file.display()))?.1)
    }
}

/// A part of the list: every `of`-th mutant, from the one at `index` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    index: usize,
    of: usize,
}

impl Share {
    /// Parses `2/8`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('/').and_then(|(index, of)| Some((index.parse().ok()?, of.parse().ok()?)));
        match numbers {
            Some((index, of)) if index < of => Ok(Self { index, of }),
            _ => Err(format!("{text:?} is no share: write 0/8 to 7/8")),
        }
    }

    fn contains(self, index: usize) -> bool {
        index % self.of == self.index
    }
}

/// Tries the mutants whose file or meaning contains `only`, or a share of them, and tells the fate of each as soon as it is
/// known.
pub fn run(
    workspace: &Workspace,
    only: &str,
    share: Option<Share>,
    mut tell: impl FnMut(&Mutant, Fate),
) -> anyhow::Result<()> {
    let tree = SourceTree::of_git(&workspace.root)?;
    let chosen = |mutant: &Mutant| mutant.means.contains(only) || mutant.file.to_string_lossy().contains(only);
    let mutants: Vec<Mutant> = list(&tree)?
        .into_iter()
        .filter(chosen)
        .enumerate()
        .filter(|(index, _)| share.is_none_or(|share| share.contains(*index)))
        .map(|(_, mutant)| mutant)
        .collect();
    ensure!(!mutants.is_empty(), "no mutant has {only:?} in its file or meaning: see {LIST}");
    let copy = Copy::make(&tree, &workspace.target_directory.join("mutants"))?;
    let mut packages = BTreeSet::new();
    for mutant in &mutants {
        packages.extend(mutant.tested_by()?);
    }
    for package in packages {
        let fate = copy.test(package)?;
        ensure!(fate == Fate::Survived, "the tests of {package} fail without a mutant: run `just test` first");
    }
    for mutant in &mutants {
        tell(mutant, copy.fate(&tree, mutant)?);
    }
    Ok(())
}

/// A copy of the repository, with a target folder of its own.
struct Copy {
    root: PathBuf,
    target: PathBuf,
}

impl Copy {
    fn make(tree: &SourceTree, folder: &Path) -> anyhow::Result<Self> {
        let copy = Self { root: folder.join("repository"), target: folder.join("target") };
        if copy.root.exists() {
            fs::remove_dir_all(&copy.root).with_context(|| format!("cannot remove {}", copy.root.display()))?;
        }
        for file in tree.texts() {
            copy.write(file.path, file.text)?;
        }
        Ok(copy)
    }

    fn write(&self, path: &Path, text: &str) -> anyhow::Result<()> {
        let path = self.root.join(path);
        let folder = path.parent().unwrap_or(&self.root);
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&path, text))
            .with_context(|| format!("cannot write {}", path.display()))
    }

    fn fate(&self, tree: &SourceTree, mutant: &Mutant) -> anyhow::Result<Fate> {
        let original = tree.text(&mutant.file).with_context(|| format!("no {}", mutant.file.display()))?;
        let mutated = match mutant.apply(original) {
            Ok(mutated) => mutated,
            Err(times) => return Ok(Fate::DoesNotApply(times)),
        };
        self.write(&mutant.file, &mutated)?;
        let mut fate = Fate::Survived;
        for package in mutant.tested_by()? {
            fate = self.test(package)?;
            if fate != Fate::Survived {
                break;
            }
        }
        self.write(&mutant.file, original)?;
        Ok(fate)
    }

    /// What the tests of a package say about the copy as it is.
    fn test(&self, package: &str) -> anyhow::Result<Fate> {
        if self.cargo(package, &["--no-run"])? != Some(0) {
            return Ok(Fate::DoesNotBuild);
        }
        match self.cargo(package, &[])? {
            Some(0) => Ok(Fate::Survived),
            // The two ways in which `timeout` says that it ended the program.
            Some(124 | 137) => Ok(Fate::Hung),
            Some(_) => Ok(Fate::Caught),
            None => bail!("the tests of {package} were ended from outside"),
        }
    }

    fn cargo(&self, package: &str, more: &[&str]) -> anyhow::Result<Option<i32>> {
        // `timeout` ends what cargo has started as well.
        let mut command = Command::new("timeout");
        if more.is_empty() {
            command.args(["--kill-after=10s", PATIENCE]);
        } else {
            command.arg("0");
        }
        command.arg(cargo().get_program()).args(["test", "--quiet", "--locked", "--tests", "--package", package]);
        let output = command
            .args(more)
            .current_dir(&self.root)
            .env("CARGO_TARGET_DIR", &self.target)
            .env("CARGO_INCREMENTAL", "1")
            .env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "true")
            // Laws draw few cases, and the same ones each time: what only a lucky draw would notice counts as unnoticed.
            .envs([("PILLION_CASES", "100"), ("PILLION_SEED", "7")])
            .output()
            .context("cannot run timeout")?;
        Ok(output.status.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::map;

    fn mutant(find: &str) -> Mutant {
        let [find, replace, means] = [find, "b", "a is b"].map(str::to_owned);
        Mutant { file: "crates/expr/src/lib.rs".into(), find, replace, means }
    }

    #[test]
    fn a_mutant_applies_where_its_text_is_there_once() {
        assert_eq!(mutant("a").apply("x a y"), Ok("x b y".to_owned()));
        assert_eq!(mutant("a").apply("x y"), Err(0));
        assert_eq!(mutant("a").apply("a a"), Err(2));
    }

    #[test]
    fn shares_are_apart_and_together_everything() {
        let shares: Vec<Share> = (0..3).map(|index| Share::parse(&format!("{index}/3")).unwrap()).collect();
        for index in 0..10 {
            assert_eq!(shares.iter().filter(|share| share.contains(index)).count(), 1, "{index}");
        }
        for text in ["3/3", "1", "a/b", "0/0"] {
            assert_eq!(Share::parse(text), Err(format!("{text:?} is no share: write 0/8 to 7/8")));
        }
    }

    #[test]
    fn every_mutant_of_the_list_applies_and_is_another_one() {
        let tree = SourceTree::of_git(&Workspace::load().unwrap().root).unwrap();
        let mutants = list(&tree).unwrap();
        assert!(mutants.len() >= 40, "{}", mutants.len());
        let mut results = BTreeSet::new();
        for mutant in &mutants {
            let text = tree.text(&mutant.file).unwrap();
            let mutated = mutant.apply(text).expect(&mutant.means);
            assert_ne!(mutated, text, "{}", mutant.means);
            assert!(results.insert(mutated), "twice: {}", mutant.means);
            assert!(mutant.tested_by().is_ok(), "{}", mutant.file.display());
        }
        // Every pure crate has some.
        for pure in map::CRATES.iter().filter(|it| it.kind == map::Kind::Pure) {
            let folder = Path::new("crates").join(pure.name).join("src");
            assert!(mutants.iter().any(|mutant| mutant.file.starts_with(&folder)), "{} has no mutant", pure.name);
        }
    }
}
