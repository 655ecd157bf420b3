//! Parts of tests of updates: a server with files that does what a test says, an app that is asked to load them, and
//! a program that is signalled.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use aws_lc_rs::digest::{SHA256, digest};
use pillion_agent_api::{Bounds, Check, HotUpdate, Reload, Source, Storage, TriggerFrom, Wanted};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustix::process::{Pid, Signal, kill_process_group};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::fetch::Resolver;

pub(super) const DEADLINE: Duration = Duration::from_secs(30);
pub(super) const HOST: &str = "files.test";
const OTHER_HOST: &str = "other.test";

/// What a server does with a request: it is given the head, and writes the answer.
pub(super) type Answering = dyn Fn(&str, &mut dyn Write) -> io::Result<()> + Send + Sync;

/// A server of files over TLS.
pub(super) struct FileServer {
    pub(super) address: SocketAddr,
    /// Heads of requests.
    pub(super) heads: Arc<Mutex<Vec<String>>>,
    folder: tempfile::TempDir,
}

impl FileServer {
    pub(super) fn start(answering: impl Fn(&str, &mut dyn Write) -> io::Result<()> + Send + Sync + 'static) -> Self {
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed([HOST.to_owned(), OTHER_HOST.to_owned()]).expect("a key for the test");
        let key = PrivateKeyDer::try_from(signing_key.serialize_der()).expect("the key is one");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(vec![cert.der().clone()], key))
            .expect("key and certificate belong together");
        let folder = tempfile::tempdir().expect("a folder for the test");
        fs::write(folder.path().join("ca.crt"), cert.pem()).expect("the folder is ours");
        fs::write(folder.path().join("cert.key"), signing_key.serialize_pem()).expect("the folder is ours");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it listens");
        let heads = Arc::new(Mutex::new(Vec::new()));
        let answering: Arc<Answering> = Arc::new(answering);
        let (config, told) = (Arc::new(config), Arc::clone(&heads));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (config, answering, told) = (Arc::clone(&config), Arc::clone(&answering), Arc::clone(&told));
                thread::spawn(move || serve(stream, config, &*answering, &told));
            }
        });
        Self { address, heads, folder }
    }

    /// One that has these files.
    pub(super) fn with_files(files: &[(&str, &[u8])]) -> Self {
        let files: Vec<(String, Vec<u8>)> =
            files.iter().map(|(path, bytes)| ((*path).to_owned(), bytes.to_vec())).collect();
        Self::start(move |head, out| {
            let path = head.split(' ').nth(1).unwrap_or_default();
            match files.iter().find(|(name, _)| name == path) {
                Some((_, bytes)) => whole(out, "200 OK", bytes),
                None => whole(out, "404 Not Found", b"there is no such file"),
            }
        })
    }

    pub(super) fn ca_file(&self) -> String {
        self.folder.path().join("ca.crt").display().to_string()
    }

    pub(super) fn key_file(&self) -> String {
        self.folder.path().join("cert.key").display().to_string()
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("https://{HOST}:{}{path}", self.address.port())
    }

    pub(super) fn other_url(&self, path: &str) -> String {
        format!("https://{OTHER_HOST}:{}{path}", self.address.port())
    }

    pub(super) fn source(&self) -> Source {
        Source { prefix: self.url("/"), ca_file: Some(self.ca_file()), allow_private: true, ..Source::default() }
    }

    pub(super) fn wanted(&self, version: &str, path: &str, content: &[u8]) -> Wanted {
        Wanted { version: version.to_owned(), url: self.url(path), sha256: Some(sha256(content)) }
    }

    pub(super) fn requests(&self) -> usize {
        self.heads.lock().unwrap().len()
    }
}

/// Writes a whole answer.
pub(super) fn whole(out: &mut dyn Write, status: &str, body: &[u8]) -> io::Result<()> {
    write!(out, "HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n", body.len())?;
    out.write_all(body)
}

/// Writes a redirect.
pub(super) fn redirect(out: &mut dyn Write, location: &str) -> io::Result<()> {
    write!(out, "HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n")
}

fn serve(stream: TcpStream, config: Arc<ServerConfig>, answering: &Answering, heads: &Mutex<Vec<String>>) {
    let session = ServerConnection::new(config).expect("the settings are whole");
    let mut stream = BufReader::new(StreamOwned::new(session, stream));
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if !stream.read_line(&mut head).is_ok_and(|count| count > 0) {
            return;
        }
    }
    heads.lock().unwrap().push(head.clone());
    let out = stream.get_mut();
    // The agent may go before it has read everything.
    let _ = answering(&head, out);
    out.conn.send_close_notify();
    let _ = out.flush();
}

/// Finds the hosts of tests.
pub(super) struct TestResolver(pub(super) SocketAddr);

impl Resolver for TestResolver {
    fn resolve(&self, host: &str, _: u16) -> io::Result<Vec<SocketAddr>> {
        assert!([HOST, OTHER_HOST].contains(&host), "{host} is looked up");
        Ok(vec![self.0])
    }
}

/// A resolver whose answers are told, one after another; the last one for ever.
pub(super) struct Changing {
    answers: Vec<Vec<SocketAddr>>,
    pub(super) asked: AtomicUsize,
}

impl Changing {
    pub(super) fn new(answers: Vec<Vec<SocketAddr>>) -> Self {
        Self { answers, asked: AtomicUsize::new(0) }
    }
}

impl Resolver for Changing {
    fn resolve(&self, _: &str, _: u16) -> io::Result<Vec<SocketAddr>> {
        let at = self.asked.fetch_add(1, Ordering::AcqRel).min(self.answers.len() - 1);
        Ok(self.answers[at].clone())
    }
}

/// An app that loads a file when it is asked to, and shows what it has loaded. Content that begins with `bad` it does not
/// take.
pub(super) struct App {
    pub(super) address: SocketAddr,
    pub(super) reloads: Arc<AtomicUsize>,
}

impl App {
    pub(super) fn start(file: PathBuf) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it listens");
        let reloads = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&reloads);
        thread::spawn(move || {
            let mut loaded = String::new();
            for stream in listener.incoming().flatten() {
                let mut stream = BufReader::new(stream);
                let mut head = String::new();
                while !head.ends_with("\r\n\r\n") {
                    if !stream.read_line(&mut head).is_ok_and(|count| count > 0) {
                        break;
                    }
                }
                if head.starts_with("POST /reload") {
                    counted.fetch_add(1, Ordering::AcqRel);
                    let content = fs::read_to_string(&file).unwrap_or_default();
                    if !content.starts_with("bad") {
                        loaded = content;
                    }
                }
                let _ = whole(stream.get_mut(), "200 OK", loaded.as_bytes());
            }
        });
        Self { address, reloads }
    }

    pub(super) fn reload(&self) -> Reload {
        Reload::Request { url: format!("http://{}/reload", self.address), method: "POST".to_owned() }
    }

    pub(super) fn check(&self, contains: &str) -> Check {
        Check { url: format!("http://{}/", self.address), contains: contains.to_owned(), timeout_seconds: 1 }
    }
}

/// A configuration for a folder and a source.
pub(super) fn config(dir: &Path, reload: Reload, sources: Vec<Source>) -> HotUpdate {
    HotUpdate {
        file_dir: dir.display().to_string(),
        file_name: Some("game.conf".to_owned()),
        reload,
        check: None,
        trigger: TriggerFrom::Annotation,
        listener: None,
        sources,
        digests: [].into(),
        public_key: None,
        allow_downgrade: false,
        bounds: Bounds { min_interval_seconds: 0, ..Bounds::default() },
        storage: Storage::default(),
    }
}

pub(super) fn sha256(content: &[u8]) -> String {
    digest(&SHA256, content)
        .as_ref()
        .iter()
        .flat_map(|byte| format!("{byte:02x}").into_bytes())
        .map(char::from)
        .collect()
}

/// Waits until something is so.
pub(super) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + DEADLINE;
    while !is_so() {
        assert!(Instant::now() < end, "{what} within {DEADLINE:?}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// A shell that runs a script whose first line is `started`, and whose command line begins with a word of its own. It is ended
/// with everything that it has started.
pub(super) struct Program {
    pub(super) child: Child,
    out: BufReader<ChildStdout>,
    pub(super) name: String,
}

impl Program {
    pub(super) fn start(name: &str, script: &str) -> Self {
        let name = format!("{name}-{}-{:?}", std::process::id(), thread::current().id()).replace(['(', ')'], "");
        let mut shell = Command::new("/bin/sh");
        let shell = shell.arg0(&name).args(["-c", script]).stdout(Stdio::piped()).process_group(0);
        let mut child = shell.spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let mut program = Self { child, out, name };
        assert_eq!(program.line(), "started\n");
        program
    }

    pub(super) fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        line
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Gone already where a test has ended it.
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.wait();
    }
}
