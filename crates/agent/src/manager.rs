//! Runs the plugins: in order, each in its own thread, and again when one fails.
//!
//! It is the proposal's table of interfaces: [`Manager::add`], [`Manager::remove`], [`Manager::version`],
//! [`Manager::status`], [`Manager::start`], [`Manager::stop`] and [`Manager::load`]; what the table calls storing data is
//! [`Context::store`].

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use pillion_agent_api::{Config, PluginConfig};

use crate::pause::{Pauses, spread};
use crate::plugin::{Context, Plugin, STACK_BYTES};
use crate::plugins;
use crate::stop::Stop;
use crate::talk::tell;

/// After the first failure of a plugin.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);
/// One that ran for so long begins again with the first pause.
const RAN_WELL: Duration = Duration::from_mins(1);
/// How long the next plugin waits for the first look at its configuration of the one before.
const TO_INIT: Duration = Duration::from_secs(2);
/// How long a plugin may take to end.
const TO_END: Duration = Duration::from_secs(3);

/// Runs the plugins.
pub struct Manager {
    context: Context,
    /// By boot order; those with the same in the order they came.
    slots: Vec<Slot>,
}

/// How a plugin is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginStatus {
    /// Its name.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
    /// Whether it works now.
    pub is_running: bool,
    /// How often it failed.
    pub failures: u32,
    /// Why it failed last.
    pub last_failure: Option<String>,
}

struct Slot {
    boot_order: i64,
    config: PluginConfig,
    stop: Stop,
    status: Arc<Mutex<PluginStatus>>,
    state: State,
}

enum State {
    Added(Box<dyn Plugin>),
    /// The receiver hears the end of the thread.
    Started(Receiver<()>),
    Ended,
}

impl Manager {
    /// One that runs nothing yet. Plugins get this context, each with a word of its own for when to end.
    pub fn new(context: Context) -> Self {
        Self { context, slots: Vec::new() }
    }

    /// Adds a plugin with its configuration.
    pub fn add(&mut self, boot_order: i64, plugin: Box<dyn Plugin>, config: PluginConfig) -> anyhow::Result<()> {
        let (name, version) = (plugin.name(), plugin.version());
        ensure!(self.status(name).is_none(), "plugin {name} is there already");
        let status = PluginStatus { name, version, is_running: false, failures: 0, last_failure: None };
        let slot = Slot {
            boot_order,
            config,
            stop: Stop::default(),
            status: Arc::new(Mutex::new(status)),
            state: State::Added(plugin),
        };
        let at = self.slots.partition_point(|other| other.boot_order <= boot_order);
        self.slots.insert(at, slot);
        Ok(())
    }

    /// Ends a plugin, and takes away what it wanted shown.
    pub fn remove(&mut self, name: &str) -> anyhow::Result<()> {
        let at = self.slots.iter().position(|slot| slot.name() == name);
        let mut slot = self.slots.remove(at.with_context(|| format!("there is no plugin {name}"))?);
        slot.end();
        self.context.board.withdraw_all_but(name, &std::collections::BTreeSet::new());
        Ok(())
    }

    /// The version of the agent.
    pub fn version(&self) -> &'static str {
        env!("CARGO_PKG_VERSION")
    }

    /// How a plugin is.
    pub fn status(&self, name: &str) -> Option<PluginStatus> {
        let slot = self.slots.iter().find(|slot| slot.name() == name)?;
        Some(slot.status.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    /// Starts what is not started, lower boot orders first. One that fails is tried again later and keeps nobody back.
    pub fn start(&mut self) {
        for slot in &mut self.slots {
            slot.start(&self.context);
        }
    }

    /// Ends all, the last started first.
    pub fn stop(&mut self) {
        for slot in self.slots.iter_mut().rev() {
            slot.end();
        }
    }

    /// Makes the plugins those of a configuration: what is the same goes on, what is new or changed is started, what is gone
    /// is removed.
    pub fn load(&mut self, config: &Config) {
        let is_same = |slot: &Slot| {
            config.plugins.iter().any(|plugin| plugin.config == slot.config && plugin.boot_order == slot.boot_order)
        };
        let changed: Vec<&'static str> = self.slots.iter().filter(|slot| !is_same(slot)).map(Slot::name).collect();
        for name in changed.into_iter().rev() {
            if config.plugins.iter().any(|plugin| plugin.config.name() == name) {
                // What it showed stays until the next one knows better.
                let at = self.slots.iter().position(|slot| slot.name() == name).expect("it was found there");
                self.slots.remove(at).end();
            } else {
                self.remove(name).expect("it was found there");
            }
        }
        for plugin in &config.plugins {
            if self.status(plugin.config.name()).is_some() {
                continue;
            }
            let added = self.add(plugin.boot_order, plugins::make(&plugin.config), plugin.config.clone());
            if let Err(error) = added {
                tell(format_args!("{error:#}"));
            }
        }
        self.start();
    }
}

impl Slot {
    fn name(&self) -> &'static str {
        self.config.name()
    }

    fn start(&mut self, context: &Context) {
        let plugin = match std::mem::replace(&mut self.state, State::Ended) {
            State::Added(plugin) => plugin,
            other => {
                self.state = other;
                return;
            }
        };
        let (init_tx, init_rx) = channel();
        let (ended_tx, ended_rx) = channel();
        let attempts = Attempts {
            plugin,
            config: self.config.clone(),
            context: Context { stop: self.stop.clone(), ..context.clone() },
            status: Arc::clone(&self.status),
        };
        let thread = thread::Builder::new().name(self.name().to_owned()).stack_size(STACK_BYTES);
        let started = thread.spawn(move || {
            attempts.make(&init_tx);
            drop(ended_tx);
        });
        match started {
            Ok(_) => {
                self.state = State::Started(ended_rx);
                // An error is the plugin's own, and told by it.
                let _ = init_rx.recv_timeout(TO_INIT);
            }
            Err(error) => tell(format_args!("plugin {}: cannot start a thread: {error}", self.name())),
        }
    }

    fn end(&mut self) {
        self.stop.stop();
        if let State::Started(ended_rx) = std::mem::replace(&mut self.state, State::Ended)
            && ended_rx.recv_timeout(TO_END) == Err(RecvTimeoutError::Timeout)
        {
            tell(format_args!("plugin {} does not end, and is left behind", self.name()));
        }
    }
}

/// A plugin and what it is started with, again and again.
struct Attempts {
    plugin: Box<dyn Plugin>,
    config: PluginConfig,
    context: Context,
    status: Arc<Mutex<PluginStatus>>,
}

impl Attempts {
    fn make(mut self, init_tx: &Sender<()>) {
        let mut pauses = Pauses::new(FIRST_PAUSE, LONGEST_PAUSE);
        while !self.context.stop.is_stopped() {
            let begin = Instant::now();
            let outcome = self.make_one(init_tx);
            if self.context.stop.is_stopped() {
                break;
            }
            if begin.elapsed() >= RAN_WELL {
                pauses.reset();
            }
            let message = outcome.map_or_else(|error| format!("{error:#}"), |()| "it ended by itself".to_owned());
            let pause = spread(pauses.grow());
            tell(format_args!(
                "plugin {} failed and is started again in {:.1} s: {message}",
                self.plugin.name(),
                pause.as_secs_f64()
            ));
            self.tell_status(|status| {
                status.is_running = false;
                status.failures = status.failures.saturating_add(1);
                status.last_failure = Some(message);
            });
            if self.context.stop.wait(pause) {
                break;
            }
        }
        self.tell_status(|status| status.is_running = false);
    }

    fn make_one(&mut self, init_tx: &Sender<()>) -> anyhow::Result<()> {
        let initiated = self.plugin.init(&self.config);
        self.tell_status(|status| status.is_running = initiated.is_ok());
        // Nobody listens after the first time.
        let _ = init_tx.send(());
        initiated?;
        self.plugin.start(&self.context)
    }

    fn tell_status(&self, change: impl FnOnce(&mut PluginStatus)) {
        change(&mut self.status.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

#[cfg(test)]
mod tests;
