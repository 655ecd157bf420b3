//! The webhook from its first watch to its last answer.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use kube::Client;
use pillion_runtime::gates::Gates;
use pillion_runtime::server::{Limits, Server, ServerMetrics};
use pillion_runtime::shutdown::{Shutdown, Stage};
use pillion_runtime::telemetry::Checks;
use pillion_runtime::watch::WatchMetrics;
use prometheus_client::registry::Registry;
use tokio::sync::Semaphore;
use tracing::info;

use super::authority::Keeper;
use super::events::RefusalEvents;
use super::handlers::{Handlers, memory, router};
use super::ledgers::Ledgers;
use super::metrics::AdmissionMetrics;
use super::paths::AcceptedPaths;
use super::sizing::Sizer;
use crate::events::{EventMetrics, Events};
use crate::finish::Finish;
use crate::gates::{IN_POD_AGENT, POD_WEBHOOK};
use crate::hot_updates::Asked;
use crate::settings::Settings;
use crate::switch::Switch;
use crate::view::View;

/// What the webhook shares with the rest of the process.
pub struct Webhook<'a> {
    /// To the API server.
    pub client: &'a Client,
    /// The same for ledgers: a review has no time to wait until the API server has.
    pub ledger_client: &'a Client,
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
    /// Metrics of servers.
    pub server_metrics: &'a ServerMetrics,
}

/// Starts the webhook; gives the checks by which it is ready.
pub fn start(webhook: &Webhook<'_>, registry: &mut Registry, readiness: Checks) -> Checks {
    let Webhook { client, ledger_client, settings, gates, view, switch, shutdown, watch_metrics, server_metrics } =
        *webhook;
    let (events, events_driver) =
        Events::new(client.clone(), "webhook", &settings.name, EventMetrics::register(registry));
    let paths = AcceptedPaths::default();
    let (keeper, certificates, keeper_driver) =
        Keeper::new(client, settings, switch.clone(), gates.is_on(&POD_WEBHOOK), &paths, watch_metrics, registry);
    let (ledgers, ledgers_driver) = Ledgers::watch(ledger_client.clone(), &settings.namespace, watch_metrics, registry);
    let (asked, asked_driver) = gates.is_on(&IN_POD_AGENT).then(|| Asked::watch(client, watch_metrics)).unzip();
    let (sizer, sizer_driver) =
        settings.sizing.rightsizing.then(|| Sizer::watch(client, settings, gates, watch_metrics)).unzip();
    let handlers = Handlers {
        view: view.clone(),
        switch: switch.clone(),
        metrics: AdmissionMetrics::register(registry),
        events: RefusalEvents(events),
        ledgers: ledgers.clone(),
        mode: settings.mode,
        finish: Finish::new(settings, gates),
        asked: asked.clone(),
        sizer: sizer.clone(),
        namespace: settings.namespace.as_str().into(),
        large: Arc::new(Semaphore::new(1)),
        sets: Arc::new(Semaphore::new(1)),
        memory: memory(),
    };
    let stop = shutdown.token(Stage::Controllers);
    shutdown.spawn(Stage::Controllers, async move {
        let asked_driver = async {
            if let Some(driver) = asked_driver {
                driver.await;
            }
        };
        let sizer_driver = async {
            if let Some(driver) = sizer_driver {
                driver.await;
            }
        };
        let all = async { tokio::join!(events_driver, ledgers_driver, asked_driver, sizer_driver) };
        stop.run_until_cancelled(all).await;
    });
    // From the beginning of the end others look after the registrations: this replica may be going because they are.
    let drain = shutdown.token(Stage::Drain);
    shutdown.spawn(Stage::Servers, async move {
        drain.run_until_cancelled(async { tokio::join!(keeper_driver, keeper.run()) }).await;
    });
    let mut first = certificates.clone();
    let (server_settings, server_metrics, ends) = (Arc::clone(settings), server_metrics.clone(), shutdown.clone());
    let (drain, stop) = (shutdown.token(Stage::Drain), shutdown.token(Stage::Servers));
    shutdown.spawn(Stage::Servers, async move {
        let serving = async {
            let Some(certificate) = stop.run_until_cancelled(first.first()).await else { return Ok(()) };
            let address = server_settings.webhook_address;
            let clients = server_settings.webhook_clients()?.map(Arc::new);
            let server = Server::bind("webhook", address, router(handlers), Limits::default(), &server_metrics)
                .await
                .with_context(|| format!("cannot listen on {address}"))?
                .with_entrance(paths.entrance())
                .with_tls(&certificate, clients)?;
            info!(%address, "answering reviews");
            server.serve(drain, stop.clone()).await;
            Result::<()>::Ok(())
        };
        if let Err(error) = serving.await {
            ends.begin(&format!("{error:#}"));
        }
    });
    let switched = switch.store().clone();
    let readiness = readiness
        .with("ledgers", move || ledgers.check_complete())
        .with("hot updates", move || asked.as_ref().map_or(Ok(()), Asked::check_complete))
        .with("switch", move || switched.check_complete())
        .with("certificate", move || certificates.check_trusted());
    if let Some(sizer) = sizer {
        // From the beginning of the end this replica is not there for new pods.
        let drain = shutdown.token(Stage::Drain);
        let telling = sizer.tell(client.clone(), Arc::clone(settings), readiness.clone(), switch.clone());
        shutdown.spawn(Stage::Servers, async move {
            drain.run_until_cancelled(telling).await;
        });
    }
    readiness
}
