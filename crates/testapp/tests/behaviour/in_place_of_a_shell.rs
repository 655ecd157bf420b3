//! The subcommands tests `exec` in a container.

use std::fs;
use std::io::{Read, Write};

use rustix::process::Signal;

use crate::running::{Running, run_to_end, testapp};

/// A name no other process on this machine has, so that runs of these tests do not meet.
fn unique(name: &str) -> String {
    format!("{name}-{}", std::process::id())
}

fn finished(code: i32, stdout: &str, stderr: &str) -> (Option<i32>, String, String) {
    (Some(code), stdout.to_owned(), stderr.to_owned())
}

#[test]
fn probe_prints_the_body() {
    let app = Running::serving(&[]);
    let url = format!("http://{}/healthz", app.address);
    assert_eq!(run_to_end(testapp().args(["probe", &url])), finished(0, "ready\n", ""));
    assert_eq!(run_to_end(testapp().args(["probe", &url, "--contains", "read"])), finished(0, "ready\n", ""));
    assert_eq!(
        run_to_end(testapp().args(["probe", &url, "--contains", "steady"])),
        finished(1, "ready\n", &format!("Error: the answer of {url} does not contain \"steady\"\n"))
    );

    app.post("/ready?value=false", "");
    assert_eq!(
        run_to_end(testapp().args(["probe", &url])),
        finished(1, "not ready\n", &format!("Error: {url} answered 503, not 200\n"))
    );
}

#[test]
fn probe_posts_a_text() {
    let app = Running::serving(&[]);
    let url = format!("http://{}/word", app.address);
    assert_eq!(run_to_end(testapp().args(["probe", &url, "--post", "allocated"])), finished(0, "done\n", ""));
    assert_eq!(app.get("/word").body, "allocated");
}

#[test]
fn probe_fails_where_nobody_listens() {
    let port = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    let (code, stdout, stderr) = run_to_end(testapp().args(["probe", &format!("http://127.0.0.1:{port}/")]));
    assert_eq!((code, stdout.as_str()), (Some(1), ""));
    assert!(stderr.starts_with(&format!("Error: cannot get http://127.0.0.1:{port}/\n")), "{stderr}");
}

#[test]
fn probe_hears_a_server_that_answers_the_first_bytes_and_closes() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let (mut connection, _) = listener.accept().unwrap();
        let read = connection.read(&mut [0; 1024]).unwrap();
        connection.write_all(b"HTTP/1.0 400 Bad Request\r\n\r\nspeak TLS").unwrap();
        read
    });
    let (code, stdout, _) = run_to_end(testapp().args(["probe", &url]));
    assert_eq!((code, stdout.as_str()), (Some(1), "speak TLS"));
    let authority = url.trim_start_matches("http://").trim_end_matches('/');
    let request = format!("GET / HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n");
    assert_eq!(server.join().unwrap(), request.len());
}

#[test]
fn signal_reaches_the_one_process_named() {
    let name = unique("signalled");
    let start = || {
        let app = Running::start(testapp().args(["run", "--name", &name]));
        assert_eq!(app.line(), format!("started name={name} version=dev"));
        app
    };
    let signal = || run_to_end(testapp().args(["signal", "--name", &name, "--signal", "HUP"]));

    let app = start();
    assert_eq!(signal(), finished(0, &format!("{}\n", app.pid()), ""));
    assert_eq!(app.line(), "signal HUP");

    let twin = start();
    let (lower, higher) = (app.pid().min(twin.pid()), app.pid().max(twin.pid()));
    let refusal = format!(
        "Error: processes {lower}, {higher} all have {name:?} in their command line: name a longer part of it\n"
    );
    assert_eq!(signal(), finished(1, "", &refusal));
}

#[test]
fn signal_refuses_when_there_is_no_such_process() {
    assert_eq!(
        run_to_end(testapp().args(["signal", "--name", "nobody-by-this-name", "--signal", "TERM"])),
        finished(
            1,
            "",
            "Error: no other process has \"nobody-by-this-name\" in its command line: does the pod share its process namespace?\n"
        )
    );
}

#[test]
fn signal_kills() {
    let name = unique("killed");
    let mut app = Running::start(testapp().args(["run", "--name", &name, "--ignore-term"]));
    assert_eq!(app.line(), format!("started name={name} version=dev"));
    assert_eq!(
        run_to_end(testapp().args(["signal", "--name", &name, "--signal", "SIGKILL"])),
        finished(0, &format!("{}\n", app.pid()), "")
    );
    let status = app.wait_for_exit();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(Signal::KILL.as_raw()));
}

#[test]
fn echo_exit() {
    assert_eq!(run_to_end(testapp().args(["echo-exit", "42", "--two", "words"])), finished(42, "--two words\n", ""));
    assert_eq!(run_to_end(testapp().args(["echo-exit", "0"])), finished(0, "", ""));
}

#[test]
fn cat() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, "no newline at the end").unwrap();
    assert_eq!(run_to_end(testapp().arg("cat").arg(&path)), finished(0, "no newline at the end", ""));
    let absent = folder.path().join("absent");
    assert_eq!(
        run_to_end(testapp().arg("cat").arg(&absent)),
        finished(
            1,
            "",
            &format!(
                "Error: cannot read {}\n\nCaused by:\n    No such file or directory (os error 2)\n",
                absent.display()
            )
        )
    );
}

#[test]
fn wrong_usage_exits_two() {
    for arguments in [
        &["run", "--port", "many"][..],
        &["run", "--exit-code", "1"],
        &["run", "--ignore-term", "--term-delay", "1s"],
        &["signal", "--name", "x", "--signal", "STOP"],
        &["echo-exit", "256"],
    ] {
        assert_eq!(run_to_end(testapp().args(arguments)).0, Some(2), "{arguments:?}");
    }
}
