//! What the agent in a pod is told, and what it tells.
//!
//! - [`Config`]: its configuration, in the words of the proposal "Add Sidecar to Address Service Quality Probing and Hot
//!   Updates in Serverless Scenarios", with [`HttpProbe`], [`PodProbe`] and [`HotUpdate`] for the plugins there are.
//! - [`Config::parse`]: its text, read and judged by the table in [`keys`]; every [`Problem`] says where and what to do.
//! - [`Rights`]: what agents with a configuration need, as parameters of policies and as rules of a Role.
//! - [`Storage`]: where a result is told.
//! - [`Wanted`] and [`Outcome`]: the version a pod is to have, and what became of it.
//! - [`names`]: the objects, keys and paths that agent, manager and command line share.
//!
//! The crate reads no file, no clock and no environment.
#![forbid(unsafe_code)]

mod config;
mod hot_update;
mod http_probe;
pub mod keys;
mod marks;
pub mod names;
mod origin;
mod pod_probe;
mod problem;
mod read;
mod repair;
mod rights;
mod storage;
mod url;
mod variables;
mod version;
mod wanted;

pub use config::{Config, Form, Plugin, PluginConfig, StartOrder};
pub use hot_update::{Bounds, Check, HotUpdate, Listener, Reload, Signal, Source, TriggerFrom};
pub use http_probe::{Address, Endpoint, HttpProbe, JsonPath};
pub use origin::PARSE_STACK;
pub use pod_probe::PodProbe;
pub use problem::{Problem, Repair, Severity};
pub use read::Reading;
pub use rights::{Rights, RoleRule, TargetRight};
pub use storage::{MarkerPolicy, Storage, Target};
pub use url::Url;
pub use variables::Variables;
pub use version::{NoVersion, Version};
pub use wanted::{Outcome, OutcomeState, Wanted, is_digest, is_version};
