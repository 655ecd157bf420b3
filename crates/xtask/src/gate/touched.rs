//! Follows a change to what it touches: the packages that `just quick` checks, and the subjects of e2e tests of the tier `nightly`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::workspace::Workspace;

/// Directories, and the subjects of e2e tests that a change in them touches. A change elsewhere
/// touches no subject: the tier `ci` is all that checks it.
const SUBJECTS_OF: [(&str, &[&str]); 16] = [
    ("charts", &["agent", "inject", "safe", "size"]),
    ("crates/agent", &["agent", "finish"]),
    ("crates/agent-api", &["agent"]),
    ("crates/api", &["canary", "inject", "rollout", "safe"]),
    ("crates/cli", &["inject", "rollout", "size", "finish"]),
    ("crates/expr", &["inject"]),
    ("crates/inject", &["inject", "finish"]),
    ("crates/manager", &["agent", "canary", "inject", "rollout", "safe", "size"]),
    ("crates/plan", &["inject", "rollout"]),
    ("crates/pod", &["inject", "rollout", "size"]),
    ("crates/rightsize", &["size"]),
    ("crates/rollout", &["canary", "rollout"]),
    ("crates/runtime", &["agent", "inject", "rollout", "runtime", "size"]),
    ("crates/testapp", &["finish", "smoke"]),
    ("crates/testbed", &["smoke"]),
    ("testbed", &["smoke"]),
];

/// The files that differ from a branch or commit, new ones too.
pub fn files(workspace: &Workspace, base: &str) -> anyhow::Result<BTreeSet<PathBuf>> {
    let common = workspace.git(&["merge-base", base, "HEAD"])?;
    let changed = workspace.git(&["diff", "--name-only", common.trim()])?;
    let new = workspace.git(&["ls-files", "--others", "--exclude-standard"])?;
    Ok(changed.lines().chain(new.lines()).map(PathBuf::from).collect())
}

/// The packages that hold one of these files. A changed `Cargo.lock` or manifest of the workspace touches all of them.
pub fn packages(workspace: &Workspace, files: &BTreeSet<PathBuf>) -> Vec<String> {
    let touches_all = files.iter().any(|file| [Path::new("Cargo.toml"), Path::new("Cargo.lock")].contains(&&**file));
    let holds = |folder: &Path| files.iter().any(|file| file.starts_with(folder));
    let touched = workspace.packages.iter().filter(|it| touches_all || holds(workspace.folder_of(it)));
    touched.map(|package| package.name.clone()).collect()
}

/// The subjects of e2e tests that these files touch.
pub fn subjects(files: &BTreeSet<PathBuf>) -> BTreeSet<&'static str> {
    let of_directories =
        SUBJECTS_OF.iter().filter(|(directory, _)| files.iter().any(|file| file.starts_with(directory)));
    let mut subjects: BTreeSet<&str> = of_directories.flat_map(|(_, subjects)| *subjects).copied().collect();
    for file in files {
        let Ok(test) = file.strip_prefix(super::e2e_tests::DIRECTORY) else { continue };
        let name = test.to_string_lossy();
        subjects.extend(super::steps::SUBJECTS.iter().filter(|subject| name.starts_with(&format!("{subject}_"))));
    }
    subjects
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(paths: &[&str]) -> BTreeSet<PathBuf> {
        paths.iter().map(PathBuf::from).collect()
    }

    #[test]
    fn a_change_touches_its_package_and_the_subjects_of_its_directory() {
        let workspace = Workspace::load().unwrap();
        let files = paths(&["crates/quantity/src/lib.rs", "docs/install.md"]);
        assert_eq!(packages(&workspace, &files), ["pillion-quantity"]);
        assert_eq!(packages(&workspace, &paths(&["Cargo.lock"])).len(), workspace.packages.len());
        assert_eq!(subjects(&paths(&["crates/rightsize/src/lib.rs"])), BTreeSet::from(["size"]));
        assert_eq!(subjects(&paths(&["e2e/tests/all/smoke_node.rs"])), BTreeSet::from(["smoke"]));
        assert_eq!(subjects(&paths(&["docs/install.md"])), BTreeSet::new());
        // `agent` is not `agent-api`.
        assert_eq!(subjects(&paths(&["crates/agent-api/src/lib.rs"])), BTreeSet::from(["agent"]));
    }

    #[test]
    fn every_directory_and_subject_of_the_table_exists() {
        let root = Workspace::load().unwrap().root;
        for (directory, subjects) in SUBJECTS_OF {
            assert!(root.join(directory).is_dir(), "{directory}");
            assert!(subjects.iter().all(|it| super::super::steps::SUBJECTS.contains(it)), "{subjects:?}");
        }
    }
}
