//! The plugin `hot_update`: brings files into the pod while it runs, and has the app load them.
//!
//! ```text
//!  wanted ─┐                            ┌─ source, address, fetch: whether and how a file may be had
//!          ├─► worker ─► course, update ┼─ store: where it is kept, and how it is switched
//!  listener┘      │                     └─ reload, process: how the app is told, and whether it has understood
//!                 └─► record (on disk), marks (on the pod)
//! ```
//!
//! A version comes from an allowed source with a digest that was known before, is stored whole, put in place by one
//! rename, loaded by the app and seen to be loaded; else the app has again what it had.

mod address;
mod course;
mod desk;
mod failure;
mod fetch;
mod intake;
#[cfg(test)]
mod killed;
mod line;
mod listener;
mod local;
mod marks;
mod process;
mod ready;
mod record;
mod reload;
#[cfg(test)]
mod rig;
mod signature;
mod source;
mod store;
mod update;
mod wanted;
mod worker;

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use anyhow::{Context as _, bail};
use pillion_agent_api::{HotUpdate, PluginConfig};

use crate::plugin::{Context, Plugin};
use crate::stop::Stop;

use self::desk::Desk;
use self::fetch::SystemResolver;
use self::reload::Reloader;
use self::store::Store;
use self::wanted::Trigger;
use self::worker::Worker;

pub(crate) use self::ready::ready;

/// Brings files into the pod.
#[derive(Debug, Default)]
pub(crate) struct HotUpdates {
    config: Option<Box<HotUpdate>>,
}

impl Plugin for HotUpdates {
    fn name(&self) -> &'static str {
        "hot_update"
    }

    fn config_type(&self) -> &'static str {
        "HotUpdate"
    }

    fn init(&mut self, config: &PluginConfig) -> anyhow::Result<()> {
        let PluginConfig::HotUpdate(config) = config else {
            bail!("hot_update got the configuration of another plugin")
        };
        // What is never done is refused now, not with the first update.
        Reloader::new(config, &Stop::default()).map_err(anyhow::Error::msg)?;
        for source in &config.sources {
            source::Place::parse(&source.prefix).map_err(anyhow::Error::msg).context("allowedSources")?;
        }
        if let Some(name) = &config.file_name {
            store::check_name(name).map_err(anyhow::Error::msg)?;
        }
        self.config = Some(config.clone());
        Ok(())
    }

    fn start(&mut self, context: &Context) -> anyhow::Result<()> {
        let config = self.config.as_deref().context("hot_update has no configuration")?;
        let store = Store::open(Path::new(&config.file_dir)).with_context(|| {
            format!(
                "cannot work in fileDir {}: mount a writable volume there, for the agent and for the app",
                config.file_dir
            )
        })?;
        let reloader = Reloader::new(config, &context.stop).map_err(anyhow::Error::msg)?;
        let trigger = Trigger::start(&config.trigger, context)?;
        let desk = Desk::default();
        let (order_tx, order_rx) = sync_channel(1);
        let _listening = match &config.listener {
            Some(listener) => Some(listener::start(listener, context, desk.clone(), order_tx)?),
            None => None,
        };
        let shared = (Arc::clone(&context.board), context.stop.clone(), desk);
        Worker::new(config, &store, &reloader, &SystemResolver, shared).run(&trigger, &order_rx);
        Ok(())
    }
}
