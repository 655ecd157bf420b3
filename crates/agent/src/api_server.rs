//! A small client for the API server: one connection, one request, an answer that is read as it comes.
//!
//! It does what a pod may do with a token of its own, and no more: no pool, no redirect, no proxy. It blocks; who
//! must not wait has a thread for it. No connection is kept: a new one takes 2 ms of CPU, and with one look at the pod a
//! minute that is less than what a connection that is kept takes in memory.

use std::env;
use std::fs;
use std::io::{BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use rustix::net::sockopt::{set_socket_keepalive, set_tcp_keepcnt, set_tcp_keepidle, set_tcp_keepintvl};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde::Deserialize;
use serde_json::Value;

use crate::http::{Body, read_head};

/// A connection that is silent for so long is asked by the kernel whether it still is one; we stay asleep.
const ASK_AFTER: Duration = Duration::from_secs(30);
const ASK_AGAIN: Duration = Duration::from_secs(10);
const ASK_TIMES: u32 = 3;
/// More than any object that can be stored.
const MOST_ANSWER_BYTES: u64 = 4 * 1024 * 1024;
/// More than any refusal says.
const MOST_REFUSAL_BYTES: u64 = 64 * 1024;
/// For requests whose answer comes at once.
const FOR_ONE_ANSWER: Patience = Patience { step: Duration::from_secs(5), silence: Some(Duration::from_secs(5)) };

/// Why there is no answer to work with.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// The API server said no.
    #[error("the API server answers {status}{}{message}", if message.is_empty() { "" } else { ": " })]
    Refused {
        /// Such as 403 where a right is missing, 404, 409 where somebody else was faster, 422 for what is not valid.
        status: u16,
        /// What it said about it; empty if nothing.
        message: String,
    },
    /// It was not reached, or broke off.
    #[error(transparent)]
    Unreachable(#[from] anyhow::Error),
}

impl ApiError {
    /// The status of a refusal.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { status, .. } => Some(*status),
            Self::Unreachable(_) => None,
        }
    }
}

/// How a patch is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchKind {
    /// Maps are merged, lists replaced, `null` removes.
    Merge,
    /// Lists of core types are merged too, by the key their type names; for conditions of a pod that is `type`.
    StrategicMerge,
}

impl PatchKind {
    fn content_type(self) -> &'static str {
        match self {
            Self::Merge => "application/merge-patch+json",
            Self::StrategicMerge => "application/strategic-merge-patch+json",
        }
    }
}

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
    pub fn get(&self, path: &str, patience: &Patience) -> Result<impl Read + use<>, ApiError> {
        self.ask("GET", path, None, patience)
    }

    /// Patches an object, and returns the body of the answer, which is the object as it is then.
    pub fn patch(&self, path: &str, kind: PatchKind, patch: &Value) -> Result<impl Read + use<>, ApiError> {
        let content = Some((kind.content_type(), patch.to_string()));
        Ok(self.ask("PATCH", path, content, &FOR_ONE_ANSWER)?.take(MOST_ANSWER_BYTES))
    }

    /// Creates an object, and returns it as the API server has made it.
    pub fn create(&self, path: &str, object: &Value) -> Result<Value, ApiError> {
        let content = Some(("application/json", object.to_string()));
        let body = self.ask("POST", path, content, &FOR_ONE_ANSWER)?;
        let made = serde_json::from_reader(body.take(MOST_ANSWER_BYTES));
        Ok(made.context("the API server sends something unexpected")?)
    }

    fn ask(
        &self,
        method: &str,
        path: &str,
        content: Option<(&str, String)>,
        patience: &Patience,
    ) -> Result<Body<Connection>, ApiError> {
        let mut connection = self.connect(patience.step)?;
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        // Tokens are renewed while we run, so it is read for each request.
        let token = self.read("token")?;
        let (described, content) = match content {
            None => (String::new(), String::new()),
            Some((kind, content)) => {
                (format!("Content-Type: {kind}\r\nContent-Length: {}\r\n", content.len()), content)
            }
        };
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}:{}\r\nAuthorization: Bearer {token}\r\n\
             Accept: application/json\r\nUser-Agent: pillion-agent/{}\r\n{described}Connection: close\r\n\r\n{content}",
            self.port,
            env!("CARGO_PKG_VERSION")
        );
        connection.get_mut().write_all(request.as_bytes()).context("the API server does not take the request")?;
        let head = read_head(&mut connection).context("the API server does not answer")?;
        connection.get_ref().sock.set_read_timeout(patience.silence).context("cannot set a timeout")?;
        let body = Body::new(connection, head.framing);
        match head.status {
            200..=299 => Ok(body),
            status => Err(ApiError::Refused { status, message: message_of(body) }),
        }
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

/// What a refusal says; nothing if it does not come as the API server sends it.
fn message_of(body: impl Read) -> String {
    #[derive(Deserialize)]
    struct Status {
        #[serde(default)]
        message: String,
    }
    serde_json::from_reader(body.take(MOST_REFUSAL_BYTES)).map(|status: Status| status.message).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_told_with_the_servers_own_words() {
        let told = |body: &str| ApiError::Refused { status: 422, message: message_of(body.as_bytes()) }.to_string();
        assert_eq!(told(r#"{"kind":"Status","message":"no"}"#), "the API server answers 422: no");
        assert_eq!(told(r#"{"kind":"Status"}"#), "the API server answers 422");
        assert_eq!(told("<html>"), "the API server answers 422");
    }
}
