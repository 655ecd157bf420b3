//! The API `metrics.k8s.io` for pods that do not run: what each of them used, made up anew for every question.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Result;
use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use jiff::Timestamp;
use k8s_openapi::ByteString;
use kube::Client;
use pillion_runtime::server::{Limits, Server, ServerMetrics};
use pillion_runtime::tls::{Authority, ServingCertificate};
use pillion_testbed::{Look, apply, until};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{NAMESPACE, PATIENCE, pod_name};
use crate::cluster::APART;

const NAME: &str = "samples";
const GROUP: &str = "/apis/metrics.k8s.io";
const VERSION: &str = "/apis/metrics.k8s.io/v1beta1";

/// Answers for as many pods as it is told.
#[derive(Clone, Default)]
pub(super) struct Feed {
    pods: Arc<AtomicUsize>,
    asked: Arc<AtomicU64>,
}

impl Feed {
    /// Serves, and registers itself with the API server.
    pub(super) async fn start(client: &Client, host: Ipv4Addr) -> Result<Self> {
        let feed = Self::default();
        let authority = Authority::generate(NAME, Timestamp::now(), Duration::from_hours(24))?;
        let leaf = authority.issue(&[format!("{NAME}.{APART}.svc")], Timestamp::now(), Duration::from_hours(24))?;
        let server = Server::bind(
            NAME,
            SocketAddr::from((host, 0)),
            feed.router(),
            Limits::default(),
            &ServerMetrics::default(),
        )
        .await?
        .with_tls(&ServingCertificate::new(leaf)?, None)?;
        let port = server.address()?.port();
        tokio::spawn(async move { server.serve(CancellationToken::new(), CancellationToken::new()).await });
        let bundle = ByteString(authority.certificate_pem().as_bytes().to_vec());
        for object in [
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": NAME, "namespace": APART},
                "spec": {"ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": port}]}}),
            json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
                "metadata": {"name": NAME, "namespace": APART, "labels": {"kubernetes.io/service-name": NAME}},
                "endpoints": [{"addresses": [host.to_string()], "conditions": {"ready": true}}],
                "ports": [{"name": "https", "port": port, "protocol": "TCP"}]}),
            json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
                "metadata": {"name": "v1beta1.metrics.k8s.io"},
                "spec": {"group": "metrics.k8s.io", "version": "v1beta1", "groupPriorityMinimum": 100, "versionPriority": 100,
                    "caBundle": bundle, "service": {"name": NAME, "namespace": APART}}}),
        ] {
            apply(client, "bench", &object).await?;
        }
        until("metrics.k8s.io to be served", PATIENCE, || async {
            let request = axum::http::Request::get(format!("{VERSION}/pods")).body(Vec::new());
            let request = request.expect("a path makes a request");
            Ok(client
                .request_text(request)
                .await
                .map_or_else(|error| Look::NotYet(error.to_string()), |_| Look::Done(())))
        })
        .await?;
        Ok(feed)
    }

    /// From now on there are so many pods.
    pub(super) fn set(&self, pods: usize) {
        self.pods.store(pods, Ordering::Relaxed);
    }

    fn router(&self) -> Router {
        let resources = json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "metrics.k8s.io/v1beta1", "resources": [
            {"name": "pods", "singularName": "", "namespaced": true, "kind": "PodMetrics", "verbs": ["get", "list"]}]});
        let version = json!({"groupVersion": "metrics.k8s.io/v1beta1", "version": "v1beta1"});
        let group = json!({"kind": "APIGroup", "apiVersion": "v1", "name": "metrics.k8s.io", "versions": [version],
            "preferredVersion": version});
        let (all, one) = (self.clone(), self.clone());
        Router::new()
            .route(GROUP, get(move || std::future::ready(json_of(group.to_string()))))
            .route(VERSION, get(move || std::future::ready(json_of(resources.to_string()))))
            .route(&format!("{VERSION}/pods"), get(move || std::future::ready(json_of(all.list()))))
            .route(
                &format!("{VERSION}/namespaces/{{namespace}}/pods"),
                get(move || std::future::ready(json_of(one.list()))),
            )
    }

    fn list(&self) -> String {
        let turn = self.asked.fetch_add(1, Ordering::Relaxed);
        let names: Vec<String> = (0..self.pods.load(Ordering::Relaxed)).map(pod_name).collect();
        list(names.iter().map(|name| (NAMESPACE, name.as_str())), turn, Timestamp::now())
    }
}

fn json_of(text: String) -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], text)
}

/// What pods used, by namespace and name, as metrics-server writes it.
pub(super) fn list<'a>(pods: impl ExactSizeIterator<Item = (&'a str, &'a str)>, turn: u64, now: Timestamp) -> String {
    let mut random = Random(turn.wrapping_mul(0x2545_F491_4F6C_DD1D) ^ 0x9E37_79B9_7F4A_7C15);
    let at = now.strftime("%Y-%m-%dT%H:%M:%SZ");
    let mut text = String::with_capacity(pods.len() * 340 + 200);
    text.push_str(r#"{"kind":"PodMetricsList","apiVersion":"metrics.k8s.io/v1beta1","metadata":{},"items":["#);
    for (number, (namespace, name)) in pods.enumerate() {
        let comma = if number == 0 { "" } else { "," };
        let (app_cpu, app_memory) = (random.between(50_000_000, 200_000_000), random.between(80 << 10, 200 << 10));
        let (helper_cpu, helper_memory) = (random.between(5_000_000, 25_000_000), random.between(20 << 10, 60 << 10));
        let _ = write!(
            text,
            concat!(
                r#"{}{{"metadata":{{"name":"{}","namespace":"{}","creationTimestamp":"{}"}},"#,
                r#""timestamp":"{}","window":"15.0s","containers":["#,
                r#"{{"name":"app","usage":{{"cpu":"{}n","memory":"{}Ki"}}}},"#,
                r#"{{"name":"helper","usage":{{"cpu":"{}n","memory":"{}Ki"}}}}]}}"#
            ),
            comma, name, namespace, at, at, app_cpu, app_memory, helper_cpu, helper_memory
        );
    }
    text.push_str("]}");
    text
}

/// Enough for samples.
struct Random(u64);

impl Random {
    fn between(&mut self, from: u64, to: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        from + self.0 % (to - from)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn a_list_has_all_pods_with_both_containers_and_never_the_same_numbers() {
        let names = [("shop", "a"), ("shop", "b"), ("shop", "c")];
        let list = |turn| list(names.into_iter(), turn, Timestamp::UNIX_EPOCH);
        let read = |turn| serde_json::from_str::<Value>(&list(turn)).unwrap();
        let first = read(0);
        assert_eq!(first["items"].as_array().unwrap().len(), 3);
        assert_eq!(first["items"][2]["metadata"]["name"], "c");
        assert_eq!(first["items"][0]["timestamp"], "1970-01-01T00:00:00Z");
        assert_eq!(first["items"][1]["containers"][1]["name"], "helper");
        assert_ne!(first["items"][0]["containers"], read(1)["items"][0]["containers"]);
    }
}
