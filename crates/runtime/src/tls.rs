//! TLS for servers: one certificate that can be replaced while connections are open, and the means to make one.
//!
//! - [`Authority`] and [`Leaf`]: certificates made in memory; who stores or trusts an authority is the caller's to say.
//! - [`ServingCertificate`]: what new connections are served with.
//! - [`Clients`]: the certificates that clients have to show.

use std::sync::Arc;

use arc_swap::ArcSwap;
use jiff::Timestamp;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::{CryptoProvider, aws_lc_rs};
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::version::TLS13;

mod authority;
mod clients;
#[cfg(test)]
mod tests;

pub use authority::{Authority, CertificateError, Leaf};
pub use clients::Clients;

/// The certificate a server shows. Replacing it concerns new connections; open ones go on.
#[derive(Debug)]
pub struct ServingCertificate {
    provider: Arc<CryptoProvider>,
    current: ArcSwap<Current>,
}

#[derive(Debug)]
struct Current {
    key: Arc<CertifiedKey>,
    not_after: Timestamp,
}

impl ServingCertificate {
    /// Serves with this leaf to begin with.
    pub fn new(leaf: Leaf) -> Result<Arc<Self>, CertificateError> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let current = ArcSwap::from_pointee(Current::of(leaf, &provider)?);
        Ok(Arc::new(Self { provider, current }))
    }

    /// Serves new connections with this leaf.
    pub fn replace(&self, leaf: Leaf) -> Result<(), CertificateError> {
        self.current.store(Arc::new(Current::of(leaf, &self.provider)?));
        Ok(())
    }

    /// When the certificate that is served now ends.
    pub fn not_after(&self) -> Timestamp {
        self.current.load().not_after
    }

    /// TLS 1.3 and HTTP/1.1, and nothing else: what the API server speaks to webhooks.
    pub(crate) fn server_config(self: &Arc<Self>, clients: Option<&Clients>) -> Result<ServerConfig, CertificateError> {
        let builder = ServerConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_protocol_versions(&[&TLS13])
            .map_err(CertificateError::Serve)?;
        let verified = match clients {
            Some(clients) => builder.with_client_cert_verifier(clients.verifier()),
            None => builder.with_no_client_auth(),
        };
        let mut config = verified.with_cert_resolver(Arc::clone(self) as Arc<dyn ResolvesServerCert>);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        // A resumed session would not be shown the certificate that is served now.
        config.send_tls13_tickets = 0;
        Ok(config)
    }
}

impl ResolvesServerCert for ServingCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.current.load().key))
    }
}

impl Current {
    fn of(leaf: Leaf, provider: &CryptoProvider) -> Result<Self, CertificateError> {
        let not_after = leaf.not_after();
        let key = CertifiedKey::from_der(leaf.chain, leaf.key, provider).map_err(CertificateError::Serve)?;
        Ok(Self { key: Arc::new(key), not_after })
    }
}
