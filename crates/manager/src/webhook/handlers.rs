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
use pillion_runtime::server::Deadline;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tracing::{debug, warn};

use super::events::RefusalEvents;
use super::ledgers::Ledgers;
use super::metrics::{About, AdmissionMetrics, Answered};
use super::sizing::{NamespaceSizer, Sizer};
use crate::admission::pods::{self, Answer, Begun, Question};
use crate::admission::{Ask, Request, Reservation, Response, Unreadable, sets};
use crate::finish::Finish;
use crate::hot_updates::Asked;
use crate::switch::Switch;
use crate::view::{LookupError, View};
use crate::{chance, names};

/// A review of a pod this large takes milliseconds. Pods of people are a tenth of it.
const LARGE: usize = 256 << 10;

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
    body: Bytes,
) -> HttpResponse {
    let began = Instant::now();
    let answered = match body.len() {
        0..LARGE => handlers.pod(&body, deadline).await,
        _ => Arc::clone(&handlers).large_pod(body, deadline).await,
    };
    handlers.finish(About::Pods, began, answered)
}

async fn review_set(State(handlers): State<Arc<Handlers>>, body: Bytes) -> HttpResponse {
    let began = Instant::now();
    let answered = handlers.set(&body);
    handlers.finish(About::Sidecarsets, began, answered)
}

impl Handlers {
    async fn pod(&self, body: &[u8], deadline: Deadline) -> Result<(Response, String), Failure> {
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
                let reserved = self.reserve(asking.asks(), request.dry_run == Some(true), deadline).await;
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

    /// Asks the ledgers. A pod that is only tried is told what it would get.
    async fn reserve(&self, asks: &[Ask], is_dry_run: bool, deadline: Deadline) -> BTreeMap<String, Reservation> {
        let reserved = asks.iter().map(async |ask| {
            let reservation = if is_dry_run {
                self.ledgers.look(ask)
            } else {
                self.ledgers.reserve(ask.clone(), deadline.remaining()).await
            };
            (ask.set.clone(), reservation)
        });
        join_all(reserved).await.into_iter().collect()
    }

    /// The same beside the threads that answer everybody else.
    async fn large_pod(self: Arc<Self>, body: Bytes, deadline: Deadline) -> Result<(Response, String), Failure> {
        let given_up = |error: &dyn Display| Failure::GivenUp(error.to_string());
        let permit = Arc::clone(&self.large).acquire_owned().await.map_err(|error| given_up(&error))?;
        let runtime = Handle::current();
        let review = move || {
            let answered = runtime.block_on(self.pod(&body, deadline));
            drop(permit);
            answered
        };
        spawn_blocking(review).await.map_err(|error| given_up(&error))?
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
            Err(failure @ Failure::Unreadable(_)) => (Answered::Failed, failed(StatusCode::BAD_REQUEST, &failure)),
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
