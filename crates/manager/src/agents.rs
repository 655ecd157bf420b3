//! The role that gives agents in pods what they need, and tells them what was asked for their workloads. One replica acts.
//!
//! - [`rights`]: what the agents of a configuration need, and whether this installation gives it.
//! - [`plan`]: which objects namespaces are to have, from the sets and the central configurations, pure.
//! - [`hot_update`]: which pods are told next of a version, and how far it is, pure.
//! - [`results`]: what became of it in every pod, for people, pure.
//! - [`pods`]: the watch on pods with an agent.
//! - [`objects`]: what is stored of all that.
//! - [`keep`]: keeps all of it in step with the watches; [`write`] is where writes leave.
//!
//! It has an account of its own, which holds what it may give, and a fence that denies it the use of that. It takes what an
//! agent says of an update for the result in one pod, and for nothing else.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use kube::Client;
use pillion_runtime::lease::{Leadership, TermsError};
use pillion_runtime::shutdown::{Shutdown, Stage};
use pillion_runtime::watch::WatchMetrics;
use prometheus_client::registry::Registry;
use tracing::info;

use crate::events::{EventMetrics, Events};
use crate::leading::{stand, write_patience};
use crate::names;
use crate::settings::Settings;
use crate::view::View;

mod hot_update;
mod keep;
mod objects;
mod plan;
mod pods;
mod results;
mod rights;
mod write;

pub use rights::AllowedTarget;

/// What the role shares with the rest of the process.
pub struct Agents<'a> {
    /// To the API server.
    pub client: &'a Client,
    /// What the process was told.
    pub settings: &'a Arc<Settings>,
    /// All sets and namespaces.
    pub view: &'a View,
    /// The end.
    pub shutdown: &'a Shutdown,
    /// Metrics of watches.
    pub watch_metrics: &'a WatchMetrics,
}

/// What the leader works with.
#[derive(Clone)]
struct Context {
    client: Client,
    settings: Arc<Settings>,
    view: View,
    leadership: Leadership,
    /// A write takes no longer, and is not begun by one who leads for less.
    patience: Duration,
    events: Events,
    watch_metrics: WatchMetrics,
}

/// Starts the role.
pub fn start(agents: &Agents<'_>, registry: &mut Registry) -> Result<(), TermsError> {
    let Agents { client, settings, view, shutdown, watch_metrics } = *agents;
    // Another role of the same process may stand for a lease, and write events, too.
    let registry = registry.sub_registry_with_prefix("agents");
    let leadership = stand(client, settings, names::AGENT_LEASE, shutdown, registry)?;
    let (events, events_driver) =
        Events::new(client.clone(), "agent-controller", &settings.name, EventMetrics::register(registry));
    let context = Context {
        client: client.clone(),
        patience: write_patience(settings.lease),
        settings: Arc::clone(settings),
        view: view.clone(),
        leadership,
        events,
        watch_metrics: watch_metrics.clone(),
    };
    let stop = shutdown.token(Stage::Controllers);
    shutdown.spawn(Stage::Controllers, async move {
        stop.run_until_cancelled(async { tokio::join!(events_driver, lead(context).boxed()) }).await;
    });
    Ok(())
}

/// Acts whenever this replica leads.
async fn lead(context: Context) {
    loop {
        context.leadership.acquired().await;
        tokio::select! {
            () = context.leadership.lost() => info!("not the leader of the agents any more: everything stops"),
            () = keep::run(&context) => {}
        }
    }
}
