//! Downloads: one request over TLS, redirects included, to addresses that were checked, as a body that is read while it
//! comes.
//!
//! The address that was checked is the one that is connected to: a name is looked up once per request, so an answer that
//! changes in between changes nothing. Through a proxy the look-up is the proxy's, and the list of sources protects alone.

mod authorities;

use std::fs;
use std::io::{self, BufReader, Read, Write};
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;

use pillion_agent_api::{Source, Url};
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};

use crate::http::{Body, Framing, Head, read_head, read_head_with};

use super::address;
use super::failure::Failure;
use super::line::{Line, Patience};
use super::source::{Allowed, Place, allow};

const MOST_REDIRECTS: usize = 5;

/// Finds the addresses of a name.
pub(super) trait Resolver: Send + Sync {
    fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>>;
}

/// As the pod is configured.
#[derive(Debug)]
pub(super) struct SystemResolver;

impl Resolver for SystemResolver {
    fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        Ok((host, port).to_socket_addrs()?.collect())
    }
}

/// Gets what the sources allow.
pub(super) struct Fetcher<'a> {
    pub(super) sources: &'a [Source],
    pub(super) resolver: &'a dyn Resolver,
    pub(super) patience: Patience,
}

/// A file on its way.
pub(super) struct Incoming {
    pub(super) body: Body<BufReader<StreamOwned<ClientConnection, Line>>>,
    /// As the server says.
    pub(super) length: Option<u64>,
}

/// What a head says, as far as it matters here.
struct Answer {
    head: Head,
    location: Option<String>,
    encoding: Option<String>,
    stream: BufReader<StreamOwned<ClientConnection, Line>>,
}

impl Fetcher<'_> {
    /// Asks for a file, and follows redirects, each held against the sources anew.
    pub(super) fn get(&self, place: Place) -> Result<Incoming, Failure> {
        let mut allowed = allow(self.sources, place).map_err(Failure::refused)?;
        let first = allowed.source;
        for _ in 0..=MOST_REDIRECTS {
            // Credentials are for the source that was asked for, and go nowhere else.
            let authorization = std::ptr::eq(first, allowed.source).then_some(first.authorization_file.as_deref());
            let answer = self.ask(&allowed, authorization.flatten())?;
            let authority = allowed.place.authority();
            match answer.head.status {
                200 => return incoming(answer, &authority),
                301 | 302 | 303 | 307 | 308 => {
                    let location = answer.location.unwrap_or_default();
                    let next = allowed.place.join(&location).and_then(|place| allow(self.sources, place));
                    allowed = next.map_err(|why| Failure::unfit(format!("{authority} redirects: {why}")))?;
                }
                status @ (408 | 425 | 429 | 500..=599) => {
                    return Err(Failure::unreachable(format!("{authority} answers {status}")));
                }
                status => {
                    return Err(Failure::unfit(format!("{authority} answers {status}, and only 200 brings a file")));
                }
            }
        }
        Err(Failure::unfit(format!("more than {MOST_REDIRECTS} redirects")))
    }

    /// Gets a small text.
    pub(super) fn text(&self, place: Place, most: u64) -> Result<String, Failure> {
        let incoming = self.get(place)?;
        let mut text = String::new();
        let read = incoming.body.take(most + 1).read_to_string(&mut text);
        read.map_err(|error| Failure::unreachable(format!("the download broke off: {error}")))?;
        if text.len() as u64 > most { Err(Failure::unfit(format!("it has more than {most} bytes"))) } else { Ok(text) }
    }

    fn ask(&self, allowed: &Allowed<'_>, authorization_file: Option<&str>) -> Result<Answer, Failure> {
        let Allowed { place, source } = allowed;
        let authority = place.authority();
        let tls = authorities::client(source.ca_file.as_deref())?;
        let name = ServerName::try_from(place.host.clone())
            .map_err(|_| Failure::refused(format!("{} is not a name of a server", place.host)))?;
        let line = match &source.proxy {
            Some(proxy) => self.through_proxy(proxy, &authority),
            None => self.dial(place, source.allow_private),
        }?;
        let session = ClientConnection::new(Arc::new(tls), name).map_err(Failure::unreachable)?;
        let mut stream = BufReader::new(StreamOwned::new(session, line));
        let authorization = match authorization_file {
            Some(path) => format!("Authorization: {}\r\n", read_authorization(path)?),
            None => String::new(),
        };
        let request = format!(
            "GET {} HTTP/1.1\r\nHost: {authority}\r\n{authorization}Accept: */*\r\nAccept-Encoding: identity\r\n\
             User-Agent: pillion-agent/{}\r\nConnection: close\r\n\r\n",
            place.target(),
            env!("CARGO_PKG_VERSION")
        );
        let (mut location, mut encoding) = (None, None);
        let head = stream.get_mut().write_all(request.as_bytes()).and_then(|()| {
            read_head_with(&mut stream, |name, value| {
                if name.eq_ignore_ascii_case("location") {
                    location = Some(value.to_owned());
                } else if name.eq_ignore_ascii_case("content-encoding") && !value.eq_ignore_ascii_case("identity") {
                    encoding = Some(value.to_owned());
                }
            })
        });
        let head = head.map_err(|error| Failure::unreachable(format!("{authority} does not answer: {error}")))?;
        Ok(Answer { head, location, encoding, stream })
    }

    fn dial(&self, place: &Place, allow_private: bool) -> Result<Line, Failure> {
        let Place { host, port, .. } = place;
        let found = self.resolver.resolve(host, *port);
        let addresses = found.map_err(|error| Failure::unreachable(format!("cannot find {host}: {error}")))?;
        // One bad address among good ones is a name that somebody plays with.
        for address in &addresses {
            if let Some(why) = address::refusal(address.ip(), allow_private) {
                return Err(Failure::refused(format!("the address {} of {host} {why}", address.ip())));
            }
        }
        self.connect_to_one(&addresses, host)
    }

    fn connect_to_one(&self, addresses: &[SocketAddr], host: &str) -> Result<Line, Failure> {
        let mut failure = Failure::unreachable(format!("{host} has no address"));
        for address in addresses {
            match Line::connect(address, &self.patience) {
                Ok(line) => return Ok(line),
                Err(error) => failure = Failure::unreachable(format!("cannot connect to {host} at {address}: {error}")),
            }
        }
        Err(failure)
    }

    /// A connection to the host that a proxy makes for us.
    fn through_proxy(&self, proxy: &str, authority: &str) -> Result<Line, Failure> {
        let url = Url::parse(proxy).ok().filter(|url| url.scheme == "http");
        let url = url.ok_or_else(|| Failure::refused(format!("the proxy {proxy:?} is not http://host:port")))?;
        let found = self.resolver.resolve(url.host, url.port.unwrap_or(80));
        let addresses =
            found.map_err(|error| Failure::unreachable(format!("cannot find the proxy {proxy}: {error}")))?;
        let mut line = self.connect_to_one(&addresses, url.host)?;
        let request = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n");
        let head = line.write_all(request.as_bytes()).and_then(|()| {
            // Byte by byte: what comes after the head belongs to TLS.
            read_head(&mut BufReader::with_capacity(1, &mut line))
        });
        match head.map_err(|error| Failure::unreachable(format!("the proxy {proxy} does not answer: {error}")))?.status
        {
            200 => Ok(line),
            status => Err(Failure::unreachable(format!("the proxy {proxy} answers {status} to CONNECT {authority}"))),
        }
    }
}

fn incoming(answer: Answer, authority: &str) -> Result<Incoming, Failure> {
    if let Some(encoding) = answer.encoding {
        return Err(Failure::unfit(format!(
            "{authority} sends the file encoded as {encoding}, which nobody asked for"
        )));
    }
    let framing = answer.head.framing;
    let length = if let Framing::Length(length) = framing { Some(length) } else { None };
    Ok(Incoming { body: Body::new(answer.stream, framing), length })
}

fn read_authorization(path: &str) -> Result<String, Failure> {
    let text =
        fs::read_to_string(path).map_err(|error| Failure::unreachable(format!("cannot read {path}: {error}")))?;
    let value = text.trim();
    // A line break would end the header and begin another.
    if value.is_empty() || value.chars().any(char::is_control) {
        return Err(Failure::refused(format!("{path} is not the value of an Authorization header: write one line")));
    }
    Ok(value.to_owned())
}
