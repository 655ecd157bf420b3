//! Standing for a lease: of the replicas of a role, one acts.

use std::time::Duration;

use kube::Client;
use pillion_runtime::lease::{Election, Leadership, LeaseMetrics, Terms, TermsError, unique_identity};
use pillion_runtime::shutdown::{Shutdown, Stage};
use prometheus_client::registry::Registry;

use crate::settings::Settings;

/// Stands for a lease to the very end.
pub(crate) fn stand(
    client: &Client,
    settings: &Settings,
    lease: &str,
    shutdown: &Shutdown,
    registry: &mut Registry,
) -> Result<Leadership, TermsError> {
    let (election, leadership) = Election::new(
        client.clone(),
        &settings.namespace,
        lease,
        unique_identity(&settings.name),
        terms(settings.lease)?,
        LeaseMetrics::register(registry),
    );
    shutdown.spawn(Stage::Lease, election.run(shutdown.token(Stage::Lease)));
    Ok(leadership)
}

/// So much of a lease a write may take.
pub(crate) fn write_patience(lease: Duration) -> Duration {
    (lease / 4).min(Duration::from_secs(4))
}

/// As the controllers of Kubernetes do: given up when two thirds are over, renewed five times before that.
fn terms(lease: Duration) -> Result<Terms, TermsError> {
    Terms::new(lease, lease / 3, lease * 2 / 15)
}
