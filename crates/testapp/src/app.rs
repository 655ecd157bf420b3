//! What has happened to the app and what it does now: the one value behind signals, timers and HTTP.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use anyhow::Context;
use serde::Serialize;
use tokio::sync::mpsc;

use crate::burn::Burner;
use crate::cgroup::Limits;
use crate::event::emit;

/// The commandable app.
pub(crate) struct App {
    name: String,
    version: String,
    started_at: SystemTime,
    watch_file: Option<PathBuf>,
    exit_tx: mpsc::UnboundedSender<u8>,
    now: Mutex<Now>,
}

/// The part that changes.
struct Now {
    ready: bool,
    word: (u16, String),
    signals: Vec<&'static str>,
    reloads: u64,
    file: Option<String>,
    held: Vec<u8>,
    burner: Burner,
}

/// The answer to `GET /state`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Snapshot {
    name: String,
    version: String,
    pid: u32,
    started_at_unix_ms: u128,
    signals: Vec<&'static str>,
    reloads: u64,
    file: Option<String>,
    memory_held_bytes: usize,
    cpu_burn_millicores: u32,
    cgroup: Limits,
    env: BTreeMap<String, String>,
}

impl App {
    /// An app that does nothing yet; what it is told to exit with goes to `exit_tx`.
    pub(crate) fn new(
        name: String,
        watch_file: Option<PathBuf>,
        ready: bool,
        exit_tx: mpsc::UnboundedSender<u8>,
    ) -> Self {
        Self {
            name,
            version: env::var("TESTAPP_VERSION").unwrap_or_else(|_| "dev".to_owned()),
            started_at: SystemTime::now(),
            watch_file,
            exit_tx,
            now: Mutex::new(Now {
                ready,
                word: (200, String::new()),
                signals: Vec::new(),
                reloads: 0,
                file: None,
                held: Vec::new(),
                burner: Burner::default(),
            }),
        }
    }

    pub(crate) fn announce(&self) {
        emit(format_args!("started name={} version={}", self.name, self.version));
    }

    pub(crate) fn record_signal(&self, name: &'static str) {
        emit(format_args!("signal {name}"));
        self.now().signals.push(name);
    }

    /// Reads the watched file for the first time. It may appear later, so its absence is only told.
    pub(crate) fn load(&self) {
        let Some(path) = &self.watch_file else { return };
        match read(path) {
            Ok(content) => self.now().file = Some(content),
            Err(error) => emit(format_args!("load failed: {error:#}")),
        }
    }

    /// Reads the watched file again; keeps the old content if that fails.
    pub(crate) fn reload(&self) {
        let Some(path) = &self.watch_file else { return };
        match read(path) {
            Ok(content) => {
                let mut now = self.now();
                now.reloads += 1;
                emit(format_args!("reloaded: {}", content.trim_end_matches('\n')));
                now.file = Some(content);
            }
            Err(error) => emit(format_args!("reload failed: {error:#}")),
        }
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.now().ready
    }

    pub(crate) fn set_ready(&self, ready: bool) {
        emit(format_args!("ready {ready}"));
        self.now().ready = ready;
    }

    /// Status and text of the answer to `GET /word`.
    pub(crate) fn word(&self) -> (u16, String) {
        self.now().word.clone()
    }

    pub(crate) fn set_word(&self, status: u16, word: String) {
        self.now().word = (status, word);
    }

    /// Holds exactly this much memory, all of it touched.
    pub(crate) fn hold(&self, bytes: usize) -> anyhow::Result<()> {
        let mut now = self.now();
        // Freed first, so that a change never needs the old and the new amount at once.
        now.held = Vec::new();
        now.held.try_reserve_exact(bytes).with_context(|| format!("cannot hold {bytes} bytes: ask for less"))?;
        now.held.resize(bytes, 1);
        Ok(())
    }

    /// Burns this much CPU from now on.
    pub(crate) fn burn(&self, millicores: u32) -> io::Result<()> {
        self.now().burner = Burner::start(millicores)?;
        Ok(())
    }

    /// Ends the process with this code.
    pub(crate) fn exit(&self, code: u8) {
        // A closed channel means that an earlier call is already ending it.
        let _ = self.exit_tx.send(code);
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        let now = self.now();
        Snapshot {
            name: self.name.clone(),
            version: self.version.clone(),
            pid: process::id(),
            started_at_unix_ms: self
                .started_at
                .duration_since(SystemTime::UNIX_EPOCH)
                .map_or(0, |since_epoch: Duration| since_epoch.as_millis()),
            signals: now.signals.clone(),
            reloads: now.reloads,
            file: now.file.clone(),
            memory_held_bytes: now.held.len(),
            cpu_burn_millicores: now.burner.millicores(),
            cgroup: Limits::read(Path::new("/sys/fs/cgroup")),
            env: env::vars_os()
                .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
                .filter(|(name, _)| name.starts_with("TESTAPP_"))
                .collect(),
        }
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Notes one more start in a file; tells how many there were, this one included.
pub(crate) fn count_start(path: &Path) -> anyhow::Result<usize> {
    let before = fs::read(path).map_or(0, |bytes| bytes.len());
    write(path, &vec![b'.'; before + 1])?;
    Ok(before + 1)
}

/// Writes a file, from the command line or over HTTP.
pub(crate) fn write(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    fs::write(path, content).with_context(|| format!("cannot write {}", path.display()))
}

fn read(path: &Path) -> anyhow::Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}
