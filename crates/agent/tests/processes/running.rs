//! A started agent: its lines, its end; each waited for with a deadline.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

pub(crate) const WRAPPER: &str = env!("CARGO_BIN_EXE_pillion-wrap");
/// Generous, because the machine may be building something else meanwhile.
const DEADLINE: Duration = Duration::from_secs(30);

pub(crate) struct Running {
    child: Child,
    line_rx: Receiver<String>,
    told_rx: Receiver<String>,
}

/// How a program ended: its code, what it and its agent said on stdout and on stderr. No code if it was killed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) told: String,
}

pub(crate) fn agent() -> Command {
    Command::new(env!("CARGO_BIN_EXE_pillion-agent"))
}

pub(crate) fn wrapper() -> Command {
    Command::new(WRAPPER)
}

pub(crate) fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < DEADLINE, "waited {DEADLINE:?} for: {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

pub(crate) fn run_to_end(command: &mut Command) -> Ended {
    Running::start(command).end()
}

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the agent starts");
        let line_rx = lines_of(child.stdout.take().expect("stdout is piped"));
        let told_rx = lines_of(child.stderr.take().expect("stderr is piped"));
        Self { child, line_rx, told_rx }
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// The next line of the wrapped program.
    pub(crate) fn line(&self) -> String {
        self.line_rx.recv_timeout(DEADLINE).expect("the program prints another line")
    }

    /// The next line that is the number of a process.
    pub(crate) fn pid_line(&self) -> Pid {
        self.line().parse().ok().and_then(Pid::from_raw).expect("the program prints the number of a process")
    }

    /// The next line of the agent itself.
    pub(crate) fn told(&self) -> String {
        self.told_rx.recv_timeout(DEADLINE).expect("the agent says another line")
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("the agent is there to be signalled");
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("the agent is our child").is_none()
    }

    /// Waits for its end, and takes all that was not read before.
    pub(crate) fn end(mut self) -> Ended {
        let mut status = None;
        wait_until("the agent to exit", || {
            status = self.child.try_wait().expect("the agent is our child");
            status.is_some()
        });
        let code = status.expect("the wait above ended with a status").code();
        Ended { code, out: rest(&self.line_rx), told: rest(&self.told_rx) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Gone already where a test waited for the end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn lines_of(stream: impl Read + Send + 'static) -> Receiver<String> {
    let (line_tx, line_rx) = channel();
    thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            if line_tx.send(line).is_err() {
                break;
            }
        }
    });
    line_rx
}

/// The stream ends when all processes that hold it have: a test of left-over processes notices one here.
fn rest(line_rx: &Receiver<String>) -> String {
    let mut text = String::new();
    loop {
        match line_rx.recv_timeout(DEADLINE) {
            Ok(line) => text += &(line + "\n"),
            Err(error) => {
                assert_eq!(error, RecvTimeoutError::Disconnected, "somebody still holds the output after: {text}");
                return text;
            }
        }
    }
}

/// A line of `/proc/<pid>/status`; none if the process is gone.
pub(crate) fn status_of(pid: Pid, key: &str) -> Option<String> {
    let status = fs::read_to_string(folder_of(pid).join("status")).ok()?;
    status.lines().find_map(|line| Some(line.strip_prefix(key)?.strip_prefix(':')?.trim().to_owned()))
}

pub(crate) fn folder_of(pid: Pid) -> PathBuf {
    Path::new("/proc").join(pid.as_raw_nonzero().to_string())
}

pub(crate) fn children_of(pid: Pid) -> Vec<Pid> {
    let number = pid.as_raw_nonzero();
    let listed = fs::read_to_string(folder_of(pid).join(format!("task/{number}/children"))).unwrap_or_default();
    listed.split_whitespace().filter_map(|number| Pid::from_raw(number.parse().ok()?)).collect()
}
