//! Calls a webhook as the API server does: HTTP/1.1 over TLS, on a connection that is kept.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, Result};
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration, WebhookClientConfig,
};
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::manager::NAMESPACE;

/// A caller that trusts the manager's authority and knows the paths of its registrations, as the API server does.
#[derive(Clone)]
pub struct Caller {
    address: SocketAddr,
    tls: TlsConnector,
    /// The path of the webhook that reviews pods.
    pub pods: String,
    /// The path of the webhook that reviews sets.
    pub sets: String,
}

/// One kept connection.
pub struct Connection {
    address: SocketAddr,
    pods: String,
    sender: SendRequest<Full<Bytes>>,
}

impl Caller {
    /// Reads the authority from its Secret and the paths from the registrations.
    pub async fn new(client: &Client, address: SocketAddr) -> Result<Self> {
        let secret = Api::<Secret>::namespaced(client.clone(), NAMESPACE).get("pillion-webhook-ca").await?;
        let data = secret.data.context("the Secret is empty")?;
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(&data.get("tls.crt").context("no tls.crt")?.0)?)?;
        let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        let mutating = Api::<MutatingWebhookConfiguration>::all(client.clone()).get("pillion").await?;
        let validating = Api::<ValidatingWebhookConfiguration>::all(client.clone()).get("pillion").await?;
        let pods = mutating.webhooks.iter().flatten().find(|webhook| webhook.name == "pods.pillion.dev");
        let sets = validating.webhooks.iter().flatten().next();
        Ok(Self {
            address,
            tls: TlsConnector::from(Arc::new(config)),
            pods: path_of(&pods.context("no webhook for pods")?.client_config)?,
            sets: path_of(&sets.context("no webhook for sets")?.client_config)?,
        })
    }

    /// Where it calls.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Speaks TLS on a connection.
    pub async fn tls(&self, stream: TcpStream) -> Result<TlsStream<TcpStream>> {
        Ok(self.tls.connect(ServerName::from(self.address.ip()), stream).await?)
    }

    /// Opens a connection.
    pub async fn connect(&self) -> Result<Connection> {
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        let stream = self.tls(stream).await?;
        let (sender, driver) = handshake(TokioIo::new(stream)).await?;
        tokio::spawn(driver);
        Ok(Connection { address: self.address, pods: self.pods.clone(), sender })
    }
}

fn path_of(config: &WebhookClientConfig) -> Result<String> {
    let of_service = config.service.as_ref().and_then(|service| service.path.clone());
    let of_url = || Some(config.url.as_ref()?.parse::<http::Uri>().ok()?.path().to_owned());
    of_service.or_else(of_url).context("the webhook has no path")
}

impl Connection {
    /// Posts the review of a pod.
    pub async fn review_pod(&mut self, body: impl Into<Bytes>) -> Result<(u16, Bytes)> {
        let path = self.pods.clone();
        self.post(&path, body).await
    }

    /// Posts a body; gives the status and the body of the answer.
    pub async fn post(&mut self, path: &str, body: impl Into<Bytes>) -> Result<(u16, Bytes)> {
        self.sender.ready().await?;
        let request = Request::post(format!("{path}?timeout=3s"))
            .header("Host", self.address.to_string())
            .header("Content-Type", "application/json")
            .body(Full::new(body.into()))?;
        let response = self.sender.send_request(request).await?;
        let status = response.status().as_u16();
        Ok((status, response.into_body().collect().await?.to_bytes()))
    }
}
