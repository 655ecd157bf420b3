//! A TLS port on the bed's host side, with a certificate of its own.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use anyhow::{Context, Result};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

/// A port that is bound, and what clients must trust.
pub(crate) struct TlsPort {
    pub(crate) listener: TcpListener,
    pub(crate) acceptor: TlsAcceptor,
    pub(crate) address: SocketAddr,
    /// PEM of the certificate.
    pub(crate) certificate: String,
}

impl TlsPort {
    /// Binds a free port of `host`.
    pub(crate) async fn bind(host: Ipv4Addr) -> Result<Self> {
        let CertifiedKey { cert, signing_key } = generate_simple_self_signed([host.to_string()])?;
        let key = PrivateKeyDer::try_from(signing_key.serialize_der()).map_err(anyhow::Error::msg)?;
        let config = ServerConfig::builder().with_no_client_auth().with_single_cert(vec![cert.der().clone()], key)?;
        let listener = TcpListener::bind((host, 0)).await.context("cannot listen on the bed's host address")?;
        let address = listener.local_addr()?;
        Ok(Self { listener, acceptor: TlsAcceptor::from(Arc::new(config)), address, certificate: cert.pem() })
    }
}
