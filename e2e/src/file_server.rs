//! A place on the bed's host side from which files are fetched over https.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::task::JoinHandle;

use crate::tls::TlsPort;

type Files = Arc<Mutex<BTreeMap<String, Bytes>>>;

/// Serves files by path; it ends when dropped.
pub struct FileServer {
    address: SocketAddr,
    /// PEM of the certificate to trust.
    pub certificate: String,
    files: Files,
    server: JoinHandle<()>,
}

impl FileServer {
    /// Serves on a free port of `host`.
    pub async fn serve(host: Ipv4Addr) -> Result<Self> {
        let port = TlsPort::bind(host).await?;
        let files = Files::default();
        let server = tokio::spawn({
            let files = Arc::clone(&files);
            async move {
                while let Ok((connection, _)) = port.listener.accept().await {
                    let (acceptor, files) = (port.acceptor.clone(), Arc::clone(&files));
                    tokio::spawn(async move {
                        let Ok(connection) = acceptor.accept(connection).await else { return };
                        let answer = service_fn(|request| {
                            let answer = answer(&files, &request);
                            async { Ok::<_, Infallible>(answer) }
                        });
                        let connection = TokioIo::new(connection);
                        // A failed connection is the caller's to report.
                        drop(hyper::server::conn::http1::Builder::new().serve_connection(connection, answer).await);
                    });
                }
            }
        });
        Ok(Self { address: port.address, certificate: port.certificate, files, server })
    }

    /// The URL of a path, as `/v2/level.json`.
    pub fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.address)
    }

    /// Puts a file there.
    pub fn put(&self, path: &str, content: impl Into<Bytes>) {
        self.files.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned(), content.into());
    }
}

impl Drop for FileServer {
    fn drop(&mut self) {
        self.server.abort();
    }
}

fn answer(files: &Files, request: &Request<Incoming>) -> Response<Full<Bytes>> {
    let found = files.lock().unwrap_or_else(PoisonError::into_inner).get(request.uri().path()).cloned();
    let mut response = Response::new(Full::new(found.clone().unwrap_or_else(|| Bytes::from_static(b"not here\n"))));
    if found.is_none() {
        *response.status_mut() = StatusCode::NOT_FOUND;
    }
    response
}
