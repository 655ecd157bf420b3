use std::path::Path;

use pillion_agent_api::Signal as SignalConfig;

use super::super::rig::{Program, config};
use super::*;

fn reloader(reload: Reload) -> Result<Reloader, String> {
    Reloader::new(&config(Path::new("/"), reload, vec![]), &Stop::default())
}

fn signal(process_name: &str, signal_name: &str, fallback_url: Option<&str>) -> Reload {
    Reload::Signal(SignalConfig {
        process_name: process_name.to_owned(),
        signal_name: signal_name.to_owned(),
        fallback_url: fallback_url.map(str::to_owned),
    })
}

fn request(url: &str, method: &str) -> Reload {
    Reload::Request { url: url.to_owned(), method: method.to_owned() }
}

#[test]
fn what_is_never_done_is_refused_at_the_start() {
    for (reload, why) in [
        (signal(" ", "SIGHUP", None), "processName is empty: write how the command line of the app begins"),
        (
            signal("x", "SIGKILL", None),
            "signalName \"SIGKILL\" is not allowed: write SIGHUP, SIGUSR1, SIGUSR2 or SIGWINCH",
        ),
        (
            signal("x", "SIGHUP", Some("http://10.0.0.1/")),
            "\"http://10.0.0.1/\" is not of this pod: write http://127.0.0.1:PORT/PATH",
        ),
        (request("http://evil/", "POST"), "\"http://evil/\" is not of this pod: write http://127.0.0.1:PORT/PATH"),
        (request("http://127.0.0.1/", "DELETE"), "the method \"DELETE\" of the reload is not GET or POST"),
    ] {
        assert_eq!(reloader(reload).map(|_| ()), Err(why.to_owned()));
    }
}

#[test]
fn before_the_first_version_the_app_may_not_be_there() {
    let by_signal = reloader(signal("no-such-process-anywhere", "SIGHUP", None)).unwrap();
    assert!(matches!(by_signal.reload(true), Ok((Reloaded::NotThereYet(_), None))));
    // Port 1 is nobody's.
    let by_request = reloader(request("http://127.0.0.1:1/reload", "POST")).unwrap();
    assert!(matches!(by_request.reload(true), Ok((Reloaded::NotThereYet(_), None))));
}

#[test]
fn b11_an_app_that_is_not_told_is_a_failure() {
    let by_signal = reloader(signal("no-such-process-anywhere", "SIGHUP", None)).unwrap();
    assert_eq!(
        by_signal.reload(false).unwrap_err(),
        Failure::not_loaded("no process begins with \"no-such-process-anywhere\": correct processName")
    );
    let by_request = reloader(request("http://127.0.0.1:1/reload", "POST")).unwrap();
    let failure = by_request.reload(false).unwrap_err();
    assert_eq!(failure.kind, Kind::NotLoaded);
    assert!(failure.message.starts_with("http://127.0.0.1:1/reload does not answer: "), "{failure}");
}

/// Handles HUP by a line, and has a copy of itself for some seconds.
fn forking(seconds: &str) -> Program {
    let handles = "trap 'echo hup' HUP; echo started; while :; do sleep 0.05; done";
    Program::start("forking", &format!("(sleep {seconds}; :) & {handles}"))
}

#[test]
fn an_app_that_has_just_forked_is_signalled_when_its_copy_is_gone() {
    let mut program = forking("0.3");
    let pid = program.child.id();
    let (reloaded, process) = reloader(signal(&program.name, "SIGHUP", None)).unwrap().reload(false).unwrap();
    assert_eq!(reloaded, Reloaded::Told(format!("SIGHUP sent to process {pid}")));
    assert_eq!(process.unwrap().pid.unsigned_abs(), pid);
    assert_eq!(program.line(), "hup\n");
}

#[test]
fn a_copy_that_stays_is_a_failure_and_an_agent_that_ends_meanwhile_gives_nothing_up() {
    let program = forking("20");
    let failure = reloader(signal(&program.name, "SIGHUP", None)).unwrap().reload(false).unwrap_err();
    assert!(failure.message.contains(" processes begin with \"forking-"), "{failure}");
    assert_eq!(failure.kind, Kind::NotLoaded);
    let stop = Stop::default();
    let ending = Reloader::new(&config(Path::new("/"), signal(&program.name, "SIGHUP", None), vec![]), &stop).unwrap();
    stop.stop();
    assert_eq!(ending.reload(false).unwrap_err().kind, Kind::Stopped);
}
