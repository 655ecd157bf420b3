//! What tests ask and command over HTTP.

use std::fmt::Display;
use std::path::PathBuf;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;

use crate::app::{self, App, Snapshot};

type Answer = Result<&'static str, (StatusCode, String)>;

#[derive(Deserialize)]
struct Ready {
    value: bool,
}

#[derive(Deserialize)]
struct Word {
    status: Option<u16>,
}

#[derive(Deserialize)]
struct Exit {
    code: u8,
}

#[derive(Deserialize)]
struct Burn {
    millicores: u32,
}

#[derive(Deserialize)]
struct Hold {
    bytes: usize,
}

#[derive(Deserialize)]
struct Write {
    path: PathBuf,
}

pub(crate) fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/state", get(state))
        .route("/healthz", get(healthz))
        .route("/ready", post(ready))
        .route("/word", get(word).post(set_word))
        .route("/exit", post(exit))
        .route("/burn", post(burn))
        .route("/hold", post(hold))
        .route("/write", post(write))
        .with_state(app)
}

async fn state(State(app): State<Arc<App>>) -> Json<Snapshot> {
    Json(app.snapshot())
}

async fn healthz(State(app): State<Arc<App>>) -> (StatusCode, &'static str) {
    if app.is_ready() { (StatusCode::OK, "ready\n") } else { (StatusCode::SERVICE_UNAVAILABLE, "not ready\n") }
}

async fn ready(State(app): State<Arc<App>>, Query(ready): Query<Ready>) -> Answer {
    app.set_ready(ready.value);
    Ok("done\n")
}

async fn word(State(app): State<Arc<App>>) -> (StatusCode, String) {
    let (status, word) = app.word();
    (StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), word)
}

async fn set_word(State(app): State<Arc<App>>, Query(word): Query<Word>, text: String) -> &'static str {
    app.set_word(word.status.unwrap_or(200), text);
    "done\n"
}

async fn exit(State(app): State<Arc<App>>, Query(exit): Query<Exit>) -> Answer {
    app.exit(exit.code);
    Ok("done\n")
}

async fn burn(State(app): State<Arc<App>>, Query(burn): Query<Burn>) -> Answer {
    app.burn(burn.millicores).map_err(failure)?;
    Ok("done\n")
}

async fn hold(State(app): State<Arc<App>>, Query(hold): Query<Hold>) -> Answer {
    app.hold(hold.bytes).map_err(failure)?;
    Ok("done\n")
}

async fn write(Query(write): Query<Write>, content: Bytes) -> Answer {
    app::write(&write.path, &content).map_err(failure)?;
    Ok("done\n")
}

fn failure(error: impl Display) -> (StatusCode, String) {
    (StatusCode::INTERNAL_SERVER_ERROR, format!("{error:#}\n"))
}
