//! Our own programs, as they were built beside the running test.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// The path of a program of ours.
pub fn path(name: &str) -> Result<PathBuf> {
    let own = std::env::current_exe()?;
    let folders = own.ancestors().skip(1).take(2);
    let mut beside = folders.flat_map(|folder| [folder.join(name), folder.join("examples").join(name)]);
    beside.find(|path| path.is_file()).with_context(|| format!("{name} is not built: run the tests with `just e2e`"))
}

/// Runs `pillion` with a text as its standard input; returns what it printed.
pub fn pillion(arguments: &[&str], input: &str) -> Result<String> {
    let mut child = Command::new(path("pillion")?)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    child.stdin.take().context("its standard input")?.write_all(input.as_bytes())?;
    let output = child.wait_with_output()?;
    ensure!(output.status.success(), "pillion {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}
