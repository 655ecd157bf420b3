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
use http::header::{CONNECTION, RETRY_AFTER};
use http::{HeaderValue, Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;
use tracing::{debug, warn};

mod apart;
mod bodies;
mod connections;
mod deadline;
mod entrance;
mod limits;
mod metrics;
#[cfg(test)]
mod tests;

pub use apart::serve_apart;
pub use bodies::LARGE_BODY;
pub use connections::Peer;
pub use deadline::Deadline;
pub use entrance::{Entrance, Entry};
pub use limits::{Limits, raise_open_files};
pub use metrics::ServerMetrics;

use crate::tls::{CertificateError, Clients, ServingCertificate};
use bodies::Bodies;
use connections::{Connection, Connections};
use metrics::{Counted, OwnMetrics, Refusal};

/// After *stop* a connection that was just made may still say its first request for this long.
const LAST_CHANCE: Duration = Duration::from_secs(1);
/// Pause after a connection could not be accepted, which is when the process has no file descriptors left.
const BREATH: Duration = Duration::from_millis(100);

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
    /// Absent where every path of the router is open.
    entrance: Option<Entrance>,
    clients: Option<Arc<Clients>>,
    limits: Arc<Limits>,
    connections: Connections,
    requests: Arc<Semaphore>,
    bodies: Arc<Bodies>,
    metrics: OwnMetrics,
    drain: CancellationToken,
    stop: CancellationToken,
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
        Ok(Self::of(name, TcpListener::bind(address).await?, router, limits, metrics))
    }

    /// Takes over a listener that does not block.
    pub(super) fn listen(
        name: &'static str,
        listener: std::net::TcpListener,
        router: Router,
        limits: Limits,
        metrics: &ServerMetrics,
    ) -> io::Result<Self> {
        Ok(Self::of(name, TcpListener::from_std(listener)?, router, limits, metrics))
    }

    fn of(name: &'static str, listener: TcpListener, router: Router, limits: Limits, metrics: &ServerMetrics) -> Self {
        let limits = Arc::new(limits);
        let context = Context {
            // The limit of this server stands in front of it; the router's own would be smaller.
            router: router.layer(DefaultBodyLimit::disable()),
            tls: None,
            entrance: None,
            clients: None,
            connections: Connections::new(&limits),
            requests: Arc::new(Semaphore::new(limits.requests)),
            bodies: Arc::new(Bodies::new(&limits)),
            limits,
            metrics: metrics.of(name),
            drain: CancellationToken::new(),
            stop: CancellationToken::new(),
        };
        Self { listener, context }
    }

    /// Lets in the requests that an entrance knows, and answers all others 404.
    #[must_use]
    pub fn with_entrance(mut self, entrance: Entrance) -> Self {
        self.context.entrance = Some(entrance);
        self
    }

    /// Serves over TLS with the certificate as it is at the time of each connection.
    /// With `clients`, only those that show one of their certificates are served.
    pub fn with_tls(
        mut self,
        certificate: &Arc<ServingCertificate>,
        clients: Option<Arc<Clients>>,
    ) -> Result<Self, CertificateError> {
        self.context.tls = Some(TlsAcceptor::from(Arc::new(certificate.server_config(clients.as_deref())?)));
        self.context.clients = clients;
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
        let open = |(stream, address): (TcpStream, SocketAddr)| {
            let (context, cut) = (context.clone(), cut.clone());
            // In the order in which they come: tasks run in any order, and the oldest one is closed for a new one.
            let (connection, made_room) = context.connections.enter(Peer::of(address));
            if made_room {
                context.metrics.refused(Refusal::Connections);
            }
            tasks.spawn(async move { cut.run_until_cancelled(context.connection(stream, connection)).await });
        };
        while let Some(accepted) = stop.run_until_cancelled(listener.accept()).await {
            match accepted {
                Ok(accepted) => open(accepted),
                Err(error) => {
                    warn!(server = context.metrics.server, %error, "cannot accept a connection");
                    sleep(BREATH).await;
                }
            }
        }
        // Closing the listener would reset those who have connected and were not accepted yet.
        while let Some(Ok(accepted)) = listener.accept().now_or_never() {
            open(accepted);
        }
        drop(listener);
        tasks.close();
        tasks.wait().await;
    }
}

impl Context {
    async fn connection(self, stream: TcpStream, connection: Connection) {
        // Without it one answer in a hundred waits 40 ms for the caller's delayed acknowledgement.
        if let Err(error) = stream.set_nodelay(true) {
            debug!(%error, "cannot set TCP_NODELAY");
        }
        let Some(tls) = &self.tls else { return self.http(stream, &connection).await };
        let handshake = timeout(self.limits.handshake, tls.accept(stream));
        match connection.evicted.run_until_cancelled(handshake).await {
            None => {}
            Some(Ok(Ok(stream))) => {
                match self.clients.as_ref().map_or(Ok(()), |clients| clients.check(stream.get_ref().1)) {
                    Ok(()) => self.http(stream, &connection).await,
                    Err(error) => {
                        debug!(server = self.metrics.server, error, "the certificate of a client is rejected");
                        self.metrics.refused(Refusal::Client);
                    }
                }
            }
            Some(Ok(Err(error))) => {
                debug!(server = self.metrics.server, %error, "the TLS handshake failed");
                self.metrics.refused(Refusal::Handshake);
            }
            Some(Err(_)) => self.metrics.refused(Refusal::Handshake),
        }
    }

    async fn http(&self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, place: &Connection) {
        let _counted = Counted::new(&self.metrics.connections);
        let opened = Instant::now();
        let spoke = AtomicBool::new(false);
        let service = service_fn(|request| {
            spoke.store(true, Ordering::Relaxed);
            self.answer_and_say_when_to_close(request, opened, place)
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
                // Closed at once where it rests, or after its answer.
                () = place.evicted.cancelled(), if !stopping => {
                    if !has_spoken() {
                        return;
                    }
                    stopping = true;
                    connection.as_mut().graceful_shutdown();
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
        connection: &Connection,
    ) -> Result<Response, Infallible> {
        let mut response = self.answer(request, connection).await;
        if self.drain.is_cancelled() || self.stop.is_cancelled() || opened.elapsed() > self.limits.age {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        Ok(response)
    }

    async fn answer(&self, mut request: Request<Incoming>, connection: &Connection) -> Response {
        let _counted = Counted::new(&self.metrics.requests);
        let mut most = self.limits.body;
        let deadline = Instant::now() + deadline::allowed(request.uri(), self.limits.answer);
        if let Some(entrance) = &self.entrance {
            let Some(entry) = entrance(request.uri()) else {
                self.metrics.refused(Refusal::Path);
                return (StatusCode::NOT_FOUND, [(CONNECTION, "close")], "unknown path\n").into_response();
            };
            most = entry.body;
            *request.uri_mut() = Uri::from_static(entry.path);
        }
        let Some(_busy) = connection.begin() else {
            self.metrics.refused(Refusal::Requests);
            let message = "too many connections are busy\n";
            return (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, "1"), (CONNECTION, "close")], message)
                .into_response();
        };
        if request.body().size_hint().lower() > most as u64 {
            return self.too_large(most);
        }
        request.extensions_mut().insert(Deadline(deadline));
        request.extensions_mut().insert(connection.peer);
        timeout_at(deadline, self.answer_in_turn(request, most, connection)).await.unwrap_or_else(|_| {
            self.metrics.refused(Refusal::Deadline);
            (StatusCode::GATEWAY_TIMEOUT, "not answered in time\n").into_response()
        })
    }

    /// Reads the body when there is room for it, and has the request answered when it is its turn.
    async fn answer_in_turn(&self, request: Request<Incoming>, most: usize, connection: &Connection) -> Response {
        let (head, body) = request.into_parts();
        let length = body.size_hint().upper().and_then(|upper| usize::try_from(upper).ok()).unwrap_or(most);
        let _room = self.bodies.reserve(length).await;
        let body = match Limited::new(body, most).collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) if error.is::<LengthLimitError>() => return self.too_large(most),
            Err(error) => {
                let message = format!("cannot read the body: {error}\n");
                return (StatusCode::BAD_REQUEST, [(CONNECTION, "close")], message).into_response();
            }
        };
        // After the body: whoever sends it slowly keeps nobody from an answer.
        let _of_peer = connection.requests.acquire().await;
        let _of_all = self.requests.acquire().await;
        match self.router.clone().oneshot(Request::from_parts(head, Body::from(body))).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }

    fn too_large(&self, most: usize) -> Response {
        self.metrics.refused(Refusal::Body);
        let message = format!("the body is larger than {most} bytes\n");
        // What is left of the body will not be read.
        (StatusCode::PAYLOAD_TOO_LARGE, [(CONNECTION, "close")], message).into_response()
    }
}
