//! The role that recommends sizes for containers and applies them to running pods. One replica of it acts.
//!
//! - [`targets`] and [`workloads`]: whose pods the autoscalers that are ours mean.
//! - [`pods`]: the watch on those pods.
//! - [`source`]: where samples come from: metrics-server, or the kubelets.
//! - [`learn`]: what is learned of containers, without anything that waits; [`checkpoints`] keeps it in the cluster.
//! - [`statuses`]: what is published.
//! - [`recommending`]: the loop that joins all that; [`updating`]: the loop that resizes and evicts, and [`executing`] its
//!   writes.
//!
//! Everything lives in one future, which is dropped when the lease is lost. What was learned is then read again from the
//! checkpoints by whoever leads next.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use kube::Client;
use pillion_runtime::gates::Gates;
use pillion_runtime::lease::{Leadership, TermsError};
use pillion_runtime::shutdown::{Shutdown, Stage};
use pillion_runtime::watch::WatchMetrics;
use prometheus_client::registry::Registry;
use tracing::info;

use crate::asking::{self, Failed};
use crate::events::{EventMetrics, Events};
use crate::gates::{CPU_STARTUP_BOOST, NATIVE_SIDECAR, POD_WEBHOOK};
use crate::leading::{stand, write_patience};
use crate::names;
use crate::settings::Settings;
use crate::switch::Switch;
use crate::view::View;

mod checkpoints;
mod executing;
pub mod learn;
mod metrics;
mod pods;
mod recommending;
pub mod source;
mod statuses;
mod targets;
mod updating;
mod workloads;

pub use metrics::SizingMetrics;

/// Field manager of all that is written here.
const MANAGER: &str = "pillion-rightsizer";
/// So many writes at a time.
const AT_ONCE: usize = 16;

/// What the role shares with the rest of the process.
pub struct Rightsizer<'a> {
    /// To the API server.
    pub client: &'a Client,
    /// The same for writes that are not repeated unseen: evictions, which are told to wait, and resizes.
    pub writer: &'a Client,
    /// What the process was told.
    pub settings: &'a Arc<Settings>,
    /// Which features are on.
    pub gates: &'a Gates,
    /// All sets and namespaces.
    pub view: &'a View,
    /// Whether everything is switched off.
    pub switch: &'a Switch,
    /// The end.
    pub shutdown: &'a Shutdown,
    /// Metrics of watches.
    pub watch_metrics: &'a WatchMetrics,
    /// Metrics of the role.
    pub metrics: SizingMetrics,
}

/// What the leader works with.
#[derive(Clone)]
struct Context {
    client: Client,
    writer: Client,
    settings: Arc<Settings>,
    /// Whether pods are reviewed at all.
    reviews_pods: bool,
    /// The gate of native sidecars.
    native_sidecars: bool,
    /// The gate of more cpu at the start.
    startup_boost: bool,
    view: View,
    switch: Switch,
    leadership: Leadership,
    /// A write takes no longer, and is not begun by one who leads for less.
    patience: Duration,
    events: Events,
    watch_metrics: WatchMetrics,
    metrics: SizingMetrics,
}

impl Context {
    async fn asked<T>(&self, request: impl Future<Output = kube::Result<T>>) -> Result<T, Failed> {
        asking::asked(&self.leadership, self.patience, request).await
    }
}

/// Starts the role.
pub fn start(rightsizer: &Rightsizer<'_>, registry: &mut Registry) -> Result<(), TermsError> {
    let Rightsizer { client, writer, settings, gates, view, switch, shutdown, watch_metrics, ref metrics } =
        *rightsizer;
    // Another role of the same process may stand for a lease, and write events, too.
    let registry = registry.sub_registry_with_prefix("rightsizer");
    let leadership = stand(client, settings, names::RIGHTSIZER_LEASE, shutdown, registry)?;
    let (events, events_driver) =
        Events::new(client.clone(), "rightsizer", &settings.name, EventMetrics::register(registry));
    let context = Context {
        client: client.clone(),
        writer: writer.clone(),
        patience: write_patience(settings.lease),
        settings: Arc::clone(settings),
        reviews_pods: gates.is_on(&POD_WEBHOOK),
        native_sidecars: gates.is_on(&NATIVE_SIDECAR),
        startup_boost: gates.is_on(&CPU_STARTUP_BOOST),
        view: view.clone(),
        switch: switch.clone(),
        leadership,
        events,
        watch_metrics: watch_metrics.clone(),
        metrics: metrics.clone(),
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
            () = context.leadership.lost() => info!("not the leader of right-sizing any more: everything stops"),
            () = recommending::run(&context) => {}
        }
    }
}
