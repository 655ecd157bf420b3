//! `pod_probe`: asks what the pod's annotation `kruise.io/podprobe` lists, and sets the conditions it names.
//!
//! `OpenKruise` writes that annotation for nodes on which its own daemon cannot run. The conditions look as its daemon's
//! do, so that whoever reads them sees no difference. The annotation is the word of whoever may write pods, not of the
//! configuration: it may ask the pod itself for something, and nothing else.

mod ask;
mod list;
mod unverified;
mod watch;

use std::collections::BTreeSet;
use std::mem;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::bail;
use pillion_agent_api::{PluginConfig, names};

use self::watch::Watched;
use crate::plugin::{Context, Plugin, STACK_BYTES};
use crate::stop::Stop;
use crate::talk::tell;

const NAME: &str = "pod_probe";
/// How often the annotation is looked at. The node itself takes up to a minute to bring a change.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// Asks what the annotation lists.
#[derive(Debug, Default)]
pub(crate) struct PodProbes {
    running: Running,
}

/// The probes of one text of the annotation.
#[derive(Debug, Default)]
struct Running {
    stop: Stop,
    threads: Vec<JoinHandle<()>>,
}

impl Plugin for PodProbes {
    fn name(&self) -> &'static str {
        NAME
    }

    fn config_type(&self) -> &'static str {
        "PodProbe"
    }

    fn init(&mut self, config: &PluginConfig) -> anyhow::Result<()> {
        // How often the pod is looked at is the board's business.
        let PluginConfig::PodProbe(_) = config else { bail!("this is not a configuration of {NAME}") };
        Ok(())
    }

    fn start(&mut self, context: &Context) -> anyhow::Result<()> {
        let mut last = None;
        loop {
            let annotations = context.pod.annotations();
            let text = annotations.map(|mut annotations| annotations.remove(names::POD_PROBES).unwrap_or_default());
            match text {
                Ok(text) if last.as_ref() != Some(&text) => {
                    mem::take(&mut self.running).end();
                    self.running = Running::start(&text, context)?;
                    last = Some(text);
                }
                Ok(_) => {}
                Err(error) => bail!("cannot read {}: {error}", context.pod.annotations_file.display()),
            }
            if context.stop.wait(LOOK_AGAIN) {
                mem::take(&mut self.running).end();
                return Ok(());
            }
        }
    }
}

impl Running {
    fn start(text: &str, context: &Context) -> anyhow::Result<Self> {
        let (probes, problems) = list::read(text);
        for problem in problems {
            tell(format_args!("annotation {}: {problem}", names::POD_PROBES));
        }
        let stop = Stop::default();
        let context = Context { stop: stop.clone(), ..context.clone() };
        let watched: Vec<Watched> =
            probes.into_iter().map(|probe| Watched::new(format!("{NAME}/{}", probe.condition), probe)).collect();
        let sources: BTreeSet<String> = watched.iter().map(|watched| watched.source().to_owned()).collect();
        context.board.withdraw_all_but(NAME, &sources);
        let mut running = Self { stop, threads: Vec::new() };
        for mut watched in watched {
            let context = context.clone();
            let thread = thread::Builder::new().name(NAME.to_owned()).stack_size(STACK_BYTES);
            match thread.spawn(move || watched.watch(&context)) {
                Ok(thread) => running.threads.push(thread),
                Err(error) => {
                    running.end();
                    return Err(error.into());
                }
            }
        }
        Ok(running)
    }

    /// Has all end, and waits for it: what the next ones tell must come after.
    fn end(self) {
        self.stop.stop();
        for thread in self.threads {
            // A thread that panicked has ended too.
            let _ = thread.join();
        }
    }
}
