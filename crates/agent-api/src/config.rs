//! The configuration as a whole.

use std::collections::BTreeMap;

use crate::{HotUpdate, HttpProbe, PodProbe, Storage};

/// What the agents of a `SidecarSet` do.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// In the order they are started.
    pub plugins: Vec<Plugin>,
    /// How the agent itself stands in the pod.
    pub form: Form,
    /// The port that shows metrics; given wherever a [`Storage`] names one.
    pub metrics_port: Option<u16>,
}

/// A part of the agent, and what it is told.
#[derive(Clone, Debug, PartialEq)]
pub struct Plugin {
    /// Lower ones are started before higher ones; the same number: in the order of the text.
    pub boot_order: i64,
    /// What it is told.
    pub config: PluginConfig,
}

/// What a plugin is told.
#[derive(Clone, Debug, PartialEq)]
pub enum PluginConfig {
    /// `http_probe`.
    HttpProbe(HttpProbe),
    /// `pod_probe`.
    PodProbe(PodProbe),
    /// `hot_update`.
    HotUpdate(Box<HotUpdate>),
}

impl PluginConfig {
    /// The name a configuration calls it by.
    pub fn name(&self) -> &'static str {
        match self {
            Self::HttpProbe(_) => "http_probe",
            Self::PodProbe(_) => "pod_probe",
            Self::HotUpdate(_) => "hot_update",
        }
    }

    /// Where its results are told.
    pub fn storages(&self) -> Vec<&Storage> {
        match self {
            Self::HttpProbe(probe) => probe.endpoints.iter().map(|endpoint| &endpoint.storage).collect(),
            Self::PodProbe(_) => Vec::new(),
            Self::HotUpdate(update) => vec![&update.storage],
        }
    }
}

/// How the agent stands in the pod. The agent itself does not read it; the `SidecarSet` is made from it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Form {
    /// Whether it is started before the app, as a native sidecar, or beside it.
    pub start_order: StartOrder,
    /// Amounts by resource (`cpu`, `memory`), as request and limit.
    pub resources: BTreeMap<String, String>,
}

/// When the agent starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StartOrder {
    /// Before the app: an init container with `restartPolicy: Always`.
    #[default]
    Before,
    /// With the app: a container.
    After,
}
