//! Servers as their callers meet them: over real sockets, with a real TLS client.

use std::net::Ipv4Addr;
use std::sync::atomic::AtomicUsize;

use axum::Extension;
use axum::body::Bytes;
use axum::routing::{get, post};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;
use hyper::client::conn::http1::{SendRequest, handshake};
use jiff::Timestamp;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};

use super::*;
use crate::tls::Authority;

const SOON: Duration = Duration::from_millis(200);
const NAME: &str = "server.test";

/// A server under test and those who may call it.
struct Scene {
    address: SocketAddr,
    authority: Authority,
    certificate: Arc<ServingCertificate>,
    registry: Registry,
    drain: CancellationToken,
    stop: CancellationToken,
    server: JoinHandle<()>,
}

/// One connection of a caller.
struct Caller {
    requests: SendRequest<BoxBody<Bytes, Infallible>>,
    certificate: CertificateDer<'static>,
}

struct Answered {
    status: StatusCode,
    closes: bool,
    body: String,
}

fn leaf_of(authority: &Authority) -> crate::tls::Leaf {
    authority.issue(&[NAME.to_owned()], Timestamp::now(), Duration::from_hours(1)).unwrap()
}

async fn bind(router: Router, limits: Limits, registry: &mut Registry) -> Server {
    let metrics = ServerMetrics::register(registry);
    Server::bind("test", (Ipv4Addr::LOCALHOST, 0).into(), router, limits, &metrics).await.unwrap()
}

impl Scene {
    async fn open(router: Router, limits: Limits) -> Self {
        let authority = Authority::generate("test", Timestamp::now(), Duration::from_hours(1)).unwrap();
        let certificate = ServingCertificate::new(leaf_of(&authority)).unwrap();
        let mut registry = Registry::default();
        let server = bind(router, limits, &mut registry).await.with_tls(&certificate).unwrap();
        let address = server.address().unwrap();
        let (drain, stop) = (CancellationToken::new(), CancellationToken::new());
        let server = tokio::spawn(server.serve(drain.clone(), stop.clone()));
        Self { address, authority, certificate, registry, drain, stop, server }
    }

    async fn tcp(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    async fn tls(&self, version: &'static SupportedProtocolVersion) -> io::Result<TlsStream<TcpStream>> {
        let mut roots = RootCertStore::empty();
        roots.add(self.authority.certificate().clone()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_protocol_versions(&[version])
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from(NAME).unwrap();
        TlsConnector::from(Arc::new(config)).connect(name, self.tcp().await).await
    }

    async fn caller(&self) -> Caller {
        let stream = self.tls(&TLS13).await.unwrap();
        let certificate = stream.get_ref().1.peer_certificates().unwrap()[0].clone();
        let (requests, connection) = handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        Caller { requests, certificate }
    }

    /// How often something was refused for a reason.
    fn refused(&self, reason: &str) -> u64 {
        let mut text = String::new();
        encode(&mut text, &self.registry).unwrap();
        let line = format!("server_refusals_total{{server=\"test\",reason=\"{reason}\"}} ");
        text.lines().find_map(|found| found.strip_prefix(&line)).map_or(0, |count| count.parse().unwrap())
    }

    async fn ends(self) {
        timeout(Duration::from_secs(20), self.server).await.expect("the server did not end").unwrap();
    }
}

impl Caller {
    async fn ask(&mut self, request: Request<BoxBody<Bytes, Infallible>>) -> hyper::Result<Answered> {
        let response = self.requests.send_request(request).await?;
        let closes = response.headers().get(CONNECTION).is_some_and(|value| value == "close");
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        Ok(Answered { status, closes, body: String::from_utf8(body.to_vec()).unwrap() })
    }

    async fn get(&mut self, path: &str) -> hyper::Result<Answered> {
        self.ask(Request::get(path).header("host", NAME).body(full("")).unwrap()).await
    }

    async fn post(&mut self, path: &str, body: BoxBody<Bytes, Infallible>) -> hyper::Result<Answered> {
        self.ask(Request::post(path).header("host", NAME).body(body).unwrap()).await
    }
}

fn full(text: &str) -> BoxBody<Bytes, Infallible> {
    Full::new(Bytes::from(text.to_owned())).boxed()
}

/// A body whose length is not said before.
fn chunks(count: usize, size: usize) -> BoxBody<Bytes, Infallible> {
    let chunk = Bytes::from(vec![b'x'; size]);
    let frames = futures::stream::iter((0..count).map(move |_| Ok(Frame::data(chunk.clone()))));
    BodyExt::boxed(StreamBody::new(frames))
}

fn hello() -> Router {
    Router::new().route("/", get(async || "hello"))
}

/// Answers once a permit is given; counts who waits.
fn gated(gate: &Arc<Semaphore>, waiting: &Arc<AtomicUsize>) -> Router {
    let (gate, waiting) = (Arc::clone(gate), Arc::clone(waiting));
    let answer = async move || {
        let waits = Waits::new(&waiting);
        gate.acquire().await.unwrap().forget();
        drop(waits);
        "hello"
    };
    Router::new().route("/", get(answer))
}

struct Waits(Arc<AtomicUsize>);

impl Waits {
    fn new(waiting: &Arc<AtomicUsize>) -> Self {
        waiting.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(waiting))
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

async fn until(what: &str, holds: impl Fn() -> bool) {
    let seen = timeout(Duration::from_secs(20), async {
        while !holds() {
            sleep(Duration::from_millis(5)).await;
        }
    });
    seen.await.unwrap_or_else(|_| panic!("waited 20 s for {what}"));
}

/// What is left to read of a stream that the other side closes.
async fn rest(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    timeout(Duration::from_secs(20), stream.read_to_end(&mut bytes)).await.expect("the connection stays open")?;
    Ok(bytes)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_closes_kept_connections_after_an_answer_and_loses_no_request() {
    let scene = Arc::new(Scene::open(hello(), Limits::default()).await);
    let mut callers = JoinSet::new();
    for _ in 0..8 {
        let scene = Arc::clone(&scene);
        callers.spawn(async move {
            let mut caller = scene.caller().await;
            let mut connections = 1;
            // Until the drain begins one connection serves every request; some of them are under way when it does.
            while !scene.drain.is_cancelled() {
                let answered = caller.get("/").await.expect("before the drain");
                assert_eq!((answered.status, answered.body.as_str()), (StatusCode::OK, "hello"));
                if answered.closes {
                    caller = scene.caller().await;
                    connections += 1;
                }
            }
            assert!(connections <= 2, "kept until the drain: {connections}");
            for number in 0..50 {
                let answered = caller.get("/").await.unwrap_or_else(|error| panic!("request {number}: {error}"));
                assert_eq!((answered.status, answered.closes), (StatusCode::OK, true), "request {number}");
                caller = scene.caller().await;
            }
            // This connection has said nothing and will not; it must not hold up the end.
            caller
        });
    }
    let mut early = scene.caller().await;
    assert!(!early.get("/").await.unwrap().closes);
    scene.drain.cancel();
    let silent: Vec<Caller> = callers.join_all().await;
    assert_eq!(silent.len(), 8);
    assert!(early.get("/").await.unwrap().closes, "a connection from before the drain is closed by its next answer");

    scene.stop.cancel();
    let scene = Arc::into_inner(scene).unwrap();
    let address = scene.address;
    scene.ends().await;
    assert!(TcpStream::connect(address).await.is_err(), "nobody listens any more");
}

#[tokio::test]
async fn what_is_being_answered_at_the_stop_is_finished() {
    let (gate, waiting) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicUsize::new(0)));
    let scene = Scene::open(gated(&gate, &waiting), Limits::default()).await;
    let mut caller = scene.caller().await;
    let answer = tokio::spawn(async move { caller.get("/").await });
    until("the request to arrive", || waiting.load(Ordering::SeqCst) == 1).await;
    scene.drain.cancel();
    scene.stop.cancel();
    until("the server to listen no more", || {
        std::net::TcpStream::connect_timeout(&scene.address, Duration::from_secs(1)).is_err()
    })
    .await;
    assert!(!scene.server.is_finished());
    gate.add_permits(1);
    let answered = answer.await.unwrap().unwrap();
    assert_eq!((answered.status, answered.closes, answered.body.as_str()), (StatusCode::OK, true, "hello"));
    scene.ends().await;
}

#[tokio::test]
async fn who_has_connected_but_was_not_accepted_is_served_too() {
    let server = bind(hello(), Limits::default(), &mut Registry::default()).await;
    let mut callers = Vec::new();
    for _ in 0..20 {
        let mut stream = TcpStream::connect(server.address().unwrap()).await.unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nhost: test\r\n\r\n").await.unwrap();
        callers.push(stream);
    }
    let now = CancellationToken::new();
    now.cancel();
    server.serve(now.clone(), now).await;
    for mut caller in callers {
        let answer = String::from_utf8(rest(&mut caller).await.unwrap()).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains("connection: close\r\n"), "{answer}");
    }
}

#[tokio::test]
async fn who_does_not_speak_is_cut() {
    let limits = Limits { headers: SOON, handshake: SOON, ..Limits::default() };
    let scene = Scene::open(hello(), limits).await;
    let mut good = scene.caller().await;
    assert_eq!(good.get("/").await.unwrap().status, StatusCode::OK);

    let mut no_handshake = scene.tcp().await;
    assert_eq!(rest(&mut no_handshake).await.unwrap(), b"");
    assert_eq!(scene.refused("Handshake"), 1);
    let mut slow = scene.tls(&TLS13).await.unwrap();
    slow.write_all(b"GET / HTTP/1.1\r\nhost: te").await.unwrap();
    // Cut without the closing words of TLS: it is not a good end.
    assert_eq!(rest(&mut slow).await.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    assert_eq!(scene.refused("Headers"), 1);

    assert_eq!(good.get("/").await.unwrap().status, StatusCode::OK, "who has spoken may rest");
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused_whether_or_not_it_says_so() {
    let limits = Limits { body: 1_000, ..Limits::default() };
    let router = Router::new().route("/", post(async |body: Bytes| body.len().to_string()));
    let scene = Scene::open(router, limits).await;
    for (body, status, text) in [
        (full(&"x".repeat(1_000)), StatusCode::OK, "1000"),
        (full(&"x".repeat(1_001)), StatusCode::PAYLOAD_TOO_LARGE, "the body is larger than 1000 bytes\n"),
        (chunks(10, 100), StatusCode::OK, "1000"),
        (chunks(11, 100), StatusCode::PAYLOAD_TOO_LARGE, "the body is larger than 1000 bytes\n"),
    ] {
        let answered = scene.caller().await.post("/", body).await.unwrap();
        assert_eq!((answered.status, answered.body.as_str()), (status, text));
        assert_eq!(answered.closes, status != StatusCode::OK);
    }
    assert_eq!(scene.refused("Body"), 2);
}

#[tokio::test]
async fn more_requests_than_the_limit_are_told_to_come_back() {
    let (gate, waiting) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicUsize::new(0)));
    let scene = Scene::open(gated(&gate, &waiting), Limits { requests: 2, ..Limits::default() }).await;
    let mut patient = JoinSet::new();
    for _ in 0..2 {
        let mut caller = scene.caller().await;
        patient.spawn(async move { caller.get("/").await.unwrap().status });
    }
    until("both requests to arrive", || waiting.load(Ordering::SeqCst) == 2).await;
    let mut third = scene.caller().await;
    assert_eq!(third.get("/").await.unwrap().status, StatusCode::SERVICE_UNAVAILABLE);
    gate.add_permits(3);
    assert_eq!(patient.join_all().await, [StatusCode::OK; 2]);
    assert_eq!(third.get("/").await.unwrap().status, StatusCode::OK, "on the same connection, later");
    assert_eq!(scene.refused("Requests"), 1);
}

#[tokio::test]
async fn more_connections_than_the_limit_are_closed_at_once() {
    let scene = Scene::open(hello(), Limits { connections: 1, ..Limits::default() }).await;
    let mut first = scene.caller().await;
    assert_eq!(first.get("/").await.unwrap().status, StatusCode::OK);
    assert_eq!(rest(&mut scene.tcp().await).await.unwrap(), b"");
    assert_eq!(scene.refused("Connections"), 1);
    drop(first);
    let place = async {
        while scene.tls(&TLS13).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_secs(20), place).await.expect("the place is given to another");
}

#[tokio::test]
async fn a_request_ends_when_its_caller_no_longer_waits() {
    let (gate, waiting) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicUsize::new(0)));
    let router = gated(&gate, &waiting).route(
        "/left",
        get(async |Extension(deadline): Extension<Deadline>| deadline.remaining().as_secs().to_string()),
    );
    let scene = Scene::open(router, Limits { answer: Duration::from_secs(20), ..Limits::default() }).await;
    let mut caller = scene.caller().await;
    let answered = timeout(Duration::from_secs(10), caller.get("/?timeout=200ms")).await.expect("an answer").unwrap();
    assert_eq!((answered.status, answered.body.as_str()), (StatusCode::GATEWAY_TIMEOUT, "not answered in time\n"));
    assert_eq!(waiting.load(Ordering::SeqCst), 0, "the handler works no more");
    assert_eq!(scene.refused("Deadline"), 1);
    assert_eq!(caller.get("/left?timeout=5s").await.unwrap().body, "4");
    assert_eq!(caller.get("/left?timeout=90s").await.unwrap().body, "19");
}

#[tokio::test]
async fn a_certificate_is_replaced_under_open_connections() {
    let scene = Scene::open(hello(), Limits::default()).await;
    let mut old = scene.caller().await;
    for _ in 0..2 {
        let before = scene.caller().await.certificate;
        scene.certificate.replace(leaf_of(&scene.authority)).unwrap();
        let mut new = scene.caller().await;
        assert_ne!(new.certificate, before);
        assert_eq!(new.get("/").await.unwrap().body, "hello");
        let answered = old.get("/").await.unwrap();
        assert_eq!((answered.body.as_str(), answered.closes), ("hello", false));
    }
}

#[tokio::test]
async fn old_tls_is_refused() {
    let scene = Scene::open(hello(), Limits::default()).await;
    assert!(scene.tls(&TLS12).await.is_err());
    assert!(scene.tls(&TLS13).await.is_ok());
}

#[tokio::test]
async fn an_old_connection_is_closed_by_its_next_answer() {
    let scene = Scene::open(hello(), Limits { age: Duration::ZERO, ..Limits::default() }).await;
    assert!(scene.caller().await.get("/").await.unwrap().closes);
}

#[tokio::test]
async fn a_server_that_is_dropped_cuts_its_connections() {
    let (gate, waiting) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicUsize::new(0)));
    let scene = Scene::open(gated(&gate, &waiting), Limits::default()).await;
    let mut caller = scene.caller().await;
    let answer = tokio::spawn(async move { caller.get("/").await.map(drop) });
    until("the request to arrive", || waiting.load(Ordering::SeqCst) == 1).await;
    scene.server.abort();
    assert!(answer.await.unwrap().is_err());
    until("the handler to be gone", || waiting.load(Ordering::SeqCst) == 0).await;
}
