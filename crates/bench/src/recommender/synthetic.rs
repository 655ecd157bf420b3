//! A large cluster that is not there: what a pass costs without the API server. All that the manager keeps of pods and
//! autoscalers is kept, and samples come as the text that metrics-server would serve.

use std::fs;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use jiff::{SignedDuration, Timestamp};
use pillion_api::{LabelSelector, Selector, VerticalPodAutoscaler};
use pillion_manager::rightsizer::learn::Learner;
use pillion_manager::rightsizer::source::metrics_server::read_list;
use pillion_rightsize::{Autoscaler, ContainerType, Pod, RawPod, Settings};
use pillion_runtime::watch::Key;
use serde_json::{Value, json};

use super::{arm, feed};
use crate::cost;
use crate::output::print;

const NAMESPACES: usize = 50;
/// Pods of two containers, of each autoscaler.
const PODS_EACH: usize = 15;

#[derive(Args)]
pub(crate) struct Arguments {
    /// Autoscalers; each has fifteen pods of two containers.
    #[arg(long, default_value_t = 5_000)]
    autoscalers: usize,
    /// Passes, a minute apart in the time of the cluster.
    #[arg(long, default_value_t = 5)]
    passes: u64,
}

/// Measures in a process of its own, whose memory nothing else has touched.
pub(super) fn measure() -> Result<Value> {
    let output = Command::new(std::env::current_exe()?).arg("learn").output()?;
    ensure!(output.status.success(), "a pass without a cluster failed: {}", String::from_utf8_lossy(&output.stderr));
    Ok(serde_json::from_slice(&output.stdout)?)
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let start: Timestamp = "2026-01-01T00:00:00Z".parse()?;
    let settings = Settings { native_sidecars: true, ..Settings::default() };
    let mut learner = Learner::new(settings);
    let keys: Vec<Key> = (0..arguments.autoscalers).map(autoscaler_key).collect();
    for key in &keys {
        let meaning = Arc::new(autoscaler(key)?);
        let selector: LabelSelector = serde_json::from_value(json!({"matchLabels": {"app": &*key.name}}))?;
        let selector = Selector::compile(&selector).context("a selector of one label")?;
        let containers = [("app".into(), ContainerType::App), ("helper".into(), ContainerType::NativeSidecar)];
        learner.set(key, meaning, Some((&selector, &containers)));
    }
    // As the watch keeps them.
    let pods: Vec<Arc<Pod>> = (0..arguments.autoscalers * PODS_EACH)
        .map(|number| Ok(Arc::new(pod(number, arguments)?)))
        .collect::<Result<_>>()?;
    for pod in &pods {
        learner.observe(&Key::new(&pod.namespace, &pod.name), Some(pod));
    }
    let mut passes = Vec::new();
    for pass in 0..arguments.passes {
        let now = start.saturating_add(SignedDuration::from_mins(i64::try_from(pass)?))?;
        let names = pods.iter().map(|pod| (&*pod.namespace, &*pod.name));
        let text = feed::list(names, pass, now);
        let (begun, before) = (Instant::now(), cost::of(std::process::id())?);
        read_list(&text, &mut learner).map_err(anyhow::Error::msg)?;
        let recommended: usize =
            keys.iter().filter_map(|key| learner.findings(key)).map(|own| own.recommendation.containers.len()).sum();
        ensure!(recommended == keys.len() * 2, "{recommended} containers have a recommendation");
        let due = learner.due(now, Duration::from_mins(10));
        for due in &due {
            learner.saved(due, now);
        }
        let spent = cost::of(std::process::id())? - before;
        passes.push(json!({"seconds": begun.elapsed().as_secs_f64(), "cpu_ms": arm::float(spent) / 1e6,
            "checkpoints": due.len(), "bytes_of_samples": text.len()}));
    }
    let own = std::process::id();
    let report = json!({"containers": pods.len() * 2, "autoscalers": keys.len(), "passes": passes,
        "resident_mib": arm::mebibytes(own, "VmRSS")?, "peak_mib": arm::mebibytes(own, "VmHWM")?,
        "load": fs::read_to_string("/proc/loadavg")?.trim()});
    print(&format!("{report:#}"));
    Ok(())
}

fn autoscaler_key(number: usize) -> Key {
    Key::new(&format!("team-{:02}", number % NAMESPACES), &format!("app-{number:04}"))
}

fn autoscaler(key: &Key) -> Result<Autoscaler> {
    let object: VerticalPodAutoscaler = serde_json::from_value(json!({
        "metadata": {"name": &*key.name, "namespace": &*key.namespace, "uid": format!("u-{key}")},
        "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": &*key.name}},
    }))?;
    Autoscaler::read(&object).map_err(anyhow::Error::msg)
}

fn pod(number: usize, arguments: &Arguments) -> Result<Pod> {
    let key = autoscaler_key(number % arguments.autoscalers);
    let name = format!("{}-5d8c7b9f4-{number:05}", key.name);
    let owner = format!("{}-5d8c7b9f4", key.name);
    let status = |container: &str| {
        json!({"name": container, "restartCount": 0, "ready": true, "started": true,
            "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}})
    };
    let resources = json!({"requests": {"cpu": "100m", "memory": "200Mi"}, "limits": {"memory": "400Mi"}});
    let raw: RawPod = serde_json::from_value(json!({
        "metadata": {"name": name, "namespace": &*key.namespace, "uid": format!("{number:08x}-0000-4000-8000-000000000000"),
            "labels": {"app": &*key.name, "pod-template-hash": "5d8c7b9f4"}, "creationTimestamp": "2026-01-01T00:00:00Z",
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": owner, "controller": true}]},
        "spec": {"nodeName": format!("node-{:03}", number % 500), "containers": [{"name": "app", "resources": resources}],
            "initContainers": [{"name": "helper", "restartPolicy": "Always", "resources": resources}]},
        "status": {"phase": "Running", "qosClass": "Burstable", "startTime": "2026-01-01T00:00:00Z",
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
            "containerStatuses": [status("app")], "initContainerStatuses": [status("helper")]},
    }))?;
    Ok(Pod::read(raw))
}
