//! `testapp pause`: ends when told, leaves no zombies.

use std::fs;
use std::path::Path;
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};

use crate::running::{Running, wait_until};

// The children end by themselves, so that a test that fails leaves nothing behind for long.
const LEAVE_ONE_RUNNING: &str = r#"
"$testapp" run --exit-after 1m > /dev/null & echo $!
"#;

const LEAVE_TWO_RUNNING: &str = r#"
"$testapp" run --exit-after 1m > /dev/null & echo $!
"$testapp" run --exit-after 1m > /dev/null & echo $!
"#;

/// A shell becomes `pause` and so leaves it children it never started, as a namespace leaves orphans to its PID 1.
fn pause_after(script: &str) -> Running {
    let running = start(&format!("{script}\nexec \"$testapp\" pause"), Path::new(""));
    wait_until_pausing(&running);
    running
}

fn start(script: &str, lock: &Path) -> Running {
    Running::start(
        Command::new("/bin/sh")
            .env_clear()
            .env("testapp", env!("CARGO_BIN_EXE_testapp"))
            .env("lock", lock)
            .args(["-c", script]),
    )
}

fn wait_until_pausing(running: &Running) {
    wait_until("the shell to become pause, with its handlers", || {
        cmdline(running) == concat!(env!("CARGO_BIN_EXE_testapp"), "\0pause\0")
            && catches(&running.process_folder(), Signal::CHILD)
    });
}

fn cmdline(running: &Running) -> String {
    fs::read_to_string(running.process_folder().join("cmdline")).expect("the shell or pause runs")
}

fn catches(process: &Path, signal: Signal) -> bool {
    let status = fs::read_to_string(process.join("status")).expect("pause runs");
    let caught = status
        .lines()
        .find_map(|line| line.strip_prefix("SigCgt:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .expect("the kernel tells the caught signals");
    caught & (1 << (signal.as_raw() - 1)) != 0
}

fn kill(pid: &str) {
    let pid = pid.parse().ok().and_then(Pid::from_raw).expect("the shell told a pid");
    kill_process(pid, Signal::KILL).expect("the child is there to be killed");
}

fn wait_until_reaped(pid: &str) {
    // A zombie keeps its entry.
    wait_until(&format!("pause to reap its child {pid}"), || !Path::new("/proc").join(pid).exists());
}

#[test]
fn term_and_int_exit_zero() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut pausing = pause_after("");
        pausing.signal(signal);
        assert_eq!(pausing.wait_for_exit().code(), Some(0));
    }
}

#[test]
fn a_child_that_ended_before_the_handler_was_there_is_reaped() {
    // A shell reaps whatever it is the parent of; `flock` only waits and then becomes pause.
    let lock = tempfile::NamedTempFile::new().unwrap();
    lock.as_file().lock().unwrap();
    let script = format!("{LEAVE_ONE_RUNNING}\nexec /usr/bin/flock --no-fork \"$lock\" \"$testapp\" pause");
    let pausing = start(&script, lock.path());
    let child = pausing.line();
    wait_until("the shell to become flock", || cmdline(&pausing).starts_with("/usr/bin/flock\0"));
    kill(&child);
    wait_until("the child to be a zombie", || {
        let status = fs::read_to_string(format!("/proc/{child}/status")).unwrap();
        status.contains("\nState:\tZ")
    });
    lock.as_file().unlock().unwrap();
    wait_until_pausing(&pausing);
    wait_until_reaped(&child);
}

#[test]
fn children_are_reaped_one_after_the_other() {
    let pausing = pause_after(LEAVE_TWO_RUNNING);
    for child in [pausing.line(), pausing.line()] {
        kill(&child);
        wait_until_reaped(&child);
    }
}
