use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::super::rig::{Program, until};
use super::*;

/// A `/proc` of a test: number, command line, start time.
fn fake(processes: &[(i32, &str, u64)]) -> (tempfile::TempDir, Processes) {
    let root = tempfile::tempdir().unwrap();
    for (pid, command_line, start_time) in processes {
        let dir = root.path().join(pid.to_string());
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("cmdline"), command_line.replace(' ', "\0")).unwrap();
        let stat = format!("{pid} (a ) (b) S 1 1 1 0 -1 4194560 1 1 1 1 1 1 1 1 20 0 1 0 {start_time} 1 1");
        fs::write(dir.join("stat"), stat).unwrap();
    }
    fs::create_dir(root.path().join("self")).unwrap();
    let processes = Processes { root: root.path().to_owned(), own: 7 };
    (root, processes)
}

fn refused(outcome: Result<Process, NoSignal>) -> String {
    match outcome {
        Err(NoSignal::Refused(message)) => message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_one_that_begins_so_is_found() {
    let (_root, processes) = fake(&[
        (1, "/pause", 1),
        (2, "", 1),
        (7, "nginx: master process nginx of the agent", 2),
        (20, "nginx: master process nginx -g daemon off;", 3),
        (21, "nginx: worker process", 4),
        (22, "sh -c nginx: master process nginx", 4),
    ]);
    let found = processes.find("nginx: master process nginx").unwrap();
    assert_eq!((found.pid, found.start_time), (20, 3));
    assert!(processes.is_same(&found));
    assert!(!processes.is_same(&Process { start_time: 4, ..found }));
}

#[test]
fn attack_wrong_process_name() {
    let (_root, processes) = fake(&[(1, "/pause", 1), (2, "", 1), (20, "nginx: master", 3)]);
    assert_eq!(
        processes.find("game-server"),
        Err(NoSignal::NoMatch("no process begins with \"game-server\": correct processName".to_owned()))
    );
    // The first of all, had it been a substring of nothing.
    assert!(matches!(processes.find(""), Err(NoSignal::NoMatch(_))));
}

#[test]
fn attack_pid_1() {
    let (_root, processes) = fake(&[(1, "/pause", 1), (7, "agent", 1)]);
    assert!(refused(processes.find("/pause")).contains("which is never signalled"));
    let first = Process { pid: 1, start_time: 1, command_line: "/pause".to_owned() };
    let refusal = processes.signal(&first, Signal::HUP);
    assert_eq!(refusal, Err(NoSignal::Refused("process 1 is never signalled".to_owned())));
    let own = Process { pid: 7, start_time: 1, command_line: "agent".to_owned() };
    let refusal = processes.signal(&own, Signal::HUP);
    assert_eq!(refusal, Err(NoSignal::Refused("process 7 is never signalled".to_owned())));
}

#[test]
fn attack_same_named_process_in_another_container() {
    let (_root, processes) = fake(&[(1, "/pause", 1), (20, "game --port 1", 3), (30, "game --port 2", 3)]);
    let message =
        "2 processes begin with \"game\" (20, 30), and only one may: write more of its command line into processName";
    assert_eq!(processes.find("game"), Err(NoSignal::Several(message.to_owned())));
    assert_eq!(processes.find("game --port 2").map(|process| process.pid), Ok(30));
}

#[test]
fn alone_in_its_namespace_the_agent_sees_nothing() {
    let (_root, processes) = fake(&[(7, "agent", 1)]);
    assert_eq!(processes.find("game"), Err(NoSignal::NothingSeen));
    let (root, _) = fake(&[(1, "agent", 1), (2, "x", 1)]);
    assert_eq!(Processes { root: root.path().to_owned(), own: 1 }.find("x"), Err(NoSignal::NothingSeen));
}

#[test]
fn only_signals_that_ask_may_be_sent() {
    assert_eq!(signal_named("SIGHUP"), Ok(Signal::HUP));
    assert_eq!(signal_named("USR2"), Ok(Signal::USR2));
    for name in ["SIGKILL", "SIGTERM", "SIGQUIT", "SIGSTOP", "9", "", "hup"] {
        assert!(signal_named(name).is_err(), "{name}");
    }
}

/// Finds a program. The shell starts another one now and then, and is there twice for a moment.
fn found_by(processes: &Processes, program: &Program) -> Process {
    let began = Instant::now();
    loop {
        match processes.find(&program.name) {
            Ok(found) => return found,
            Err(why) => assert!(began.elapsed() < Duration::from_secs(10), "{why:?}"),
        }
    }
}

const HANDLES: &str = "trap 'echo hup' HUP; echo started; while :; do sleep 0.05; done";

#[test]
fn a_real_process_is_signalled() {
    let mut program = Program::start("handles", HANDLES);
    let processes = Processes::of_system();
    let found = found_by(&processes, &program);
    assert_eq!(found.pid.unsigned_abs(), program.child.id());
    assert_eq!(processes.may_signal(&found), Ok(()));
    assert_eq!(processes.signal(&found, Signal::HUP), Ok(()));
    assert_eq!(program.line(), "hup\n");
    assert!(processes.is_same(&found));
    program.child.kill().unwrap();
    program.child.wait().unwrap();
    assert!(!processes.is_same(&found));
}

#[test]
fn attack_pid_reuse() {
    let mut program = Program::start("reused", HANDLES);
    let processes = Processes::of_system();
    let found = found_by(&processes, &program);
    // What was seen had the same number, and another start or another command line.
    for seen in [
        Process { start_time: found.start_time - 1, ..found.clone() },
        Process { command_line: "another".to_owned(), ..found.clone() },
    ] {
        let refusal = processes.signal(&seen, Signal::HUP);
        let expected = format!("process {} ({}) is gone: another may have its number", seen.pid, seen.command_line);
        assert_eq!(refusal, Err(NoSignal::Refused(expected)));
    }
    // A signal that had come would be the first line.
    processes.signal(&found, Signal::HUP).unwrap();
    assert_eq!(program.line(), "hup\n");
    program.child.kill().unwrap();
    program.child.wait().unwrap();
    assert!(matches!(processes.signal(&found, Signal::HUP), Err(NoSignal::Refused(_))));
}

#[test]
fn a_process_that_would_be_ended_by_the_signal_is_not_signalled() {
    let mut program = Program::start("bare", "echo started; exec sleep 60");
    let processes = Processes::of_system();
    // After exec it has another name.
    let pid = i32::try_from(program.child.id()).unwrap();
    until("the program becomes another", || {
        processes.look(pid).is_some_and(|process| process.command_line == "sleep 60")
    });
    let found = processes.look(pid).unwrap();
    assert_eq!(
        processes.signal(&found, Signal::HUP),
        Err(NoSignal::Refused(format!(
            "process {pid} (sleep 60) does not handle SIGHUP, which would end it or do nothing: choose a signal it handles"
        )))
    );
    assert!(program.child.try_wait().unwrap().is_none());
}

#[test]
fn the_start_time_is_read_whatever_the_name() {
    let stat = "20 (a) b (S) 1 2) R 1 1 1 0 -1 4194560 1 1 1 1 1 1 1 1 20 0 1 0 4711 1 1";
    assert_eq!(read_start_time(stat), Some(4711));
    assert_eq!(read_start_time("20 (a"), None);
    assert_eq!(read_start_time("20 (a) R 1"), None);
}

proptest! {
    #[test]
    fn any_name_in_a_stat_gives_the_start_time(name in "\\PC{0,15}", start: u64) {
        let stat = format!("20 ({name}) R 1 1 1 0 -1 4194560 1 1 1 1 1 1 1 1 20 0 1 0 {start} 1 1");
        prop_assert_eq!(read_start_time(&stat), Some(start));
    }
}
