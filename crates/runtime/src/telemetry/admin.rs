//! The page others look at: `/healthz`, `/readyz`, `/metrics`.

use std::fmt::Write as _;
use std::sync::Arc;

use axum::Router;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Named questions, each answered by yes, or by no with a reason.
#[derive(Clone, Default)]
pub struct Checks {
    checks: Vec<(&'static str, Check)>,
}

type Check = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

impl Checks {
    /// Adds a question. It is asked at every probe, so it must be quick and wait for nothing.
    #[must_use]
    pub fn with(mut self, name: &'static str, check: impl Fn() -> Result<(), String> + Send + Sync + 'static) -> Self {
        self.checks.push((name, Arc::new(check)));
        self
    }

    /// One line per question, and whether all answers are yes.
    pub fn report(&self) -> (bool, String) {
        let mut all_well = true;
        let mut report = String::new();
        for (name, check) in &self.checks {
            let line = match check() {
                Ok(()) => writeln!(report, "ok {name}"),
                Err(reason) => {
                    all_well = false;
                    writeln!(report, "failed {name}: {reason}")
                }
            };
            line.expect("a string takes every line");
        }
        if report.is_empty() {
            report.push_str("ok\n");
        }
        (all_well, report)
    }

    fn answer(&self) -> Response {
        let (all_well, report) = self.report();
        let status = if all_well { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        (status, report).into_response()
    }
}

/// Answers `/healthz` (a failing check means: restart me), `/readyz` (send me nothing yet) and `/metrics`.
pub fn admin(health: Checks, readiness: Checks, metrics: Registry) -> Router {
    let metrics = Arc::new(metrics);
    Router::new()
        .route("/healthz", get(async move || health.answer()))
        .route("/readyz", get(async move || readiness.answer()))
        .route("/metrics", get(async move || scrape(&metrics)))
}

fn scrape(metrics: &Registry) -> Response {
    let mut text = String::new();
    match encode(&mut text, metrics) {
        Ok(()) => ([(CONTENT_TYPE, OPEN_METRICS)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}
