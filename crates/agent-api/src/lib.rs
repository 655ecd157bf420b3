//! What the agent in a pod is told, and what it tells.
//!
//! - [`Config`]: its configuration, in the words of the proposal "Add Sidecar to Address Service Quality Probing and Hot
//!   Updates in Serverless Scenarios", with [`HttpProbe`], [`PodProbe`] and [`HotUpdate`] for the plugins there are.
//! - [`Storage`]: where a result is told.
//! - [`Wanted`] and [`Outcome`]: the version a pod is to have, and what became of it.
//! - [`names`]: the objects, keys and paths that agent, manager and command line share.
//!
//! The crate reads no file, no clock and no environment.
#![forbid(unsafe_code)]

mod config;
mod hot_update;
mod http_probe;
pub mod names;
mod pod_probe;
mod storage;
mod url;
mod version;
mod wanted;

pub use config::{Config, Form, Plugin, PluginConfig, StartOrder};
pub use hot_update::{Bounds, Check, HotUpdate, Listener, Reload, Signal, Source, TriggerFrom};
pub use http_probe::{Address, Endpoint, HttpProbe, JsonPath};
pub use pod_probe::PodProbe;
pub use storage::{MarkerPolicy, Storage, Target};
pub use url::Url;
pub use version::{NoVersion, Version};
pub use wanted::{Outcome, OutcomeState, Wanted};
