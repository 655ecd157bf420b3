//! The port as callers see it, with a worker that answers as a test says.

use std::io::Read;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Instant;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use super::super::failure::Failure;
use super::super::rig::{DEADLINE, FileServer, HOST, until};
use super::*;

const USER: &str = "system:serviceaccount:games:operator";

/// Tokens are the names of their users; for another audience, or none, with a word before.
struct Tokens(Arc<Mutex<Vec<String>>>);

impl TokenCheck for Tokens {
    fn user_of(&self, token: &str, audience: &str) -> anyhow::Result<Option<String>> {
        self.0.lock().unwrap().push(format!("{token} for {audience}"));
        match token {
            "none" => Ok(None),
            "broken" => anyhow::bail!("the API server is away"),
            user => Ok(Some(user.to_owned())),
        }
    }
}

struct Port {
    listening: Option<Listening>,
    address: SocketAddr,
    order_rx: Mutex<Receiver<Order>>,
    checked: Arc<Mutex<Vec<String>>>,
    // Only its certificate is used.
    files: FileServer,
    client: Arc<ClientConfig>,
}

impl Port {
    fn open() -> Self {
        let files = FileServer::with_files(&[]);
        let listener = Listener {
            port: 0,
            certificate: files.ca_file(),
            key: files.key_file(),
            audience: "hot-update".to_owned(),
            users: vec![USER.to_owned()],
        };
        let (order_tx, order_rx) = sync_channel(1);
        let checked = Arc::default();
        let tokens = Box::new(Tokens(Arc::clone(&checked)));
        let shared = (Desk::default(), order_tx, Stop::default());
        let listening = open(&listener, "127.0.0.1:0".parse().unwrap(), tokens, shared).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(files.ca_file()).unwrap()).unwrap();
        let client = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        Self {
            address: listening.address,
            listening: Some(listening),
            order_rx: Mutex::new(order_rx),
            checked,
            files,
            client: Arc::new(client),
        }
    }

    fn connect(&self) -> StreamOwned<ClientConnection, TcpStream> {
        let name = ServerName::try_from(HOST).unwrap();
        let session = ClientConnection::new(Arc::clone(&self.client), name).unwrap();
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        StreamOwned::new(session, stream)
    }

    /// The status and the text of the answer.
    fn send(&self, request: &str) -> (u16, String) {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, text) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), text.trim_end().to_owned())
    }

    fn ask(&self, method: &str, target: &str, token: &str) -> (u16, String) {
        self.send(&format!("{method} {target} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n"))
    }

    /// Asks for a good update, and has it end so.
    fn update(&self, outcome: Result<String, Failure>) -> (u16, String) {
        thread::scope(|scope| {
            let asking = scope.spawn(|| self.ask("POST", "/hot-update?version=v1&url=https://a/b", USER));
            let order = self.order_rx.lock().unwrap().recv_timeout(DEADLINE).unwrap();
            assert_eq!((order.wanted.version.as_str(), order.wanted.url.as_str()), ("v1", "https://a/b"));
            order.outcome_tx.send(outcome).unwrap();
            drop(order);
            asking.join().unwrap()
        })
    }
}

#[test]
fn callers_are_known_and_listed() {
    let port = Port::open();
    let target = "/hot-update?version=v1&url=https://a/b";
    assert_eq!(
        port.send(&format!("POST {target} HTTP/1.1\r\n\r\n")),
        (401, "send a bearer token for the audience hot-update".to_owned())
    );
    assert_eq!(
        port.ask("POST", target, "none"),
        (401, "the token is not valid for the audience hot-update".to_owned())
    );
    assert_eq!(
        port.ask("POST", target, "system:serviceaccount:games:other"),
        (403, "system:serviceaccount:games:other is not listed in users of the listener".to_owned())
    );
    assert_eq!(port.ask("POST", target, "broken"), (503, "the token cannot be checked now".to_owned()));
    let checked = port.checked.lock().unwrap().clone();
    assert_eq!(checked[0], "none for hot-update");
    assert!(port.order_rx.lock().unwrap().try_recv().is_err());
}

#[test]
fn only_the_proposals_request_is_taken() {
    let port = Port::open();
    assert_eq!(port.ask("GET", "/hot-update", USER), (405, "only POST is taken".to_owned()));
    assert_eq!(port.ask("POST", "/metrics", USER), (404, "there is only /hot-update".to_owned()));
    let missing = (400, "url is missing: send version, url and sha256".to_owned());
    assert_eq!(port.ask("POST", "/hot-update?version=v1", USER), missing);
    assert_eq!(port.send("nonsense\r\n\r\n"), (400, "this is no request of HTTP/1.1".to_owned()));
    // Neither had a token to check.
    assert_eq!(port.checked.lock().unwrap().len(), 1);
}

#[test]
fn b11_a_caller_is_answered_200_only_when_the_app_has_loaded_the_file() {
    let port = Port::open();
    assert_eq!(port.update(Ok("loaded".to_owned())), (200, "v1: loaded".to_owned()));
    for (kind, status) in [
        (Kind::NotLoaded, 500),
        (Kind::Unreachable, 502),
        (Kind::Unfit, 502),
        (Kind::Refused, 422),
        (Kind::Busy, 409),
        (Kind::Disk, 507),
        (Kind::Stopped, 503),
    ] {
        assert_eq!(port.update(Err(Failure::new(kind, "why"))), (status, "why".to_owned()));
    }
}

#[test]
fn attack_two_requests_at_once() {
    let port = Port::open();
    thread::scope(|scope| {
        let first = scope.spawn(|| port.ask("POST", "/hot-update?version=v1&url=https://a/b", USER));
        let order = port.order_rx.lock().unwrap().recv_timeout(DEADLINE).unwrap();
        let second = port.ask("POST", "/hot-update?version=v2&url=https://a/b", USER);
        assert_eq!(second, (409, "another update is on its way".to_owned()));
        order.outcome_tx.send(Ok("loaded".to_owned())).unwrap();
        assert_eq!(first.join().unwrap().0, 200);
    });
}

#[test]
fn attack_more_connections_than_there_is_room_for() {
    let port = Port::open();
    // They never say a word.
    let mut silent: Vec<TcpStream> = (0..MOST_CONNECTIONS).map(|_| TcpStream::connect(port.address).unwrap()).collect();
    let began = Instant::now();
    let mut fifth = TcpStream::connect(port.address).unwrap();
    fifth.set_read_timeout(Some(DEADLINE)).unwrap();
    assert_eq!(fifth.read(&mut [0; 1]).unwrap(), 0, "the fifth is closed");
    assert!(began.elapsed() < FOR_A_REQUEST / 2, "and not only when its time is over");
    // A place that is free again is given again.
    silent.clear();
    let request = "GET /hot-update HTTP/1.1\r\n\r\n";
    until("there is room again", || {
        let mut stream = port.connect();
        let mut answer = String::new();
        stream
            .write_all(request.as_bytes())
            .and_then(|()| stream.read_to_string(&mut answer))
            .is_ok_and(|_| answer.starts_with("HTTP/1.1 405 "))
    });
}

#[test]
fn the_port_is_free_when_it_is_closed() {
    let mut port = Port::open();
    drop(port.listening.take());
    TcpListener::bind(port.address).unwrap();
    assert_eq!(port.files.requests(), 0);
}
