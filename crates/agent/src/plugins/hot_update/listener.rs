//! The port, where one is configured: the proposal's `POST /hot-update`, over TLS, from callers the API server vouches for.
//!
//! A caller is answered when the app has loaded the file, or when it is known that it will not: 200 means loaded. Four
//! connections at a time, small requests, and ten seconds to make one.

mod form;
mod token;

use std::env;
use std::io::{self, BufReader, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::Context as _;
use pillion_agent_api::{Listener, Wanted};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::http::{Request, read_body, read_request};
use crate::plugin::Context;
use crate::stop::Stop;
use crate::talk::tell;

use self::token::{ApiServerCheck, TokenCheck};
use super::desk::{Desk, Order};
use super::failure::Kind;
use super::line::{Line, Patience};

const PATH: &str = "/hot-update";
const MOST_CONNECTIONS: usize = 4;
/// To make a request, and to take its answer.
const FOR_A_REQUEST: Duration = Duration::from_secs(10);
/// Where handshakes are made.
const STACK: usize = 256 * 1024;

/// A port that is open; it is closed when this is dropped.
pub(super) struct Listening {
    address: SocketAddr,
    is_closed: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// What every connection needs.
struct Counter {
    listener: Listener,
    tokens: Box<dyn TokenCheck>,
    desk: Desk,
    order_tx: SyncSender<Order>,
    stop: Stop,
    connections: AtomicUsize,
}

/// What a caller is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Reply {
    status: u16,
    text: String,
}

impl Reply {
    fn new(status: u16, text: impl Into<String>) -> Self {
        Self { status, text: text.into() }
    }
}

/// Opens the port on the pod's address.
pub(super) fn start(
    listener: &Listener,
    context: &Context,
    desk: Desk,
    order_tx: SyncSender<Order>,
) -> anyhow::Result<Listening> {
    let api_server = context.api_server.clone();
    let api_server = api_server.context("the listener cannot check tokens without an API server: leave it out")?;
    let address = SocketAddr::new(own_address(), listener.port);
    // Files that cannot be read are told now, not to the first caller.
    tls(listener)?;
    open(listener, address, Box::new(ApiServerCheck(api_server)), (desk, order_tx, context.stop.clone()))
}

fn open(
    listener: &Listener,
    address: SocketAddr,
    tokens: Box<dyn TokenCheck>,
    (desk, order_tx, stop): (Desk, SyncSender<Order>, Stop),
) -> anyhow::Result<Listening> {
    let socket = TcpListener::bind(address).with_context(|| format!("cannot listen on {address}"))?;
    let address = socket.local_addr()?;
    let counter =
        Counter { listener: listener.clone(), tokens, desk, order_tx, stop, connections: AtomicUsize::new(0) };
    let is_closed = Arc::new(AtomicBool::new(false));
    let thread = thread::Builder::new().name("listener".to_owned()).stack_size(STACK).spawn({
        let is_closed = Arc::clone(&is_closed);
        move || accept(&socket, &Arc::new(counter), &is_closed)
    })?;
    Ok(Listening { address, is_closed, thread: Some(thread) })
}

/// The address of the pod: where a packet to the API server would come from. Nothing is sent.
fn own_address() -> IpAddr {
    let find = || {
        let host: IpAddr = env::var("KUBERNETES_SERVICE_HOST").ok()?.parse().ok()?;
        let any = if host.is_ipv6() { "[::]:0" } else { "0.0.0.0:0" };
        let socket = UdpSocket::bind(any).ok()?;
        socket.connect((host, 443)).ok()?;
        Some(socket.local_addr().ok()?.ip())
    };
    find().unwrap_or(Ipv4Addr::LOCALHOST.into())
}

fn accept(socket: &TcpListener, counter: &Arc<Counter>, is_closed: &AtomicBool) {
    while !is_closed.load(Ordering::Acquire) {
        let Ok((stream, _)) = socket.accept() else {
            // Out of descriptors, say: without a pause this would burn the CPU.
            counter.stop.wait(Duration::from_millis(100));
            continue;
        };
        if is_closed.load(Ordering::Acquire) || counter.connections.load(Ordering::Acquire) >= MOST_CONNECTIONS {
            continue;
        }
        counter.connections.fetch_add(1, Ordering::AcqRel);
        let started = thread::Builder::new().name("request".to_owned()).stack_size(STACK).spawn({
            let counter = Arc::clone(counter);
            move || {
                // A caller that breaks off is no news, and could fill the log.
                if let Err(error) = counter.attend(stream)
                    && !error.is::<io::Error>()
                {
                    tell(format_args!("hot_update: a request broke off: {error:#}"));
                }
                counter.connections.fetch_sub(1, Ordering::AcqRel);
            }
        });
        if started.is_err() {
            counter.connections.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

impl Counter {
    fn attend(&self, stream: TcpStream) -> anyhow::Result<()> {
        let patience = || Patience::new(FOR_A_REQUEST, FOR_A_REQUEST, FOR_A_REQUEST, &self.stop);
        // Read for each connection: certificates are renewed while we run.
        let session = ServerConnection::new(Arc::new(tls(&self.listener)?))?;
        let mut stream = BufReader::new(StreamOwned::new(session, Line::new(stream, patience())));
        let reply = match read_request(&mut stream) {
            Ok(request) => self.answer(&request, || read_body(&mut stream, &request)),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Reply::new(400, error.to_string()),
            Err(error) => return Err(error.into()),
        };
        let Reply { status, text } = reply;
        let stream = stream.get_mut();
        stream.sock.renew(patience());
        write!(
            stream,
            "HTTP/1.1 {status} {}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n{}Connection: close\r\n\r\n{text}\n",
            phrase(status),
            text.len() + 1,
            extra_header(status)
        )?;
        stream.conn.send_close_notify();
        stream.flush()?;
        Ok(())
    }

    fn answer(&self, request: &Request, body: impl FnOnce() -> io::Result<Vec<u8>>) -> Reply {
        if request.path != PATH {
            return Reply::new(404, format!("there is only {PATH}"));
        }
        if request.method != "POST" {
            return Reply::new(405, "only POST is taken");
        }
        if let Err(refusal) = self.admit(request.token.as_deref()) {
            return refusal;
        }
        let wanted = match body().map_err(|error| error.to_string()).and_then(|body| form::wanted(request, &body)) {
            Ok(wanted) => wanted,
            Err(why) => return Reply::new(400, why),
        };
        self.order(wanted)
    }

    /// Whether the caller may ask.
    fn admit(&self, token: Option<&str>) -> Result<(), Reply> {
        let Listener { audience, users, .. } = &self.listener;
        let Some(token) = token else {
            return Err(Reply::new(401, format!("send a bearer token for the audience {audience}")));
        };
        match self.tokens.user_of(token, audience) {
            Ok(Some(user)) if users.contains(&user) => Ok(()),
            Ok(Some(user)) => Err(Reply::new(403, format!("{user} is not listed in users of the listener"))),
            Ok(None) => Err(Reply::new(401, format!("the token is not valid for the audience {audience}"))),
            Err(error) => {
                tell(format_args!("hot_update: cannot check a token: {error:#}"));
                Err(Reply::new(503, "the token cannot be checked now"))
            }
        }
    }

    fn order(&self, wanted: Wanted) -> Reply {
        let version = wanted.version.clone();
        let Some(seat) = self.desk.take() else { return Reply::new(409, "another update is on its way") };
        let (outcome_tx, outcome_rx) = channel();
        let ended = || Reply::new(503, "the agent is told to end");
        if self.order_tx.send(Order { wanted, seat, outcome_tx }).is_err() {
            return ended();
        }
        match outcome_rx.recv() {
            Ok(Ok(message)) => Reply::new(200, format!("{version}: {message}")),
            Ok(Err(failure)) => Reply::new(status_of(failure.kind), failure.message),
            Err(_) => ended(),
        }
    }
}

fn status_of(kind: Kind) -> u16 {
    match kind {
        Kind::Refused => 422,
        Kind::Busy => 409,
        Kind::Unreachable | Kind::Unfit => 502,
        Kind::NotLoaded => 500,
        Kind::Disk => 507,
        Kind::Stopped => 503,
    }
}

fn phrase(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        409 => "Conflict",
        422 => "Unprocessable Content",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        507 => "Insufficient Storage",
        _ => "Internal Server Error",
    }
}

fn extra_header(status: u16) -> &'static str {
    match status {
        401 => "WWW-Authenticate: Bearer\r\n",
        405 => "Allow: POST\r\n",
        _ => "",
    }
}

fn tls(listener: &Listener) -> anyhow::Result<ServerConfig> {
    let Listener { certificate, key, .. } = listener;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect);
    let chain = chain.with_context(|| format!("cannot read {certificate}"))?;
    let key = PrivateKeyDer::from_pem_file(key).with_context(|| format!("cannot read {key}"))?;
    ServerConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .context("key and certificate of the listener do not belong together")
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.is_closed.store(true, Ordering::Release);
        // Wakes the thread up, so that the port is free when this returns.
        let woken = TcpStream::connect_timeout(&self.address, Duration::from_secs(1)).is_ok();
        if let Some(thread) = self.thread.take().filter(|_| woken) {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests;
