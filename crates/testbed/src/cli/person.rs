//! `up`, `status`, `kubectl`, `down`: one bed that outlives the command that started it.
//!
//! `up` starts a process of its own session (`hold`) that owns the bed, and relays its progress. A lock that the holder
//! keeps, and not a process number in a file, tells whether the bed lives.

use std::env;
use std::fs::{self, File, TryLockError};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use pillion_tools::Cache;
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use tokio::signal::unix::{SignalKind, signal};

use super::Content;
use crate::bed::Bed;
use crate::cluster::Cluster;
use crate::wait::{Look, until};

/// How long an orderly end may take.
const PATIENCE: Duration = Duration::from_mins(1);
/// The line by which the holder says that the bed is ready.
const READY: &str = "ready";

#[derive(Serialize, Deserialize)]
struct State {
    holder: u32,
    cluster: Cluster,
}

/// Where the state is, unless a test wants its own beside a person's.
fn folder() -> PathBuf {
    env::var_os("PILLION_BED_STATE").map_or_else(|| Cache::of_user().root().join("beds"), PathBuf::from)
}

fn state_file() -> PathBuf {
    folder().join("up.json")
}

/// The lock of the holder; `None` while a bed is up.
fn free_lock() -> Result<Option<File>> {
    fs::create_dir_all(folder())?;
    let lock = File::create(folder().join("up.lock"))?;
    match lock.try_lock() {
        Ok(()) => Ok(Some(lock)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error.into()),
    }
}

fn running() -> Result<State> {
    if free_lock()?.is_some() {
        bail!("no bed is up: start one with \"just bed up --node\"");
    }
    let text = fs::read_to_string(state_file()).context("the bed is not ready yet: try again in a few seconds")?;
    Ok(serde_json::from_str(&text)?)
}

#[expect(clippy::print_stderr, reason = "progress is talk")]
pub(super) fn up(content: &Content) -> Result<ExitCode> {
    if free_lock()?.is_none() {
        bail!("a bed is up already: see \"just bed status\", stop it with \"just bed down\"");
    }
    let log = folder().join("up.log");
    let mut holder = Command::new("setsid")
        .arg(env::current_exe()?)
        .arg("hold")
        .args(content.arguments())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(File::create(&log)?)
        .spawn()
        .context("cannot start the process that holds the bed")?;
    let output = holder.stdout.take().context("its output is not piped")?;
    for line in BufReader::new(output).lines() {
        let line = line?;
        if line == READY {
            let state = running()?;
            eprintln!("export KUBECONFIG={}", state.cluster.kubeconfig().display());
            eprintln!("or: just bed kubectl get nodes; end it with: just bed down");
            return Ok(ExitCode::SUCCESS);
        }
        eprintln!("{line}");
    }
    let _ = holder.wait();
    bail!("the bed did not come up:\n{}", fs::read_to_string(&log)?.trim());
}

pub(super) async fn hold(content: &Content) -> Result<ExitCode> {
    let Some(_lock) = free_lock()? else { bail!("a bed is up already") };
    let mut end = signal(SignalKind::terminate())?;
    let say = |line: &str| {
        // `up` may have been interrupted; the bed comes up all the same.
        let _ = writeln!(io::stdout(), "{line}");
    };
    let bed = tokio::select! {
        bed = Bed::start_with(content.config("up"), say) => bed?,
        _ = end.recv() => return Ok(ExitCode::FAILURE),
    };
    let state = State { holder: std::process::id(), cluster: bed.cluster().clone() };
    fs::write(state_file(), serde_json::to_vec(&state)?)?;
    say(READY);
    end.recv().await;
    fs::remove_file(state_file())?;
    bed.stop().await?;
    Ok(ExitCode::SUCCESS)
}

#[expect(clippy::print_stdout, reason = "the status is this command's data")]
pub(super) async fn status() -> Result<ExitCode> {
    let state = running()?;
    let cluster = &state.cluster;
    let (nodes, ready) = cluster.nodes().await?;
    println!("bed         {} on {}, held by process {}", cluster.slot.name(), cluster.host(), state.holder);
    println!("nodes       {} of {} ready", ready.len(), nodes.len());
    println!("kubeconfig  {}", cluster.kubeconfig().display());
    println!("audit log   {}", cluster.audit_log().display());
    println!("logs        {}", cluster.logs().display());
    Ok(ExitCode::SUCCESS)
}

pub(super) fn kubectl(arguments: &[String]) -> Result<ExitCode> {
    let failed = running()?.cluster.kubectl(arguments)?.exec();
    Err(failed).context("cannot run kubectl")
}

#[expect(clippy::print_stderr, reason = "progress is talk")]
pub(super) async fn down() -> Result<ExitCode> {
    let state = running()?;
    let began = Instant::now();
    let holder = i32::try_from(state.holder).ok().and_then(Pid::from_raw).context("the state file names no process")?;
    kill_process(holder, Signal::TERM)?;
    until("the bed to end", PATIENCE, || async {
        Ok(match free_lock() {
            Ok(Some(_)) => Look::Done(()),
            Ok(None) => Look::NotYet(format!("process {} still holds it", state.holder)),
            Err(error) => Look::NotYet(error.to_string()),
        })
    })
    .await?;
    eprintln!("{} ended in {:.1} s, nothing is left", state.cluster.slot.name(), began.elapsed().as_secs_f32());
    Ok(ExitCode::SUCCESS)
}
