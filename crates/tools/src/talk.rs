//! What a waiting person reads, on stderr.
#![expect(clippy::print_stderr, reason = "talk goes to stderr")]

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// How often a long step says that it is alive.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// How many of a failed command's last lines are shown.
const LAST_LINES: usize = 30;

/// Prints one line.
pub(crate) fn say(line: &str) {
    eprintln!("{line}");
}

/// Runs a command to its end, counting the lines it prints as progress; on failure shows the last of them.
pub(crate) fn run(what: &str, unit: &str, command: &mut Command) -> Result<()> {
    let started = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {}", command.get_program().display()))?;
    let (line_tx, line_rx) = channel();
    let errors = child.stderr.take().context("stderr was not piped")?;
    let reader = thread::spawn(move || {
        for line in BufReader::new(errors).lines().map_while(Result::ok) {
            if line_tx.send(line).is_err() {
                return;
            }
        }
    });
    let mut lines: Vec<String> = Vec::new();
    let mut next_word = started + HEARTBEAT;
    loop {
        match line_rx.recv_timeout(next_word.saturating_duration_since(Instant::now())) {
            Ok(line) => lines.push(line),
            Err(RecvTimeoutError::Timeout) => {
                say(&format!("      {what}: {} s, {} {unit}", started.elapsed().as_secs(), lines.len()));
                next_word += HEARTBEAT;
            }
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    let status = child.wait()?;
    // The channel is disconnected, so the thread is past its last line.
    let _ = reader.join();
    if !status.success() {
        let shown = lines.len().saturating_sub(LAST_LINES);
        bail!("{what} ended with {status}; its last lines:\n{}", lines[shown..].join("\n"));
    }
    Ok(())
}
