//! Our own programs, as they were built beside the running test.

use std::path::PathBuf;

use anyhow::{Context, Result};

/// The path of a program of ours.
pub fn path(name: &str) -> Result<PathBuf> {
    let own = std::env::current_exe()?;
    let folders = own.ancestors().skip(1).take(2);
    let mut beside = folders.flat_map(|folder| [folder.join(name), folder.join("examples").join(name)]);
    beside.find(|path| path.is_file()).with_context(|| format!("{name} is not built: run the tests with `just e2e`"))
}
