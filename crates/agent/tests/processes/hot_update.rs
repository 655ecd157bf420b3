//! Hot updates by the real program: a file server over TLS, an app that loads its file on SIGHUP, and what the pod shows.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::thread;

use rustix::process::Signal;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::running::{Ended, Running, agent, run_to_end, wait_until};
use crate::tls;

const RESULT: &str = "/metadata/annotations/pillion.dev~1hot-update-result";
const CONDITION: &str = "/status/conditions/0";
/// Digests of `one` and `two`.
const ONE: &str = "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed";
const TWO: &str = "3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3";

/// A server with the files `/one` and `/two`.
struct Files {
    port: u16,
    dir: tempfile::TempDir,
}

impl Files {
    fn start() -> Self {
        let dir = tempfile::tempdir().expect("a folder for the test");
        let config = tls::server_config(dir.path());
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("it listens").port();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                // The agent may break off.
                let _ = serve(stream, &config);
            }
        });
        Self { port, dir }
    }

    fn ca_file(&self) -> PathBuf {
        self.dir.path().join("ca.crt")
    }

    fn wanted(&self, version: &str, file: &str, digest: &str) -> String {
        json!({"version": version, "url": format!("https://127.0.0.1:{}/{file}", self.port), "sha256": digest})
            .to_string()
    }
}

fn serve(stream: TcpStream, config: &Arc<ServerConfig>) -> std::io::Result<()> {
    let session = ServerConnection::new(Arc::clone(config)).expect("the settings are whole");
    let mut stream = BufReader::new(StreamOwned::new(session, stream));
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head)? == 0 {
            return Ok(());
        }
    }
    let file = head.split(['/', ' ']).nth(2).unwrap_or_default();
    let out = stream.get_mut();
    write!(out, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{file}", file.len())?;
    out.conn.send_close_notify();
    out.flush()
}

/// A pod: the API server, the folder that agent and app share, and the name that the app goes by.
struct Pod {
    cluster: Cluster,
    files: Files,
    app: String,
}

impl Pod {
    fn new(more: &str) -> Self {
        let (cluster, files) = (Cluster::start(), Files::start());
        fs::create_dir(cluster.path("files")).expect("the folder is ours");
        let app = format!("game-of-{}", cluster.dir.path().file_name().expect("it has a name").display());
        cluster.configure(&format!(
            "plugins:
- name: hot_update
  config:
    fileDir: {}
    fileName: game.conf
    loadPatchType: signal
    signal: {{processName: {app}, signalName: SIGHUP}}
    allowedSources:
    - {{prefix: 'https://127.0.0.1:{}/', caFile: {}, allowPrivate: true}}
{more}",
            cluster.path("files").display(),
            files.port,
            files.ca_file().display()
        ));
        Self { cluster, files, app }
    }

    fn annotate(&self, wanted: &str) {
        self.cluster.annotate(&format!("pillion.dev/hot-update={}\n", json!(wanted)));
    }

    /// An app that says what it has loaded.
    fn start_app(&self) -> Running {
        let file = self.cluster.path("files/game.conf");
        let load = format!("cat {0} 2>/dev/null; echo", file.display());
        let script = format!("trap '{load}' HUP; {load}; while :; do sleep 0.05; done");
        Running::start(Command::new("/bin/sh").arg0(&self.app).args(["-c", &script]))
    }

    fn ready(&self) -> Ended {
        let dir = self.cluster.dir.path();
        let mut command = agent();
        command.arg("ready").arg("--config").arg(self.cluster.path("config.yaml")).arg("--pod-dir").arg(dir);
        run_to_end(&mut command)
    }

    fn result(&self) -> Value {
        let pod = self.cluster.pod();
        let text = pod.pointer(RESULT).and_then(Value::as_str).unwrap_or("null");
        serde_json::from_str(text).expect("the result is JSON")
    }

    fn wait_for(&self, version: &str, state: &str) -> Value {
        wait_until(&format!("{version} to be {state}"), || {
            let result = self.result();
            result["version"] == version && result["state"] == state
        });
        self.result()
    }
}

fn not_ready(why: &str) -> Ended {
    Ended { code: Some(1), out: String::new(), told: format!("pillion-agent: not ready: {why}\n") }
}

fn is_ready() -> Ended {
    Ended { code: Some(0), out: String::new(), told: String::new() }
}

#[test]
fn an_app_loads_a_new_version_without_a_restart() {
    let pod = Pod::new("");
    let mut app = pod.start_app();
    assert_eq!(app.line(), "");
    assert_eq!(pod.ready(), is_ready());
    pod.annotate(&pod.files.wanted("v1", "one", ONE));
    assert_eq!(pod.ready(), not_ready("v1 is not in place yet"));
    let agent = Running::start(&mut pod.cluster.agent());
    assert_eq!(app.line(), "one");
    let result = pod.wait_for("v1", "Done");
    assert_eq!(result["current"], "v1");
    assert!(
        result["message"]
            .as_str()
            .unwrap()
            .ends_with("; not verified, as no check is configured: the process is still there after 1 s"),
        "{result}"
    );
    assert_eq!(pod.ready(), is_ready());
    pod.annotate(&pod.files.wanted("v2", "two", TWO));
    assert_eq!(app.line(), "two");
    pod.wait_for("v2", "Done");
    let condition = pod.cluster.pod().pointer(CONDITION).cloned().unwrap();
    assert_eq!(
        (&condition["type"], &condition["status"], &condition["reason"]),
        (&json!("pillion.dev/HotUpdate"), &json!("True"), &json!("Done"))
    );
    // A file that is not what was asked for: the app is not touched.
    pod.annotate(&pod.files.wanted("v3", "three", ONE));
    let result = pod.wait_for("v3", "Failed");
    assert_eq!(result["current"], "v2");
    assert_eq!(fs::read_to_string(pod.cluster.path("files/game.conf")).unwrap(), "two");
    assert_eq!(pod.ready(), is_ready());
    assert!(app.is_running());
    agent.signal(Signal::TERM);
    assert_eq!(agent.end().code, Some(0));
}

#[test]
fn a_version_is_in_place_before_the_app_starts() {
    let pod = Pod::new("");
    pod.annotate(&pod.files.wanted("v1", "one", ONE));
    let _agent = Running::start(&mut pod.cluster.agent());
    wait_until("the pod to be ready", || pod.ready() == is_ready());
    let app = pod.start_app();
    assert_eq!(app.line(), "one");
    let message = pod.wait_for("v1", "Done")["message"].to_string();
    assert!(message.contains("put in place before the app"), "{message}");
}

#[test]
fn b11_a_wrong_process_name_is_a_failure_that_is_told_and_rolled_back() {
    let pod = Pod::new("");
    let app = pod.start_app();
    assert_eq!(app.line(), "");
    pod.annotate(&pod.files.wanted("v1", "one", ONE));
    let _agent = Running::start(&mut pod.cluster.agent());
    assert_eq!(app.line(), "one");
    pod.wait_for("v1", "Done");
    drop(app);
    pod.annotate(&pod.files.wanted("v2", "two", TWO));
    let result = pod.wait_for("v2", "Failed");
    assert_eq!(
        result["message"],
        json!(format!("no process begins with {:?}: correct processName; the app has v1 again", pod.app))
    );
    assert_eq!(fs::read_to_string(pod.cluster.path("files/game.conf")).unwrap(), "one");
}

#[test]
fn a_bad_file_is_rolled_back_when_the_app_does_not_acknowledge_it() {
    let acknowledging = crate::cluster::App::start("v1 is loaded");
    let check = format!(
        "    check: {{url: 'http://127.0.0.1:{}/', contains: '{{version}} is loaded', timeout: 3}}\n",
        acknowledging.port
    );
    let pod = Pod::new(&check);
    let app = pod.start_app();
    assert_eq!(app.line(), "");
    pod.annotate(&pod.files.wanted("v1", "one", ONE));
    let _agent = Running::start(&mut pod.cluster.agent());
    assert_eq!(app.line(), "one");
    pod.wait_for("v1", "Done");
    pod.annotate(&pod.files.wanted("v2", "two", TWO));
    assert_eq!((app.line(), app.line()), ("two".to_owned(), "one".to_owned()));
    let message = pod.wait_for("v2", "Failed")["message"].to_string();
    assert!(
        message.contains("did not say \\\"v2 is loaded\\\" within 3 s") && message.contains("has v1 again"),
        "{message}"
    );
}

#[test]
fn one_named_config_map_asks_for_a_version() {
    let pod = Pod::new("    trigger: {configMap: game-files}\n");
    let path = "/api/v1/namespaces/games/configmaps/game-files";
    assert_eq!(pod.ready(), not_ready("the agent has not looked yet which version is asked for"));
    let object =
        |file: &str, version: &str, digest: &str| json!({"data": {"wanted": pod.files.wanted(version, file, digest)}});
    pod.cluster.world().objects.insert(path.to_owned(), object("one", "v1", ONE));
    let _agent = Running::start(&mut pod.cluster.agent());
    pod.wait_for("v1", "Done");
    assert_eq!(pod.ready(), is_ready());
    let app = pod.start_app();
    assert_eq!(app.line(), "one");
    pod.cluster.world().objects.insert(path.to_owned(), object("two", "v2", TWO));
    assert_eq!(app.line(), "two");
    pod.wait_for("v2", "Done");
    let asked = pod.cluster.world().requests.iter().any(|(line, _, _)| {
        line == "GET /api/v1/namespaces/games/configmaps?fieldSelector=metadata.name%3Dgame-files&watch=1&timeoutSeconds=240 \
                 HTTP/1.1"
    });
    assert!(asked, "{:?}", pod.cluster.world().requests);
}

#[test]
fn a_pod_for_which_nothing_is_asked_is_ready_and_says_so() {
    let pod = Pod::new("");
    pod.cluster.annotate("");
    let _agent = Running::start(&mut pod.cluster.agent());
    pod.cluster.wait_for("/status/conditions/0/reason", &json!("NothingAsked"));
    assert_eq!(pod.ready(), is_ready());
    assert_eq!(pod.result(), Value::Null);
    let odd = "annotation pillion.dev/hot-update: is no JSON object with version, url and sha256 as texts: expected value at \
               line 1 column 1";
    pod.annotate("latest");
    assert_eq!(pod.ready(), not_ready(odd));
}
