//! Serves a router over HTTP/1.1, with TLS or without, within limits, and ends without losing a request.
//!
//! HTTP/1.1, because that is what the API server speaks to webhooks: it keeps connections and goes on using them also
//! when the pod behind them is on its way out. So the end has two steps. From *drain* on every answer says
//! `Connection: close`, while new connections are still taken; at *stop* no more are taken, and what is being answered
//! is finished. [`crate::shutdown`] says when.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::DefaultBodyLimit;
use axum::response::{IntoResponse, Response};
use futures::FutureExt as _;
use http::header::{CONNECTION, CONTENT_LENGTH, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Request, StatusCode};
use http_body_util::Limited;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;
use tracing::{debug, warn};

mod deadline;
mod metrics;
#[cfg(test)]
mod tests;

pub use deadline::Deadline;
pub use metrics::ServerMetrics;

use crate::tls::{CertificateError, ServingCertificate};
use metrics::{Counted, OwnMetrics, Refusal};

/// After *stop* a connection that was just made may still say its first request for this long.
const LAST_CHANCE: Duration = Duration::from_secs(1);
/// Pause after a connection could not be accepted, which is when the process has no file descriptors left.
const BREATH: Duration = Duration::from_millis(100);

/// What a server puts up with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections open at once; one more is closed at once.
    pub connections: usize,
    /// Requests being answered at once; one more is answered 503.
    pub requests: usize,
    /// Bytes of a body; a larger one is answered 413.
    pub body: usize,
    /// How long a TLS handshake may take.
    pub handshake: Duration,
    /// How long the head of a connection's first request may take.
    pub headers: Duration,
    /// How long a connection may rest between requests. Longer than callers keep one (the API server: 90 s), so that
    /// it is they who close it and no request is sent into a closed one.
    pub idle: Duration,
    /// Longest time for one request, also where its caller would wait longer; then it is answered 504.
    pub answer: Duration,
    /// After this long the next answer closes the connection, so that callers spread over replicas that came later.
    pub age: Duration,
}

/// A server that listens and does not serve yet.
pub struct Server {
    listener: TcpListener,
    context: Context,
}

/// What every connection needs to know.
#[derive(Clone)]
struct Context {
    router: Router,
    tls: Option<TlsAcceptor>,
    limits: Arc<Limits>,
    connections: Arc<Semaphore>,
    requests: Arc<Semaphore>,
    metrics: OwnMetrics,
    drain: CancellationToken,
    stop: CancellationToken,
}

/// For webhooks: a review is at most twice the API server's own limit of 3 MiB, and is answered in milliseconds.
impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 1_000,
            requests: 200,
            body: 8 << 20,
            handshake: Duration::from_secs(5),
            headers: Duration::from_secs(5),
            idle: Duration::from_mins(2),
            answer: Duration::from_secs(10),
            age: Duration::from_mins(10),
        }
    }
}

impl Server {
    /// Listens on an address. Whoever connects waits until [`Self::serve`] is called.
    pub async fn bind(
        name: &'static str,
        address: SocketAddr,
        router: Router,
        limits: Limits,
        metrics: &ServerMetrics,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let context = Context {
            // The limit of this server stands in front of it; the router's own would be smaller.
            router: router.layer(DefaultBodyLimit::disable()),
            tls: None,
            connections: Arc::new(Semaphore::new(limits.connections)),
            requests: Arc::new(Semaphore::new(limits.requests)),
            limits: Arc::new(limits),
            metrics: metrics.of(name),
            drain: CancellationToken::new(),
            stop: CancellationToken::new(),
        };
        Ok(Self { listener, context })
    }

    /// Serves over TLS with the certificate as it is at the time of each connection.
    pub fn with_tls(mut self, certificate: &Arc<ServingCertificate>) -> Result<Self, CertificateError> {
        self.context.tls = Some(TlsAcceptor::from(Arc::new(certificate.server_config()?)));
        Ok(self)
    }

    /// The address it listens on.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `stop`, and then until what is being answered is finished. Between `drain` and `stop` every answer
    /// closes its connection. Dropping this cuts every connection.
    pub async fn serve(self, drain: CancellationToken, stop: CancellationToken) {
        let Self { listener, context } = self;
        let context = Context { drain, stop: stop.clone(), ..context };
        let tasks = TaskTracker::new();
        // Ends the tasks below if this future is dropped; after the last of them it ends nothing.
        let cut = CancellationToken::new();
        let _guard = cut.clone().drop_guard();
        let open = |stream: TcpStream| {
            let (context, cut) = (context.clone(), cut.clone());
            tasks.spawn(async move { cut.run_until_cancelled(context.connection(stream)).await });
        };
        while let Some(accepted) = stop.run_until_cancelled(listener.accept()).await {
            match accepted {
                Ok((stream, _)) => open(stream),
                Err(error) => {
                    warn!(server = context.metrics.server, %error, "cannot accept a connection");
                    sleep(BREATH).await;
                }
            }
        }
        // Closing the listener would reset those who have connected and were not accepted yet.
        while let Some(Ok((stream, _))) = listener.accept().now_or_never() {
            open(stream);
        }
        drop(listener);
        tasks.close();
        tasks.wait().await;
    }
}

impl Context {
    async fn connection(self, stream: TcpStream) {
        let Ok(permit) = Arc::clone(&self.connections).try_acquire_owned() else {
            return self.metrics.refused(Refusal::Connections);
        };
        // Without it one answer in a hundred waits 40 ms for the caller's delayed acknowledgement.
        if let Err(error) = stream.set_nodelay(true) {
            debug!(%error, "cannot set TCP_NODELAY");
        }
        let Some(tls) = &self.tls else { return self.http(stream, permit).await };
        match timeout(self.limits.handshake, tls.accept(stream)).await {
            Ok(Ok(stream)) => self.http(stream, permit).await,
            Ok(Err(error)) => {
                debug!(server = self.metrics.server, %error, "the TLS handshake failed");
                self.metrics.refused(Refusal::Handshake);
            }
            Err(_) => self.metrics.refused(Refusal::Handshake),
        }
    }

    async fn http(&self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, _permit: OwnedSemaphorePermit) {
        let _counted = Counted::new(&self.metrics.connections);
        let opened = Instant::now();
        let spoke = AtomicBool::new(false);
        let service = service_fn(|request| {
            spoke.store(true, Ordering::Relaxed);
            self.answer_and_say_when_to_close(request, opened)
        });
        let mut builder = http1::Builder::new();
        // hyper counts it from the end of the last answer, so it is the rest between requests as well.
        builder.timer(TokioTimer::new()).header_read_timeout(self.limits.idle);
        let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service));

        let has_spoken = || spoke.load(Ordering::Relaxed);
        let mut first_words = opened + self.limits.headers;
        // One that does not read its answers would stay for ever.
        let too_old = opened + self.limits.age + self.limits.idle;
        let mut stopping = false;
        loop {
            tokio::select! {
                ended = connection.as_mut() => {
                    return if let Err(error) = ended {
                        debug!(server = self.metrics.server, %error, "a connection failed");
                    };
                }
                () = self.stop.cancelled(), if !stopping => {
                    stopping = true;
                    if has_spoken() {
                        connection.as_mut().graceful_shutdown();
                    } else {
                        first_words = first_words.min(Instant::now() + LAST_CHANCE);
                    }
                }
                // It may have spoken since the condition was looked at.
                () = sleep_until(first_words), if !has_spoken() => if !has_spoken() {
                    return self.metrics.refused(Refusal::Headers);
                },
                () = sleep_until(too_old) => return,
            }
        }
    }

    async fn answer_and_say_when_to_close(
        &self,
        request: Request<Incoming>,
        opened: Instant,
    ) -> Result<Response, Infallible> {
        let mut response = self.answer(request).await;
        if self.drain.is_cancelled() || self.stop.is_cancelled() || opened.elapsed() > self.limits.age {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        Ok(response)
    }

    async fn answer(&self, request: Request<Incoming>) -> Response {
        let _counted = Counted::new(&self.metrics.requests);
        let Ok(_permit) = self.requests.try_acquire() else {
            self.metrics.refused(Refusal::Requests);
            let message = "too many requests are being answered\n";
            return (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, "1")], message).into_response();
        };
        if content_length(request.headers()).is_some_and(|length| length > self.limits.body as u64) {
            return self.too_large();
        }
        let deadline = Instant::now() + deadline::allowed(request.uri(), self.limits.answer);
        let mut request = request.map(|body| Body::new(Limited::new(body, self.limits.body)));
        request.extensions_mut().insert(Deadline(deadline));
        match timeout_at(deadline, self.router.clone().oneshot(request)).await {
            Ok(Ok(response)) if response.status() == StatusCode::PAYLOAD_TOO_LARGE => self.too_large(),
            Ok(Ok(response)) => response,
            Ok(Err(never)) => match never {},
            Err(_) => {
                self.metrics.refused(Refusal::Deadline);
                (StatusCode::GATEWAY_TIMEOUT, "not answered in time\n").into_response()
            }
        }
    }

    fn too_large(&self) -> Response {
        self.metrics.refused(Refusal::Body);
        let message = format!("the body is larger than {} bytes\n", self.limits.body);
        // What is left of the body will not be read.
        (StatusCode::PAYLOAD_TOO_LARGE, [(CONNECTION, "close")], message).into_response()
    }
}

fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}
