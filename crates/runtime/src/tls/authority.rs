//! Certificates made in memory: an authority of our own, and short-lived leaves it signs.

use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use tokio_rustls::rustls::pki_types::pem::{self, PemObject as _};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// A certificate is valid from this long before it is made, for peers whose clocks are behind.
const BACKDATED: Duration = Duration::from_hours(1);

/// Signs certificates.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
    pem: String,
    not_after: Timestamp,
}

/// A certificate to serve with, with the chain above it, and its key.
pub struct Leaf {
    pub(crate) chain: Vec<CertificateDer<'static>>,
    pub(crate) key: PrivateKeyDer<'static>,
    not_after: Timestamp,
}

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// It could not be made.
    #[error("cannot make a certificate for {name}")]
    Make {
        /// Whom it would be for.
        name: String,
        /// Why.
        #[source]
        source: rcgen::Error,
    },
    /// The text has no certificate or no key.
    #[error("cannot read the {what}: give it as PEM")]
    Pem {
        /// What was looked for.
        what: &'static str,
        /// Why it was not found.
        #[source]
        source: pem::Error,
    },
    /// The text of the key is PEM, but of no key that can sign.
    #[error("cannot sign with the authority's key")]
    Key(#[source] rcgen::Error),
    /// The certificate has no structure that can be read.
    #[error("cannot read the certificate: its content is no X.509")]
    Content,
    /// Certificate and key do not belong together, or are of a kind that is not supported.
    #[error("cannot serve with the certificate and its key")]
    Serve(#[source] tokio_rustls::rustls::Error),
}

impl Authority {
    /// A new authority. Two of them may have the same name; they are told apart by their keys.
    pub fn generate(name: &str, now: Timestamp, lifetime: Duration) -> Result<Self, CertificateError> {
        let failed = |source| CertificateError::Make { name: name.to_owned(), source };
        let key = KeyPair::generate().map_err(failed)?;
        let mut params = valid(now, now.saturating_add(lifetime).unwrap_or(Timestamp::MAX), name);
        // It signs leaves and nothing that signs.
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let certificate = params.self_signed(&key).map_err(failed)?;
        Self::new(certificate.pem(), certificate.der().clone(), key)
    }

    /// An authority that was stored: its certificate and its key.
    pub fn from_pem(certificate: &str, key: &str) -> Result<Self, CertificateError> {
        let der = CertificateDer::from_pem_slice(certificate.as_bytes())
            .map_err(|source| CertificateError::Pem { what: "authority's certificate", source })?;
        let key = KeyPair::from_pem(key).map_err(CertificateError::Key)?;
        Self::new(certificate.to_owned(), der, key)
    }

    fn new(pem: String, certificate: CertificateDer<'static>, key: KeyPair) -> Result<Self, CertificateError> {
        let not_after = end_of(&certificate)?;
        let issuer = Issuer::from_ca_cert_der(&certificate, key).map_err(|_| CertificateError::Content)?;
        Ok(Self { issuer, certificate, pem, not_after })
    }

    /// A leaf for DNS names and addresses. It ends with the authority at the latest.
    pub fn issue(&self, names: &[String], now: Timestamp, lifetime: Duration) -> Result<Leaf, CertificateError> {
        let name = names.first().map_or("nobody", String::as_str);
        let failed = |source| CertificateError::Make { name: names.join(", "), source };
        let names = CertificateParams::new(names.to_vec()).map_err(failed)?.subject_alt_names;
        let mut params = valid(now, self.end(now, lifetime), name);
        params.subject_alt_names = names;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.sign(params).map_err(failed)?
    }

    /// A leaf for a client of this name. It ends with the authority at the latest.
    #[cfg(test)]
    pub(crate) fn issue_to_client(
        &self,
        name: &str,
        now: Timestamp,
        lifetime: Duration,
    ) -> Result<Leaf, CertificateError> {
        let mut params = valid(now, self.end(now, lifetime), name);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(params).map_err(|source| CertificateError::Make { name: name.to_owned(), source })?
    }

    fn end(&self, now: Timestamp, lifetime: Duration) -> Timestamp {
        now.saturating_add(lifetime).unwrap_or(Timestamp::MAX).min(self.not_after)
    }

    fn sign(&self, mut params: CertificateParams) -> Result<Result<Leaf, CertificateError>, rcgen::Error> {
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        // With it a peer that trusts an old and a new authority of the same name finds the right one.
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(Leaf::new(vec![certificate.der().clone()], key.into()))
    }

    /// The certificate, as a `caBundle` holds it.
    pub fn certificate_pem(&self) -> &str {
        &self.pem
    }

    /// The certificate, for a client to trust.
    pub fn certificate(&self) -> &CertificateDer<'static> {
        &self.certificate
    }

    /// The key, to be stored where only we can read it.
    pub fn key_pem(&self) -> String {
        self.issuer.key().serialize_pem()
    }

    /// When it ends.
    pub fn not_after(&self) -> Timestamp {
        self.not_after
    }
}

impl Leaf {
    /// A certificate made by someone else, such as cert-manager: the chain, the leaf first, and its key.
    pub fn from_pem(chain: &str, key: &str) -> Result<Self, CertificateError> {
        let parsed: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(chain.as_bytes()).collect();
        let chain = parsed.map_err(|source| CertificateError::Pem { what: "certificate", source })?;
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes())
            .map_err(|source| CertificateError::Pem { what: "certificate's key", source })?;
        Self::new(chain, key)
    }

    fn new(chain: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>) -> Result<Self, CertificateError> {
        let not_after = end_of(chain.first().ok_or(CertificateError::Content)?)?;
        Ok(Self { chain, key, not_after })
    }

    /// When it ends.
    pub fn not_after(&self) -> Timestamp {
        self.not_after
    }
}

fn valid(from: Timestamp, to: Timestamp, name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.not_before = SystemTime::from(from.saturating_sub(BACKDATED).unwrap_or(from)).into();
    params.not_after = SystemTime::from(to).into();
    params
}

fn end_of(certificate: &CertificateDer<'_>) -> Result<Timestamp, CertificateError> {
    let (_, parsed) = x509_parser::parse_x509_certificate(certificate).map_err(|_| CertificateError::Content)?;
    Timestamp::from_second(parsed.validity().not_after.timestamp()).map_err(|_| CertificateError::Content)
}
