//! The check while somebody works: format, lints and tests of the packages that changed.

use std::process::Command;

use anyhow::Context;

use super::touched;
use crate::workspace::Workspace;

/// Checks the packages that differ from `base`; false if one of the checks fails.
pub fn run(workspace: &Workspace, base: &str, say: &mut dyn FnMut(&str)) -> anyhow::Result<bool> {
    let packages = touched::packages(workspace, &touched::files(workspace, base)?);
    if packages.is_empty() {
        say(&format!("quick: no package differs from {base}"));
        return Ok(true);
    }
    say(&format!("quick: {}", packages.join(" ")));
    let chosen: Vec<&str> = packages.iter().flat_map(|package| ["--package", package]).collect();
    // Tests of this package need a cluster.
    let tested: Vec<&str> =
        packages.iter().filter(|it| *it != "pillion-e2e").flat_map(|it| ["--package", it]).collect();
    let clippy =
        [&["clippy", "--quiet", "--locked", "--all-targets"], &chosen[..], &["--", "--deny", "warnings"]].concat();
    let nextest = [&["nextest", "run", "--locked", "--no-tests=pass", "--status-level=fail"], &tested[..]].concat();
    for arguments in [&["fmt", "--all", "--check"][..], &clippy, &nextest] {
        if tested.is_empty() && arguments[0] == "nextest" {
            continue;
        }
        let status =
            Command::new("cargo").args(arguments).current_dir(&workspace.root).status().context("cannot run cargo")?;
        if !status.success() {
            say(&format!("quick: cargo {} failed", arguments[0]));
            return Ok(false);
        }
    }
    Ok(true)
}
