//! A small client for the API server: one connection, one request, an answer that is read as it comes.
//!
//! It does what a pod may do with a token of its own, and no more: no pool, no redirect, no proxy. It blocks; who
//! must not wait has a thread for it.

mod body;

use std::env;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use rustix::net::sockopt::{set_socket_keepalive, set_tcp_keepcnt, set_tcp_keepidle, set_tcp_keepintvl};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use self::body::{Body, Framing};

/// A connection that is silent for so long is asked by the kernel whether it still is one; we stay asleep.
const ASK_AFTER: Duration = Duration::from_secs(30);
const ASK_AGAIN: Duration = Duration::from_secs(10);
const ASK_TIMES: u32 = 3;
/// More than any head of the API server.
const MOST_HEAD_BYTES: u64 = 64 * 1024;

/// Where the API server is, and the folder with the token, its authority and the namespace.
#[derive(Debug)]
pub struct ApiServer {
    host: String,
    port: u16,
    token_dir: PathBuf,
}

/// How long to wait.
#[derive(Debug)]
pub struct Patience {
    /// For each step until the answer begins.
    pub step: Duration,
    /// For the next bytes of its body; without a limit for one that comes as things happen.
    pub silence: Option<Duration>,
}

type Connection = BufReader<StreamOwned<ClientConnection, TcpStream>>;

impl ApiServer {
    /// As Kubernetes tells every container in its environment.
    pub fn of_environment(token_dir: &Path) -> anyhow::Result<Self> {
        let host =
            env::var("KUBERNETES_SERVICE_HOST").context("KUBERNETES_SERVICE_HOST does not name the API server")?;
        let port = env::var("KUBERNETES_SERVICE_PORT").context("KUBERNETES_SERVICE_PORT does not name a port")?;
        let port = port.parse().with_context(|| format!("KUBERNETES_SERVICE_PORT={port} is not a port"))?;
        Ok(Self { host, port, token_dir: token_dir.to_owned() })
    }

    /// The namespace of this pod.
    pub fn namespace(&self) -> anyhow::Result<String> {
        self.read("namespace")
    }

    /// Asks for a path, and returns the body of the answer.
    pub fn get(&self, path: &str, patience: &Patience) -> anyhow::Result<impl Read + use<>> {
        let mut connection = self.connect(patience.step)?;
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        // Tokens are renewed while we run, so it is read for each request.
        let token = self.read("token")?;
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {host}:{}\r\nAuthorization: Bearer {token}\r\nAccept: application/json\r\n\
             User-Agent: pillion-agent/{}\r\nConnection: close\r\n\r\n",
            self.port,
            env!("CARGO_PKG_VERSION")
        );
        connection.get_mut().write_all(request.as_bytes()).context("the API server does not take the request")?;
        let (status, framing) = read_head(&mut connection).context("the API server does not answer")?;
        match status {
            200 => {}
            403 => bail!("the API server answers 403: allow the pod's service account to watch pods in its namespace"),
            _ => bail!("the API server answers {status}"),
        }
        connection.get_ref().sock.set_read_timeout(patience.silence)?;
        Ok(Body::new(connection, framing))
    }

    fn connect(&self, patience: Duration) -> anyhow::Result<Connection> {
        let Self { host, port, .. } = self;
        let address = (host.as_str(), *port)
            .to_socket_addrs()
            .with_context(|| format!("cannot find {host}"))?
            .next()
            .with_context(|| format!("{host} has no address"))?;
        let stream = TcpStream::connect_timeout(&address, patience)
            .with_context(|| format!("cannot connect to the API server {address}"))?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        set_socket_keepalive(&stream, true)?;
        set_tcp_keepidle(&stream, ASK_AFTER)?;
        set_tcp_keepintvl(&stream, ASK_AGAIN)?;
        set_tcp_keepcnt(&stream, ASK_TIMES)?;
        let name = ServerName::try_from(host.clone()).with_context(|| format!("{host} is not a name of a server"))?;
        let session = ClientConnection::new(Arc::new(self.tls()?), name)?;
        Ok(BufReader::new(StreamOwned::new(session, stream)))
    }

    fn tls(&self) -> anyhow::Result<ClientConfig> {
        let path = self.token_dir.join("ca.crt");
        let mut roots = RootCertStore::empty();
        let certificates = CertificateDer::pem_file_iter(&path).map_err(|error| unreadable(&path, error))?;
        for certificate in certificates {
            roots.add(certificate.map_err(|error| unreadable(&path, error))?)?;
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(config)
    }

    fn read(&self, name: &str) -> anyhow::Result<String> {
        let path = self.token_dir.join(name);
        let text = fs::read_to_string(&path).map_err(|error| unreadable(&path, error))?;
        Ok(text.trim().to_owned())
    }
}

fn unreadable(path: &Path, error: impl Into<anyhow::Error>) -> anyhow::Error {
    error.into().context(format!("cannot read {}", path.display()))
}

/// The status, and how the end of the body is told.
fn read_head(connection: &mut impl BufRead) -> io::Result<(u16, Framing)> {
    let mut head = connection.take(MOST_HEAD_BYTES);
    let mut line = String::new();
    let mut next = |line: &mut String| {
        line.clear();
        head.read_line(line)?;
        if line.ends_with('\n') { Ok(()) } else { Err(io::Error::from(io::ErrorKind::UnexpectedEof)) }
    };
    next(&mut line)?;
    let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.ok_or_else(|| io::Error::other(format!("{:?} is not the begin of HTTP", line.trim_end())))?;
    let mut framing = Framing::UntilClosed;
    loop {
        next(&mut line)?;
        if line.trim_end().is_empty() {
            return Ok((status, framing));
        }
        let (name, value) = line.split_once(':').unwrap_or_default();
        if name.eq_ignore_ascii_case("transfer-encoding") && value.trim().eq_ignore_ascii_case("chunked") {
            framing = Framing::Chunked;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(text: &str) -> Result<(u16, Framing), String> {
        read_head(&mut text.as_bytes()).map_err(|error| error.to_string())
    }

    #[test]
    fn status_and_framing_are_read_from_a_head() {
        assert_eq!(head("HTTP/1.1 200 OK\r\nA: b\r\n\r\n{}"), Ok((200, Framing::UntilClosed)));
        assert_eq!(head("HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n"), Ok((200, Framing::Chunked)));
        assert_eq!(head("HTTP/1.1 403 Forbidden\r\n\r\n"), Ok((403, Framing::UntilClosed)));
    }

    #[test]
    fn what_is_no_head_is_refused() {
        assert_eq!(head("SSH-2.0\r\n\r\n"), Err("\"SSH-2.0\" is not the begin of HTTP".to_owned()));
        assert_eq!(head("HTTP/1.1 200 OK\r\nA: b\r\n"), Err("unexpected end of file".to_owned()));
        let long = format!("HTTP/1.1 200 OK\r\n{}\r\n\r\n", "a".repeat(100_000));
        assert_eq!(head(&long), Err("unexpected end of file".to_owned()));
    }
}
