//! `testapp run`: state, signals, reload, readiness, exit.

use std::fs;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::process::Signal;
use serde_json::json;

use crate::running::{Running, run_to_end, testapp, wait_until};

fn unix_milliseconds() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970").as_millis()
}

#[test]
fn state_tells_who_it_is() {
    let before = unix_milliseconds();
    let mut app = Running::start(
        testapp()
            .args(["run", "--port", "auto"])
            .env("TESTAPP_NAME", "web")
            .env("TESTAPP_VERSION", "v7")
            .env("TESTAPP_COLOUR", "blue")
            .env("OTHER", "hidden"),
    );
    assert_eq!(app.line(), "started name=web version=v7");
    app.learn_address();

    let mut state = app.state();
    let started_at = u128::from(state["startedAtUnixMs"].take().as_u64().unwrap());
    assert!((before..=unix_milliseconds()).contains(&started_at), "{started_at}");
    // The limits are those of the machine; the parsers have their own tests.
    let cgroup = state["cgroup"].take();
    assert_eq!(cgroup.as_object().unwrap().keys().collect::<Vec<_>>(), ["cpuQuotaMillicores", "memoryLimitBytes"]);
    assert_eq!(
        state,
        json!({
            "name": "web",
            "version": "v7",
            "pid": app.pid(),
            "startedAtUnixMs": null,
            "signals": [],
            "reloads": 0,
            "file": null,
            "memoryHeldBytes": 0,
            "cpuBurnMillicores": 0,
            "cgroup": null,
            "env": {"TESTAPP_COLOUR": "blue", "TESTAPP_NAME": "web", "TESTAPP_VERSION": "v7"},
        })
    );
}

#[test]
fn without_a_port_it_only_runs() {
    let mut app = Running::start(testapp().args(["run", "--name", "quiet"]));
    assert_eq!(app.line(), "started name=quiet version=dev");
    app.signal(Signal::TERM);
    assert_eq!(app.wait_for_exit().code(), Some(0));
    assert_eq!(app.remaining_lines(), ["signal TERM", "exiting code=0"]);
}

#[test]
fn without_a_subcommand_it_runs() {
    let mut app = Running::start(&mut testapp());
    assert_eq!(app.line(), "started name=testapp version=dev");
    app.signal(Signal::TERM);
    assert_eq!(app.wait_for_exit().code(), Some(0));
}

#[test]
fn term_and_int_exit_zero() {
    for (signal, name) in [(Signal::TERM, "TERM"), (Signal::INT, "INT")] {
        let mut app = Running::serving(&[]);
        app.signal(signal);
        assert_eq!(app.wait_for_exit().code(), Some(0));
        assert_eq!(app.remaining_lines(), [format!("signal {name}"), "exiting code=0".to_owned()]);
    }
}

#[test]
fn an_ignored_term_is_recorded() {
    let mut app = Running::serving(&["--ignore-term"]);
    app.signal(Signal::USR1);
    assert_eq!(app.line(), "signal USR1");
    app.signal(Signal::TERM);
    assert_eq!(app.line(), "signal TERM");
    app.signal(Signal::TERM);
    assert_eq!(app.line(), "signal TERM");
    assert_eq!(app.state()["signals"], json!(["USR1", "TERM", "TERM"]));

    let answer = app.post("/exit?code=3", "");
    assert_eq!((answer.status, answer.body.as_str()), (200, "done\n"));
    assert_eq!(app.wait_for_exit().code(), Some(3));
    assert_eq!(app.remaining_lines(), ["exiting code=3"]);
}

#[test]
fn term_delay_keeps_it_serving_meanwhile() {
    let delay = Duration::from_secs(2);
    let mut app = Running::serving(&["--term-delay", "2s"]);
    let signalled_at = Instant::now();
    app.signal(Signal::TERM);
    assert_eq!(app.line(), "signal TERM");
    assert_eq!(app.state()["signals"], json!(["TERM"]));
    assert_eq!(app.wait_for_exit().code(), Some(0));
    assert!(signalled_at.elapsed() >= delay, "exited after {:?}", signalled_at.elapsed());
}

#[test]
fn hup_reloads_the_watched_file_twice() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("settings");
    fs::write(&path, "one\n").unwrap();
    let app = Running::serving(&["--watch-file", path.to_str().unwrap()]);
    assert_eq!(app.state()["file"], json!("one\n"));
    assert_eq!(app.state()["reloads"], json!(0));

    for (reloads, content) in [(1, "two"), (2, "three")] {
        fs::write(&path, format!("{content}\n")).unwrap();
        app.signal(Signal::HUP);
        assert_eq!(app.line(), "signal HUP");
        assert_eq!(app.line(), format!("reloaded: {content}"));
        let state = app.state();
        assert_eq!(state["file"], json!(format!("{content}\n")));
        assert_eq!(state["reloads"], json!(reloads));
    }
}

#[test]
fn a_watched_file_may_be_absent() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("settings");
    let mut app = Running::start(testapp().args(["run", "--port", "auto", "--watch-file"]).arg(&path));
    let why = format!("cannot read {}: No such file or directory (os error 2)", path.display());
    assert_eq!(app.line(), format!("load failed: {why}"));
    assert_eq!(app.line(), "started name=testapp version=dev");
    app.learn_address();

    app.signal(Signal::HUP);
    assert_eq!(app.line(), "signal HUP");
    assert_eq!(app.line(), format!("reload failed: {why}"));
    assert_eq!(app.state()["file"], json!(null));
    assert_eq!(app.state()["reloads"], json!(0));
}

#[test]
fn it_exits_by_itself_with_the_code_asked_for() {
    let start = Instant::now();
    let mut app = Running::start(testapp().args(["run", "--exit-after", "100ms", "--exit-code", "7"]));
    assert_eq!(app.wait_for_exit().code(), Some(7));
    assert!(start.elapsed() >= Duration::from_millis(100), "exited after {:?}", start.elapsed());
    assert_eq!(app.remaining_lines(), ["started name=testapp version=dev", "exiting code=7"]);
}

#[test]
fn it_fails_until_it_was_started_often_enough() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("starts");
    let codes: Vec<Option<i32>> = (0..4)
        .map(|_| {
            let mut app = testapp();
            app.args(["run", "--exit-after", "1ms", "--exit-code", "7", "--succeed-on", "3", "--count-starts"]);
            Running::start(app.arg(&path)).wait_for_exit().code()
        })
        .collect();
    assert_eq!(codes, [Some(7), Some(7), Some(0), Some(0)]);
}

#[test]
fn term_ends_it_with_the_code_asked_for() {
    let mut app = Running::serving(&["--term-code", "143"]);
    app.signal(Signal::TERM);
    assert_eq!(app.line(), "signal TERM");
    assert_eq!(app.wait_for_exit().code(), Some(143));
}

#[test]
fn readiness_is_set_over_http() {
    let app = Running::serving(&[]);
    let healthz = || {
        let answer = app.get("/healthz");
        (answer.status, answer.body)
    };
    assert_eq!(healthz(), (200, "ready\n".to_owned()));
    assert_eq!(app.post("/ready?value=false", "").status, 200);
    assert_eq!(healthz(), (503, "not ready\n".to_owned()));
    assert_eq!(app.post("/ready?value=true", "").status, 200);
    assert_eq!(healthz(), (200, "ready\n".to_owned()));
    assert_eq!(app.post("/ready?value=perhaps", "").status, 400);
}

#[test]
fn it_says_the_word_it_was_told() {
    let app = Running::serving(&["--word", "idle"]);
    let word = || {
        let answer = app.get("/word");
        (answer.status, answer.body)
    };
    assert_eq!(word(), (200, "idle".to_owned()));
    assert_eq!(app.post("/word", "allocated").status, 200);
    assert_eq!(word(), (200, "allocated".to_owned()));
    assert_eq!(app.post("/word?status=500", "").status, 200);
    assert_eq!(word(), (500, String::new()));
}

#[test]
fn ready_after_holds_readiness_back() {
    let never = Running::serving(&["--ready-after", "1h"]);
    assert_eq!(never.get("/healthz").status, 503);

    let soon = Running::serving(&["--ready-after", "50ms"]);
    assert_eq!(soon.line(), "ready true");
    wait_until("/healthz to be 200", || soon.get("/healthz").status == 200);
}

#[test]
fn files_are_written_at_the_start_and_over_http() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (folder.path().join("first"), folder.path().join("second"));
    let app = Running::serving(&["--write", &format!("{}=a=b", first.display())]);
    assert_eq!(fs::read_to_string(&first).unwrap(), "a=b");

    assert_eq!(app.post(&format!("/write?path={}", second.display()), "text\n").status, 200);
    assert_eq!(fs::read_to_string(&second).unwrap(), "text\n");

    let nowhere = folder.path().join("absent/third");
    let answer = app.post(&format!("/write?path={}", nowhere.display()), "text");
    assert_eq!(answer.status, 500);
    assert_eq!(answer.body, format!("cannot write {}: No such file or directory (os error 2)\n", nowhere.display()));
}

#[test]
fn a_port_in_use_is_named() {
    let taken = std::net::TcpListener::bind("0.0.0.0:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let (code, stdout, stderr) = run_to_end(testapp().args(["run", "--port", &port]));
    assert_eq!((code, stdout.as_str()), (Some(1), ""));
    assert!(stderr.starts_with(&format!("Error: cannot listen on 0.0.0.0:{port}\n")), "{stderr}");
}
