//! `testapp pause`: ends when told, leaves no zombies.

use std::fs;
use std::path::Path;
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};

use crate::running::{Running, testapp, wait_until};

// The children end by themselves, so that a test that fails leaves nothing behind for long.
const LEAVE_ONE_RUNNING: &str = r#"
"$testapp" run --exit-after 1m > /dev/null & echo $!
"#;

const LEAVE_TWO_RUNNING: &str = r#"
"$testapp" run --exit-after 1m --name orphan-one-of-$$ > /dev/null & echo $!
"$testapp" run --exit-after 1m --name orphan-two-of-$$ > /dev/null & echo $!
"#;

/// Of the shell that knows no children and so reaps none, until it is told to go on.
const BECOME_PAUSE: &str = r#"read -r go_on; exec "$testapp" pause"#;

/// A shell becomes `pause` and so leaves it children it never started, as a namespace leaves orphans to its PID 1.
/// This one is still to be told.
fn about_to_pause(script: &str) -> Running {
    let script = format!("{script}\nexec /bin/sh -c '{BECOME_PAUSE}'");
    let running = Running::start(
        Command::new("/bin/sh").env_clear().env("testapp", env!("CARGO_BIN_EXE_testapp")).args(["-c", &script]),
    );
    wait_until("the shell that becomes pause", || cmdline(&running) == format!("/bin/sh\0-c\0{BECOME_PAUSE}\0"));
    running
}

fn pause_after(script: &str) -> Running {
    let mut running = about_to_pause(script);
    go_on(&mut running);
    running
}

fn go_on(running: &mut Running) {
    running.tell("go on");
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
    let mut pausing = about_to_pause(LEAVE_ONE_RUNNING);
    let child = pausing.line();
    kill_process(child.parse().ok().and_then(Pid::from_raw).unwrap(), Signal::KILL).unwrap();
    wait_until("the child to be a zombie", || {
        let status = fs::read_to_string(format!("/proc/{child}/status")).unwrap();
        status.contains("\nState:\tZ")
    });
    go_on(&mut pausing);
    wait_until_reaped(&child);
}

#[test]
fn children_are_reaped_one_after_the_other() {
    let pausing = pause_after(LEAVE_TWO_RUNNING);
    for orphan in ["orphan-one", "orphan-two"] {
        // Of this test alone: what a failed run left for its last minute has the same first words.
        let name = &format!("{orphan}-of-{}", pausing.pid());
        let pid = pausing.line();
        wait_until(&format!("{name} to catch TERM"), || catches(&Path::new("/proc").join(&pid), Signal::TERM));
        let output = testapp().args(["signal", "--name", name, "--signal", "TERM"]).output().expect("testapp starts");
        assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{pid}\n"));
        wait_until_reaped(&pid);
    }
}
