//! What the agent takes while it brings a large file into a pod.

use std::fmt;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::number_after;
use super::running::{Agent, serve, start_app};

/// 1 GiB of zeros, and its digest.
const BYTES: usize = 1 << 30;
const DIGEST: &str = "49bc20df15e412a64472421e13fe86ff1c5165e18b2afccf160d4dc19fe68a14";
/// 8 MiB.
const MOST_KIBIBYTES: u64 = 8 * 1024;
/// For the whole update.
const PATIENCE: Duration = Duration::from_mins(3);

const CONFIG: &str = "plugins:
- name: hot_update
  config:
    fileDir: DIR/files
    fileName: blob
    loadPatchType: request
    request: {url: 'http://127.0.0.1:APP/'}
    allowedSources: [{prefix: 'https://127.0.0.1:SOURCE/', caFile: DIR/ca.crt, allowPrivate: true}]
";

/// What an update of 1 GiB takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Updating {
    /// The most memory that was in use at once, the program's own file included.
    pub peak_kibibytes: u64,
    /// From the start of the agent to the file in its place.
    pub took: Duration,
}

impl Updating {
    /// Whether it is within what is promised.
    pub fn is_as_promised(&self) -> bool {
        self.peak_kibibytes <= MOST_KIBIBYTES
    }
}

impl fmt::Display for Updating {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.is_as_promised() { "kept" } else { "broken" };
        write!(
            f,
            "update of 1 GiB: at most {} KiB resident, in {:.1} s; promised {MOST_KIBIBYTES} KiB: {verdict}",
            self.peak_kibibytes,
            self.took.as_secs_f64()
        )
    }
}

/// Has the program fetch a file, and looks at it until the file is in its place.
pub(super) fn measure(program: &Path) -> anyhow::Result<Updating> {
    let folder = tempfile::tempdir().context("cannot make a folder")?;
    let dir = folder.path();
    let (app, _asked_rx) = start_app()?;
    let source = serve(dir, send_zeros)?;
    fs::create_dir(dir.join("files"))?;
    let config = CONFIG.replace("DIR", &dir.display().to_string());
    let config = config.replace("APP", &app.to_string()).replace("SOURCE", &source.to_string());
    fs::write(dir.join("config.yaml"), config)?;
    let wanted = format!(r#"{{"version":"v1","url":"https://127.0.0.1:{source}/blob","sha256":"{DIGEST}"}}"#);
    fs::write(dir.join("annotations"), format!("pillion.dev/hot-update={wanted:?}\n"))?;
    let mut command = Command::new(program);
    command.arg("run").arg("--local").arg("--config").arg(dir.join("config.yaml")).arg("--pod-dir").arg(dir);
    command.env("POD_NAME", "p").env("POD_NAMESPACE", "n").env("POD_UID", "u");
    let began = Instant::now();
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let agent = Agent(child.with_context(|| format!("cannot run {}", program.display()))?);
    let placed = dir.join("files/blob");
    while !fs::metadata(&placed).is_ok_and(|file| file.len() == BYTES as u64) {
        ensure!(began.elapsed() < PATIENCE, "the agent does not bring the file");
        thread::sleep(Duration::from_millis(100));
    }
    let took = began.elapsed();
    let status = fs::read_to_string(format!("/proc/{}/status", agent.0.id())).context("the agent has ended")?;
    Ok(Updating { peak_kibibytes: number_after(&status, "VmHWM:")?, took })
}

fn send_zeros(stream: TcpStream, config: &Arc<ServerConfig>) -> anyhow::Result<()> {
    let mut stream = BufReader::new(StreamOwned::new(ServerConnection::new(Arc::clone(config))?, stream));
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        ensure!(stream.read_line(&mut line)? > 0, "the agent breaks off");
    }
    let out = stream.get_mut();
    write!(out, "HTTP/1.1 200 OK\r\nContent-Length: {BYTES}\r\n\r\n")?;
    let zeros = vec![0; 1 << 16];
    for _ in 0..BYTES / zeros.len() {
        out.write_all(&zeros)?;
    }
    out.conn.send_close_notify();
    Ok(out.flush()?)
}
