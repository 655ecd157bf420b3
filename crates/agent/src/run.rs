//! `pillion-agent run`: plugins, the writer, and the file that tells what to do, until a signal ends it.

mod configuration;

use std::env;
use std::path::Path;
use std::process;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use pillion_agent_api::{Config, PluginConfig, names};
use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};

use self::configuration::{Configuration, News};
pub(crate) use self::configuration::{load, of_environment};

use crate::api_server::ApiServer;
use crate::arguments::Run;
use crate::board::{Board, Cluster, Local, Writer};
use crate::manager::Manager;
use crate::metrics::MetricsPort;
use crate::plugin::{Context, STACK_BYTES};
use crate::pod::PodIdentity;
use crate::stop::Stop;
use crate::sys::Signals;
use crate::talk::tell;

/// How often the file is looked at. The node itself takes up to a minute to bring a change.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// How long the last write may take at the end.
const TO_WRITE: Duration = Duration::from_secs(5);
/// As a shell tells a process that SIGTERM ended.
const ENDED_BY_TERM: i32 = 143;

/// Runs until it is told to end, and returns the code to exit with.
pub(crate) fn run(request: &Run) -> u8 {
    match try_run(request) {
        Ok(()) => 0,
        Err(error) => {
            tell(format_args!("{error:#}"));
            1
        }
    }
}

fn try_run(request: &Run) -> anyhow::Result<()> {
    hide().context("cannot keep other processes from this one's memory and files")?;
    let signals = take_signals()?;
    let pod = Arc::new(pod_of(request)?);
    let api_server =
        if request.is_local { None } else { Some(Arc::new(ApiServer::of_environment(&request.token_dir)?)) };
    let board = Arc::<Board>::default();
    let mut configuration = Configuration::new(&request.config, api_server.clone(), Arc::clone(&pod));
    let first = configuration.look();
    if let (true, News::Bad(problem)) = (request.is_local, &first) {
        anyhow::bail!("{problem}");
    }
    let written_rx = start_writer(&board, api_server.clone(), &pod)?;
    let context = Context { stop: Stop::default(), board: Arc::clone(&board), pod, api_server };
    let mut agent = Agent { manager: Manager::new(context), board, metrics: None, metrics_port: None };
    agent.take(first);
    while signals.recv_timeout(LOOK_AGAIN) == Err(RecvTimeoutError::Timeout) {
        agent.take(configuration.look());
    }
    agent.manager.stop();
    agent.board.close();
    // What cannot be written now is written by the next agent of this pod.
    let _ = written_rx.recv_timeout(TO_WRITE);
    Ok(())
}

/// Another process of the same user must not read the token out of this one, nor out of a file it leaves.
fn hide() -> rustix::io::Result<()> {
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })
}

/// The first signal is told; the second ends the process wherever it is.
fn take_signals() -> anyhow::Result<Receiver<()>> {
    let numbers = [libc::SIGTERM, libc::SIGINT].map(|number| u8::try_from(number).expect("signals have small numbers"));
    let mut signals = Signals::take(numbers).context("cannot receive signals")?;
    let (signal_tx, signal_rx) = channel();
    let thread = thread::Builder::new().name("signals".to_owned()).stack_size(STACK_BYTES);
    thread.spawn(move || {
        signals.next();
        let _ = signal_tx.send(());
        signals.next();
        end_at_once();
    })?;
    Ok(signal_rx)
}

#[expect(clippy::exit, reason = "who signals twice does not want to wait for other threads")]
fn end_at_once() -> ! {
    process::exit(ENDED_BY_TERM)
}

fn pod_of(request: &Run) -> anyhow::Result<PodIdentity> {
    let read = |name: &str, local: &str| match env::var(name) {
        Err(_) if request.is_local => Ok(local.to_owned()),
        value => value.with_context(|| format!("{name} does not tell which pod this is: give it by fieldRef")),
    };
    Ok(PodIdentity {
        name: read(names::POD_NAME, "local")?,
        namespace: read(names::POD_NAMESPACE, "default")?,
        uid: read(names::POD_UID, "local")?,
        annotations_file: request.pod_dir.join(names::ANNOTATIONS_FILE),
    })
}

/// Starts the thread that writes; the receiver hears its end.
fn start_writer(
    board: &Arc<Board>,
    api_server: Option<Arc<ApiServer>>,
    pod: &Arc<PodIdentity>,
) -> anyhow::Result<Receiver<()>> {
    let (written_tx, written_rx) = channel();
    let (board, pod) = (Arc::clone(board), Arc::clone(pod));
    let now = Instant::now();
    let work: Box<dyn FnOnce() + Send> = if let Some(api_server) = api_server {
        let writer = Writer::new(board, Cluster { api_server, pod }, now);
        Box::new(move || writer.run())
    } else {
        let writer = Writer::new(board, Local::new(&pod)?, now);
        Box::new(move || writer.run())
    };
    let thread = thread::Builder::new().name("writer".to_owned()).stack_size(STACK_BYTES);
    thread.spawn(move || {
        work();
        drop(written_tx);
    })?;
    Ok(written_rx)
}

struct Agent {
    manager: Manager,
    board: Arc<Board>,
    metrics: Option<MetricsPort>,
    /// The port that is to be open.
    metrics_port: Option<u16>,
}

impl Agent {
    fn take(&mut self, news: News) {
        match news {
            News::Same => {}
            News::Bad(problem) => tell(format_args!("{problem}")),
            News::Good(config) => {
                self.board.set_reassert(reassert_of(&config));
                self.metrics_port = config.metrics_port;
                self.manager.load(&config);
            }
        }
        self.open_metrics();
    }

    fn open_metrics(&mut self) {
        if self.metrics.as_ref().map(MetricsPort::port) == self.metrics_port {
            return;
        }
        self.metrics = None;
        let Some(port) = self.metrics_port else { return };
        match MetricsPort::open(port, Arc::clone(&self.board)) {
            Ok(open) => self.metrics = Some(open),
            Err(error) => tell(format_args!("cannot open port {port} for metrics, will try again: {error}")),
        }
    }
}

/// The shortest that a plugin asks for.
fn reassert_of(config: &Config) -> Option<Duration> {
    let seconds = config.plugins.iter().filter_map(|plugin| match &plugin.config {
        PluginConfig::HttpProbe(probe) => Some(probe.reassert_seconds),
        PluginConfig::PodProbe(probe) => Some(probe.reassert_seconds),
        PluginConfig::HotUpdate(_) => None,
    });
    seconds.min().map(|seconds| Duration::from_secs(u64::from(seconds).max(1)))
}

/// Runs a configuration on this machine: patches are printed on stdout and sent nowhere. Returns the code to exit with.
pub fn run_local(config: &Path) -> u8 {
    run(&Run { is_local: true, config: config.to_owned(), ..Run::default() })
}
