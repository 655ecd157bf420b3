//! The keeper process: parent of every part of one bed, and the one that cleans up.
//!
//! It is started by the process that wants a bed and holds the reading end of a pipe to it. When the pipe
//! closes, by an orderly end or because the starter was killed, the keeper ends all parts and removes what
//! is left of them. One thread does everything but read the pipe, so that `--pdeathsig` of the parts, which is
//! bound to the parent's *thread*, means the keeper.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{self, BufRead, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{self, Pid, WaitOptions};

use crate::keeper::protocol::{Part, Reply, Request, Signal};
use crate::keeper::{cleanup, descendants};
use crate::slot::Slot;

/// How soon an ended part is noticed.
const TICK: Duration = Duration::from_millis(20);
/// How long cleaning up may take before what is left is reported.
const PATIENCE: Duration = Duration::from_mins(1);

/// Runs until the pipe closes or an end is asked for. `locks` is the folder of slot locks.
pub(crate) fn keep(locks: &Path) -> io::Result<()> {
    // Out of the terminal's reach: an interrupt there ends the starter, and us by the pipe.
    process::setsid()?;
    process::set_child_subreaper(Some(process::getpid()))?;
    let held = Slot::take(locks)?;
    // A keeper that was itself killed may have left something in this slot.
    let left = cleanup::remove_all(held.slot, Instant::now() + PATIENCE);
    if !left.is_empty() {
        return Err(io::Error::other(format!("cannot clear slot of an earlier bed: {}", left.join(", "))));
    }
    sweep_others(locks)?;
    std::fs::create_dir(held.slot.folder())?;
    say(&Reply::Holding { slot: held.slot })?;

    let mut keeper = Keeper { parts: BTreeMap::new() };
    // A starter that died while we answered is the same as a closed pipe.
    let served = keeper.serve(&requests());
    let stubborn = descendants::end_all(|| drop(keeper.reap()), Instant::now() + PATIENCE);
    let mut left: Vec<String> = stubborn.iter().map(|pid| format!("process {pid}")).collect();
    left.extend(cleanup::remove_all(held.slot, Instant::now() + PATIENCE));
    if left.is_empty() { served } else { Err(io::Error::other(format!("could not remove {}", left.join(", ")))) }
}

/// Clears every other slot whose keeper was killed: no later bed may ever come to take it.
fn sweep_others(locks: &Path) -> io::Result<()> {
    for slot in Slot::all().filter(|slot| cleanup::is_in_use(*slot)) {
        let Some(abandoned) = slot.try_hold(locks)? else { continue };
        // What cannot be removed is in nobody's way until a bed takes that slot, which then says so.
        cleanup::remove_all(abandoned.slot, Instant::now() + PATIENCE);
    }
    Ok(())
}

fn requests() -> Receiver<Request> {
    let (request_tx, request_rx) = channel();
    thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            let request = serde_json::from_str(&line).unwrap_or(Request::End);
            if request_tx.send(request).is_err() {
                return;
            }
        }
    });
    request_rx
}

fn say(reply: &Reply) -> io::Result<()> {
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, reply)?;
    writeln!(out)?;
    out.flush()
}

struct Keeper {
    /// Living parts by process.
    parts: BTreeMap<i32, String>,
}

impl Keeper {
    fn serve(&mut self, requests: &Receiver<Request>) -> io::Result<()> {
        loop {
            match requests.recv_timeout(TICK) {
                Ok(Request::Run(part)) => {
                    let reply = match run(&part) {
                        Ok(pid) => {
                            self.parts.insert(pid, part.name);
                            Reply::Running { pid }
                        }
                        Err(error) => Reply::Failed { why: format!("cannot run {}: {error}", part.program.display()) },
                    };
                    say(&reply)?;
                }
                Ok(Request::Signal { name, signal }) => say(&self.signal(&name, signal))?,
                Ok(Request::End) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
                Err(RecvTimeoutError::Timeout) => {}
            }
            for (name, how) in self.reap() {
                say(&Reply::Exited { name, how })?;
            }
        }
    }

    fn signal(&self, name: &str, signal: Signal) -> Reply {
        let Some(pid) = self.parts.iter().find(|(_, part)| *part == name).and_then(|(pid, _)| Pid::from_raw(*pid))
        else {
            return Reply::Failed { why: format!("{name} does not run") };
        };
        let number = match signal {
            Signal::Terminate => process::Signal::TERM,
            Signal::Kill => process::Signal::KILL,
            Signal::Freeze => process::Signal::STOP,
            Signal::Thaw => process::Signal::CONT,
        };
        match process::kill_process(pid, number) {
            Ok(()) => Reply::Signalled,
            Err(error) => Reply::Failed { why: format!("cannot signal {name}: {error}") },
        }
    }

    /// Collects ended children, adopted ones included; returns the parts among them.
    fn reap(&mut self) -> Vec<(String, String)> {
        let mut ended = Vec::new();
        while let Ok(Some((pid, status))) = process::wait(WaitOptions::NOHANG) {
            if let Some(name) = self.parts.remove(&pid.as_raw_nonzero().get()) {
                ended.push((name, ExitStatus::from_raw(status.as_raw()).to_string()));
            }
        }
        ended
    }
}

fn run(part: &Part) -> io::Result<i32> {
    let log = OpenOptions::new().create(true).append(true).open(&part.log)?;
    let child = Command::new("setpriv")
        .args(["--pdeathsig", "KILL", "--"])
        .arg(&part.program)
        .args(&part.arguments)
        .envs(part.environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()?;
    Ok(child.id().cast_signed())
}
