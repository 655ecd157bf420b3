//! A webhook in the same stack as ours that decides nothing: what any webhook costs, and what any patch costs.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use clap::Args;
use jiff::Timestamp;
use k8s_openapi::ByteString;
use pillion_runtime::server::{Limits, Server, ServerMetrics};
use pillion_runtime::tls::{Authority, ServingCertificate};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

#[derive(Args)]
pub(crate) struct Arguments {
    /// Where it answers.
    #[arg(long)]
    address: SocketAddr,
    /// Certificate and key of the authority to be trusted.
    #[arg(long)]
    authority: PathBuf,
    /// The patch it gives to every pod; none without it.
    #[arg(long)]
    patch: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Review<'a> {
    #[serde(borrow)]
    request: Request<'a>,
}

#[derive(Deserialize)]
struct Request<'a> {
    uid: &'a str,
    #[serde(borrow, rename = "object")]
    _object: &'a RawValue,
}

pub(crate) async fn run(arguments: &Arguments) -> Result<()> {
    let rest = match &arguments.patch {
        Some(path) => {
            let patch = serde_json::to_string(&ByteString(fs::read(path)?))?;
            format!(r#"","allowed":true,"patchType":"JSONPatch","patch":{patch}}}}}"#)
        }
        None => r#"","allowed":true}}"#.to_owned(),
    };
    let answer = move |body: Bytes| {
        let uid = serde_json::from_slice::<Review<'_>>(&body).map(|review| review.request.uid.to_owned());
        let start = r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":""#;
        std::future::ready(format!("{start}{}{rest}", uid.unwrap_or_default()))
    };
    let pem = fs::read_to_string(&arguments.authority)?;
    let key = pem.find("-----BEGIN PRIVATE KEY-----").context("the authority's file has no key")?;
    let authority = Authority::from_pem(&pem[..key], &pem[key..])?;
    let names = [arguments.address.ip().to_string()];
    let leaf = authority.issue(&names, Timestamp::now(), Duration::from_hours(24))?;
    let router = Router::new().route("/", post(answer));
    let server = Server::bind("hook", arguments.address, router, Limits::default(), &ServerMetrics::default())
        .await
        .with_context(|| format!("cannot listen on {}", arguments.address))?
        .with_tls(&ServingCertificate::new(leaf)?, None)?;
    server.serve(CancellationToken::new(), CancellationToken::new()).await;
    Ok(())
}
