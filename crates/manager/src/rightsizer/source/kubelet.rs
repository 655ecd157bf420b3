//! Samples of the kubelets themselves: their page `/metrics/resource`, without metrics-server between.
//!
//! A kubelet tells the seconds of cpu a container has used so far, and when it looked. Two looks make a sample.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::{Api, Client};
use pillion_rightsize::Usage;
use pillion_runtime::fetch::{Fetcher, Trust};
use pillion_runtime::watch::{Freshness, Key, Selection, Store, WatchMetrics, watch};
use tokio::time::timeout;
use tracing::{debug, warn};

use super::{Sample, Taker};
use crate::sizing_settings::KubeletSettings;

/// The page of a node with five hundred containers is shorter than a hundredth of this.
const MOST_BYTES: usize = 64 << 20;
const PATH: &str = "/metrics/resource";
const CPU: &str = "container_cpu_usage_seconds_total";
const MEMORY: &str = "container_memory_working_set_bytes";
const STARTED: &str = "container_start_time_seconds";
/// How long nodes are waited for.
const LISTING: Duration = Duration::from_secs(10);
/// Kubelets have the port from here where a node does not say.
const PORT: i32 = 10250;

/// A line of a page: a number of a container at a moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point<'a> {
    /// What the number is.
    pub metric: Metric,
    /// The namespace of the pod.
    pub namespace: &'a str,
    /// The name of the pod.
    pub pod: &'a str,
    /// The name of the container.
    pub container: &'a str,
    /// The number.
    pub value: f64,
    /// Milliseconds since 1970, where the line has them.
    pub at: Option<i64>,
}

/// What a number is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Seconds of cpu since the container was started.
    CpuSeconds,
    /// Bytes of memory that cannot be taken back.
    MemoryBytes,
    /// When the container was started, in seconds since 1970.
    Started,
}

/// Where a kubelet listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Address {
    ip: IpAddr,
    port: u16,
}

/// The kubelets of all nodes.
pub(crate) struct Kubelets {
    nodes: Store<Address>,
    fetcher: Fetcher,
    token_file: PathBuf,
    at_once: usize,
    counters: Counters,
}

/// How far containers were when they were last looked at.
#[derive(Default)]
pub struct Counters {
    /// By namespace, pod and container, with a slash between.
    last: BTreeMap<Box<str>, Counter>,
    /// Counts looks, to forget those who are gone.
    round: u32,
}

#[derive(Clone, Copy)]
struct Counter {
    seconds: f64,
    at: i64,
    round: u32,
}

impl Kubelets {
    /// Watches nodes while the future runs.
    pub(crate) fn watch(
        client: &Client,
        settings: &KubeletSettings,
        metrics: &WatchMetrics,
    ) -> Result<(Self, BoxFuture<'static, ()>), String> {
        let trust = if settings.kubelet_insecure_skip_tls_verify {
            Trust::Anybody
        } else {
            let path = &settings.kubelet_ca_file;
            let text = std::fs::read_to_string(path);
            Trust::Authorities(text.map_err(|error| format!("--kubelet-ca-file {}: {error}", path.display()))?)
        };
        let fetcher = Fetcher::new(&trust, "pillion-manager", settings.kubelet_timeout, MOST_BYTES)
            .map_err(|error| format!("--kubelet-ca-file: {error}"))?;
        let selection = Selection { freshness: Freshness::Any, ..Selection::default() };
        let (nodes, driver) =
            watch("nodes", Api::<Node>::all(client.clone()), selection, metrics, |node: Node| address(&node));
        let kubelets = Self {
            nodes,
            fetcher,
            token_file: settings.kubelet_token_file.clone(),
            at_once: settings.kubelets_at_once.into(),
            counters: Counters::default(),
        };
        Ok((kubelets, driver.boxed()))
    }

    /// One that does not answer takes nothing from the others; where none does, that is told.
    pub(super) async fn read(&mut self, taker: &mut dyn Taker) -> Result<(), String> {
        // Read each time: the token is replaced while this runs.
        let path = &self.token_file;
        let token = std::fs::read_to_string(path);
        let token = token.map_err(|error| format!("--kubelet-token-file {}: {error}", path.display()))?;
        let token: Arc<str> = token.trim().into();
        if timeout(LISTING, self.nodes.completed()).await.is_err() {
            self.nodes.check_complete().map_err(|why| format!("nodes: {why}"))?;
        }
        let nodes: Vec<(Key, Address)> = self.nodes.snapshot().into_iter().collect();
        let asked = nodes.len();
        let pages = nodes.into_iter().map(|(node, Address { ip, port })| {
            let (fetcher, token) = (self.fetcher.clone(), Arc::clone(&token));
            async move { (node, fetcher.get(ip, port, PATH, &token).await) }.boxed()
        });
        let pages: Vec<_> = pages.collect();
        let mut pages = futures::stream::iter(pages).buffer_unordered(self.at_once);
        let mut failed = Vec::new();
        while let Some((node, page)) = pages.next().await {
            let page = page.map_err(|error| told(&error));
            match page.and_then(|page| String::from_utf8(page.to_vec()).map_err(|error| error.to_string())) {
                Ok(page) => self.counters.read(&page, taker),
                Err(why) => {
                    debug!(node = %node.name, why, "the kubelet does not tell");
                    failed.push(format!("{}: {why}", node.name));
                }
            }
        }
        self.counters.forget();
        if failed.len() == asked && asked > 0 {
            return Err(format!("no kubelet answers: {}", failed[0]));
        }
        if let Some(first) = failed.first() {
            warn!(failed = failed.len(), asked, first, "some kubelets do not answer");
        }
        Ok(())
    }
}

impl Counters {
    /// Takes a page of one node.
    pub fn read(&mut self, page: &str, taker: &mut dyn Taker) {
        let mut started: BTreeMap<(&str, &str, &str), f64> = BTreeMap::new();
        let mut points = Vec::new();
        for point in page.lines().filter_map(read_line) {
            if !taker.wants(point.namespace, point.pod) {
                continue;
            }
            if point.metric == Metric::Started {
                started.insert((point.namespace, point.pod, point.container), point.value);
            } else {
                points.push(point);
            }
        }
        for point in points {
            let Some(at) = point.at else { continue };
            let Ok(time) = Timestamp::from_millisecond(at) else { continue };
            let Point { namespace, pod, container, value, .. } = point;
            let usage = if point.metric == Metric::MemoryBytes {
                Usage { at: time, cpu: None, memory: Some(whole(value)) }
            } else {
                let since = started.get(&(namespace, pod, container)).map(|seconds| whole(seconds * 1000.0));
                let Some(cpu) = self.rate(&format!("{namespace}/{pod}/{container}"), value, at, since) else {
                    continue;
                };
                Usage { at: time, cpu: Some(cpu), memory: None }
            };
            taker.take(&Sample { namespace, pod, container, usage });
        }
    }

    /// Millicores since the last look; nothing at the first one, or where the container was started since.
    fn rate(&mut self, name: &str, seconds: f64, at: i64, started: Option<i64>) -> Option<i64> {
        let now = Counter { seconds, at, round: self.round };
        let Some(last) = self.last.get_mut(name) else {
            self.last.insert(name.into(), now);
            return None;
        };
        let before = std::mem::replace(last, now);
        let is_new = started.is_some_and(|started| started > before.at) || seconds < before.seconds;
        if is_new || at <= before.at {
            return None;
        }
        #[expect(clippy::cast_precision_loss, reason = "a time between two looks is short")]
        let milliseconds = (at - before.at) as f64;
        // Cores are seconds in a second, so a thousand of both are millicores in a millisecond.
        Some(whole(((seconds - before.seconds) * 1_000_000.0 / milliseconds).ceil()))
    }

    /// Forgets containers that were not there at two looks in a row. A kubelet may fail to answer once.
    pub fn forget(&mut self) {
        let round = self.round;
        self.last.retain(|_, counter| round.wrapping_sub(counter.round) < 2);
        self.round = round.wrapping_add(1);
    }
}

#[expect(clippy::cast_possible_truncation, reason = "what is too large is the largest")]
fn whole(value: f64) -> i64 {
    value as i64
}

/// Reads a line of a page; nothing of lines that are about other things, or are no lines of a page.
pub fn read_line(line: &str) -> Option<Point<'_>> {
    let (name, rest) = line.split_once('{')?;
    let metric = match name {
        CPU => Metric::CpuSeconds,
        MEMORY => Metric::MemoryBytes,
        STARTED => Metric::Started,
        _ => return None,
    };
    let (labels, rest) = rest.rsplit_once('}')?;
    let mut words = rest.split_ascii_whitespace();
    let value: f64 = words.next()?.parse().ok()?;
    let at = match words.next() {
        None => None,
        Some(text) => Some(text.parse().ok()?),
    };
    if words.next().is_some() || !value.is_finite() || value < 0.0 {
        return None;
    }
    let (mut namespace, mut pod, mut container) = (None, None, None);
    for label in labels.split(',').filter(|label| !label.is_empty()) {
        let (key, value) = label.split_once('=')?;
        // Names of Kubernetes have no quotes, commas or backslashes; what has them is not one of them.
        let value = value.strip_prefix('"')?.strip_suffix('"')?;
        if value.contains(['"', '\\']) {
            return None;
        }
        match key.trim() {
            "namespace" => namespace = Some(value),
            "pod" => pod = Some(value),
            "container" => container = Some(value),
            _ => {}
        }
    }
    Some(Point { metric, namespace: namespace?, pod: pod?, container: container?, value, at })
}

fn address(node: &Node) -> Option<Address> {
    let status = node.status.as_ref()?;
    let ip = status.addresses.iter().flatten().find(|address| address.type_ == "InternalIP")?.address.parse().ok()?;
    let endpoint = status.daemon_endpoints.as_ref().and_then(|all| all.kubelet_endpoint.as_ref());
    let port = endpoint.map(|endpoint| endpoint.port).filter(|port| *port > 0).unwrap_or(PORT);
    Some(Address { ip, port: port.try_into().ok()? })
}

/// An error with what is behind it.
fn told(error: &dyn std::error::Error) -> String {
    let mut told = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        told.push_str(": ");
        told.push_str(&error.to_string());
        source = error.source();
    }
    told
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[derive(Default)]
    struct Taken(Vec<String>);

    impl Taker for Taken {
        fn wants(&self, namespace: &str, _: &str) -> bool {
            namespace == "shop"
        }

        fn take(&mut self, sample: &Sample<'_>) {
            let Sample { pod, container, usage, .. } = sample;
            let Usage { at, cpu, memory } = usage;
            self.0.push(format!("{pod} {container} {} {cpu:?} {memory:?}", at.as_millisecond()));
        }
    }

    /// A page as kubelet 1.36 writes it.
    fn page(seconds: &str, at: i64, started: &str) -> String {
        format!(
            "# HELP container_cpu_usage_seconds_total [STABLE] Cumulative cpu time\n\
             # TYPE container_cpu_usage_seconds_total counter\n\
             container_cpu_usage_seconds_total{{container=\"app\",namespace=\"shop\",pod=\"web-1\"}} {seconds} {at}\n\
             container_cpu_usage_seconds_total{{container=\"app\",namespace=\"other\",pod=\"x\"}} 1 {at}\n\
             container_memory_working_set_bytes{{container=\"app\",namespace=\"shop\",pod=\"web-1\"}} 4.3290624e+07 {at}\n\
             container_start_time_seconds{{container=\"app\",namespace=\"shop\",pod=\"web-1\"}} {started}\n\
             node_cpu_usage_seconds_total 12.5 {at}\n\
             resource_scrape_error 0\n"
        )
    }

    fn looks(pages: &[String]) -> Vec<Vec<String>> {
        let mut counters = Counters::default();
        let mut look = |page: &String| {
            let mut taken = Taken::default();
            counters.read(page, &mut taken);
            counters.forget();
            taken.0
        };
        pages.iter().map(&mut look).collect()
    }

    #[test]
    fn two_looks_make_a_rate_and_memory_is_told_at_once() {
        let looks = looks(&[page("10", 1_000, "0.5"), page("10.75", 11_000, "0.5"), page("10.75", 11_000, "0.5")]);
        assert_eq!(looks[0], ["web-1 app 1000 None Some(43290624)"]);
        assert_eq!(looks[1], ["web-1 app 11000 Some(75) None", "web-1 app 11000 None Some(43290624)"]);
        // A kubelet that did not look again tells nothing new of cpu.
        assert_eq!(looks[2], ["web-1 app 11000 None Some(43290624)"]);
    }

    #[test]
    fn a_container_that_was_started_again_begins_anew() {
        let memory = |at: i64| format!("web-1 app {at} None Some(43290624)");
        let fewer = looks(&[page("10", 1_000, "0.5"), page("2", 11_000, "0.5"), page("3", 21_000, "0.5")]);
        assert_eq!(fewer[1], [memory(11_000)]);
        assert_eq!(fewer[2], ["web-1 app 21000 Some(100) None".to_owned(), memory(21_000)]);
        // It has already used more than the one before it had.
        let more = looks(&[page("10", 1_000, "0.5"), page("15", 11_000, "5")]);
        assert_eq!(more[1], [memory(11_000)]);
    }

    #[test]
    fn containers_that_are_gone_are_forgotten() {
        let mut counters = Counters::default();
        counters.read(&page("10", 1_000, "0.5"), &mut Taken::default());
        counters.forget();
        assert_eq!(counters.last.len(), 1);
        counters.forget();
        assert_eq!(counters.last.len(), 1);
        counters.forget();
        assert_eq!(counters.last.len(), 0);
    }

    #[test]
    fn lines_that_are_something_else_are_nothing() {
        for line in [
            "",
            "}{",
            "container_cpu_usage_seconds_total 1 2",
            r#"container_cpu_usage_seconds_total{container="a",namespace="b"} 1 2"#,
            r#"container_cpu_usage_seconds_total{container="a",namespace="b",pod="c"}"#,
            r#"container_cpu_usage_seconds_total{container="a",namespace="b",pod="c"} NaN 2"#,
            r#"container_cpu_usage_seconds_total{container="a",namespace="b",pod="c"} -1 2"#,
            r#"container_cpu_usage_seconds_total{container="a",namespace="b",pod="c"} 1 2 3"#,
            r#"container_cpu_usage_seconds_total{container="a",namespace="b",pod="c\"d"} 1 2"#,
            r#"container_cpu_usage_seconds_total{container=a,namespace="b",pod="c"} 1 2"#,
            r#"other{container="a",namespace="b",pod="c"} 1 2"#,
        ] {
            assert_eq!(read_line(line), None, "{line}");
        }
    }

    #[test]
    fn a_node_says_where_its_kubelet_listens() {
        let node = |status| serde_json::from_value::<Node>(json!({"status": status})).unwrap();
        let addresses = json!([{"type": "Hostname", "address": "n"}, {"type": "InternalIP", "address": "10.0.0.7"}]);
        let said = node(json!({"addresses": addresses, "daemonEndpoints": {"kubeletEndpoint": {"Port": 20250}}}));
        let silent = node(json!({"addresses": addresses}));
        assert_eq!([&said, &silent].map(|node| address(node).unwrap().port), [20250, 10250]);
        assert_eq!(address(&node(json!({"addresses": []}))), None);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            pod in "[a-z0-9.-]{1,20}", container in "[a-z0-9-]{1,20}", value in 0.0..1e12_f64, at in 0..i64::MAX,
        ) {
            let line = format!(
                r#"container_memory_working_set_bytes{{container="{container}",namespace="shop",pod="{pod}"}} {value} {at}"#
            );
            let point = Point { metric: Metric::MemoryBytes, namespace: "shop", pod: &pod, container: &container, value, at: Some(at) };
            prop_assert_eq!(read_line(&line), Some(point));
        }

        #[test]
        fn no_text_is_too_strange(text in ".*") {
            read_line(&text);
            Counters::default().read(&text, &mut Taken::default());
        }
    }
}
