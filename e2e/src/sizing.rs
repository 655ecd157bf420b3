//! Right-sizing on a bed: the chart with its rights and fences, roles that run with them, and short ways to read what comes
//! of it. Intervals and half-lives are short; everything else is as users have it.

use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt as _};
use pillion_api::{RecommendedContainerResources, VerticalPodAutoscaler, VerticalPodAutoscalerStatus};
use pillion_testbed::{Bed, Cluster, Look, until};
use serde_json::{Value, json};

use crate::agents::kubeconfig_of;
use crate::chart::{helm, said};
use crate::manager::Manager;
use crate::pods;

/// How long anything may take that nothing is promised about: a first sample alone takes half a minute.
pub const PATIENCE: Duration = Duration::from_mins(4);

/// Passes in seconds, history of minutes, and floors below what the tests use.
pub const FAST: [&str; 12] = [
    "--recommender-interval=2s",
    "--updater-interval=2s",
    "--checkpoints-interval=5s",
    "--checkpoints-gc-interval=5s",
    "--confidence-interval-cpu=1m",
    "--confidence-interval-memory=1m",
    "--cpu-histogram-decay-half-life=1m",
    "--memory-histogram-decay-half-life=1m",
    "--memory-aggregation-interval=1m",
    "--pod-recommendation-min-memory-mb=8",
    "--pod-recommendation-min-cpu-millicores=5",
    "--lease=2s",
];

/// A cluster whose chart is installed with right-sizing. Nothing of it runs: what does, the test starts.
pub async fn install(bed: &Bed) -> Result<Client> {
    install_with(bed, &[]).await
}

/// The same with more values of the chart.
pub async fn install_with(bed: &Bed, values: &[&str]) -> Result<Client> {
    let client = bed.client().await?;
    // Our images are not for the nodes of a bed.
    let values = [&["rightsizing.enabled=true", "nodeSelector.pillion\\.dev/nowhere=yes"], values].concat();
    said(helm(bed.cluster(), "install", &values, &["--create-namespace"])?)?;
    let group = "/apis/autoscaling.k8s.io/v1";
    let (objects, checkpoints) =
        (format!("{group}/verticalpodautoscalers"), format!("{group}/verticalpodautoscalercheckpoints"));
    Manager::until_served(&client, &[&objects, &checkpoints, "/apis/apps.kruise.io/v1alpha1/sidecarsets"]).await?;
    Ok(client)
}

/// Starts the rightsizer with the rights it has in real life, and waits until it is ready; native sidecars by their gate.
pub async fn rightsizer(cluster: &Cluster, native_sidecars: bool, flags: &[&str]) -> Result<Manager> {
    rightsizer_with(cluster, &format!("NativeSidecar={native_sidecars}"), flags).await
}

/// The same with these gates.
pub async fn rightsizer_with(cluster: &Cluster, gates: &str, flags: &[&str]) -> Result<Manager> {
    let kubeconfig = kubeconfig_of(cluster, "pillion-rightsizer").await?;
    let gates = format!("--feature-gates={gates}");
    let flags = [&FAST[..], &["--rightsizing", gates.as_str()], flags].concat();
    let manager = Manager::start_as(cluster, &kubeconfig, &["rightsizer"], &flags).await?;
    manager.until_ready().await?;
    Ok(manager)
}

/// An autoscaler of a Deployment of the same name.
pub fn autoscaler(namespace: &str, name: &str, mode: &str) -> Value {
    json!({"apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscaler", "metadata": {"name": name, "namespace": namespace},
        "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "recommenders": [{"name": "pillion"}], "updatePolicy": {"updateMode": mode}}})
}

/// Lets an autoscaler want exactly this much for a container, whatever it uses: cpu and memory.
pub fn fix(autoscaler: &mut Value, container: &str, cpu: &str, memory: &str) {
    let amounts = json!({"cpu": cpu, "memory": memory});
    let policy = json!({"containerName": container, "minAllowed": amounts, "maxAllowed": amounts});
    let spec = &mut autoscaler["spec"];
    if spec["resourcePolicy"].is_null() {
        spec["resourcePolicy"] = json!({"containerPolicies": []});
    }
    if let Some(policies) = spec["resourcePolicy"]["containerPolicies"].as_array_mut() {
        policies.retain(|own| own["containerName"] != container);
        policies.push(policy);
    }
}

/// What was learned of a container, as upstream keeps it: enough to recommend by, without anybody who measures.
pub fn checkpoint(namespace: &str, autoscaler: &str, container: &str) -> Value {
    let now = k8s_openapi::jiff::Timestamp::now();
    let histogram = json!({"referenceTimestamp": now, "bucketWeights": {"1": 10000}, "totalWeight": 1.0});
    json!({"apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscalerCheckpoint",
        "metadata": {"name": format!("{autoscaler}-{container}"), "namespace": namespace},
        "spec": {"vpaObjectName": autoscaler, "containerName": container},
        "status": {"version": "v3", "totalSamplesCount": 100, "firstSampleStart": now, "lastSampleStart": now,
            "lastUpdateTime": now, "cpuHistogram": histogram, "memoryHistogram": histogram}})
}

/// A Deployment with an app that does little, a native sidecar that burns cpu and holds memory, and a plain init container;
/// all ask for less than the sidecar needs.
pub fn deployment(namespace: &str, name: &str, replicas: u32) -> Value {
    let asks = json!({"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"cpu": "1", "memory": "128Mi"}});
    let sized = |mut container: Value| {
        container["resources"] = asks.clone();
        container
    };
    let labels = json!({"app": name});
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": namespace}, "spec": {
    "replicas": replicas, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": {
        "terminationGracePeriodSeconds": 1,
        "initContainers": [
            sized(pods::container("setup", &["--exit-after=0s"])),
            sized(pods::sidecar("side", &["--hold=48Mi", "--burn=100", "--port=9000"])),
        ],
        "containers": [sized(pods::container("app", &[]))],
    }}}})
}

/// The pods of a Deployment that are not on their way out.
pub async fn pods_of(client: &Client, namespace: &str, name: &str) -> Result<Vec<Pod>> {
    let api = Api::<Pod>::namespaced(client.clone(), namespace);
    let listed = api.list(&ListParams::default().labels(&format!("app={name}"))).await?;
    Ok(listed.items.into_iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()).collect())
}

/// Waits until the pods of a Deployment are as they should be.
pub async fn pods_until<T>(
    client: &Client,
    (namespace, name): (&str, &str),
    what: &str,
    look: impl Fn(&[Pod]) -> Option<T>,
) -> Result<T> {
    let waited = until(what, PATIENCE, || async {
        let pods = match pods_of(client, namespace, name).await {
            Ok(pods) => pods,
            Err(error) => return Ok(Look::NotYet(error.to_string())),
        };
        Ok(match look(&pods) {
            Some(found) => Look::Done(found),
            None => Look::NotYet(shown(&pods)),
        })
    });
    Ok(waited.await?)
}

/// Waits until the status of an autoscaler is as it should be.
pub async fn status_until<T>(
    client: &Client,
    (namespace, name): (&str, &str),
    what: &str,
    look: impl Fn(&VerticalPodAutoscalerStatus) -> Option<T>,
) -> Result<T> {
    let api = Api::<VerticalPodAutoscaler>::namespaced(client.clone(), namespace);
    let waited = until(what, PATIENCE, || async {
        let status = match api.get(name).await {
            Ok(object) => object.status.unwrap_or_default(),
            Err(error) => return Ok(Look::NotYet(error.to_string())),
        };
        Ok(match look(&status) {
            Some(found) => Look::Done(found),
            None => Look::NotYet(json!(status).to_string()),
        })
    });
    Ok(waited.await?)
}

/// What is recommended for a container.
pub fn recommended<'a>(
    status: &'a VerticalPodAutoscalerStatus,
    container: &str,
) -> Option<&'a RecommendedContainerResources> {
    let containers = status.recommendation.as_ref()?.container_recommendations.as_ref()?;
    containers.iter().find(|own| own.container_name.as_deref() == Some(container))
}

/// The containers that something is recommended for.
pub fn names(status: &VerticalPodAutoscalerStatus) -> Vec<String> {
    let containers = status.recommendation.iter().flat_map(|it| it.container_recommendations.iter().flatten());
    containers.filter_map(|own| own.container_name.clone()).collect()
}

/// The reason of a condition that has this status.
pub fn reason(status: &VerticalPodAutoscalerStatus, kind: &str, holds: &str) -> Option<String> {
    let mut conditions = status.conditions.iter().flatten();
    conditions.find(|it| it.kind == kind && it.status == holds)?.reason.clone()
}

/// The message of a condition that has this reason.
pub fn message(status: &VerticalPodAutoscalerStatus, reason: &str) -> Option<String> {
    let mut conditions = status.conditions.iter().flatten();
    conditions.find(|it| it.reason.as_deref() == Some(reason))?.message.clone()
}

/// What a container of a pod asks for, as the pod says it.
pub fn asks(pod: &Pod, container: &str) -> Value {
    let spec = json!(pod.spec);
    let lists =
        ["initContainers", "containers"].into_iter().flat_map(|list| spec[list].as_array().into_iter().flatten());
    let found = lists.into_iter().find(|own| own["name"] == container);
    found.map_or(Value::Null, |own| own["resources"].clone())
}

/// Bytes of an amount of memory, and millicores of an amount of cpu.
pub fn amount(resource: pillion_quantity::Resource, text: &Value) -> Result<i128> {
    let quantity: pillion_quantity::Quantity = text.as_str().context("no amount")?.parse()?;
    Ok(match resource {
        pillion_quantity::Resource::Cpu => quantity.milli_value(),
        pillion_quantity::Resource::Memory => quantity.value(),
    })
}

fn shown(pods: &[Pod]) -> String {
    let all = pods.iter().map(|pod| {
        let status = json!(pod.status);
        format!(
            "{}: side {} {} app {} conditions {}",
            pod.name_any(),
            asks(pod, "side"),
            status["initContainerStatuses"][1]["resources"],
            asks(pod, "app"),
            status["conditions"]
        )
    });
    all.collect::<Vec<_>>().join("; ")
}
