//! Signals reach the program, and the program is started as if nobody stood between.

use std::fs;
use std::process::Command;

use rustix::process::Signal;

use crate::pod::Pod;
use crate::running::{Ended, Running, children_of, folder_of, run_to_end, status_of, wait_until};

#[test]
fn every_signal_that_can_be_caught_is_passed_on() {
    // CHLD is the wrapper's own; the shell has no names for faults that it could be sent by hand.
    let named = [
        "HUP", "INT", "QUIT", "USR1", "USR2", "PIPE", "ALRM", "TERM", "CONT", "TSTP", "TTIN", "TTOU", "URG", "XCPU",
        "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR",
    ];
    let numbers = [1, 2, 3, 10, 12, 13, 14, 15, 18, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30];
    let pod = Pod::never();
    let traps = named.map(|name| format!("trap 'echo {name}' {name}")).join("\n");
    let script = format!("{traps}\necho started; sleep 60 & while :; do wait $!; done");
    let main = Running::start(&mut pod.wrapped(&["--main=app".to_owned()], &["/bin/bash", "-c", &script]));
    assert_eq!(main.line(), "started");
    for (name, number) in named.iter().zip(numbers) {
        main.signal(Signal::from_named_raw(number).unwrap());
        assert_eq!(main.line(), *name);
    }
}

#[test]
fn real_time_signals_are_passed_on_also_those_the_c_library_keeps() {
    for number in [34, 35, 50, 64] {
        let pod = Pod::never();
        let main = pod.running_main("app");
        let kill = Command::new("/bin/bash")
            .args(["-c", "kill -$0 $1", &number.to_string(), &main.pid().as_raw_nonzero().to_string()])
            .status()
            .unwrap();
        assert!(kill.success());
        // `sleep` has no handler for it.
        assert_eq!(main.end().code, Some(128 + number));
    }
}

#[test]
fn a_program_that_stops_and_goes_on_is_left_alone() {
    let pod = Pod::never();
    let mut main = Running::start(&mut pod.main("app", "echo started; kill -STOP $$; echo again; exit 3"));
    assert_eq!(main.line(), "started");
    let [child] = children_of(main.pid())[..] else { panic!("the wrapper has one child") };
    wait_until("the program to be stopped", || status_of(child, "State").as_deref() == Some("T (stopped)"));
    assert!(main.is_running());
    main.signal(Signal::CONT);
    assert_eq!(main.end(), Ended { code: Some(3), out: "again\n".to_owned(), told: String::new() });
}

#[test]
fn the_program_has_the_signals_the_environment_and_the_files_it_would_have_alone() {
    let pod = Pod::never();
    let script = "grep -E '^Sig(Blk|Ign|Cgt)' /proc/self/status; ls /proc/self/fd; pwd; umask; env | sort";
    let seen_by = |mut command: Command| {
        command.env_clear().envs([("PATH", "/usr/bin:/bin"), ("COLOUR", "blue")]).current_dir(pod.path(""));
        let ended = run_to_end(&mut command);
        Ended { out: ended.out.lines().map(without_internal_signals).collect(), ..ended }
    };
    let mut alone = Command::new("/bin/sh");
    alone.args(["-c", script]);
    let alone = seen_by(alone);
    assert!(alone.out.starts_with("SigBlk 0\nSigIgn 0\n"), "{}", alone.out);
    assert_eq!(seen_by(pod.main("app", script)), alone);
}

/// Without the two signals that the C library of the test keeps for itself, and hands on as it likes.
fn without_internal_signals(line: &str) -> String {
    match line.split_once(":\t") {
        Some((key, mask)) => {
            let mask = u64::from_str_radix(mask, 16).expect("the kernel tells a mask");
            format!("{key} {:x}\n", mask & !(0b11 << 31))
        }
        None => format!("{line}\n"),
    }
}

#[test]
fn a_program_is_in_the_group_and_session_of_its_wrapper() {
    let pod = Pod::never();
    let main = Running::start(&mut pod.main("app", "cut -d' ' -f5,6 /proc/$$/stat; exec sleep 60"));
    let of_child = main.line();
    let stat = fs::read_to_string(folder_of(main.pid()).join("stat")).unwrap();
    let of_wrapper: Vec<&str> = stat.split(' ').skip(4).take(2).collect();
    assert_eq!(of_child, of_wrapper.join(" "));
}

#[test]
fn a_wrapper_that_inherits_ignored_ends_of_children_still_learns_the_code() {
    let pod = Pod::never();
    let inner = pod.main("app", "exit 3");
    let mut outer = Command::new("/bin/bash");
    outer.args(["-c", "trap '' CHLD; exec \"$0\" \"$@\""]).arg(inner.get_program()).args(inner.get_args());
    assert_eq!(run_to_end(&mut outer).code, Some(3));
}

#[test]
fn standard_input_is_the_programs() {
    let pod = Pod::never();
    let inner = pod.main("app", "read x; echo \"read $x\"");
    let mut outer = Command::new("/bin/sh");
    outer.args(["-c", "echo word | \"$0\" \"$@\""]).arg(inner.get_program()).args(inner.get_args());
    assert_eq!(run_to_end(&mut outer).out, "read word\n");
}
