//! Certificates of a bed: one authority for servers and clients, one for the front proxy, one leaf per identity.

use std::fs;
use std::path::{Path, PathBuf};

use k8s_openapi::ByteString;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};

use crate::error::Error;

/// Who signs a certificate.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Authority {
    /// Servers, and users by client certificate.
    Cluster,
    /// The API server as a front proxy to aggregated API servers.
    FrontProxy,
}

/// Whom a certificate is for.
#[derive(Debug)]
pub(crate) struct Identity<'a> {
    /// Name of the files.
    pub(crate) file: &'a str,
    /// Kubernetes' user name.
    pub(crate) user: &'a str,
    /// Kubernetes' group.
    pub(crate) group: Option<&'a str>,
    /// Names and addresses it serves on; none for a client.
    pub(crate) serves: &'a [String],
}

/// The authorities and the folder that holds every file.
pub(crate) struct Pki {
    folder: PathBuf,
    cluster: CertifiedIssuer<'static, KeyPair>,
    front_proxy: CertifiedIssuer<'static, KeyPair>,
}

impl Pki {
    /// Makes both authorities and the key that signs service account tokens.
    pub(crate) fn create(folder: PathBuf) -> Result<Self, Error> {
        fs::create_dir_all(&folder).map_err(Error::file(&folder))?;
        let cluster = authority("pillion bed")?;
        let front_proxy = authority("pillion bed front proxy")?;
        let pki = Self { folder, cluster, front_proxy };
        write(&pki.certificate("ca"), &pki.cluster.pem())?;
        write(&pki.certificate("front-proxy-ca"), &pki.front_proxy.pem())?;
        let tokens = KeyPair::generate().map_err(failed("service account tokens"))?;
        write(&pki.key("service-accounts"), &tokens.serialize_pem())?;
        write(&pki.public_key("service-accounts"), &tokens.public_key_pem())?;
        Ok(pki)
    }

    /// Makes a key and a certificate for an identity.
    pub(crate) fn issue(&self, authority: Authority, identity: &Identity<'_>) -> Result<(), Error> {
        let mut params = CertificateParams::new(identity.serves.to_vec()).map_err(failed(identity.file))?;
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, identity.user);
        if let Some(group) = identity.group {
            params.distinguished_name.push(DnType::OrganizationName, group);
        }
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate().map_err(failed(identity.file))?;
        let issuer = match authority {
            Authority::Cluster => &self.cluster,
            Authority::FrontProxy => &self.front_proxy,
        };
        let certificate = params.signed_by(&key, issuer).map_err(failed(identity.file))?;
        write(&self.certificate(identity.file), &certificate.pem())?;
        write(&self.key(identity.file), &key.serialize_pem())
    }

    /// Path of a certificate; `ca` and `front-proxy-ca` are the authorities.
    pub(crate) fn certificate(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.crt"))
    }

    /// Path of a private key, PKCS#8.
    pub(crate) fn key(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.key"))
    }

    /// Path of a public key.
    pub(crate) fn public_key(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.pub"))
    }

    /// The cluster authority, as a `caBundle` holds it.
    pub(crate) fn authority_bundle(&self) -> ByteString {
        ByteString(self.cluster.pem().into_bytes())
    }
}

fn authority(name: &str) -> Result<CertifiedIssuer<'static, KeyPair>, Error> {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    let key = KeyPair::generate().map_err(failed(name))?;
    CertifiedIssuer::self_signed(params, key).map_err(failed(name))
}

fn failed(name: &str) -> impl FnOnce(rcgen::Error) -> Error {
    let name = name.to_owned();
    move |source| Error::Certificate { name, source }
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    fs::write(path, text).map_err(Error::file(path))
}
