//! Leader election by a Lease object: several replicas run, one of them acts.
//!
//! - [`candidate`]: the decision, pure. It also says why two never hold at once.
//! - [`Election`]: carries it out. Every write replaces the version it has read.
//! - [`Leadership`]: asked before every write of the program: [`Leadership::is_held_for`].
//!
//! Losing the lease does not end the election; the program decides whether it ends itself. What was sent while the
//! lease was held may still arrive after it: writes must be safe to arrive late, by a version or a `test` of theirs.

use std::collections::hash_map::RandomState;
use std::convert::Infallible;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{Api, ObjectMeta, PostParams};
use kube::{Client, ResourceExt};
use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

pub mod candidate;
mod moment;
#[cfg(test)]
mod tests;

pub use candidate::{Terms, TermsError};
pub use moment::Moment;

use candidate::{Answer, Candidate, LeaseWrite, Record, Step};

/// A lease that does not say how long it lasts is taken to last this long.
const UNSAID: Duration = Duration::from_secs(15);

/// A candidate on its way; [`Election::run`] it.
pub struct Election {
    api: Api<Lease>,
    name: String,
    identity: String,
    terms: Terms,
    candidate: Candidate,
    /// The lease as last read or written: what a write starts from.
    lease: Option<Lease>,
    shared: Arc<Shared>,
    metrics: LeaseMetrics,
}

/// Whether this process is the one that acts. Clones ask the same election.
#[derive(Clone)]
pub struct Leadership {
    shared: Arc<Shared>,
}

/// Metrics of an election.
#[derive(Clone, Debug, Default)]
pub struct LeaseMetrics {
    leading: Gauge,
    taken: Counter,
    failures: Counter,
}

struct Shared {
    held_until: watch::Sender<Option<Moment>>,
    holder: Mutex<Option<String>>,
}

/// A name no other process has: the pod's name and a random number, as a restarted pod keeps its name.
pub fn unique_identity(name: &str) -> String {
    // Every `RandomState` of a process starts from keys the system drew at random.
    format!("{name}_{:016x}", RandomState::new().build_hasher().finish())
}

impl Election {
    /// A candidate for the lease `name` in `namespace`. The identity must be [unique](unique_identity).
    pub fn new(
        client: Client,
        namespace: &str,
        name: &str,
        identity: String,
        terms: Terms,
        metrics: LeaseMetrics,
    ) -> (Self, Leadership) {
        let shared = Arc::new(Shared { held_until: watch::Sender::new(None), holder: Mutex::new(None) });
        let election = Self {
            api: Api::namespaced(client, namespace),
            name: name.to_owned(),
            candidate: Candidate::new(identity.clone(), terms),
            identity,
            terms,
            lease: None,
            shared: Arc::clone(&shared),
            metrics,
        };
        (election, Leadership { shared })
    }

    /// Stands for election until `stop`, then gives the lease back so that another need not wait.
    pub async fn run(mut self, stop: CancellationToken) {
        stop.run_until_cancelled(self.stand()).await;
        self.release().await;
    }

    async fn stand(&mut self) -> Infallible {
        loop {
            let sent_at = Moment::now();
            let answer = match self.candidate.step(sent_at) {
                Step::Rest { until } => {
                    // A sleeping machine stops this clock but not that one, so a long rest is taken in pieces.
                    sleep(until.since(sent_at).min(Duration::from_secs(1))).await;
                    continue;
                }
                Step::Look => self.ask(LeaseRequest::Get).await,
                Step::Write(write) => self.ask(self.request_of(write)).await,
            };
            self.candidate.answered(answer, sent_at, Moment::now());
            self.publish();
        }
    }

    fn request_of(&self, write: LeaseWrite) -> LeaseRequest {
        let now = MicroTime(Timestamp::now());
        // What was not read has no version, and a write without one would be unconditional.
        let read = self.lease.clone().filter(|lease| lease.metadata.resource_version.is_some());
        let (mut lease, creates) = match (write, read) {
            (LeaseWrite::Create, _) => {
                let metadata = ObjectMeta { name: Some(self.name.clone()), ..ObjectMeta::default() };
                (Lease { metadata, spec: None }, true)
            }
            (LeaseWrite::Take | LeaseWrite::Renew, Some(read)) => (read, false),
            (LeaseWrite::Take | LeaseWrite::Renew, None) => return LeaseRequest::Get,
        };
        let spec = lease.spec.get_or_insert_default();
        spec.holder_identity = Some(self.identity.clone());
        spec.lease_duration_seconds = i32::try_from(self.terms.duration().as_secs()).ok();
        if write != LeaseWrite::Renew {
            spec.acquire_time = Some(now.clone());
            spec.lease_transitions =
                Some(spec.lease_transitions.map_or(0, |transitions| transitions.saturating_add(1)));
        }
        spec.renew_time = Some(now);
        if creates { LeaseRequest::Post(lease) } else { LeaseRequest::Put(lease) }
    }

    async fn ask(&mut self, request: LeaseRequest) -> Answer {
        let sent = timeout(self.terms.patience(), request.send(&self.api, &self.name)).await;
        match sent.map_err(|_| "no answer in time".to_owned()) {
            Ok(Ok(lease)) => {
                let record = lease.as_ref().map(record_of);
                self.lease = lease;
                match record {
                    Some(record) if request.writes() => Answer::Written(record),
                    record => Answer::Seen(record),
                }
            }
            // Created by another, written by another, or deleted: to be read again.
            Ok(Err(kube::Error::Api(status))) if request.writes() && matches!(status.code, 404 | 409) => {
                Answer::Conflict
            }
            Ok(Err(error)) => self.failed(&error.to_string()),
            Err(error) => self.failed(&error),
        }
    }

    fn failed(&self, error: &str) -> Answer {
        self.metrics.failures.inc();
        warn!(lease = self.name, error, "cannot reach the lease");
        Answer::Unknown
    }

    /// Tells everybody who asks what the candidate believes now.
    fn publish(&self) {
        let now = Moment::now();
        let held_until = self.candidate.held_until().filter(|until| now < *until);
        let before = self.shared.held_until.send_replace(held_until);
        match (before, held_until) {
            (None, Some(_)) => {
                self.metrics.taken.inc();
                info!(lease = self.name, identity = self.identity, "leads");
            }
            (Some(_), None) => {
                warn!(lease = self.name, identity = self.identity, holder = self.candidate.holder(), "leads no more");
            }
            _ => {}
        }
        self.metrics.leading.set(held_until.is_some().into());
        let mut holder = self.shared.holder.lock();
        if holder.as_deref() != self.candidate.holder() {
            *holder = self.candidate.holder().map(str::to_owned);
        }
    }

    async fn release(&mut self) {
        self.candidate.give_up();
        self.publish();
        // The last write may have been cut off before its answer came, so what is there now is looked at first.
        let asked_at = Moment::now();
        let seen = self.ask(LeaseRequest::Get).await;
        self.candidate.answered(seen, asked_at, Moment::now());
        if self.candidate.holder() != Some(&self.identity) {
            return;
        }
        let LeaseRequest::Put(mut lease) = self.request_of(LeaseWrite::Renew) else { return };
        lease.spec.get_or_insert_default().holder_identity = None;
        if let Answer::Written(_) = self.ask(LeaseRequest::Put(lease)).await {
            info!(lease = self.name, "gave the lease back");
        }
    }
}

impl Leadership {
    /// Whether this process leads and will for `margin` longer. Ask before every write, with the longest time the
    /// write may take to arrive.
    pub fn is_held_for(&self, margin: Duration) -> bool {
        self.shared.held_until.borrow().is_some_and(|until| Moment::now() + margin < until)
    }

    /// Waits until this process leads.
    pub async fn acquired(&self) {
        let mut held_until = self.shared.held_until.subscribe();
        let held = held_until.wait_for(|until| until.is_some_and(|until| Moment::now() < until)).await;
        drop(held.expect("the sending end lives as long as this handle"));
    }

    /// Waits until this process does not lead, which may be at once.
    pub async fn lost(&self) {
        let mut held_until = self.shared.held_until.subscribe();
        while self.is_held_for(Duration::ZERO) {
            let left = held_until.borrow_and_update().map_or(Duration::ZERO, |until| until.since(Moment::now()));
            // Whichever comes first, a renewal or the end; both are looked at above.
            let _ = timeout(left, held_until.changed()).await;
        }
    }

    /// Who leads, as far as this process knows.
    pub fn holder(&self) -> Option<String> {
        self.shared.holder.lock().clone()
    }
}

impl LeaseMetrics {
    /// Adds the metrics of an election to a registry.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let Self { leading, taken, failures } = metrics.clone();
        registry.register("leading", "Whether this process holds the lease", leading);
        registry.register("lease_taken", "How often this process came to hold the lease", taken);
        registry.register("lease_failures", "Requests for the lease that failed or came to no answer", failures);
        metrics
    }
}

/// One request to the API server.
enum LeaseRequest {
    Get,
    Post(Lease),
    /// With the version it was read with: the API server refuses it if there is a newer one.
    Put(Lease),
}

impl LeaseRequest {
    const fn writes(&self) -> bool {
        !matches!(self, Self::Get)
    }

    async fn send(&self, api: &Api<Lease>, name: &str) -> kube::Result<Option<Lease>> {
        match self {
            Self::Get => api.get_opt(name).await,
            Self::Post(lease) => api.create(&PostParams::default(), lease).await.map(Some),
            Self::Put(lease) => api.replace(name, &PostParams::default(), lease).await.map(Some),
        }
    }
}

fn record_of(lease: &Lease) -> Record {
    let spec = lease.spec.as_ref();
    let seconds = spec.and_then(|spec| spec.lease_duration_seconds).and_then(|seconds| u64::try_from(seconds).ok());
    Record {
        version: lease.resource_version().unwrap_or_default(),
        holder: spec.and_then(|spec| spec.holder_identity.clone()).filter(|holder| !holder.is_empty()),
        duration: seconds.map_or(UNSAID, Duration::from_secs),
    }
}
