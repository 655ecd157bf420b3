//! An API server with one pod and what else the agent may patch, that fails when a test says so; and an app beside it.
//!
//! It knows just enough to inject faults. What the real one does is tried on the real one.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;

use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};

use crate::running::{agent, wait_until};
use crate::tls;

pub(crate) const POD: &str = "/api/v1/namespaces/games/pods/g-0/status?fieldManager=pillion-agent";
pub(crate) const GAME_SERVER: &str =
    "/apis/game.kruise.io/v1alpha1/namespaces/games/gameservers/g-0?fieldManager=pillion-agent";

/// What a test sees and changes.
#[derive(Debug, Default)]
pub(crate) struct World {
    /// Objects by the path they are patched at.
    pub(crate) objects: BTreeMap<String, Value>,
    /// Each patch that changed something, with its path.
    pub(crate) writes: Vec<(String, Value)>,
    /// All requests: first line, content type, token.
    pub(crate) requests: Vec<(String, String, String)>,
    /// The status and message that answers everything, instead.
    pub(crate) refusal: Option<(u16, String)>,
}

pub(crate) struct Cluster {
    port: u16,
    pub(crate) dir: tempfile::TempDir,
    world: Arc<Mutex<World>>,
}

impl Cluster {
    pub(crate) fn start() -> Self {
        let dir = tempfile::tempdir().expect("a folder for the test");
        let config = tls::server_config(dir.path());
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("it listens").port();
        let world = Arc::<Mutex<World>>::default();
        for path in [POD, GAME_SERVER] {
            world
                .lock()
                .expect("no test panics with it")
                .objects
                .insert(path.to_owned(), json!({"metadata": {"name": "g-0"}}));
        }
        let served = Arc::clone(&world);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                // A connection that breaks is the agent's to notice.
                let _ = serve(stream, &config, &served);
            }
        });
        Self { port, dir, world }
    }

    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().expect("no test panics with it")
    }

    pub(crate) fn pod(&self) -> Value {
        self.world().objects[POD].clone()
    }

    /// Waits until the pod shows this at a JSON pointer; null for nothing.
    pub(crate) fn wait_for(&self, pointer: &str, expected: &Value) {
        wait_until(&format!("{pointer} to be {expected}"), || {
            self.pod().pointer(pointer).unwrap_or(&Value::Null) == expected
        });
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn configure(&self, config: &str) {
        // As the node does it: nobody sees half a file.
        fs::write(self.path("new.yaml"), config).expect("the folder is ours");
        fs::rename(self.path("new.yaml"), self.path("config.yaml")).expect("the folder is ours");
    }

    pub(crate) fn annotate(&self, annotations: &str) {
        fs::write(self.path("annotations"), annotations).expect("the folder is ours");
    }

    /// The agent of the pod.
    pub(crate) fn agent(&self) -> Command {
        self.agent_at(Path::new(agent().get_program()))
    }

    /// The same from another file.
    pub(crate) fn agent_at(&self, program: &Path) -> Command {
        let mut agent = Command::new(program);
        let dir = self.dir.path();
        agent.arg("run").arg("--config").arg(self.path("config.yaml"));
        agent.arg("--token-dir").arg(dir).arg("--pod-dir").arg(dir);
        agent.env("POD_NAME", "g-0").env("POD_NAMESPACE", "games").env("POD_UID", "u-1");
        agent.env("KUBERNETES_SERVICE_HOST", "127.0.0.1").env("KUBERNETES_SERVICE_PORT", self.port.to_string());
        agent
    }
}

fn serve(stream: TcpStream, config: &Arc<ServerConfig>, world: &Mutex<World>) -> std::io::Result<()> {
    let session = ServerConnection::new(Arc::clone(config)).expect("the settings are whole");
    let mut stream = BufReader::new(StreamOwned::new(session, stream));
    let mut first = String::new();
    stream.read_line(&mut first)?;
    let (mut length, mut kind, mut token) = (0, String::new(), String::new());
    loop {
        let mut line = String::new();
        stream.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        match name {
            "Content-Length" => length = value.parse().expect("the agent sends a length"),
            "Content-Type" => value.clone_into(&mut kind),
            "Authorization" => value.clone_into(&mut token),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    let (status, answer) =
        answer(&mut world.lock().expect("no test panics with it"), first.trim_end(), &kind, &token, &body);
    let out = stream.get_mut();
    let text = answer.to_string();
    write!(out, "HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n{text}", text.len())?;
    out.conn.send_close_notify();
    out.flush()
}

fn answer(world: &mut World, first: &str, kind: &str, token: &str, body: &[u8]) -> (u16, Value) {
    world.requests.push((first.to_owned(), kind.to_owned(), token.to_owned()));
    if let Some((status, message)) = &world.refusal {
        return (*status, json!({"kind": "Status", "message": message}));
    }
    if let Some(path) = first.strip_prefix("GET ").and_then(|rest| rest.strip_suffix(" HTTP/1.1")) {
        return read(world, path);
    }
    let path = first.strip_prefix("PATCH ").and_then(|rest| rest.strip_suffix(" HTTP/1.1")).unwrap_or_default();
    let Some(object) = world.objects.get_mut(path) else {
        return (404, json!({"kind": "Status", "message": "not found"}));
    };
    let patch: Value = serde_json::from_slice(body).expect("the agent sends JSON");
    let before = object.clone();
    merge(object, &patch, kind == "application/strategic-merge-patch+json");
    let after = object.clone();
    if before != after {
        world.writes.push((path.to_owned(), patch));
    }
    (200, after)
}

/// An object, or a watch of one that tells how it is and ends.
fn read(world: &World, path: &str) -> (u16, Value) {
    let (folder, query) = path.split_once('?').unwrap_or((path, ""));
    let name = query.strip_prefix("fieldSelector=metadata.name%3D").and_then(|rest| rest.split('&').next());
    let object = world.objects.get(&name.map_or(path.to_owned(), |name| format!("{folder}/{name}")));
    match (object, name) {
        (Some(object), Some(_)) => (200, json!({"type": "MODIFIED", "object": object})),
        (Some(object), None) => (200, object.clone()),
        (None, _) => (404, json!({"kind": "Status", "message": "not found"})),
    }
}

fn merge(object: &mut Value, patch: &Value, is_strategic: bool) {
    let Value::Object(patch) = patch else {
        *object = patch.clone();
        return;
    };
    if !object.is_object() {
        *object = json!({});
    }
    for (key, value) in patch {
        match value {
            Value::Null => drop(object.as_object_mut().expect("it is one").remove(key)),
            Value::Array(entries) if is_strategic && key == "conditions" => {
                let mut merged = object[key].as_array().cloned().unwrap_or_default();
                for entry in entries {
                    let at = merged.iter().position(|condition| condition["type"] == entry["type"]);
                    match at {
                        Some(at) if entry["$patch"] == "delete" => drop(merged.remove(at)),
                        Some(at) => merge(&mut merged[at], entry, is_strategic),
                        None => merged.push(entry.clone()),
                    }
                }
                object[key] = Value::Array(merged);
            }
            value => merge(&mut object[key], value, is_strategic),
        }
    }
}

/// An app that says its state.
pub(crate) struct App {
    pub(crate) port: u16,
    state: Arc<Mutex<Option<String>>>,
}

impl App {
    pub(crate) fn start(state: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("it listens").port();
        let state = Arc::new(Mutex::new(Some(state.to_owned())));
        let told = Arc::clone(&state);
        thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let _ = stream.read(&mut [0; 2048]);
                if let Some(state) = told.lock().expect("no test panics with it").as_ref() {
                    let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{state}", state.len());
                }
            }
        });
        Self { port, state }
    }

    /// What it answers from now on; nothing at all for `None`.
    pub(crate) fn says(&self, state: Option<&str>) {
        *self.state.lock().expect("no test panics with it") = state.map(str::to_owned);
    }
}
