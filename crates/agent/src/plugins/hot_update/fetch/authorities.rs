//! Whom to believe that a server is who it says: the authorities of the source, or those of the public web.

use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use super::super::failure::Failure;

/// A client that believes the authorities in this file; without one those that Mozilla trusts, as of the agent's build.
pub(super) fn client(ca_file: Option<&str>) -> Result<ClientConfig, Failure> {
    let roots = match ca_file {
        Some(path) => read(path)?,
        // The image holds nothing but the agent, so it brings them itself.
        None => RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() },
    };
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(Failure::unreachable)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(config)
}

fn read(path: &str) -> Result<RootCertStore, Failure> {
    let unreadable = |error: &dyn std::fmt::Display| Failure::unreachable(format!("cannot read {path}: {error}"));
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| unreadable(&error))? {
        roots.add(certificate.map_err(|error| unreadable(&error))?).map_err(|error| unreadable(&error))?;
    }
    if roots.is_empty() {
        return Err(Failure::refused(format!("{path} holds no authority: write PEM certificates into it")));
    }
    Ok(roots)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_without_authorities_is_refused_and_none_means_the_public_web() {
        assert!(client(None).is_ok() && webpki_roots::TLS_SERVER_ROOTS.len() > 50);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ca.crt").display().to_string();
        let refusal = |path: &str| client(Some(path)).unwrap_err().message;
        assert_eq!(refusal(&path), format!("cannot read {path}: I/O error: No such file or directory (os error 2)"));
        fs::write(&path, "nothing").unwrap();
        assert_eq!(refusal(&path), format!("{path} holds no authority: write PEM certificates into it"));
    }
}
