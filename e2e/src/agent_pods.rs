//! Pods of an app with a real agent beside it, brought by an installation with all its fences.

use std::fs;
use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams};
use pillion_testbed::{Bed, Look, until};
use serde_json::{Value, json};

use crate::finishing::AGENT;
use crate::manager::{Manager, NAMESPACE};
use crate::scene::Scene;
use crate::{agents, finishing, pods, programs};

/// How long anything may take.
const PATIENCE: Duration = Duration::from_mins(2);

/// A manager that brings agents into pods, and a namespace for them.
pub struct Agents {
    /// The namespace.
    pub scene: Scene,
    _managers: [Manager; 2],
}

impl Agents {
    /// Starts a manager on a bed with a node, behind the fences of the chart.
    pub async fn start(bed: &Bed) -> Result<Self> {
        agents::install(bed).await?;
        let controller = agents::controller(bed.cluster()).await?;
        let gate = ["--feature-gates", "InPodAgent=true"];
        let manager = Manager::ready(bed.cluster(), &["webhook", "controller"], &gate).await?;
        let scene = Scene::open_on(bed.cluster().clone(), "agent").await?;
        Ok(Self { scene, _managers: [manager, controller] })
    }

    /// Brings agents with a configuration into pods with the label `app`, by the command that people use, and waits
    /// until a new pod gets one and everything it needs.
    pub async fn install(&self, config: &str, app: &str, flags: &[&str]) -> Result<()> {
        let selector = format!("app={app}");
        let mut all = vec!["agent", "sidecarset", "-", "--name", app, "--config-name", app, "--image", AGENT];
        all.extend(["--pillion-namespace", NAMESPACE, "--selector", &selector]);
        all.extend(flags);
        let manifests = programs::pillion(&all, config)?;
        let documents: Vec<Option<Value>> = serde_saphyr::from_multiple(&manifests)?;
        for mut object in documents.into_iter().flatten() {
            // Images of the bed are nowhere to be pulled from.
            for list in ["/spec/containers", "/spec/initContainers"] {
                for container in object.pointer_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
                    container["imagePullPolicy"] = "Never".into();
                }
            }
            self.scene.apply_to_cluster(&object).await?;
        }
        self.scene
            .until_made(app_pod(app, app, &[]), "to get the agent", |spec| spec.contains("\"pillion-agent\""))
            .await
    }

    /// The pods of an app that are not being deleted.
    pub async fn pods(&self, app: &str) -> Result<Vec<Pod>> {
        let listed = Api::<Pod>::namespaced(self.scene.client.clone(), &self.scene.namespace)
            .list(&ListParams::default().labels(&format!("app={app}")))
            .await?;
        Ok(listed.items.into_iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()).collect())
    }

    /// Waits until the pods of an app are as many as wanted and all Ready.
    pub async fn until_ready(&self, app: &str, count: usize) -> Result<Vec<Pod>> {
        let what = format!("{count} pods of {app} to be Ready");
        let found = until(&what, PATIENCE, || async {
            let found = self.pods(app).await.map_err(|error| error.to_string());
            Ok(match found {
                Ok(found) if found.len() == count && found.iter().all(pods::is_ready) => Look::Done(found),
                Ok(found) => Look::NotYet(json!(found.iter().map(|pod| &pod.status).collect::<Vec<_>>()).to_string()),
                Err(error) => Look::NotYet(error),
            })
        });
        Ok(found.await?)
    }

    /// How often agents wrote to pods, by the audit log. An empty patch is how they read.
    pub fn writes(&self, pod: &str) -> Result<usize> {
        let account = format!("system:serviceaccount:{}:pillion-agent-", self.scene.namespace);
        let mut writes = 0;
        for line in fs::read_to_string(self.scene.cluster.audit_log())?.lines() {
            let event: Value = serde_json::from_str(line)?;
            let is_agent = event["user"]["username"].as_str().is_some_and(|user| user.starts_with(&account));
            let is_of_pod = event["objectRef"]["resource"] == "pods" && event["objectRef"]["name"] == pod;
            writes += usize::from(is_agent && is_of_pod && event["requestObject"] != json!({}));
        }
        Ok(writes)
    }

    /// Has the app of a pod say a word from now on.
    pub fn say(&self, pod: &str, status: u16, word: &str) -> Result<()> {
        let url = format!("http://127.0.0.1:8080/word?status={status}");
        let command = ["exec", pod, "--container", "app", "--", "/testapp", "probe", &url, "--post", word];
        let output = self.scene.kubectl(&command)?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(())
    }
}

/// A pod of the test program that serves on port 8080.
pub fn app_pod(name: &str, app: &str, arguments: &[&str]) -> Value {
    let all = [&["--port", "8080"], arguments].concat();
    let mut pod = pods::pod(name, &[], &[finishing::container("app", &all)]);
    pod["metadata"]["labels"] = json!({"app": app});
    // One for all containers: a signal needs the same user.
    pod["spec"]["securityContext"] = json!({"runAsUser": 1000, "runAsNonRoot": true, "fsGroup": 1000});
    pod
}

/// A Deployment of such pods.
pub fn app_deployment(app: &str, replicas: u32, arguments: &[&str]) -> Value {
    let mut template = app_pod(app, app, arguments);
    template["metadata"].as_object_mut().expect("a pod has metadata").remove("name");
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": app}, "spec": {
        "replicas": replicas, "selector": {"matchLabels": {"app": app}},
        "template": {"metadata": template["metadata"], "spec": template["spec"]}}})
}
