//! The one process that is signalled: found by how its command line begins, held by a descriptor, looked at again, and
//! only then signalled.
//!
//! Never the first process (it keeps the pod together), never the agent itself, never one of several, and never one that
//! would be ended by the signal because it does not handle it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, getpid, getuid, pidfd_open, pidfd_send_signal, test_kill_process};

/// Signals that ask a program to do something, and have no other meaning to it.
const ALLOWED: [(&str, Signal); 4] =
    [("SIGHUP", Signal::HUP), ("SIGUSR1", Signal::USR1), ("SIGUSR2", Signal::USR2), ("SIGWINCH", Signal::WINCH)];

/// A process that was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: i32,
    /// When it started, in ticks since the machine did; another process with the same number has another.
    start_time: u64,
    /// With blanks between the words.
    command_line: String,
}

/// What is seen of processes.
#[derive(Debug)]
pub(super) struct Processes {
    /// `/proc`.
    root: PathBuf,
    own: i32,
}

/// Why no process was signalled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NoSignal {
    /// Only the agent's own processes are seen.
    NothingSeen,
    /// Nothing begins so.
    NoMatch(String),
    /// Several begin so.
    Several(String),
    /// It may not be signalled by this user.
    NotPermitted(String),
    /// Whatever else.
    Refused(String),
}

/// The signal of this name, if it is one of the few that may be sent.
pub(super) fn signal_named(name: &str) -> Result<Signal, String> {
    let long = if name.starts_with("SIG") { name.to_owned() } else { format!("SIG{name}") };
    let found = ALLOWED.iter().find(|(allowed, _)| *allowed == long);
    found
        .map(|(_, signal)| *signal)
        .ok_or_else(|| format!("signalName {name:?} is not allowed: write SIGHUP, SIGUSR1, SIGUSR2 or SIGWINCH"))
}

impl Processes {
    /// Those of this machine, or of this pod's namespace.
    pub(super) fn of_system() -> Self {
        Self { root: PathBuf::from("/proc"), own: getpid().as_raw_nonzero().get() }
    }

    /// Whether processes of other containers are seen.
    pub(super) fn sees_others(&self) -> bool {
        // Alone in its namespace the agent is the first process; in a shared one that is the pod's.
        self.own != 1 && self.all().any(|pid| pid != self.own)
    }

    fn all(&self) -> impl Iterator<Item = i32> + use<> {
        let entries = fs::read_dir(&self.root).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
    }

    /// The only process whose command line begins so.
    pub(super) fn find(&self, begin: &str) -> Result<Process, NoSignal> {
        if !self.sees_others() {
            return Err(NoSignal::NothingSeen);
        }
        let mut found: Vec<Process> = self
            .all()
            .filter(|pid| *pid != self.own)
            .filter_map(|pid| self.look(pid))
            // Those of the kernel, and those that are gone but for their number, have no command line.
            .filter(|process| !begin.is_empty() && process.command_line.starts_with(begin))
            .collect();
        found.sort_by_key(|process| process.pid);
        match found.as_slice() {
            [] => Err(NoSignal::NoMatch(format!("no process begins with {begin:?}: correct processName"))),
            [Process { pid: 1, .. }] => Err(NoSignal::Refused(format!(
                "only the first process begins with {begin:?}, which is never signalled: share the process namespace of the pod"
            ))),
            [process] => Ok(process.clone()),
            several => {
                let pids: Vec<String> = several.iter().map(|process| process.pid.to_string()).collect();
                Err(NoSignal::Several(format!(
                    "{} processes begin with {begin:?} ({}), and only one may: write more of its command line into processName",
                    pids.len(),
                    pids.join(", ")
                )))
            }
        }
    }

    fn look(&self, pid: i32) -> Option<Process> {
        let dir = self.root.join(pid.to_string());
        let command_line = fs::read(dir.join("cmdline")).ok()?;
        let command_line =
            command_line.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect::<Vec<_>>().join(" ");
        Some(Process { pid, start_time: start_time(&dir)?, command_line: command_line.trim_end().to_owned() })
    }

    /// Whether a process that was seen is still there, and still the same.
    pub(super) fn is_same(&self, process: &Process) -> bool {
        self.look(process.pid).is_some_and(|now| now.start_time == process.start_time && !now.command_line.is_empty())
    }

    /// Whether this user may signal it.
    pub(super) fn may_signal(&self, process: &Process) -> Result<(), NoSignal> {
        let pid = Pid::from_raw(process.pid).ok_or_else(|| NoSignal::Refused("0 is no process".to_owned()))?;
        match test_kill_process(pid) {
            Err(Errno::PERM) => Err(self.not_permitted(process)),
            _ => Ok(()),
        }
    }

    fn not_permitted(&self, process: &Process) -> NoSignal {
        let status = fs::read_to_string(self.root.join(process.pid.to_string()).join("status")).unwrap_or_default();
        let user = field(&status, "Uid:").and_then(|ids| ids.split_whitespace().next()).unwrap_or("another");
        NoSignal::NotPermitted(format!(
            "process {} runs as user {user} and the agent as {}: give both the same runAsUser",
            process.pid,
            getuid().as_raw()
        ))
    }

    /// Signals this very process.
    pub(super) fn signal(&self, process: &Process, signal: Signal) -> Result<(), NoSignal> {
        let Process { pid, command_line, .. } = process;
        if *pid == 1 || *pid == self.own {
            return Err(NoSignal::Refused(format!("process {pid} is never signalled")));
        }
        let gone = || NoSignal::Refused(format!("process {pid} ({command_line}) is gone: another may have its number"));
        let raw = Pid::from_raw(*pid).ok_or_else(gone)?;
        // From here on the descriptor means one process, whatever becomes of its number. What is read from /proc after
        // this is of that process or of a later one, and the start time tells which.
        let descriptor = pidfd_open(raw, PidfdFlags::empty()).map_err(|error| match error {
            Errno::SRCH => gone(),
            error => NoSignal::Refused(format!("cannot hold process {pid}: {}", io::Error::from(error))),
        })?;
        if self.look(*pid).as_ref() != Some(process) {
            return Err(gone());
        }
        self.check_handled(process, signal)?;
        pidfd_send_signal(&descriptor, signal).map_err(|error| match error {
            Errno::PERM => self.not_permitted(process),
            Errno::SRCH => gone(),
            error => NoSignal::Refused(format!("cannot signal process {pid}: {}", io::Error::from(error))),
        })
    }

    /// A program that does not handle one of these signals is ended by it, or does not notice it.
    fn check_handled(&self, process: &Process, signal: Signal) -> Result<(), NoSignal> {
        let status = fs::read_to_string(self.root.join(process.pid.to_string()).join("status")).unwrap_or_default();
        let caught = field(&status, "SigCgt:").and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok());
        let bit = 1_u64 << (signal.as_raw() - 1);
        // A kernel that does not say is believed to have nothing to say.
        if caught.is_none_or(|caught| caught & bit != 0) {
            return Ok(());
        }
        let name = ALLOWED.iter().find(|(_, allowed)| *allowed == signal).map_or("the signal", |(name, _)| name);
        Err(NoSignal::Refused(format!(
            "process {} ({}) does not handle {name}, which would end it or do nothing: choose a signal it handles",
            process.pid, process.command_line
        )))
    }
}

/// The value of a line in `/proc/<pid>/status`.
fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(name))
}

fn start_time(dir: &Path) -> Option<u64> {
    read_start_time(&fs::read_to_string(dir.join("stat")).ok()?)
}

/// The 22nd field; the second may hold anything, blanks and parentheses included.
fn read_start_time(stat: &str) -> Option<u64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests;
