//! What a server counts.

use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// Metrics of all servers of a program.
#[derive(Clone, Debug, Default)]
pub struct ServerMetrics {
    connections: Family<ServerLabel, Gauge>,
    requests: Family<ServerLabel, Gauge>,
    refusals: Family<RefusalLabels, Counter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ServerLabel {
    server: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RefusalLabels {
    server: &'static str,
    reason: Refusal,
}

/// Why a connection or a request was not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelValue)]
pub(super) enum Refusal {
    /// A connection had to make room for another.
    Connections,
    /// The TLS handshake failed or took too long.
    Handshake,
    /// The certificate of the client is not one of those that are expected.
    Client,
    /// The entrance does not know the path.
    Path,
    /// The first request took too long to be said.
    Headers,
    /// All connections are busy.
    Requests,
    /// The body is too large.
    Body,
    /// The handler did not answer in time.
    Deadline,
}

/// Metrics of one server.
#[derive(Clone, Debug)]
pub(super) struct OwnMetrics {
    pub(super) server: &'static str,
    pub(super) connections: Gauge,
    pub(super) requests: Gauge,
    refusals: Family<RefusalLabels, Counter>,
}

/// Counts something for as long as it lives.
pub(super) struct Counted(Gauge);

impl ServerMetrics {
    /// Adds the metrics of servers to a registry.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let Self { connections, requests, refusals } = metrics.clone();
        registry.register("server_connections", "Connections that are open", connections);
        registry.register("server_requests_in_flight", "Requests that are being answered", requests);
        registry.register("server_refusals", "Connections and requests that were not served, by reason", refusals);
        metrics
    }

    pub(super) fn of(&self, server: &'static str) -> OwnMetrics {
        let label = ServerLabel { server };
        OwnMetrics {
            server,
            connections: self.connections.get_or_create_owned(&label),
            requests: self.requests.get_or_create_owned(&label),
            refusals: self.refusals.clone(),
        }
    }
}

impl OwnMetrics {
    pub(super) fn refused(&self, reason: Refusal) {
        self.refusals.get_or_create(&RefusalLabels { server: self.server, reason }).inc();
    }
}

impl Counted {
    pub(super) fn new(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.dec();
    }
}
