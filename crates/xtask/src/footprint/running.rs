//! What the agent takes while it runs plugins: an app that is asked every five seconds, and an API server over TLS.

use std::fmt;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::number_after;

/// How long it is watched.
const WATCHED: Duration = Duration::from_mins(1);
/// How long a start may take before it is given up.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often it is started; the fastest counts, as others use this machine too.
const STARTS: usize = 5;
/// 5 MiB.
const MOST_KIBIBYTES: u64 = 5 * 1024;
/// One millicore over the time it is watched.
const MOST_CPU: Duration = Duration::from_millis(60);
const LONGEST_START: Duration = Duration::from_millis(50);

const CONFIG: &str = "plugins:
- name: http_probe
  config:
    startDelaySeconds: 0
    probeIntervalSeconds: 5
    endpoints:
    - url: http://127.0.0.1:PORT/
      storageConfig: {type: InKube, inKube: {annotationKey: example.com/state}}
";
/// The pod before the agent's write, and after it.
const PODS: [&str; 2] = ["{\"metadata\":{}}", "{\"metadata\":{\"annotations\":{\"example.com/state\":\"idle\"}}}"];

/// What an agent at work takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Running {
    /// All memory that is mapped and in use, the program's own file included.
    pub resident_kibibytes: u64,
    /// Time on a processor while it was watched.
    pub cpu: Duration,
    /// From its start to its first question to the app.
    pub start: Duration,
}

impl Running {
    /// Whether it is within what is promised.
    pub fn is_as_promised(&self) -> bool {
        self.resident_kibibytes <= MOST_KIBIBYTES && self.cpu <= MOST_CPU && self.start <= LONGEST_START
    }
}

impl fmt::Display for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { resident_kibibytes, cpu, start } = self;
        let verdict = if self.is_as_promised() { "kept" } else { "broken" };
        write!(
            f,
            "run, asking every 5 s: {resident_kibibytes} KiB resident; {:.1} ms of CPU in {} s; first question after \
             {:.1} ms; promised {MOST_KIBIBYTES} KiB, {} ms, {} ms: {verdict}",
            cpu.as_secs_f64() * 1e3,
            WATCHED.as_secs(),
            start.as_secs_f64() * 1e3,
            MOST_CPU.as_millis(),
            LONGEST_START.as_millis()
        )
    }
}

/// Watches the program at work.
pub(super) fn measure(program: &Path) -> anyhow::Result<Running> {
    let dir = tempfile::tempdir().context("cannot make a folder")?;
    let api_server = start_api_server(dir.path())?;
    let (app, asked_rx) = start_app()?;
    fs::write(dir.path().join("config.yaml"), CONFIG.replace("PORT", &app.to_string()))?;
    let mut start = Duration::MAX;
    for _ in 0..STARTS {
        start = start.min(Agent::start(program, dir.path(), api_server, &asked_rx)?.1);
    }
    let (agent, _) = Agent::start(program, dir.path(), api_server, &asked_rx)?;
    // The second question comes when all that belongs to a start is over.
    asked_rx.recv_timeout(PATIENCE).context("the agent asks the app once and not again")?;
    let before = agent.cpu()?;
    thread::sleep(WATCHED);
    let cpu = agent.cpu()?.saturating_sub(before);
    let status = fs::read_to_string(format!("/proc/{}/status", agent.0.id())).context("the agent has ended")?;
    Ok(Running { resident_kibibytes: number_after(&status, "VmRSS:")?, cpu, start })
}

/// An agent at work, ended when dropped.
pub(super) struct Agent(pub(super) Child);

impl Agent {
    /// Starts one; returns how long it took to ask the app.
    fn start(program: &Path, dir: &Path, port: u16, asked_rx: &Receiver<Instant>) -> anyhow::Result<(Self, Duration)> {
        while asked_rx.try_recv().is_ok() {}
        let mut command = Command::new(program);
        command.arg("run").arg("--config").arg(dir.join("config.yaml")).arg("--token-dir").arg(dir);
        command.env("POD_NAME", "p").env("POD_NAMESPACE", "n").env("POD_UID", "u");
        command.env("KUBERNETES_SERVICE_HOST", "127.0.0.1").env("KUBERNETES_SERVICE_PORT", port.to_string());
        let begin = Instant::now();
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let agent = Self(child.with_context(|| format!("cannot run {}", program.display()))?);
        let asked = asked_rx.recv_timeout(PATIENCE).context("the agent does not ask the app")?;
        Ok((agent, asked.saturating_duration_since(begin)))
    }

    /// Time on a processor so far, over all threads.
    fn cpu(&self) -> anyhow::Result<Duration> {
        let mut nanoseconds = 0;
        for task in fs::read_dir(format!("/proc/{}/task", self.0.id()))? {
            nanoseconds += on_processor(&fs::read_to_string(task?.path().join("schedstat"))?)?;
        }
        Ok(Duration::from_nanos(nanoseconds))
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // Gone already is what we want.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The first number of the line, in nanoseconds.
fn on_processor(schedstat: &str) -> anyhow::Result<u64> {
    schedstat.split(' ').next().and_then(|number| number.parse().ok()).context("the kernel does not tell CPU times")
}

/// An app that is idle; tells when it is asked.
pub(super) fn start_app() -> anyhow::Result<(u16, Receiver<Instant>)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    let (asked_tx, asked_rx) = channel();
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let _ = asked_tx.send(Instant::now());
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nidle");
        }
    });
    Ok((port, asked_rx))
}

/// As much of an API server as an agent with one annotation needs.
fn start_api_server(dir: &Path) -> anyhow::Result<u16> {
    serve(dir, answer)
}

/// Answers each connection to a TLS port of its own; what makes the agent trust it is in the folder.
pub(super) fn serve(
    dir: &Path,
    answer: fn(TcpStream, &Arc<ServerConfig>) -> anyhow::Result<()>,
) -> anyhow::Result<u16> {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["127.0.0.1".to_owned()])?;
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).map_err(anyhow::Error::msg)?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)?;
    for (name, text) in [("ca.crt", cert.pem().as_str()), ("token", "t"), ("namespace", "n")] {
        fs::write(dir.join(name), text)?;
    }
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    let config = Arc::new(config);
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            // An agent that is ended meanwhile breaks off.
            let _ = answer(stream, &config);
        }
    });
    Ok(port)
}

fn answer(stream: TcpStream, config: &Arc<ServerConfig>) -> anyhow::Result<()> {
    let mut stream = BufReader::new(StreamOwned::new(ServerConnection::new(Arc::clone(config))?, stream));
    let mut length = 0;
    loop {
        let mut line = String::new();
        ensure!(stream.read_line(&mut line)? > 0, "the agent breaks off");
        if line == "\r\n" {
            break;
        }
        if let Some(value) = line.strip_prefix("Content-Length: ") {
            length = value.trim_end().parse()?;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    let pod = PODS[usize::from(body != b"{}")];
    let out = stream.get_mut();
    write!(out, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{pod}", pod.len())?;
    out.conn.send_close_notify();
    Ok(out.flush()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEPT: Running = Running { resident_kibibytes: 5120, cpu: MOST_CPU, start: LONGEST_START };

    #[test]
    fn each_figure_can_break_the_promise() {
        let more = Duration::from_nanos(1);
        assert!(KEPT.is_as_promised());
        assert!(!Running { resident_kibibytes: 5121, ..KEPT }.is_as_promised());
        assert!(!Running { cpu: MOST_CPU + more, ..KEPT }.is_as_promised());
        assert!(!Running { start: LONGEST_START + more, ..KEPT }.is_as_promised());
    }

    #[test]
    fn it_is_told_with_its_verdict() {
        assert_eq!(
            KEPT.to_string(),
            "run, asking every 5 s: 5120 KiB resident; 60.0 ms of CPU in 60 s; first question after 50.0 ms; promised \
             5120 KiB, 60 ms, 50 ms: kept"
        );
        assert!(Running { resident_kibibytes: 6000, ..KEPT }.to_string().ends_with(": broken"));
    }

    #[test]
    fn the_time_on_a_processor_is_the_first_number() {
        assert_eq!(on_processor("847834 380168 10\n").unwrap(), 847_834);
        assert_eq!(on_processor("").unwrap_err().to_string(), "the kernel does not tell CPU times");
    }
}
