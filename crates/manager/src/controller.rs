//! The role that looks after sets and pods: status, events, what was missed, rollouts. One replica of it acts.
//!
//! - [`pods`]: the two watches on pods, and what is kept of each.
//! - [`sets`]: what is stored of the sets besides their words: version and status.
//! - [`observed`]: since when pods of a selector are expected to carry sidecars.
//! - [`status`]: from what is known of a set to its status, pure.
//! - [`reconcile`]: keeps the counts in step with the watches and writes what changed.
//! - [`news`]: what is told about pods, and to whom; [`workload`] finds the workload behind a pod.
//! - [`repair`]: which missed pods are evicted, pure, and the carrying out.
//! - [`rollout`]: new revisions for running pods.
//! - [`blast`]: what an edit of a set does to the pods and templates there are.
//!
//! Losing the lease ends all of it at once: everything that watches or writes lives in one future, which is dropped.
//! Then the process stands again; it does not end, as it may be answering reviews as well, and a webhook that ends
//! when the API server was slow for ten seconds would miss the pods created next. A write that was under way may arrive
//! late; each names the version it was made for, so that it then changes nothing.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use kube::Client;
use pillion_runtime::gates::Gates;
use pillion_runtime::lease::{Leadership, TermsError};
use pillion_runtime::shutdown::{Shutdown, Stage};
use pillion_runtime::telemetry::Checks;
use pillion_runtime::watch::WatchMetrics;
use prometheus_client::registry::Registry;
use tracing::info;

use crate::events::{EventMetrics, Events};
use crate::finish::Finish;
use crate::gates::{NATIVE_SIDECAR, POD_WEBHOOK};
use crate::leading::{stand, write_patience};
use crate::names;
use crate::settings::Settings;
use crate::switch::Switch;
use crate::view::View;

mod blast;
mod ledgers;
mod metrics;
mod news;
mod observed;
mod pods;
mod reconcile;
mod repair;
mod rollout;
mod sets;
mod status;
mod workload;

use metrics::ControllerMetrics;
pub(crate) use pods::NOT_ENDED;

/// What the controller shares with the rest of the process.
pub struct Controller<'a> {
    /// To the API server.
    pub client: &'a Client,
    /// The same for writes that are not repeated unseen: evictions, which are told to wait, and updates of pods, which
    /// would not be what they were planned from the second time.
    pub writer: &'a Client,
    /// What the process was told.
    pub settings: &'a Arc<Settings>,
    /// Which features are on.
    pub gates: &'a Gates,
    /// All sets and namespaces.
    pub view: &'a View,
    /// Whether injection is switched off.
    pub switch: &'a Switch,
    /// The end.
    pub shutdown: &'a Shutdown,
    /// Metrics of watches.
    pub watch_metrics: &'a WatchMetrics,
}

/// What the leader works with.
#[derive(Clone)]
struct Context {
    client: Client,
    writer: Client,
    settings: Arc<Settings>,
    /// Whether pods are reviewed at all.
    reviews_pods: bool,
    /// How sidecars are ended.
    finish: Finish,
    /// Whether native sidecars are sized.
    native_sidecars: bool,
    view: View,
    switch: Switch,
    leadership: Leadership,
    /// A write takes no longer, and is not begun by one who leads for less.
    patience: Duration,
    events: Events,
    watch_metrics: WatchMetrics,
    metrics: ControllerMetrics,
}

impl Context {
    /// Whether no pod is changed at all.
    fn is_off(&self) -> bool {
        self.switch.is_off() || !self.reviews_pods
    }
}

/// Starts the controller; gives the checks by which it is ready.
pub fn start(controller: &Controller<'_>, registry: &mut Registry, readiness: Checks) -> Result<Checks, TermsError> {
    let Controller { client, writer, settings, gates, view, switch, shutdown, watch_metrics } = *controller;
    let leadership = stand(client, settings, names::CONTROLLER_LEASE, shutdown, registry)?;
    let (events, events_driver) =
        Events::new(client.clone(), "controller", &settings.name, EventMetrics::register(registry));
    let context = Context {
        client: client.clone(),
        writer: writer.clone(),
        patience: write_patience(settings.lease),
        settings: Arc::clone(settings),
        reviews_pods: gates.is_on(&POD_WEBHOOK),
        finish: Finish::new(settings, gates),
        native_sidecars: gates.is_on(&NATIVE_SIDECAR),
        view: view.clone(),
        switch: switch.clone(),
        leadership,
        events,
        watch_metrics: watch_metrics.clone(),
        metrics: ControllerMetrics::register(registry),
    };
    let stop = shutdown.token(Stage::Controllers);
    shutdown.spawn(Stage::Controllers, async move {
        stop.run_until_cancelled(async { tokio::join!(events_driver, lead(context).boxed()) }).await;
    });
    Ok(readiness)
}

/// Acts whenever this replica leads.
async fn lead(context: Context) {
    loop {
        context.leadership.acquired().await;
        tokio::select! {
            () = context.leadership.lost() => info!("not the leader any more: everything stops"),
            () = reconcile::run(&context) => {}
        }
        context.metrics.forget();
    }
}
