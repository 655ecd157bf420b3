//! Pods that must end by themselves: a manager that sees to it, and how each container ended.

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{ContainerStateTerminated, Pod};
use kube::api::PostParams;
use pillion_testbed::Bed;
use serde_json::{Value, json};

use crate::manager::Manager;
use crate::pods;
use crate::scene::Scene;

/// The image of the agent.
pub const AGENT: &str = concat!("registry.local/pillion/agent:", env!("CARGO_PKG_VERSION"));

/// How sidecars are ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// As native sidecars.
    Native,
    /// By the agent as their parent.
    Wrap,
}

/// A manager that finishes pods, and a namespace that takes only restricted ones.
pub struct Finishing {
    /// The namespace.
    pub scene: Scene,
    mode: Mode,
    _manager: Manager,
}

impl Finishing {
    /// Starts a manager on a bed with a node, and waits until it rewrites pods.
    pub async fn start(bed: &Bed, mode: Mode) -> Result<Self> {
        let client = bed.cluster().client().await?;
        Manager::prepare(&client).await?;
        let flags = ["--feature-gates", "SidecarFinish=true", "--agent-image", AGENT];
        let manager = Manager::ready(bed.cluster(), &["webhook", "controller"], &flags).await?;
        let scene = Scene::open_on(bed.cluster().clone(), "finish").await?;
        let restricted = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": scene.namespace,
            "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}});
        scene.apply_to_cluster(&restricted).await?;
        let finishing = Self { scene, mode, _manager: manager };
        let tried = finishing.pod("tried", "Never", &[container("app", &[])], &[container("side", &[])]);
        finishing.scene.until_made(tried, "to be rewritten", |spec| spec.contains("\"initContainers\"")).await?;
        Ok(finishing)
    }

    /// A pod of mains and sidecars, marked by an annotation.
    pub fn pod(&self, name: &str, restart_policy: &str, mains: &[Value], sidecars: &[Value]) -> Value {
        let names: Vec<&str> = sidecars.iter().filter_map(|sidecar| sidecar["name"].as_str()).collect();
        // Sidecars first, so that their places change.
        let containers = [sidecars, mains].concat();
        json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "annotations": {
                "pillion.dev/sidecars": names.join(","), "pillion.dev/finish-mode": format!("{:?}", self.mode)}},
            "spec": {"restartPolicy": restart_policy, "terminationGracePeriodSeconds": 3,
                "containers": containers}})
    }

    /// Creates a pod and waits until it has ended.
    pub async fn ended(&self, pod: Value) -> Result<Pod> {
        let name = pod["metadata"]["name"].as_str().context("a pod has a name")?.to_owned();
        self.create(&pod).await?;
        self.scene.pod_until(&name, "to end", |pod| matches!(phase(pod), "Succeeded" | "Failed")).await
    }

    /// Creates a pod.
    pub async fn create(&self, pod: &Value) -> Result<()> {
        self.scene.api::<Pod>().create(&PostParams::default(), &serde_json::from_value(pod.clone())?).await?;
        Ok(())
    }

    /// Every line a container wrote, with its time.
    pub fn lines(&self, pod: &str, container: &str) -> Result<Vec<(k8s_openapi::jiff::Timestamp, String)>> {
        let output = self.scene.kubectl(&["logs", pod, "--container", container, "--timestamps"])?;
        let text = String::from_utf8(output.stdout)?;
        let lines = text.lines().filter_map(|line| line.split_once(' '));
        lines.map(|(at, line)| Ok((at.parse()?, line.to_owned()))).collect()
    }
}

/// A container of the test program, as a restricted namespace wants it, that says what it runs.
pub fn container(name: &str, arguments: &[&str]) -> Value {
    let mut container = pods::container(name, arguments);
    container["command"] = json!(["/testapp"]);
    container["securityContext"] = json!({"runAsNonRoot": true, "runAsUser": 1000, "allowPrivilegeEscalation": false,
        "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"}});
    container
}

/// The phase of a pod.
pub fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

/// How a container ended.
pub fn end<'a>(pod: &'a Pod, container: &str) -> Result<&'a ContainerStateTerminated> {
    let status = pods::status(pod, container).with_context(|| format!("{container} has no status"))?;
    let state = status.state.as_ref().and_then(|state| state.terminated.as_ref());
    state.with_context(|| format!("{container} has not ended: {}", json!(status.state)))
}

/// Code and reason of a container's end, and how often it was started again.
pub fn how<'a>(pod: &'a Pod, container: &str) -> Result<(i32, &'a str, i32)> {
    let end = end(pod, container)?;
    let restarts = pods::status(pod, container).map_or(-1, |status| status.restart_count);
    Ok((end.exit_code, end.reason.as_deref().unwrap_or_default(), restarts))
}

/// Whole seconds from the end of one container to the end of another.
pub fn seconds_between(pod: &Pod, first: &str, last: &str) -> Result<i64> {
    let at = |container: &str| -> Result<_> { Ok(end(pod, container)?.finished_at.as_ref().context("a time")?.0) };
    Ok(at(last)?.duration_since(at(first)?).as_secs())
}
