//! The plugins there are. A new one is a file in this folder and a line in [`make`].

pub(crate) mod hot_update;
mod http_probe;
mod pod_probe;

use pillion_agent_api::PluginConfig;

use crate::plugin::Plugin;

/// The plugin that a configuration is for.
pub(crate) fn make(config: &PluginConfig) -> anyhow::Result<Box<dyn Plugin>> {
    match config {
        PluginConfig::HttpProbe(_) => Ok(Box::<http_probe::Http>::default()),
        PluginConfig::PodProbe(_) => Ok(Box::<pod_probe::PodProbes>::default()),
        PluginConfig::HotUpdate(_) => Ok(Box::<hot_update::HotUpdates>::default()),
    }
}
