//! An admission webhook served by the test process on the bed's host side.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};

use anyhow::{Context, Result};
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use k8s_openapi::ByteString;
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use crate::tls::TlsPort;

/// A running webhook; it ends when dropped.
pub struct Webhook {
    address: SocketAddr,
    authority: ByteString,
    reviews: UnboundedReceiver<Value>,
    server: JoinHandle<()>,
}

impl Webhook {
    /// Serves on a free port of `host`; `answer` makes the response of a review.
    pub async fn serve(host: Ipv4Addr, answer: fn(&Value) -> Value) -> Result<Self> {
        let TlsPort { listener, acceptor, address, certificate } = TlsPort::bind(host).await?;
        let (review_tx, reviews) = unbounded_channel();
        let server = tokio::spawn(accept(listener, acceptor, review_tx, answer));
        Ok(Self { address, authority: ByteString(certificate.into_bytes()), reviews, server })
    }

    /// `clientConfig` of a registration.
    pub fn client_config(&self) -> Value {
        serde_json::json!({"url": format!("https://{}/", self.address), "caBundle": self.authority})
    }

    /// The next review that came in.
    pub async fn next_review(&mut self) -> Result<Value> {
        self.reviews.recv().await.context("the webhook has ended")
    }
}

impl Drop for Webhook {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn accept(
    listener: TcpListener,
    tls: TlsAcceptor,
    review_tx: UnboundedSender<Value>,
    answer: fn(&Value) -> Value,
) {
    while let Ok((connection, _)) = listener.accept().await {
        let (tls, review_tx) = (tls.clone(), review_tx.clone());
        // A failed connection is the caller's to report; the API server does.
        tokio::spawn(async move { drop(serve(connection, tls, review_tx, answer).await) });
    }
}

async fn serve(
    connection: TcpStream,
    tls: TlsAcceptor,
    review_tx: UnboundedSender<Value>,
    answer: fn(&Value) -> Value,
) -> Result<()> {
    let connection = TokioIo::new(tls.accept(connection).await?);
    let service = service_fn(|request: Request<Incoming>| {
        let review_tx = review_tx.clone();
        async move {
            let body = request.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
            let review: Value = serde_json::from_slice(&body).unwrap_or_default();
            let response = serde_json::json!({
                "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": answer(&review)});
            let _ = review_tx.send(review);
            Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(response.to_string()))))
        }
    });
    hyper::server::conn::http1::Builder::new().serve_connection(connection, service).await?;
    Ok(())
}
