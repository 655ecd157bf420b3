//! The workspace as cargo tells it: the few fields of `cargo metadata` that the chores need.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use serde::Deserialize;

/// The members and the two folders.
#[derive(Debug, Deserialize)]
pub struct Workspace {
    /// Folder of the root manifest.
    #[serde(rename = "workspace_root")]
    pub root: PathBuf,
    /// Where cargo puts what it builds.
    pub target_directory: PathBuf,
    /// The members only.
    pub packages: Vec<Package>,
}

/// One member.
#[derive(Debug, Deserialize)]
pub struct Package {
    /// As in its manifest, with prefix.
    pub name: String,
    /// Its `Cargo.toml`.
    pub manifest_path: PathBuf,
    /// Its own dependencies, not theirs.
    pub dependencies: Vec<Dependency>,
}

/// A direct dependency as the manifest states it, workspace settings merged in.
#[derive(Debug, Deserialize)]
pub struct Dependency {
    /// Name of the package, even where it is renamed.
    pub name: String,
    /// When it is needed.
    #[serde(default, deserialize_with = "null_is_default")]
    pub kind: DependencyKind,
    /// Features asked for by name.
    pub features: Vec<String>,
    /// Whether the default features come too.
    pub uses_default_features: bool,
}

/// When a dependency is needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DependencyKind {
    /// To run the package.
    #[default]
    Normal,
    /// To build the package.
    Build,
    /// To test the package.
    Dev,
}

impl Workspace {
    /// Asks cargo about the workspace around the current folder.
    pub fn load() -> anyhow::Result<Self> {
        let output =
            cargo().args(["metadata", "--format-version", "1", "--no-deps"]).output().context("cannot run cargo")?;
        ensure!(
            output.status.success(),
            "cargo metadata failed: {}",
            String::from_utf8_lossy(&output.stderr).trim_end()
        );
        Self::parse(&output.stdout)
    }

    /// Parses what `cargo metadata --format-version 1 --no-deps` printed.
    pub fn parse(json: &[u8]) -> anyhow::Result<Self> {
        serde_json::from_slice(json).context("cargo metadata printed something unexpected")
    }

    /// The output of a git command in the root.
    pub fn git(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let output = Command::new("git").args(arguments).current_dir(&self.root).output().context("cannot run git")?;
        ensure!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr).trim_end());
        String::from_utf8(output.stdout).context("git prints what is not UTF-8")
    }

    /// The folder of a member, relative to the root.
    pub fn folder_of<'a>(&self, package: &'a Package) -> &'a Path {
        let folder = package.manifest_path.parent().unwrap_or(&package.manifest_path);
        folder.strip_prefix(&self.root).unwrap_or(folder)
    }
}

/// The cargo that runs us, so that a build here uses the same toolchain.
pub fn cargo() -> Command {
    Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

fn null_is_default<'de, D>(deserializer: D) -> Result<DependencyKind, D::Error>
where
    D: serde::Deserializer<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_and_folders_are_read() {
        let workspace = Workspace::parse(
            br#"{
                "workspace_root": "/repo",
                "target_directory": "/repo/target",
                "packages": [{
                    "name": "pillion-plan",
                    "manifest_path": "/repo/crates/plan/Cargo.toml",
                    "dependencies": [
                        {"name": "kube", "kind": null, "features": ["derive"], "uses_default_features": false},
                        {"name": "tempfile", "kind": "dev", "features": [], "uses_default_features": true}
                    ]
                }]
            }"#,
        )
        .unwrap();
        let plan = &workspace.packages[0];
        assert_eq!(workspace.folder_of(plan), Path::new("crates/plan"));
        assert_eq!(plan.dependencies[0].kind, DependencyKind::Normal);
        assert_eq!(plan.dependencies[0].features, ["derive"]);
        assert_eq!(plan.dependencies[1].kind, DependencyKind::Dev);
    }

    #[test]
    fn this_workspace_is_read() {
        let workspace = Workspace::load().unwrap();
        let xtask = workspace.packages.iter().find(|package| package.name == "xtask").unwrap();
        assert_eq!(workspace.folder_of(xtask), Path::new("crates/xtask"));
    }
}
