//! Whom to believe that a server is who it says: the authorities of the source, or of the image.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use super::super::failure::Failure;

/// Where images keep the authorities of the public web.
const OF_IMAGES: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

/// A client that believes the authorities in this file, or those of the image.
pub(super) fn client(ca_file: Option<&str>) -> Result<ClientConfig, Failure> {
    let path = ca_file.or_else(|| OF_IMAGES.into_iter().find(|path| Path::new(path).exists()));
    let path = path.ok_or_else(|| {
        Failure::refused(
            "there are no authorities to trust: mount a file with them and name it in caFile of the source",
        )
    })?;
    let unreadable = |error: &dyn std::fmt::Display| Failure::unreachable(format!("cannot read {path}: {error}"));
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| unreadable(&error))? {
        roots.add(certificate.map_err(|error| unreadable(&error))?).map_err(|error| unreadable(&error))?;
    }
    if roots.is_empty() {
        return Err(Failure::refused(format!("{path} holds no authority: write PEM certificates into it")));
    }
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(Failure::unreachable)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(config)
}
