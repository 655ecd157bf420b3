//! Installs one tool: into a `.partial` folder, renamed when whole.

use std::env;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use pillion_tools::{Cache, Recipe, Tool, workspace_root};

use crate::talk;

pub(crate) mod debian;
mod go;

/// Holds the cache for one installer; a second one waits here.
pub(crate) fn lock(cache: &Cache) -> Result<File> {
    let folder = cache.root().join("tools");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let file = File::create(folder.join(".lock"))?;
    if file.try_lock().is_err() {
        talk::say("another \"just tools\" is at work; waiting for it");
        file.lock()?;
    }
    Ok(file)
}

/// Installs `tool` unless its folder is there.
pub(crate) fn tool(cache: &Cache, tool: &Tool, place: &str) -> Result<()> {
    let version = cache.version(tool)?;
    let folder = cache.folder(tool)?;
    if folder.is_dir() {
        return Ok(());
    }
    talk::say(&format!("{place} {} {version}: about {} s from cold on two cores", tool.name, tool.cold_seconds));
    let started = Instant::now();
    let partial = folder.with_extension("partial");
    if partial.exists() {
        fs::remove_dir_all(&partial)?;
    }
    fs::create_dir_all(partial.join("bin"))?;
    match tool.recipe {
        Recipe::Go { .. } => go::build(cache, tool, &version, &partial)?,
        Recipe::Cargo { features, .. } => cargo_install(cache, tool, &version, features, &partial)?,
        Recipe::Python { .. } => python_install(tool, &version, &partial)?,
    }
    fs::rename(&partial, &folder)?;
    talk::say(&format!("{place} {} {version}: done in {} s", tool.name, started.elapsed().as_secs()));
    record(tool.name, started.elapsed());
    Ok(())
}

/// Appends the time of an installation to the file that the gate names, for its table of times. A lost line fails nothing.
fn record(name: &str, elapsed: Duration) {
    let Some(path) = env::var_os("PILLION_TOOL_TIMES") else { return };
    let line = format!("{{\"kind\":\"tool\",\"name\":\"{name}\",\"wall\":{:.1}}}\n", elapsed.as_secs_f64());
    let file = OpenOptions::new().create(true).append(true).open(path);
    let _ = file.and_then(|mut file| file.write_all(line.as_bytes()));
}

fn cargo_install(cache: &Cache, tool: &Tool, version: &str, features: &str, partial: &Path) -> Result<()> {
    // Kept until the install is whole, so that an interrupted build goes on where it stopped.
    let target = cache.root().join("build").join(tool.name);
    let mut command = Command::new(env!("CARGO"));
    command
        .current_dir(workspace_root())
        .args(["install", "--locked", "--version", version, "--root"])
        .arg(partial)
        .arg("--target-dir")
        .arg(&target)
        // These run for seconds; an optimised build of them takes minutes more than it saves.
        .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0")
        .env("CARGO_PROFILE_RELEASE_LTO", "false")
        .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16")
        .env("CARGO_PROFILE_RELEASE_DEBUG", "0")
        .env_remove("RUSTFLAGS");
    if !features.is_empty() {
        command.args(["--no-default-features", "--features", features]);
    }
    talk::run(&format!("{} {version}", tool.name), "lines of cargo", command.arg(tool.name))?;
    fs::remove_dir_all(&target)?;
    Ok(())
}

fn python_install(tool: &Tool, version: &str, partial: &Path) -> Result<()> {
    let mut command = Command::new("python3");
    command
        .args(["-m", "pip", "install", "--quiet", "--no-deps", "--upgrade", "--target"])
        .arg(partial)
        .arg(format!("{}=={version}", tool.name));
    talk::run(&format!("{} {version}", tool.name), "lines of pip", &mut command)
        .context("python3 with pip is needed: on Debian \"apt-get install python3-pip\"")
}
