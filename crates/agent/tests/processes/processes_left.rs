//! Zombies, orphans, and what is left when the program has ended; as PID 1 and below another one.

use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};

use crate::pod::Pod;
use crate::running::{Running, children_of, run_to_end, status_of, wait_until};

fn is_gone(pid: Pid) -> bool {
    status_of(pid, "State").is_none()
}

/// The same command as PID 1 of its own namespace, as in a container that shares no processes.
fn as_first(command: &Command) -> Command {
    let mut outer = Command::new("unshare");
    outer.args(["--pid", "--fork", "--kill-child", "--mount-proc", "--"]);
    outer.arg(command.get_program()).args(command.get_args());
    outer
}

#[test]
fn orphans_are_adopted_and_reaped() {
    let pod = Pod::never();
    // The inner shell ends at once; its child is then nobody's, and ends when it is told.
    let script = "sh -c 'sleep 60 & echo $!'; echo started; exec sleep 60";
    let main = Running::start(&mut pod.main("app", script));
    let orphan = main.pid_line();
    assert_eq!(main.line(), "started");
    wait_until("the wrapper to adopt", || children_of(main.pid()).contains(&orphan));
    kill_process(orphan, Signal::KILL).unwrap();
    wait_until("the wrapper to reap", || is_gone(orphan));
    assert_eq!(children_of(main.pid()).len(), 1);
}

#[test]
fn a_hundred_orphans_that_end_at_once_leave_no_zombie() {
    let pod = Pod::never();
    let script = "for i in $(seq 100); do sh -c 'true & '; done; echo started; exec sleep 60";
    let main = Running::start(&mut pod.main("app", script));
    assert_eq!(main.line(), "started");
    wait_until("all orphans to be reaped", || children_of(main.pid()).len() == 1);
}

#[test]
fn a_program_that_forks_and_ends_ends_the_container() {
    let pod = Pod::never();
    let main = Running::start(&mut pod.main("app", "sh -c 'sleep 60 & echo $!' ; exit 4"));
    let orphan = main.pid_line();
    let ended = main.end();
    assert_eq!((ended.code, ended.out.as_str(), ended.told.as_str()), (Some(4), "", ""));
    assert!(is_gone(orphan));
    assert_eq!(pod.state_of("app"), "4\n");
}

#[test]
fn descendants_that_hide_and_ignore_are_killed_too() {
    let pod = Pod::never();
    let script = "setsid sh -c 'trap \"\" TERM; sleep 60 & echo $!; echo $$; wait' & wait";
    let main = Running::start(&mut pod.main("app", script));
    let hidden = [main.pid_line(), main.pid_line()];
    main.signal(Signal::TERM);
    assert_eq!(main.end().code, Some(143));
    assert!(hidden.into_iter().all(is_gone));
}

#[test]
fn as_pid_1_it_reaps_forwards_and_takes_all_with_it() {
    let pod = Pod::never();
    let script = "trap 'echo term; exit 6' TERM; (setsid sh -c 'sleep 60 & sleep 60') & echo started; sleep 60 & while :; do wait $!; done";
    let main = Running::start(&mut as_first(&pod.main("app", script)));
    assert_eq!(main.line(), "started");
    let [wrapper] = children_of(main.pid())[..] else { panic!("unshare has one child") };
    assert_eq!(status_of(wrapper, "NSpid").unwrap().split_whitespace().last(), Some("1"));
    kill_process(wrapper, Signal::TERM).unwrap();
    // The output ends only when every process of the namespace has.
    let ended = main.end();
    assert_eq!((ended.code, ended.out.as_str(), ended.told.as_str()), (Some(6), "term\n", ""));
    assert_eq!(pod.state_of("app"), "6\n");
}

#[test]
fn a_sidecar_as_pid_1_is_ended_with_its_mains() {
    let pod = Pod::never();
    let script = "trap '' TERM; sleep 60 & echo started; wait; wait; sleep 60";
    let side = Running::start(&mut as_first(&pod.sidecar(&["app"], 0, script)));
    assert_eq!(side.line(), "started");
    assert_eq!(run_to_end(&mut as_first(&pod.main("app", "exit 1"))).code, Some(1));
    let ended = side.end();
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), ""));
}

#[test]
fn a_child_does_not_outlive_a_killed_wrapper() {
    let pod = Pod::never();
    let main = Running::start(&mut pod.main("app", "echo $$; exec sleep 60"));
    let child = main.pid_line();
    assert!(!pod.is_unlocked("app"));
    main.signal(Signal::KILL);
    assert_eq!(main.end().code, None);
    wait_until("the kernel to kill the child", || status_of(child, "State").is_none_or(|state| state.starts_with('Z')));
    assert!(pod.is_unlocked("app"));
}
