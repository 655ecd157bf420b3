//! Builds a Go tool from its private module, which pins it and all it depends on by checksum.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use pillion_tools::{Cache, Recipe, Tool};

use crate::talk;

/// Builds the programs of `tool` into `partial/bin` and copies its data folders to `partial/share`.
pub(super) fn build(cache: &Cache, tool: &Tool, version: &str, partial: &Path) -> Result<()> {
    let Recipe::Go { module, programs, version_variables, share } = tool.recipe else {
        bail!("{} is not a Go tool", tool.name);
    };
    let folder = cache.module(tool);
    let linker_flags = linker_flags(version, version_variables);
    for (program, package) in programs {
        let mut command = Command::new("go");
        command
            .current_dir(&folder)
            .env("CGO_ENABLED", "0")
            // The compiler is a Go program that ends soon: it may use memory instead of time for its garbage.
            .env("GOGC", "400")
            .args(["build", "-v", "-mod=readonly", "-buildvcs=false", "-trimpath", "-ldflags", &linker_flags, "-o"])
            .arg(partial.join("bin").join(program))
            .arg(package);
        talk::run(&format!("{} {version}, {program}", tool.name), "packages", &mut command)
            .context("Go 1.26 is needed to build it")?;
    }
    if !share.is_empty() {
        let sources = module_folder(&folder, module)?;
        for data in share {
            copy_tree(&sources.join(data), &partial.join("share").join(data))?;
        }
    }
    Ok(())
}

fn linker_flags(version: &str, variables: &[&str]) -> String {
    let mut numbers = version.trim_start_matches('v').split('.');
    let (major, minor) = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
    let mut flags = String::from("-s -w");
    for variable in variables {
        let filled = variable.replace("{version}", version).replace("{major}", major).replace("{minor}", minor);
        flags.push_str(" -X ");
        flags.push_str(&filled);
    }
    flags
}

/// Where Go keeps the sources of a module.
fn module_folder(folder: &Path, module: &str) -> Result<PathBuf> {
    let output = Command::new("go").current_dir(folder).args(["list", "-m", "-f", "{{.Dir}}", module]).output()?;
    if !output.status.success() {
        bail!("go list -m {module}: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(PathBuf::from(String::from_utf8(output.stdout)?.trim()))
}

fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_tree(&entry.path(), &target)?;
        } else {
            // Contents only: files of the module cache are read-only, and ours should be removable.
            fs::write(&target, fs::read(entry.path())?)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_variables_are_filled_in() {
        assert_eq!(
            linker_flags("v1.36.4", &["a.version={version}", "a.major={major}", "a.minor={minor}"]),
            "-s -w -X a.version=v1.36.4 -X a.major=1 -X a.minor=36",
        );
    }
}
