//! A started testapp: its lines, its HTTP answers, its end; each waited for with a deadline.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Generous, because the machine may be building something else meanwhile.
const DEADLINE: Duration = Duration::from_secs(20);

pub(crate) struct Running {
    child: Child,
    line_rx: Receiver<String>,
    pub(crate) address: String,
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
}

/// The program without any setting of the machine it runs on.
pub(crate) fn testapp() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_testapp"));
    command.env_clear();
    command
}

pub(crate) fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < DEADLINE, "waited {DEADLINE:?} for: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Runs it to its end: its exit code, what it said on stdout and on stderr. There is no code if it had to be killed.
pub(crate) fn run_to_end(command: &mut Command) -> (Option<i32>, String, String) {
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("testapp starts");
    let start = Instant::now();
    while child.try_wait().expect("testapp is our child").is_none() {
        if start.elapsed() > DEADLINE {
            child.kill().expect("testapp is our child");
        }
        thread::sleep(Duration::from_millis(5));
    }
    let Output { status, stdout, stderr } = child.wait_with_output().expect("testapp has ended");
    let text = |bytes| String::from_utf8(bytes).expect("testapp prints text");
    (status.code(), text(stdout), text(stderr))
}

impl Running {
    /// Starts it as given.
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("testapp starts");
        let stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
        let (line_tx, line_rx) = channel();
        thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if line_tx.send(line).is_err() {
                    break;
                }
            }
        });
        Self { child, line_rx, address: String::new() }
    }

    /// Starts `testapp run --port auto` with more flags, and waits until it listens.
    pub(crate) fn serving(flags: &[&str]) -> Self {
        let mut app = Self::start(testapp().args(["run", "--port", "auto"]).args(flags));
        assert_eq!(app.line(), "started name=testapp version=dev");
        app.learn_address();
        app
    }

    /// Takes the line that tells where it listens.
    pub(crate) fn learn_address(&mut self) {
        let listening = self.line();
        let address = listening.strip_prefix("listening ");
        self.address = address.expect("this line tells the address").into();
    }

    pub(crate) fn line(&self) -> String {
        self.line_rx.recv_timeout(DEADLINE).expect("testapp prints another line")
    }

    /// The lines up to the end of its output.
    pub(crate) fn remaining_lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        while let Ok(line) = self.line_rx.recv_timeout(DEADLINE) {
            lines.push(line);
        }
        lines
    }

    pub(crate) fn process_folder(&self) -> PathBuf {
        Path::new("/proc").join(self.pid().to_string())
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.pid()).expect("pids are small");
        let pid = Pid::from_raw(pid).expect("pids are not zero");
        kill_process(pid, signal).expect("testapp is there to be signalled");
    }

    pub(crate) fn wait_for_exit(&mut self) -> ExitStatus {
        let mut status = None;
        wait_until("testapp to exit", || {
            status = self.child.try_wait().expect("testapp is our child");
            status.is_some()
        });
        status.expect("the wait above ended with a status")
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.request("GET", path, "")
    }

    pub(crate) fn post(&self, path: &str, body: &str) -> Answer {
        self.request("POST", path, body)
    }

    pub(crate) fn state(&self) -> Value {
        let answer = self.get("/state");
        assert_eq!(answer.status, 200, "{}", answer.body);
        serde_json::from_str(&answer.body).expect("the state is JSON")
    }

    fn request(&self, method: &str, path: &str, body: &str) -> Answer {
        let mut stream = TcpStream::connect(&self.address).expect("testapp listens");
        stream.set_read_timeout(Some(DEADLINE)).expect("the deadline is not zero");
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: testapp\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        )
        .expect("testapp takes the request");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("testapp answers");
        let (head, body) = answer.split_once("\r\n\r\n").expect("the answer has headers");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        Answer { status: status.expect("the answer has a status"), body: body.to_owned() }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Already gone in the tests that wait for the exit.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
