//! A part of the agent: what every plugin is, and what it is given to work with.
//!
//! Plugins block; each has a thread of its own, with little stack. What they find out they store by [`Context::store`] or
//! post on the [`Board`], which brings it to the pod and keeps it there. How they are is known by the
//! [`Manager`](crate::manager::Manager), which starts them.

use std::sync::Arc;

use pillion_agent_api::PluginConfig;

use crate::api_server::ApiServer;
use crate::board::Board;
use crate::pod::PodIdentity;
use crate::stop::Stop;

/// Enough for what threads of the agent do; what they do not touch costs nothing.
pub(crate) const STACK_BYTES: usize = 128 * 1024;

/// A part of the agent.
pub trait Plugin: Send {
    /// The name a configuration calls it by.
    fn name(&self) -> &'static str;

    /// Its version; that of the agent, as all plugins are built in.
    fn version(&self) -> &'static str {
        env!("CARGO_PKG_VERSION")
    }

    /// What its configuration is called in the reference.
    fn config_type(&self) -> &'static str;

    /// Takes its configuration; refuses one that it cannot work with here.
    fn init(&mut self, config: &PluginConfig) -> anyhow::Result<()>;

    /// Works until `context.stop` says so. After an error it is started again, later and later.
    fn start(&mut self, context: &Context) -> anyhow::Result<()>;
}

/// What a plugin is given to work with.
#[derive(Clone)]
pub struct Context {
    /// Says when to end.
    pub stop: Stop,
    /// Where results are told.
    pub board: Arc<Board>,
    /// The pod around it.
    pub pod: Arc<PodIdentity>,
    /// The API server; none where nothing may be asked of it (`run --local`).
    pub api_server: Option<Arc<ApiServer>>,
}
