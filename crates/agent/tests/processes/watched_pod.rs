//! Mains that are not wrapped: their ends are read from the pod's status, here told by a server of the test.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::pod::Pod;
use crate::running::{Running, run_to_end};
use crate::tls;

const DEADLINE: Duration = Duration::from_secs(30);
const RUNNING: &str = r#"{"type":"ADDED","object":{"kind":"Pod","status":{"containerStatuses":[
    {"name":"app","state":{"running":{}}},{"name":"side","state":{"running":{}}}]}}}"#;
const FAILED: &str = r#"{"type":"MODIFIED","object":{"kind":"Pod","status":{"containerStatuses":[
    {"name":"app","state":{"terminated":{"exitCode":1}}},{"name":"side","state":{"running":{}}}]}}}"#;
const SUCCEEDED: &str = r#"{"type":"MODIFIED","object":{"kind":"Pod","status":{"containerStatuses":[
    {"name":"side","state":{"running":{}}},{"name":"app","state":{"terminated":{"exitCode":0}}}]}}}"#;
const EXPIRED: &str = r#"{"type":"ERROR","object":{"kind":"Status","status":"Failure","code":410}}"#;

/// What the API server does with a request.
enum Answer {
    /// Sends these lines, then waits for more.
    Watch(Vec<&'static str>, Receiver<&'static str>),
    /// Sends these lines, then ends the answer.
    Ended(Vec<&'static str>),
    /// Refuses.
    Status(&'static str),
}

struct ApiServer {
    port: u16,
    token_dir: tempfile::TempDir,
    answer_tx: Sender<Answer>,
    /// The head of each request.
    request_rx: Receiver<String>,
}

impl ApiServer {
    fn start() -> Self {
        let token_dir = tempfile::tempdir().expect("a folder for the test");
        let config = tls::server_config(token_dir.path());
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("it listens").port();
        let (answer_tx, answer_rx) = channel();
        let (request_tx, request_rx) = channel();
        thread::spawn(move || {
            // Only as many connections as the test has answers for.
            while let Ok(answer) = answer_rx.recv() {
                let Ok((stream, _)) = listener.accept() else { return };
                serve(stream, &config, answer, &request_tx);
            }
        });
        Self { port, token_dir, answer_tx, request_rx }
    }

    fn will(&self, answer: Answer) {
        self.answer_tx.send(answer).expect("the server runs");
    }

    fn request(&self) -> String {
        self.request_rx.recv_timeout(DEADLINE).expect("the agent asks")
    }

    /// A sidecar of the unwrapped main `app`.
    fn sidecar(&self, pod: &Pod, script: &str) -> Command {
        self.sidecar_of(pod, &["--watch-pod=app"], script)
    }

    fn sidecar_of(&self, pod: &Pod, mains: &[&str], script: &str) -> Command {
        let mut flags = vec!["--sidecar=side".to_owned()];
        flags.extend(mains.iter().copied().map(str::to_owned));
        flags.push(format!("--token-dir={}", self.token_dir.path().display()));
        flags.push(format!("--restart-policy={}", pod.restart_policy));
        let mut sidecar = pod.wrapped(&flags, &["/bin/sh", "-c", script]);
        sidecar.env("POD_NAME", "job-x").env("KUBERNETES_SERVICE_HOST", "127.0.0.1");
        sidecar.env("KUBERNETES_SERVICE_PORT", self.port.to_string());
        sidecar
    }
}

fn serve(stream: TcpStream, config: &Arc<ServerConfig>, answer: Answer, request_tx: &Sender<String>) {
    let session = ServerConnection::new(Arc::clone(config)).expect("the settings are whole");
    let mut stream = BufReader::new(StreamOwned::new(session, stream));
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).is_err() {
            return;
        }
    }
    let _ = request_tx.send(head);
    let out = stream.get_mut();
    // The agent may go before it has read everything.
    let _ = match answer {
        Answer::Status(status) => write!(out, "HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n"),
        Answer::Ended(lines) => send_head(out).and_then(|()| send_lines(out, lines)).and_then(|()| end(out)),
        Answer::Watch(lines, more_rx) => {
            send_head(out).and_then(|()| send_lines(out, lines.into_iter().chain(more_rx)))
        }
    };
    out.conn.send_close_notify();
    let _ = out.flush();
}

fn send_head(out: &mut impl Write) -> std::io::Result<()> {
    write!(out, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")?;
    out.flush()
}

/// Each line in two parts, as a large one may come.
fn send_lines(out: &mut impl Write, lines: impl IntoIterator<Item = &'static str>) -> std::io::Result<()> {
    for line in lines {
        for part in [&line[..20], &line[20..]] {
            write!(out, "{:x}\r\n{part}\r\n", part.len())?;
            out.flush()?;
        }
    }
    Ok(())
}

fn end(out: &mut impl Write) -> std::io::Result<()> {
    write!(out, "0\r\n\r\n")
}

const UNTIL_TERM: &str = "trap 'echo term; exit 5' TERM; echo started; sleep 60 & while :; do wait $!; done";
const STOP: &str = "pillion-agent: all of app ended: side is to end within 30 s\n";

#[test]
fn a_main_that_is_not_wrapped_is_seen_in_the_pods_status() {
    let server = ApiServer::start();
    let pod = Pod::never();
    let (more_tx, more_rx) = channel();
    // The first is asked whether it is worth to start.
    server.will(Answer::Ended(vec![RUNNING]));
    server.will(Answer::Watch(vec![RUNNING], more_rx));
    let mut side = Running::start(&mut server.sidecar(&pod, UNTIL_TERM));
    assert_eq!(side.line(), "started");
    let expected = format!(
        "GET /api/v1/namespaces/jobs/pods?fieldSelector=metadata.name%3Djob-x&watch=1 HTTP/1.1\r\n\
         Host: 127.0.0.1:{}\r\nAuthorization: Bearer first\r\nAccept: application/json\r\n\
         User-Agent: pillion-agent/{}\r\nConnection: close\r\n\r\n",
        server.port,
        env!("CARGO_PKG_VERSION")
    );
    assert_eq!([server.request(), server.request()], [expected.clone(), expected]);
    assert!(side.is_running());
    more_tx.send(FAILED).unwrap();
    let ended = side.end();
    assert_eq!((ended.code, ended.out.as_str(), ended.told.as_str()), (Some(0), "term\n", STOP));
}

#[test]
fn the_watch_goes_on_after_every_fault_with_the_token_of_the_day() {
    let server = ApiServer::start();
    let pod = Pod::on_failure();
    server.will(Answer::Status("403 Forbidden"));
    server.will(Answer::Status("403 Forbidden"));
    let side = Running::start(&mut server.sidecar(&pod, UNTIL_TERM));
    assert_eq!(side.line(), "started");
    assert_eq!(
        side.told(),
        "pillion-agent: cannot watch the pod, will try again: the API server answers 403: allow the pod's service \
         account to watch pods in its namespace"
    );
    drop([server.request(), server.request()]);
    fs::write(server.token_dir.path().join("token"), "second\n").unwrap();
    // A failure is no end here, nor is the end of a watch.
    server.will(Answer::Ended(vec![RUNNING, FAILED, EXPIRED]));
    // A fault after a good watch is told again, once.
    server.will(Answer::Status("500 Internal Server Error"));
    server.will(Answer::Status("500 Internal Server Error"));
    server.will(Answer::Ended(vec![FAILED, RUNNING, SUCCEEDED]));
    assert!(server.request().contains("Authorization: Bearer second\r\n"));
    assert_eq!(side.told(), "pillion-agent: cannot watch the pod, will try again: the API server answers 500");
    let ended = side.end();
    assert_eq!((ended.code, ended.out.as_str(), ended.told.as_str()), (Some(0), "term\n", STOP));
}

#[test]
fn a_sidecar_that_is_restarted_after_an_unwrapped_main_is_not_started() {
    let server = ApiServer::start();
    server.will(Answer::Ended(vec![SUCCEEDED]));
    let ended = run_to_end(&mut server.sidecar(&Pod::on_failure(), "echo started"));
    let told = "pillion-agent: all of app ended before: side is not started\n";
    assert_eq!((ended.code, ended.out.as_str(), ended.told.as_str()), (Some(0), "", told));
}

#[test]
fn a_silent_api_server_does_not_keep_a_sidecar_from_its_start() {
    let server = ApiServer::start();
    let pod = Pod::never();
    let (more_tx, more_rx) = channel();
    server.will(Answer::Watch(vec![], more_rx));
    let side = Running::start(&mut server.sidecar(&pod, UNTIL_TERM));
    assert_eq!(side.line(), "started");
    drop(more_tx);
    server.will(Answer::Ended(vec![FAILED]));
    assert_eq!(side.end().code, Some(0));
}

#[test]
fn a_server_of_another_authority_gets_no_token() {
    let [server, other] = [ApiServer::start(), ApiServer::start()];
    fs::copy(other.token_dir.path().join("ca.crt"), server.token_dir.path().join("ca.crt")).unwrap();
    let pod = Pod::never();
    server.will(Answer::Ended(vec![SUCCEEDED]));
    server.will(Answer::Ended(vec![SUCCEEDED]));
    let side = Running::start(&mut server.sidecar(&pod, UNTIL_TERM));
    assert_eq!(side.line(), "started");
    let told = side.told();
    assert!(
        told.starts_with("pillion-agent: cannot watch the pod, will try again: the API server does not take"),
        "{told}"
    );
    assert!(told.contains("invalid peer certificate"), "{told}");
    assert!(server.request_rx.try_recv().is_err());
}

#[test]
fn wrapped_mains_are_waited_for_before_the_api_server_is_asked() {
    let server = ApiServer::start();
    let pod = Pod::never();
    let main = pod.running_main("wrapped");
    let mut side = server.sidecar_of(&pod, &["--until=wrapped", "--watch-pod=app"], UNTIL_TERM);
    let side = Running::start(&mut side);
    assert_eq!(side.line(), "started");
    pod.wait_until_awaited("wrapped");
    assert!(server.request_rx.try_recv().is_err());
    server.will(Answer::Ended(vec![FAILED]));
    main.signal(Signal::TERM);
    let told = "pillion-agent: all of wrapped, app ended: side is to end within 30 s\n";
    let ended = side.end();
    assert_eq!((ended.code, ended.told.as_str()), (Some(0), told));
}
