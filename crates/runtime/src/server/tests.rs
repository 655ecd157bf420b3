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
use crate::tls::{Authority, Clients, Leaf};

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

fn leaf_of(authority: &Authority) -> Leaf {
    authority.issue(&[NAME.to_owned()], Timestamp::now(), Duration::from_hours(1)).unwrap()
}

async fn bind(router: Router, limits: Limits, registry: &mut Registry) -> Server {
    let metrics = ServerMetrics::register(registry);
    Server::bind("test", (Ipv4Addr::LOCALHOST, 0).into(), router, limits, &metrics).await.unwrap()
}

impl Scene {
    async fn open(router: Router, limits: Limits) -> Self {
        Self::open_with(router, limits, |server| server).await
    }

    async fn open_with(router: Router, limits: Limits, change: impl FnOnce(Server) -> Server) -> Self {
        Self::start(router, limits, change, None).await
    }

    /// A server for clients with certificates.
    async fn open_for(router: Router, clients: Arc<Clients>) -> Self {
        Self::start(router, Limits::default(), |server| server, Some(clients)).await
    }

    async fn start(
        router: Router,
        limits: Limits,
        change: impl FnOnce(Server) -> Server,
        clients: Option<Arc<Clients>>,
    ) -> Self {
        let authority = Authority::generate("test", Timestamp::now(), Duration::from_hours(1)).unwrap();
        let certificate = ServingCertificate::new(leaf_of(&authority)).unwrap();
        let mut registry = Registry::default();
        let server = change(bind(router, limits, &mut registry).await).with_tls(&certificate, clients).unwrap();
        let address = server.address().unwrap();
        let (drain, stop) = (CancellationToken::new(), CancellationToken::new());
        let server = tokio::spawn(server.serve(drain.clone(), stop.clone()));
        Self { address, authority, certificate, registry, drain, stop, server }
    }

    async fn tcp(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    async fn tls(&self, version: &'static SupportedProtocolVersion) -> io::Result<TlsStream<TcpStream>> {
        self.tls_as(version, None).await
    }

    async fn tls_as(
        &self,
        version: &'static SupportedProtocolVersion,
        client: Option<Leaf>,
    ) -> io::Result<TlsStream<TcpStream>> {
        let mut roots = RootCertStore::empty();
        roots.add(self.authority.certificate().clone()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_protocol_versions(&[version])
            .unwrap()
            .with_root_certificates(roots);
        let config = match client {
            Some(leaf) => config.with_client_auth_cert(leaf.chain, leaf.key).unwrap(),
            None => config.with_no_client_auth(),
        };
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

    /// The answer to a request of a client with a certificate.
    async fn ask_as(&self, client: Option<Leaf>) -> io::Result<String> {
        let mut stream = self.tls_as(&TLS13, client).await?;
        stream.write_all(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await?;
        Ok(String::from_utf8(rest(&mut stream).await?).unwrap())
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
async fn more_requests_than_the_limit_wait_for_their_turn_and_are_not_rejected() {
    for limits in [Limits { requests: 2, ..Limits::default() }, Limits { peer_requests: 2, ..Limits::default() }] {
        let (gate, waiting) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicUsize::new(0)));
        let scene = Scene::open(gated(&gate, &waiting), limits).await;
        let mut patient = JoinSet::new();
        for _ in 0..5 {
            let mut caller = scene.caller().await;
            patient.spawn(async move { caller.get("/").await.unwrap().status });
        }
        until("two requests to arrive", || waiting.load(Ordering::SeqCst) == 2).await;
        let late = scene.caller().await.get("/?timeout=200ms").await.unwrap();
        assert_eq!((late.status, waiting.load(Ordering::SeqCst)), (StatusCode::GATEWAY_TIMEOUT, 2));
        gate.add_permits(5);
        assert_eq!(patient.join_all().await, [StatusCode::OK; 5]);
    }
}

/// A router whose only path is behind an entrance.
async fn guarded(limits: Limits) -> Scene {
    let router = Router::new().route("/inner", post(async |body: Bytes| body.len().to_string()));
    let entrance: Entrance = Arc::new(|uri| (uri.path() == "/secret").then_some(Entry { path: "/inner", body: 1_000 }));
    Scene::open_with(router, limits, |server| server.with_entrance(entrance)).await
}

#[tokio::test]
async fn attack_a_request_without_the_path_is_rejected_before_its_body_is_read() {
    let scene = guarded(Limits::default()).await;
    for path in ["/", "/inner", "/secret/", "/secre"] {
        // A megabyte is promised and never sent: whoever waits for it does not answer.
        let mut stream = scene.tls(&TLS13).await.unwrap();
        let head = format!("POST {path} HTTP/1.1\r\nhost: {NAME}\r\ncontent-length: 1000000\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let answer = String::from_utf8(rest(&mut stream).await.unwrap_or_default()).unwrap();
        assert!(answer.starts_with("HTTP/1.1 404 Not Found\r\n"), "{path}: {answer}");
    }
    assert_eq!(scene.refused("Path"), 4);
    let answered = scene.caller().await.post("/secret?timeout=3s", full("abc")).await.unwrap();
    assert_eq!((answered.status, answered.body.as_str()), (StatusCode::OK, "3"));
    let answered = scene.caller().await.post("/secret", full(&"x".repeat(1_001))).await.unwrap();
    assert_eq!(answered.body, "the body is larger than 1000 bytes\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn attack_silent_connections_do_not_keep_callers_out() {
    let scene = guarded(Limits { new_connections: 20, connections: 5, ..Limits::default() }).await;
    let mut known = scene.caller().await;
    assert_eq!(known.post("/secret", full("a")).await.unwrap().status, StatusCode::OK);
    let mut silent = Vec::new();
    for _ in 0..100 {
        silent.push(scene.tcp().await);
    }
    assert_eq!(known.post("/secret", full("a")).await.unwrap().status, StatusCode::OK, "a known connection goes on");
    assert_eq!(
        scene.caller().await.post("/secret", full("a")).await.unwrap().status,
        StatusCode::OK,
        "a new one comes in"
    );
    until("the silent ones to make room", || scene.refused("Connections") >= 80).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn attack_slow_bodies_keep_nobody_from_an_answer() {
    let scene = guarded(Limits { requests: 1, peer_requests: 1, ..Limits::default() }).await;
    let mut slow = Vec::new();
    for _ in 0..50 {
        let mut stream = scene.tls(&TLS13).await.unwrap();
        let head = format!("POST /secret HTTP/1.1\r\nhost: {NAME}\r\ncontent-length: 1000\r\n\r\nx");
        stream.write_all(head.as_bytes()).await.unwrap();
        slow.push(stream);
    }
    for _ in 0..10 {
        assert_eq!(scene.caller().await.post("/secret?timeout=3s", full("a")).await.unwrap().status, StatusCode::OK);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_wait_for_room() {
    let (gate, waiting) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicUsize::new(0)));
    let router = {
        let (gate, waiting) = (Arc::clone(&gate), Arc::clone(&waiting));
        Router::new().route(
            "/",
            post(async move || {
                let _waits = Waits::new(&waiting);
                gate.acquire().await.unwrap().forget();
            }),
        )
    };
    let scene = Arc::new(Scene::open(router, Limits { small_bodies: 100 << 10, ..Limits::default() }).await);
    let mut callers = JoinSet::new();
    for _ in 0..4 {
        let scene = Arc::clone(&scene);
        callers.spawn(async move { scene.caller().await.post("/", full(&"x".repeat(50 << 10))).await.unwrap().status });
    }
    until("two bodies to be read", || waiting.load(Ordering::SeqCst) == 2).await;
    // A small body needs room, too.
    let small = scene.caller().await.post("/?timeout=200ms", full("x")).await.unwrap();
    assert_eq!((small.status, waiting.load(Ordering::SeqCst)), (StatusCode::GATEWAY_TIMEOUT, 2));
    gate.add_permits(4);
    assert_eq!(callers.join_all().await, [StatusCode::OK; 4]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_connection_that_rested_longest_is_closed_for_one_more() {
    let scene = Scene::open(hello(), Limits { connections: 2, ..Limits::default() }).await;
    let mut callers = Vec::new();
    for _ in 0..3 {
        let mut caller = scene.caller().await;
        assert_eq!(caller.get("/").await.unwrap().status, StatusCode::OK);
        callers.push(caller);
    }
    until("the first connection to be closed", || callers[0].requests.is_closed()).await;
    for caller in &mut callers[1..] {
        assert_eq!(caller.get("/").await.unwrap().status, StatusCode::OK);
    }
}

#[tokio::test]
async fn attack_a_client_without_the_certificate_is_not_served() {
    let clients = Authority::generate("clients", Timestamp::now(), Duration::from_hours(1)).unwrap();
    let others = Authority::generate("clients", Timestamp::now(), Duration::from_hours(1)).unwrap();
    let wanted = Clients::new(clients.certificate_pem(), vec!["api-server".to_owned()]).unwrap();
    let scene = Scene::open_for(hello(), Arc::new(wanted)).await;
    let certificate_of = |authority: &Authority, name: &str| {
        authority.issue_to_client(name, Timestamp::now(), Duration::from_hours(1)).unwrap()
    };
    for (client, is_served) in [
        (Some(certificate_of(&clients, "api-server")), true),
        (Some(certificate_of(&clients, "somebody")), false),
        (Some(certificate_of(&others, "api-server")), false),
        (None, false),
    ] {
        let answered = scene.ask_as(client).await;
        assert_eq!(answered.is_ok_and(|answer| answer.starts_with("HTTP/1.1 200 OK")), is_served);
    }
    until("all of them to be counted", || (scene.refused("Client"), scene.refused("Handshake")) == (1, 2)).await;
    let every = Clients::new(clients.certificate_pem(), Vec::new()).unwrap();
    let scene = Scene::open_for(hello(), Arc::new(every)).await;
    assert!(scene.ask_as(Some(certificate_of(&clients, "somebody"))).await.is_ok());
    for wrong in ["", "no certificate"] {
        assert!(Clients::new(wrong, Vec::new()).is_err(), "{wrong}");
    }
}

#[test]
fn a_server_on_its_own_thread_answers_while_others_are_busy() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let port = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
        let metrics = ServerMetrics::register(&mut Registry::default());
        let (drain, stop) = (CancellationToken::new(), CancellationToken::new());
        let ends = (drain, stop.clone());
        let served = serve_apart("apart", port, hello(), Limits::of_admin(), &metrics, ends).unwrap();
        // This thread waits for the answer without letting any task of its runtime go on.
        let answer = std::thread::spawn(move || {
            use std::io::{Read as _, Write as _};
            let mut stream = std::net::TcpStream::connect(port).unwrap();
            stream.write_all(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer
        });
        assert!(answer.join().unwrap().ends_with("hello"));
        stop.cancel();
        timeout(Duration::from_secs(20), served).await.expect("the server ends");
        assert!(std::net::TcpStream::connect(port).is_err());
    });
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
