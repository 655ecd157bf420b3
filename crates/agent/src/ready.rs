//! `pillion-agent ready`: a probe of the node. 0 when the version that the pod is to have is in place, else 1 with a line why.
//!
//! It reads files and asks nobody, so it is as quick as a start.

use std::fs;

use anyhow::Context;
use pillion_agent_api::{PluginConfig, Variables, names};

use crate::arguments::Run;
use crate::plugins::hot_update;
use crate::pod::PodIdentity;
use crate::run::{load, of_environment};
use crate::talk::tell;

/// Returns the code to exit with.
pub(crate) fn ready(request: &Run) -> u8 {
    match look(request) {
        Ok(()) => 0,
        Err(error) => {
            tell(format_args!("not ready: {error:#}"));
            1
        }
    }
}

fn look(request: &Run) -> anyhow::Result<()> {
    let path = &request.config;
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    // What `${POD:…}` stands for only the API server knows, and no file is named by it.
    let variables = (!Variables::of_app_are_used(&text)).then(of_environment);
    let config = load(&text, variables).map_err(anyhow::Error::msg)?;
    let pod = PodIdentity {
        name: String::new(),
        namespace: String::new(),
        uid: String::new(),
        annotations_file: request.pod_dir.join(names::ANNOTATIONS_FILE),
    };
    for plugin in &config.plugins {
        if let PluginConfig::HotUpdate(config) = &plugin.config {
            hot_update::ready(config, &pod).map_err(anyhow::Error::msg)?;
        }
    }
    Ok(())
}
