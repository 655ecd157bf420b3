//! The whole process, from its first connection to its last.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use futures::FutureExt as _;
use pillion_runtime::client::{Source, connect, connect_without_retries};
use pillion_runtime::gates::Gates;
use pillion_runtime::server::{Limits, ServerMetrics, raise_open_files, serve_apart};
use pillion_runtime::shutdown::{Ending, Patience, Shutdown, Stage};
use pillion_runtime::telemetry::{Checks, admin, registry};
use pillion_runtime::watch::WatchMetrics;
use tracing::{info, warn};

use crate::gates::{GATES, IN_POD_AGENT};
use crate::rightsizer::SizingMetrics;
use crate::settings::{Role, Settings};
use crate::switch::Switch;
use crate::view::View;
use crate::{agents, controller, rightsizer, webhook};

/// Runs until it is told to end. `version` is what logs, metrics and the API server's own records call this build.
pub async fn run(settings: Settings, version: &'static str) -> Result<ExitCode> {
    let settings = Arc::new(settings);
    let gates = Gates::parse(&GATES, &settings.feature_gates)?;
    let source = Source { kubeconfig: settings.kubeconfig.clone(), context: settings.context.clone() };
    let agent = format!("pillion-manager/{version}");
    let client = connect(&source, &agent).await?;
    let writer = connect_without_retries(&source, &agent).await?;
    let shutdown = Shutdown::new(Patience { drain: settings.drain, ..Patience::default() });
    info!(version, roles = ?settings.roles, namespace = settings.namespace, %gates, mode = ?settings.mode, "starting");
    if let Err(error) = raise_open_files() {
        warn!(%error, "cannot raise the limit of open files");
    }

    let mut metrics = registry("pillion-manager", version);
    let sizing_metrics = settings.roles.contains(&Role::Rightsizer).then(|| SizingMetrics::register(&mut metrics));
    let ours = metrics.sub_registry_with_prefix("pillion");
    gates.register(ours);
    let watch_metrics = WatchMetrics::register(ours);
    let server_metrics = ServerMetrics::register(ours);

    let (switch, switch_driver) = Switch::watch(client.clone(), &settings.namespace, &watch_metrics);
    let (view, view_driver) = View::watch(&client, &settings.namespace, &watch_metrics);
    // Reviews are answered to the last, so what they are answered from lives as long.
    let stop = shutdown.token(Stage::Controllers);
    shutdown.spawn(Stage::Controllers, async move {
        stop.run_until_cancelled(async { tokio::join!(switch_driver.boxed(), view_driver) }).await;
    });

    let (ending, sets) = (shutdown.clone(), view.clone());
    let mut readiness = Checks::default()
        .with("not ending", move || ending.check_not_begun())
        .with("sets and namespaces", move || sets.check_complete());
    if settings.roles.contains(&Role::Webhook) {
        let webhook = webhook::Webhook {
            client: &client,
            ledger_client: &writer,
            settings: &settings,
            gates: &gates,
            view: &view,
            switch: &switch,
            shutdown: &shutdown,
            watch_metrics: &watch_metrics,
            server_metrics: &server_metrics,
        };
        readiness = webhook::start(&webhook, ours, readiness);
    }
    if settings.roles.contains(&Role::Controller) {
        let controller = controller::Controller {
            client: &client,
            writer: &writer,
            settings: &settings,
            gates: &gates,
            view: &view,
            switch: &switch,
            shutdown: &shutdown,
            watch_metrics: &watch_metrics,
        };
        readiness = controller::start(&controller, ours, readiness).context("--lease")?;
    }

    if settings.roles.contains(&Role::AgentController) {
        ensure!(
            gates.is_on(&IN_POD_AGENT),
            "the role agent-controller needs --feature-gates={}=true",
            IN_POD_AGENT.name
        );
        let agents = agents::Agents {
            client: &client,
            settings: &settings,
            view: &view,
            shutdown: &shutdown,
            watch_metrics: &watch_metrics,
        };
        agents::start(&agents, ours).context("--lease")?;
    }

    if let Some(metrics) = sizing_metrics {
        let rightsizer = rightsizer::Rightsizer {
            client: &client,
            writer: &writer,
            settings: &settings,
            gates: &gates,
            view: &view,
            switch: &switch,
            shutdown: &shutdown,
            watch_metrics: &watch_metrics,
            metrics,
        };
        rightsizer::start(&rightsizer, ours).context("--lease")?;
    }

    let router = admin(Checks::default(), readiness, metrics);
    let address = settings.admin_address;
    // The page that tells how the end is going on lasts the longest.
    let ends = (shutdown.token(Stage::Drain), shutdown.token(Stage::Lease));
    let served = serve_apart("admin", address, router, Limits::of_admin(), &server_metrics, ends)
        .with_context(|| format!("cannot listen on {address}"))?;
    shutdown.spawn(Stage::Lease, served);

    Ok(match shutdown.run().await? {
        Ending::InOrder => ExitCode::SUCCESS,
        Ending::LeftBehind(_) | Ending::AtOnce => ExitCode::FAILURE,
    })
}
