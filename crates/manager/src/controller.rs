//! The role that looks after sets and pods: status, events, what was missed. One replica of it acts.

use std::sync::Arc;

use kube::Client;
use pillion_runtime::lease::{Election, Leadership, LeaseMetrics, Terms, unique_identity};
use pillion_runtime::shutdown::{Shutdown, Stage};
use pillion_runtime::telemetry::Checks;
use pillion_runtime::watch::WatchMetrics;
use prometheus_client::registry::Registry;

use crate::names;
use crate::settings::Settings;
use crate::switch::Switch;

/// What the controller shares with the rest of the process.
pub struct Controller<'a> {
    /// To the API server.
    pub client: &'a Client,
    /// What the process was told.
    pub settings: &'a Arc<Settings>,
    /// Whether injection is switched off.
    pub switch: &'a Switch,
    /// The end.
    pub shutdown: &'a Shutdown,
    /// Metrics of watches.
    pub watch_metrics: &'a WatchMetrics,
}

/// Starts the controller; gives the checks by which it is ready.
pub fn start(controller: &Controller<'_>, registry: &mut Registry, readiness: Checks) -> Checks {
    let leadership = stand(controller, registry);
    drop(leadership);
    readiness
}

/// Stands for election to the very end.
fn stand(controller: &Controller<'_>, registry: &mut Registry) -> Leadership {
    let Controller { client, settings, shutdown, .. } = controller;
    let (election, leadership) = Election::new(
        (*client).clone(),
        &settings.namespace,
        names::CONTROLLER_LEASE,
        unique_identity(&settings.name),
        Terms::default(),
        LeaseMetrics::register(registry),
    );
    shutdown.spawn(Stage::Lease, election.run(shutdown.token(Stage::Lease)));
    leadership
}
