//! The certificates that clients of a server have to show.

use std::sync::Arc;

use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::server::danger::ClientCertVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConnection};

/// Clients that an authority has signed and whose certificate has one of some common names.
#[derive(Debug)]
pub struct Clients {
    verifier: Arc<dyn ClientCertVerifier>,
    common_names: Vec<String>,
}

impl Clients {
    /// Clients of the authorities of a bundle, as PEM. Without names, every client that they signed.
    pub fn new(authorities: &str, common_names: Vec<String>) -> Result<Self, String> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(authorities.as_bytes()) {
            let certificate = certificate.map_err(|error| format!("cannot read a certificate: {error}"))?;
            roots.add(certificate).map_err(|error| format!("cannot use a certificate: {error}"))?;
        }
        let provider = Arc::new(aws_lc_rs::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
        let verifier = verifier.map_err(|error| format!("no certificate of an authority: {error}"))?;
        Ok(Self { verifier, common_names })
    }

    pub(super) fn verifier(&self) -> Arc<dyn ClientCertVerifier> {
        Arc::clone(&self.verifier)
    }

    /// Checks the name in the certificate of a client; the handshake has verified its signature.
    pub(crate) fn check(&self, connection: &ServerConnection) -> Result<(), String> {
        if self.common_names.is_empty() {
            return Ok(());
        }
        let certificate = connection.peer_certificates().and_then(<[_]>::first).ok_or("it has shown none")?;
        let (_, parsed) = x509_parser::parse_x509_certificate(certificate).map_err(|_| "it cannot be read")?;
        let mut names = parsed.subject().iter_common_name().filter_map(|name| name.as_str().ok());
        if names.any(|name| self.common_names.iter().any(|expected| expected == name)) {
            return Ok(());
        }
        Err(format!("its subject is {}", parsed.subject()))
    }
}
