//! Which code a wrapper ends with, and when a sidecar is ended.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::pod::Pod;
use crate::running::{Ended, Running, WRAPPER, run_to_end};

/// Longer than any test may take: nobody is to reach it.
const LONG: u32 = 600;
const UNTIL_TERM: &str = "trap 'echo term; exit 5' TERM; echo started; sleep 60 & while :; do wait $!; done";

fn ended(code: i32, out: &str, told: &str) -> Ended {
    Ended { code: Some(code), out: out.to_owned(), told: told.to_owned() }
}

fn told_of_stop(mains: &str, grace: u32) -> String {
    format!("pillion-agent: all of {mains} ended: side is to end within {grace} s\n")
}

/// A sidecar whose program has started.
fn start_sidecar(pod: &Pod, until: &[&str], grace: u32, script: &str) -> Running {
    let side = Running::start(&mut pod.sidecar(until, grace, script));
    assert_eq!(side.line(), "started");
    side
}

// Codes of the program itself.

#[test]
fn a_main_gives_its_code_to_the_runtime_and_to_the_file() {
    for code in [0, 1, 3, 255] {
        let pod = Pod::never();
        let script = format!("cat {}; exit {code}", pod.path("main-app").display());
        assert_eq!(run_to_end(&mut pod.main("app", &script)), ended(code, "running\n", ""));
        assert_eq!(pod.state_of("app"), format!("{code}\n"));
    }
}

#[test]
fn a_signal_that_ends_a_program_is_told_as_a_shell_tells_it() {
    for (name, code) in [("TERM", 143), ("KILL", 137), ("SEGV", 139), ("ABRT", 134)] {
        let pod = Pod::never();
        assert_eq!(run_to_end(&mut pod.main("app", &format!("kill -{name} $$"))), ended(code, "", ""));
        assert_eq!(pod.state_of("app"), format!("{code}\n"));
        assert_eq!(run_to_end(&mut pod.sidecar(&["other"], LONG, &format!("kill -{name} $$"))), ended(code, "", ""));
    }
}

#[test]
fn a_program_that_cannot_be_started_is_named() {
    let pod = Pod::never();
    let script = pod.path("script");
    fs::write(&script, "#!/no/such/interpreter\n").unwrap();
    fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let plain = pod.path("plain");
    fs::write(&plain, "").unwrap();
    let missing = "No such file or directory (os error 2): neither it nor the interpreter its first line may name is in the image";
    for (program, code, why) in [
        ("no-such-program", 127, missing),
        ("/no/such/program", 127, missing),
        (script.to_str().unwrap(), 127, missing),
        (plain.to_str().unwrap(), 126, "Permission denied (os error 13)"),
        ("/", 126, "Permission denied (os error 13)"),
    ] {
        assert_eq!(
            run_to_end(&mut pod.wrapped(&["--main=app".to_owned()], &[program])),
            ended(code, "", &format!("pillion-agent: cannot start app: {program}: {why}\n"))
        );
        assert_eq!(pod.state_of("app"), format!("{code}\n"));
    }
    let flags = ["--sidecar=side", "--until=other", "--restart-policy=Never"].map(str::to_owned);
    assert_eq!(
        run_to_end(&mut pod.wrapped(&flags, &["/no/such/program"])),
        ended(127, "", &format!("pillion-agent: cannot start side: /no/such/program: {missing}\n"))
    );
}

#[test]
fn a_main_that_cannot_say_that_it_runs_is_not_started() {
    let pod = Pod::never();
    let missing = pod.path("missing");
    let mut wrapped = Command::new(WRAPPER);
    wrapped.arg("wrap").arg(format!("--dir={}", missing.display())).args(["--main=app", "--", "echo", "started"]);
    let told = format!(
        "pillion-agent: cannot tell sidecars of app in {}/main-app: make the volume writable: No such file or directory (os error 2)\n",
        missing.display()
    );
    assert_eq!(run_to_end(&mut wrapped), ended(125, "", &told));
}

#[test]
fn a_folder_that_may_not_be_written_is_refused_to_a_user_who_is_not_root() {
    let pod = Pod::never();
    fs::set_permissions(pod.path(""), std::os::unix::fs::PermissionsExt::from_mode(0o555)).unwrap();
    // The built program may be below a folder of root; the copy is not.
    let bin = tempfile::tempdir().unwrap();
    fs::set_permissions(bin.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let program = bin.path().join("agent");
    fs::copy(WRAPPER, &program).unwrap();
    let mut wrapped = Command::new(program);
    wrapped.uid(65532).current_dir("/").arg("wrap").arg(format!("--dir={}", pod.path("").display()));
    let path = pod.path("").join("main-app");
    let told = format!(
        "pillion-agent: cannot tell sidecars of app in {}: make the volume writable: Permission denied (os error 13)\n",
        path.display()
    );
    assert_eq!(run_to_end(wrapped.args(["--main=app", "--", "echo", "started"])), ended(125, "", &told));
}

// Sidecars and the mains they outlive.

#[test]
fn a_sidecar_is_asked_to_end_when_its_main_has_and_any_end_is_then_well() {
    let pod = Pod::never();
    let main = pod.running_main("app");
    let side = start_sidecar(&pod, &["app"], LONG, UNTIL_TERM);
    pod.wait_until_awaited("app");
    main.signal(Signal::TERM);
    assert_eq!(main.end().code, Some(143));
    // It exits with 5; the wrapper with 0.
    assert_eq!(side.end(), ended(0, "term\n", &told_of_stop("app", LONG)));
}

#[test]
fn a_sidecar_without_a_handler_ends_of_the_request_itself() {
    let pod = Pod::never();
    let side = start_sidecar(&pod, &["app"], LONG, "echo started; exec sleep 60");
    assert_eq!(run_to_end(&mut pod.main("app", "exit 0")).code, Some(0));
    assert_eq!(side.end(), ended(0, "", &told_of_stop("app", LONG)));
}

#[test]
fn a_sidecar_that_ignores_the_request_is_killed_after_the_grace() {
    let pod = Pod::never();
    let side = start_sidecar(&pod, &["app"], 1, "trap '' TERM; echo started; exec sleep 60");
    assert_eq!(run_to_end(&mut pod.main("app", "exit 0")).code, Some(0));
    assert_eq!(side.told(), told_of_stop("app", 1).trim_end());
    let asked = Instant::now();
    assert_eq!(side.end(), ended(0, "", "pillion-agent: side did not end within 1 s: it is killed\n"));
    assert!(asked.elapsed() > Duration::from_millis(900), "{:?}", asked.elapsed());
}

#[test]
fn a_stopped_sidecar_is_killed_after_the_grace() {
    let pod = Pod::never();
    let side = start_sidecar(&pod, &["app"], 0, "echo started; kill -STOP $$; exec sleep 60");
    assert_eq!(run_to_end(&mut pod.main("app", "exit 0")).code, Some(0));
    assert_eq!(side.end().code, Some(0));
}

#[test]
fn a_sidecar_outlives_all_mains_in_whatever_order_they_end() {
    for order in [["a", "b"], ["b", "a"]] {
        let pod = Pod::never();
        let mut mains = order.map(|name| Some(pod.running_main(name)));
        let mut side = start_sidecar(&pod, &["a", "b"], LONG, UNTIL_TERM);
        pod.wait_until_awaited("a");
        for (position, name) in order.iter().enumerate() {
            assert!(side.is_running(), "{name} has not ended");
            let main = mains[position].take().unwrap();
            main.signal(Signal::KILL);
            assert_eq!(main.end().code, None);
        }
        assert_eq!(side.end(), ended(0, "term\n", &told_of_stop("a, b", LONG)));
    }
}

#[test]
fn a_main_that_was_never_seen_has_not_ended() {
    let pod = Pod::never();
    pod.write_state("seen", "0\n");
    let mut side = start_sidecar(&pod, &["seen", "late"], LONG, UNTIL_TERM);
    // Other files that appear are no main.
    fs::write(pod.path("main-latest"), "0\n").unwrap();
    assert!(side.is_running());
    assert_eq!(run_to_end(&mut pod.main("late", "exit 1")).code, Some(1));
    assert_eq!(side.end(), ended(0, "term\n", &told_of_stop("seen, late", LONG)));
}

#[test]
fn with_never_a_killed_main_has_ended() {
    let pod = Pod::never();
    let main = pod.running_main("app");
    let side = start_sidecar(&pod, &["app"], LONG, UNTIL_TERM);
    pod.wait_until_awaited("app");
    main.signal(Signal::KILL);
    assert_eq!(side.end(), ended(0, "term\n", &told_of_stop("app", LONG)));
    assert_eq!(pod.state_of("app"), "running\n");
}

#[test]
fn with_on_failure_only_a_success_is_the_end() {
    let pod = Pod::on_failure();
    let mut side = start_sidecar(&pod, &["app"], LONG, UNTIL_TERM);
    for script in ["exit 1", "kill -KILL $$"] {
        // The second time the sidecar has seen the failure before, and waits for the next start.
        let main = Running::start(&mut pod.main("app", &format!("read go < {}; {script}", pod.fifo("go").display())));
        pod.wait_until_awaited("app");
        fs::write(pod.path("go"), "\n").unwrap();
        assert_ne!(main.end().code, Some(0));
        assert!(side.is_running(), "{script}");
    }
    // Killed together with its wrapper, as when memory runs out.
    let main = pod.running_main("app");
    pod.wait_until_awaited("app");
    main.signal(Signal::KILL);
    assert_eq!(main.end().code, None);
    assert!(side.is_running());

    assert_eq!(run_to_end(&mut pod.main("app", "exit 0")).code, Some(0));
    assert_eq!(side.end(), ended(0, "term\n", &told_of_stop("app", LONG)));
}

#[test]
fn a_sidecar_that_ends_first_gives_its_own_code() {
    for code in [0, 3] {
        let pod = Pod::never();
        let mut main = pod.running_main("app");
        assert_eq!(run_to_end(&mut pod.sidecar(&["app"], LONG, &format!("exit {code}"))), ended(code, "", ""));
        assert!(main.is_running());
    }
}

#[test]
fn a_sidecar_that_is_restarted_after_the_mains_is_not_started() {
    for (pod, state) in
        [(Pod::never(), "0\n"), (Pod::never(), "1\n"), (Pod::never(), "running\n"), (Pod::on_failure(), "0\n")]
    {
        pod.write_state("a", state);
        pod.write_state("b", "0\n");
        assert_eq!(
            run_to_end(&mut pod.sidecar(&["a", "b"], LONG, "echo started")),
            ended(0, "", "pillion-agent: all of a, b ended before: side is not started\n"),
            "{state}"
        );
    }
}

#[test]
fn a_sidecar_that_is_restarted_between_two_tries_of_a_main_runs_on() {
    for state in ["1\n", "running\n", ""] {
        let pod = Pod::on_failure();
        pod.write_state("app", state);
        let side = start_sidecar(&pod, &["app"], LONG, UNTIL_TERM);
        assert_eq!(run_to_end(&mut pod.main("app", "exit 0")).code, Some(0));
        assert_eq!(side.end(), ended(0, "term\n", &told_of_stop("app", LONG)));
    }
}

#[test]
fn a_sidecar_asked_by_the_runtime_gives_its_own_code() {
    let pod = Pod::never();
    let mut main = pod.running_main("app");
    let side = start_sidecar(&pod, &["app"], LONG, UNTIL_TERM);
    side.signal(Signal::TERM);
    assert_eq!(side.end(), ended(5, "term\n", ""));
    assert!(main.is_running());
}

#[test]
fn a_sidecar_asked_by_the_runtime_is_not_asked_again() {
    let pod = Pod::never();
    let main = pod.running_main("app");
    let script = "trap 'echo term' TERM; trap 'exit 5' USR1; echo started; sleep 60 & while :; do wait $!; done";
    let side = start_sidecar(&pod, &["app"], LONG, script);
    pod.wait_until_awaited("app");
    side.signal(Signal::TERM);
    assert_eq!(side.line(), "term");
    main.signal(Signal::TERM);
    assert_eq!(main.end().code, Some(143));
    assert_eq!(side.told(), told_of_stop("app", LONG).trim_end());
    side.signal(Signal::TERM);
    side.signal(Signal::USR1);
    assert_eq!(side.end(), ended(0, "", ""));
}

#[test]
fn a_sidecar_waits_where_the_kernel_cannot_wake_it() {
    let pod = Pod::never();
    let inner = pod.sidecar(&["app"], LONG, UNTIL_TERM);
    // A user namespace of its own, which may have no inotify at all.
    let mut outer = Command::new("unshare");
    outer.args([
        "--user",
        "--map-root-user",
        "/bin/sh",
        "-c",
        "echo 0 > /proc/sys/user/max_inotify_instances && exec \"$0\" \"$@\"",
    ]);
    outer.arg(inner.get_program()).args(inner.get_args());
    let side = Running::start(&mut outer);
    assert_eq!(side.line(), "started");
    assert_eq!(run_to_end(&mut pod.main("app", "exit 0")).code, Some(0));
    assert_eq!(side.end(), ended(0, "term\n", &told_of_stop("app", LONG)));
}
