//! The plugins there are. A new one is a file in this folder and a line in [`make`].

pub(crate) mod hot_update;
mod http_probe;
mod pod_probe;

use pillion_agent_api::PluginConfig;

use crate::plugin::Plugin;

/// The plugin that a configuration is for.
pub(crate) fn make(config: &PluginConfig) -> Box<dyn Plugin> {
    match config {
        PluginConfig::HttpProbe(_) => Box::<http_probe::Http>::default(),
        PluginConfig::PodProbe(_) => Box::<pod_probe::PodProbes>::default(),
        PluginConfig::HotUpdate(_) => Box::<hot_update::HotUpdates>::default(),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_page_about_plugins_shows_the_real_file() {
        let page = include_str!("../../../docs/agent/write-a-plugin.md");
        let file = include_str!("plugins/http_probe.rs");
        let shown: Vec<&str> = page.split("```rust\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
        assert_eq!(shown.len(), 3);
        for code in shown {
            assert!(file.contains(code), "the file does not have:\n{code}");
        }
        let line = "        PluginConfig::HttpProbe(_) => Box::<http_probe::Http>::default(),\n";
        assert!(page.contains(line) && include_str!("plugins.rs").contains(line));
    }
}
