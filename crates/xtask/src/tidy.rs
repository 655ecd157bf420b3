//! The rules no lint can hold. One file per check; each takes the repository as a value and returns what to put right.

pub mod crate_docs;
pub mod edges;
pub mod external;
pub mod go_modules;
pub mod layout;
pub mod length;
pub mod machine_paths;
pub mod map;
pub mod purity;
pub mod stored_defaults;
pub mod tiers;
pub mod unfinished;

use crate::codegen;
use crate::finding::Finding;
use crate::source_tree::SourceTree;
use crate::workspace::Workspace;

/// The outcome of all checks.
#[derive(Debug)]
pub struct Report {
    /// How many checks ran.
    pub checks: usize,
    /// How many files they looked at.
    pub files: usize,
    /// What to put right, by path.
    pub findings: Vec<Finding>,
}

/// Runs every check.
pub fn run(tree: &SourceTree, workspace: &Workspace) -> anyhow::Result<Report> {
    let results = [
        edges::check(workspace, map::CRATES),
        external::check(workspace, map::CRATES),
        purity::check(tree, map::CRATES),
        length::check(tree, length::LONG_FILES),
        crate_docs::check(tree),
        layout::check(tree),
        machine_paths::check(tree),
        unfinished::check(tree),
        go_modules::check(tree),
        stored_defaults::check(tree),
        tiers::check(tree),
        codegen::check(workspace)?,
    ];
    let checks = results.len();
    let mut findings = results.concat();
    findings.sort();
    Ok(Report { checks, files: tree.files.len(), findings })
}
