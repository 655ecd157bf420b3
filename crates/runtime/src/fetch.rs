//! Reads a page of a server that is not the API server, such as a kubelet: one request, one connection, within limits.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http::header::{AUTHORIZATION, HOST, USER_AGENT};
use http::{HeaderValue, Request, StatusCode};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{ClientConfig, DigitallySignedStruct, Error as TlsError, RootCertStore, SignatureScheme};

/// Whom to believe.
#[derive(Clone, Debug)]
pub enum Trust {
    /// Servers with a certificate of these authorities, given as PEM.
    Authorities(String),
    /// Every server.
    Anybody,
}

/// Reads pages by HTTPS. Clones are cheap.
#[derive(Clone)]
pub struct Fetcher {
    connector: TlsConnector,
    agent: HeaderValue,
    patience: Duration,
    most_bytes: usize,
}

/// Why a page was not read.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The authorities cannot be used.
    #[error("cannot use the authorities: {0}")]
    Authorities(String),
    /// The token or the user agent cannot be sent.
    #[error("the {0} has characters that a header cannot carry")]
    Header(&'static str),
    /// It took too long.
    #[error("no answer within {0:?}")]
    Late(Duration),
    /// There is no connection.
    #[error("cannot connect")]
    Connect(#[source] std::io::Error),
    /// The connection broke.
    #[error("the connection broke")]
    Broken(#[source] hyper::Error),
    /// It is longer than allowed, or the connection broke.
    #[error("cannot read the answer")]
    Body(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The server did not give it.
    #[error("the answer is {0}")]
    Refused(StatusCode),
}

impl Fetcher {
    /// Pages take no longer than `patience` and are no longer than `most_bytes`.
    pub fn new(trust: &Trust, user_agent: &str, patience: Duration, most_bytes: usize) -> Result<Self, FetchError> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| FetchError::Authorities(error.to_string()))?;
        let config = match trust {
            Trust::Authorities(text) => builder.with_root_certificates(roots(text)?).with_no_client_auth(),
            Trust::Anybody => {
                builder.dangerous().with_custom_certificate_verifier(Arc::new(NoLook(provider))).with_no_client_auth()
            }
        };
        let agent = HeaderValue::from_str(user_agent).map_err(|_| FetchError::Header("user agent"))?;
        Ok(Self { connector: TlsConnector::from(Arc::new(config)), agent, patience, most_bytes })
    }

    /// Reads a page of a server, with a bearer token.
    pub async fn get(&self, address: IpAddr, port: u16, path: &str, token: &str) -> Result<Bytes, FetchError> {
        let answer = timeout(self.patience, self.ask(address, port, path, token)).await;
        answer.unwrap_or(Err(FetchError::Late(self.patience)))
    }

    async fn ask(&self, address: IpAddr, port: u16, path: &str, token: &str) -> Result<Bytes, FetchError> {
        let mut bearer = HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| FetchError::Header("token"))?;
        bearer.set_sensitive(true);
        let tcp = TcpStream::connect((address, port)).await.map_err(FetchError::Connect)?;
        let tls = self.connector.connect(ServerName::from(address), tcp).await.map_err(FetchError::Connect)?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(tls)).await.map_err(FetchError::Broken)?;
        let request = Request::get(path)
            .header(HOST, address.to_string())
            .header(USER_AGENT, &self.agent)
            .header(AUTHORIZATION, bearer)
            .body(Empty::<Bytes>::new())
            .map_err(|_| FetchError::Header("path"))?;
        let answer = async {
            let answer = sender.send_request(request).await.map_err(FetchError::Broken)?;
            if answer.status() != StatusCode::OK {
                return Err(FetchError::Refused(answer.status()));
            }
            let body = Limited::new(answer.into_body(), self.most_bytes).collect().await;
            Ok(body.map_err(FetchError::Body)?.to_bytes())
        };
        tokio::select! {
            answer = answer => answer,
            // Without its driver no answer comes; where it ends first, the answer says why.
            Err(error) = connection => Err(FetchError::Broken(error)),
        }
    }
}

impl fmt::Debug for Fetcher {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Fetcher").field("patience", &self.patience).finish_non_exhaustive()
    }
}

fn roots(text: &str) -> Result<RootCertStore, FetchError> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(text.as_bytes()) {
        let certificate = certificate.map_err(|error| FetchError::Authorities(error.to_string()))?;
        roots.add(certificate).map_err(|error| FetchError::Authorities(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(FetchError::Authorities("the text has no certificate: give it as PEM".to_owned()));
    }
    Ok(roots)
}

/// Looks at no certificate, as a person asked for.
#[derive(Debug)]
struct NoLook(Arc<CryptoProvider>);

impl ServerCertVerifier for NoLook {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, TlsError> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};

    use axum::Router;
    use axum::extract::Request;
    use axum::routing::get;
    use jiff::Timestamp;
    use prometheus_client::registry::Registry;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::server::{Limits, Server, ServerMetrics};
    use crate::tls::{Authority, ServingCertificate};

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    const HOUR: Duration = Duration::from_hours(1);

    /// A server that shows what it was asked; its port and authority.
    async fn served(stop: &CancellationToken) -> (u16, String) {
        let authority = Authority::generate("test", Timestamp::now(), HOUR).unwrap();
        let leaf = authority.issue(&["127.0.0.1".to_owned()], Timestamp::now(), HOUR).unwrap();
        let router =
            Router::new().route(
                "/page",
                get(|request: Request| async move {
                    request.headers()[AUTHORIZATION].to_str().unwrap_or_default().to_owned()
                }),
            );
        let metrics = ServerMetrics::register(&mut Registry::default());
        let address = SocketAddr::new(HERE, 0);
        let server = Server::bind("test", address, router, Limits::default(), &metrics).await.unwrap();
        let server = server.with_tls(&ServingCertificate::new(leaf).unwrap(), None).unwrap();
        let port = server.address().unwrap().port();
        tokio::spawn(server.serve(stop.clone(), stop.clone()));
        (port, authority.certificate_pem().to_owned())
    }

    fn fetcher(trust: &Trust, most_bytes: usize) -> Fetcher {
        Fetcher::new(trust, "test", Duration::from_secs(5), most_bytes).unwrap()
    }

    #[tokio::test]
    async fn a_page_is_read_with_the_token_from_whom_is_believed() {
        let stop = CancellationToken::new();
        let (port, authority) = served(&stop).await;
        for trust in [Trust::Authorities(authority), Trust::Anybody] {
            let page = fetcher(&trust, 1000).get(HERE, port, "/page", "t-1").await.unwrap();
            assert_eq!(&*page, b"Bearer t-1");
        }
        let other = Authority::generate("other", Timestamp::now(), HOUR).unwrap().certificate_pem().to_owned();
        let refused = fetcher(&Trust::Authorities(other), 1000).get(HERE, port, "/page", "t-1").await.unwrap_err();
        assert_eq!(refused.to_string(), "cannot connect");
        stop.cancel();
    }

    #[tokio::test]
    async fn what_is_no_page_is_told() {
        let stop = CancellationToken::new();
        let (port, _) = served(&stop).await;
        let of = |most_bytes| fetcher(&Trust::Anybody, most_bytes);
        let absent = of(1000).get(HERE, port, "/other", "t-1").await.unwrap_err();
        assert_eq!(absent.to_string(), "the answer is 404 Not Found");
        let long = of(3).get(HERE, port, "/page", "t-1").await.unwrap_err();
        assert_eq!(long.to_string(), "cannot read the answer");
        let broken = of(1000).get(HERE, port, "/page", "t\n1").await.unwrap_err();
        assert_eq!(broken.to_string(), "the token has characters that a header cannot carry");
        let none = Fetcher::new(&Trust::Authorities(String::new()), "test", HOUR, 1).unwrap_err();
        assert_eq!(none.to_string(), "cannot use the authorities: the text has no certificate: give it as PEM");
        stop.cancel();
    }
}
