//! One review in, one answer out, counted.
//!
//! What is no review is answered 400, and what cannot be answered 500: the API server then does what the registration
//! says, fails open or closed.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Extension, State};
use axum::response::{IntoResponse, Response as HttpResponse};
use axum::routing::post;
use futures::future::join_all;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use pillion_api::SetMode;
use pillion_inject::Installation;
use pillion_runtime::background;
use pillion_runtime::server::{Deadline, LARGE_BODY, Peer};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tracing::{debug, warn};

use super::events::RefusalEvents;
use super::ledgers::{Ledgers, Origin};
use super::metrics::{About, AdmissionMetrics, Answered};
use super::sizing::{NamespaceSizer, Sizer};
use crate::admission::pods::{self, Answer, Begun, Question};
use crate::admission::{Ask, Request, Reservation, Response, Unreadable, memory_of, sets};
use crate::finish::Finish;
use crate::hot_updates::Asked;
use crate::switch::Switch;
use crate::view::{LookupError, View};
use crate::{chance, names};

/// A review that takes this much memory takes milliseconds. Pods of people take a tenth of it.
const LARGE: usize = 4 << 20;
/// Bytes that all smaller reviews may take together, of the 256 MiB that the chart gives.
const ROOM: usize = 32 << 20;
/// Bytes that a large review may take. Large pods go one after the other, and so do sets.
const MOST: usize = 64 << 20;
/// A review has an object up to so many times: as it came, with its sizes, and with its sidecars.
const COPIES: usize = 3;
/// Bytes of one permit.
const UNIT: usize = 1 << 10;

/// What the handlers need to know.
#[derive(Clone)]
pub struct Handlers {
    pub(super) view: View,
    pub(super) switch: Switch,
    pub(super) metrics: AdmissionMetrics,
    pub(super) events: RefusalEvents,
    pub(super) ledgers: Ledgers,
    pub(super) mode: SetMode,
    pub(super) finish: Finish,
    /// What was asked for workloads; `None` where agents are switched off.
    pub(super) asked: Option<Asked>,
    /// What pods are sized by; `None` where right-sizing is switched off.
    pub(super) sizer: Option<Sizer>,
    pub(super) namespace: Arc<str>,
    /// Large pods go one after the other, so that those of normal size have the other cores.
    pub(super) large: Arc<Semaphore>,
    /// Sets go one after the other, too.
    pub(super) sets: Arc<Semaphore>,
    /// Memory for smaller reviews.
    pub(super) memory: Arc<Semaphore>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("{0}")]
    Unreadable(#[from] Unreadable),
    #[error("{0}")]
    Lookup(#[from] LookupError),
    #[error("the review was given up: {0}")]
    GivenUp(String),
    #[error("the review would take {0} bytes of memory, and {1} is the most: the object has too many values")]
    TooComplex(usize, usize),
}

/// Memory for all smaller reviews.
pub(super) fn memory() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(ROOM / UNIT))
}

/// The paths the API server calls.
pub fn router(handlers: Handlers) -> Router {
    Router::new()
        .route(names::POD_PATH, post(review_pod))
        .route(names::SET_PATH, post(review_set))
        .with_state(Arc::new(handlers))
}

async fn review_pod(
    State(handlers): State<Arc<Handlers>>,
    Extension(deadline): Extension<Deadline>,
    Extension(peer): Extension<Peer>,
    body: Bytes,
) -> HttpResponse {
    let began = Instant::now();
    let call = Call { deadline, peer };
    // The estimate reads the whole body, so a large one is a large review, whatever is in it.
    let needed = if body.len() < LARGE_BODY { memory_needed(&body) } else { Ok(LARGE) };
    let answered = match needed {
        Ok(needed @ 0..LARGE) => handlers.small_pod(&body, needed, call).await,
        Ok(_) => {
            let (reviewing, runtime) = (Arc::clone(&handlers), Handle::current());
            let review = move || {
                memory_needed(&body)?;
                runtime.block_on(reviewing.pod(&body, call))
            };
            apart(&handlers.large, review).await
        }
        Err(failure) => Err(failure),
    };
    handlers.finish(About::Pods, began, answered)
}

async fn review_set(State(handlers): State<Arc<Handlers>>, body: Bytes) -> HttpResponse {
    let began = Instant::now();
    let reviewing = Arc::clone(&handlers);
    let review = move || {
        memory_needed(&body)?;
        reviewing.set(&body)
    };
    let answered = apart(&handlers.sets, review).await;
    handlers.finish(About::Sidecarsets, began, answered)
}

/// The memory that a review takes, if it may.
fn memory_needed(body: &[u8]) -> Result<usize, Failure> {
    let needed = memory_of(body).saturating_mul(COPIES);
    if needed > MOST { Err(Failure::TooComplex(needed, MOST)) } else { Ok(needed) }
}

/// Reviews beside the threads that answer everybody else, one after the other and at the lowest priority: whoever sends large
/// reviews takes no CPU time of the others.
async fn apart(
    turn: &Arc<Semaphore>,
    review: impl FnOnce() -> Result<(Response, String), Failure> + Send + 'static,
) -> Result<(Response, String), Failure> {
    let given_up = |error: &dyn Display| Failure::GivenUp(error.to_string());
    let permit = Arc::clone(turn).acquire_owned().await.map_err(|error| given_up(&error))?;
    let review = move || {
        let answered = review();
        drop(permit);
        answered
    };
    let answered = background::run("review", review).map_err(|error| given_up(&error))?;
    answered.await.unwrap_or_else(|| Err(given_up(&"it panicked")))
}

/// The sender of a review, and the time until which it waits.
#[derive(Clone, Copy)]
struct Call {
    deadline: Deadline,
    peer: Peer,
}

impl Handlers {
    /// Reviews a pod when there is memory for it.
    async fn small_pod(&self, body: &[u8], needed: usize, call: Call) -> Result<(Response, String), Failure> {
        let permits = u32::try_from(needed.div_ceil(UNIT)).unwrap_or(u32::MAX);
        let room = self.memory.acquire_many(permits).await;
        let _room = room.map_err(|error| Failure::GivenUp(error.to_string()))?;
        self.pod(body, call).await
    }

    async fn pod(&self, body: &[u8], Call { deadline, peer }: Call) -> Result<(Response, String), Failure> {
        let request = Request::parse(body)?;
        let uid = request.uid.to_string();
        if !pods::is_creation(&request) {
            return Ok((Response::allowed(), uid));
        }
        let namespace = self.view.namespace(&request.namespace, deadline.remaining()).await?;
        let known = self.view.known();
        let hot_updates = self.asked.as_ref().map(Asked::table);
        let installation = Installation {
            mode: self.mode,
            is_off: self.switch.is_off(),
            own_namespace: Some(&self.namespace),
            finish: self.finish.finishing(),
            hot_updates: hot_updates.as_deref(),
            sizer: None,
        };
        let sizer = self.sizer.as_ref().and_then(|sizer| sizer.of(&request.namespace));
        let rightsizing = sizer.as_ref().map(NamespaceSizer::rightsizing);
        let (matched, draw) = (self.view.matched_pods(), chance::draw());
        let question =
            Question { known: &known, namespace: &namespace, installation, matched: &matched, draw, rightsizing };
        let Answer { response, outcomes, refusal } = match pods::begin(&request, question)? {
            Begun::Done(answer) => answer,
            Begun::Asking(asking) => {
                let origin = Origin { namespace: request.namespace.to_string(), peer };
                let origin = Some(origin).filter(|_| request.dry_run != Some(true));
                let reserved = self.reserve(asking.asks(), origin.as_ref(), deadline).await;
                asking.finish(&reserved)
            }
        };
        for (outcome, reason) in outcomes {
            self.metrics.decided(outcome, reason);
        }
        if let Some(refusal) = refusal
            && request.dry_run != Some(true)
        {
            debug!(namespace = &*request.namespace, set = ?refusal.set, code = refusal.reason.code(), "refused a pod");
            let set = refusal.set.as_ref().and_then(|set| known.judged.get(set));
            let set_uid = set.map(|judged| judged.uid.clone());
            self.events.tell(&request.namespace, set_uid, refusal);
        }
        Ok((response, uid))
    }

    /// Asks the ledgers. A pod that is only tried has no origin, and is told what it would get.
    async fn reserve(
        &self,
        asks: &[Ask],
        origin: Option<&Origin>,
        deadline: Deadline,
    ) -> BTreeMap<String, Reservation> {
        let reserved = asks.iter().map(async |ask| {
            let reservation = match origin {
                Some(origin) => self.ledgers.reserve(ask.clone(), origin, deadline.remaining()).await,
                None => self.ledgers.look(ask),
            };
            (ask.set.clone(), reservation)
        });
        join_all(reserved).await.into_iter().collect()
    }

    fn set(&self, body: &[u8]) -> Result<(Response, String), Failure> {
        let request = Request::parse(body)?;
        let uid = request.uid.to_string();
        if !sets::is_write(&request) {
            return Ok((Response::allowed(), uid));
        }
        Ok((sets::review(&request, &self.view.known())?, uid))
    }

    fn finish(&self, about: About, began: Instant, answered: Result<(Response, String), Failure>) -> HttpResponse {
        let (answer, http) = match answered {
            Ok((response, uid)) => {
                let answer = match &response {
                    response if !response.is_allowed() => Answered::Refused,
                    response if response.is_patch() => Answered::Patched,
                    _ => Answered::Allowed,
                };
                (answer, ([(CONTENT_TYPE, "application/json")], response.to_bytes(&uid)).into_response())
            }
            Err(failure @ (Failure::Unreadable(_) | Failure::TooComplex(..))) => {
                (Answered::Failed, failed(StatusCode::BAD_REQUEST, &failure))
            }
            Err(failure @ (Failure::Lookup(_) | Failure::GivenUp(_))) => {
                (Answered::Failed, failed(StatusCode::INTERNAL_SERVER_ERROR, &failure))
            }
        };
        self.metrics.answered(about, answer, began.elapsed());
        http
    }
}

fn failed(status: StatusCode, failure: &dyn Display) -> HttpResponse {
    warn!(%failure, "cannot answer a review");
    (status, format!("{failure}\n")).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_with_ten_thousand_variables_is_not_too_complex() {
        // As the API server sends it, with managed fields.
        let variables: Vec<String> =
            (0..10_000).map(|number| format!(r#"{{"name":"VARIABLE_{number:05}","value":"x"}}"#)).collect();
        let managed =
            |number| format!(r#""k:{{\"name\":\"VARIABLE_{number:05}\"}}":{{".":{{}},"f:name":{{}},"f:value":{{}}}}"#);
        let managed: Vec<String> = (0..10_000).map(managed).collect();
        let pod = format!(r#"{{"env":[{}],"managed":{{{}}}}}"#, variables.join(","), managed.join(","));
        assert!(serde_json::from_str::<serde_json::Value>(&pod).is_ok());
        assert!((LARGE..MOST).contains(&memory_needed(pod.as_bytes()).unwrap()));
        let attack = format!("[{}]", vec![r#"{"":0}"#; 100_000].join(","));
        assert_eq!(
            memory_needed(attack.as_bytes()).unwrap_err().to_string(),
            "the review would take 208500003 bytes of memory, and 67108864 is the most: the object has too many values"
        );
    }
}
