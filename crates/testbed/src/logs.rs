//! Logs of a bed's parts: one folder, kept and pointed at unless the bed was stopped in order.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use pillion_tools::workspace_root;

use crate::error::Error;

/// Lines of a log that the end of its part shows.
const SHOWN: usize = 12;
/// Folders of failed beds that are kept.
const KEPT: usize = 20;

/// The folder. Dropped without [`Logs::discard`], it stays and says where it is.
#[derive(Debug)]
pub(crate) struct Logs {
    folder: PathBuf,
    discard: bool,
}

/// Cargo's target folder, where artifacts of builds and tests go.
pub(crate) fn target_folder() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace_root().join("target"), PathBuf::from)
}

impl Logs {
    pub(crate) fn create(name: &str) -> Result<Self, Error> {
        let all = target_folder().join("bed-logs");
        forget_oldest(&all);
        let folder = all.join(format!("{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).map_err(Error::file(&folder))?;
        Ok(Self { folder, discard: false })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Nothing went wrong: the folder goes when this value does.
    pub(crate) fn discard(&mut self) {
        self.discard = true;
    }
}

impl Drop for Logs {
    #[expect(clippy::print_stderr, reason = "the one place a failing test hears of")]
    fn drop(&mut self) {
        if self.discard {
            let _ = fs::remove_dir_all(&self.folder);
            return;
        }
        eprintln!("logs of the bed are kept in {}", self.folder.display());
    }
}

/// The last lines of a log.
pub(crate) fn tail(log: &Path) -> String {
    let bytes = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(SHOWN)..].join("\n")
}

fn forget_oldest(all: &Path) {
    let mut folders: Vec<_> = fs::read_dir(all)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    folders.sort();
    for (_, folder) in folders.iter().rev().skip(KEPT) {
        let _ = fs::remove_dir_all(folder);
    }
}
