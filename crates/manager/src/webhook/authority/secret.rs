//! The authority as the Secret holds it.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt as _;
use pillion_runtime::tls::{Authority, CertificateError};
use serde_json::{Value, json};

use super::rotation::{Held, Known};
use crate::names;

/// Put on the Secret by whoever wants a new authority now.
pub(super) const ROTATE: &str = "pillion.dev/rotate";

const CURRENT: (&str, &str) = ("tls.crt", "tls.key");
const NEXT: (&str, &str) = ("next.crt", "next.key");

/// A certificate and its key, as PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) certificate: String,
    pub(super) key: String,
}

/// The Secret as the watch keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stored {
    version: String,
    data: BTreeMap<String, ByteString>,
    is_asked_for: bool,
}

impl Stored {
    pub(super) fn of(secret: Secret) -> Self {
        Self {
            version: secret.resource_version().unwrap_or_default(),
            is_asked_for: secret.annotations().contains_key(ROTATE),
            data: secret.data.unwrap_or_default(),
        }
    }

    /// What it holds, if that can be used.
    pub(super) fn held(&self) -> Option<Held> {
        let known = |pair: &Pair| -> Result<Known, CertificateError> {
            let authority = Authority::from_pem(&pair.certificate, &pair.key)?;
            Ok(Known { certificate: authority.certificate_pem().to_owned(), not_after: authority.not_after() })
        };
        let current = known(&self.current()?).ok()?;
        let next = self.next().and_then(|next| known(&next).ok());
        Some(Held { current, next, is_asked_for: self.is_asked_for })
    }

    pub(super) fn current(&self) -> Option<Pair> {
        self.pair(CURRENT)
    }

    pub(super) fn next(&self) -> Option<Pair> {
        self.pair(NEXT)
    }

    fn pair(&self, (certificate, key): (&str, &str)) -> Option<Pair> {
        let text = |key: &str| String::from_utf8(self.data.get(key)?.0.clone()).ok();
        Some(Pair { certificate: text(certificate)?, key: text(key)? })
    }

    /// Another content in the place of exactly this one; also takes the wish for a new authority away.
    pub(super) fn replaced(&self, namespace: &str, current: &Pair, next: Option<&Pair>) -> Value {
        let mut secret = object(namespace, current, next);
        secret["metadata"]["resourceVersion"] = self.version.clone().into();
        secret
    }
}

impl Pair {
    pub(super) fn of(authority: &Authority) -> Self {
        Self { certificate: authority.certificate_pem().to_owned(), key: authority.key_pem() }
    }
}

/// The Secret with this content.
pub(super) fn object(namespace: &str, current: &Pair, next: Option<&Pair>) -> Value {
    let mut data = BTreeMap::new();
    let pairs = [(CURRENT, Some(current)), (NEXT, next)];
    for ((certificate, key), pair) in pairs {
        if let Some(pair) = pair {
            data.insert(certificate, ByteString(pair.certificate.as_bytes().to_vec()));
            data.insert(key, ByteString(pair.key.as_bytes().to_vec()));
        }
    }
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
        "metadata": {"name": names::CA_SECRET, "namespace": namespace,
            "labels": {"app.kubernetes.io/name": "pillion", "app.kubernetes.io/managed-by": "pillion-manager"}},
        "data": data,
    })
}
