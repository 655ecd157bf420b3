//! A test's own namespace on the shared bed.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::process::Output;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{Namespace, Pod, ServiceAccount};
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, PostParams};
use kube::core::{GroupVersionKind, NamespaceResourceScope};
use kube::{Client, Resource};
use pillion_testbed::{Cluster, Look, apply, until};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::leftovers::{everything, left, no_processes};
use crate::pods;

/// How long anything on the shared bed may take.
const PATIENCE: Duration = Duration::from_mins(1);
/// Field manager of what tests apply.
const MANAGER: &str = "e2e";

/// A namespace of the test's own, deleted in the background when the test ends. [`Scene::close`] it at the end of the test.
pub struct Scene {
    /// The shared bed.
    pub cluster: Cluster,
    /// A client with all rights.
    pub client: Client,
    /// The namespace.
    pub namespace: String,
    /// Objects that were there before; nothing is compared on a bed that goes with the test.
    before: Option<BTreeSet<String>>,
    /// Objects of the cluster that this test applied, deleted when the scene is closed.
    applied: Mutex<Vec<Value>>,
    closed: bool,
}

impl Scene {
    /// Makes the namespace and waits until pods can be made in it.
    pub async fn open(name: &str) -> Result<Self> {
        let cluster = Cluster::from_environment()?;
        let before = everything(&cluster.client().await?).await?;
        Self::make(cluster, name, Some(before)).await
    }

    /// The same on a bed of the test's own.
    pub async fn open_on(cluster: Cluster, name: &str) -> Result<Self> {
        Self::make(cluster, name, None).await
    }

    async fn make(cluster: Cluster, name: &str, before: Option<BTreeSet<String>>) -> Result<Self> {
        let client = cluster.client().await?;
        let namespace = format!("{name}-{}", std::process::id());
        let scene = Self { cluster, client, namespace, before, applied: Mutex::default(), closed: false };
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": scene.namespace}});
        apply(&scene.client, MANAGER, &object).await?;
        scene.until::<ServiceAccount, _>("default", "to exist", |_| Look::Done(())).await?;
        Ok(scene)
    }

    /// The test is over and all was well. Deletes what the test applied to the cluster, and fails if the test left an object
    /// or a process behind for the next one. A scene that is not closed prints what it sees.
    pub async fn close(mut self) -> Result<()> {
        let applied = std::mem::take(&mut *self.applied.lock().unwrap_or_else(PoisonError::into_inner));
        if let Some(before) = self.before.take() {
            for object in applied.iter().rev() {
                self.delete_from_cluster(object).await?;
            }
            until("nothing of the test to be left", PATIENCE, || async {
                Ok(match self.left(&before).await {
                    Ok(left) if left.is_empty() => Look::Done(()),
                    Ok(left) => Look::NotYet(format!("the test left behind: {}", left.join(", "))),
                    Err(error) => Look::NotYet(error.to_string()),
                })
            })
            .await?;
            no_processes()?;
        }
        self.closed = true;
        Ok(())
    }

    async fn left(&self, before: &BTreeSet<String>) -> Result<Vec<String>> {
        let namespaces = Api::<Namespace>::all(self.client.clone()).list(&ListParams::default()).await?;
        let ending = namespaces.items.iter().filter(|it| it.metadata.deletion_timestamp.is_some());
        let ending: BTreeSet<String> = ending.map(kube::ResourceExt::name_any).collect();
        // A test may have several scenes; each deletes its own namespace.
        let own = format!("-{}", std::process::id());
        let goes = |namespace: &str| namespace.ends_with(&own) || ending.contains(namespace);
        Ok(left(before, &everything(&self.client).await?, goes))
    }

    async fn delete_from_cluster(&self, object: &Value) -> Result<()> {
        let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
        if text("/kind") == "Namespace" {
            return Ok(());
        }
        let (group, version) = text("/apiVersion").split_once('/').unwrap_or(("", text("/apiVersion")));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, text("/kind")));
        let api = Api::<DynamicObject>::all_with(self.client.clone(), &resource);
        match api.delete(text("/metadata/name"), &DeleteParams::default()).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The namespaced API of a kind.
    pub fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Creates or updates an object of this namespace.
    pub async fn apply(&self, mut object: Value) -> Result<()> {
        object["metadata"]["namespace"] = self.namespace.clone().into();
        apply(&self.client, MANAGER, &object).await?;
        Ok(())
    }

    /// Creates or updates an object of the whole cluster.
    pub async fn apply_to_cluster(&self, object: &Value) -> Result<()> {
        self.applied.lock().unwrap_or_else(PoisonError::into_inner).push(object.clone());
        apply(&self.client, MANAGER, object).await?;
        Ok(())
    }

    /// Waits until a look at the named object is done. An absent object counts as not yet.
    pub async fn until<K, T>(&self, name: &str, what: &str, look: impl Fn(&K) -> Look<T>) -> Result<T>
    where
        K: Resource<Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
        K::DynamicType: Default,
    {
        let api = self.api::<K>();
        let waited_for = format!("{name} {what}");
        let waited = until(&waited_for, PATIENCE, || async {
            Ok(match api.get_opt(name).await {
                Ok(Some(object)) => look(&object),
                Ok(None) => Look::NotYet("it is not there".to_owned()),
                Err(error) => Look::NotYet(error.to_string()),
            })
        });
        Ok(waited.await?)
    }

    /// Waits until a pod fulfils a condition, and returns it as it then was.
    pub async fn pod_until(&self, name: &str, what: &str, holds: impl Fn(&Pod) -> bool) -> Result<Pod> {
        self.until(name, what, |pod: &Pod| {
            if holds(pod) {
                return Look::Done(pod.clone());
            }
            Look::NotYet(format!("its status is {}", json!(pod.status)))
        })
        .await
    }

    /// Waits until a pod that is only tried comes back with a spec, as JSON, that is as it should be.
    pub async fn until_made(&self, pod: Value, what: &str, is_made: impl Fn(&str) -> bool) -> Result<()> {
        let pod: Pod = serde_json::from_value(pod)?;
        let dry = PostParams { dry_run: true, ..PostParams::default() };
        let waited_for = format!("pods {what}");
        let waited = until(&waited_for, PATIENCE, || async {
            Ok(match self.api::<Pod>().create(&dry, &pod).await.map(|pod| json!(pod.spec).to_string()) {
                Ok(spec) if is_made(&spec) => Look::Done(()),
                Ok(spec) => Look::NotYet(spec),
                Err(error) => Look::NotYet(error.to_string()),
            })
        });
        Ok(waited.await?)
    }

    /// Applies a pod and waits until it is Ready.
    pub async fn ready_pod(&self, pod: Value) -> Result<Pod> {
        let name = pod["metadata"]["name"].as_str().context("a pod needs a name")?.to_owned();
        self.apply(pod).await?;
        self.pod_until(&name, "to be Ready", pods::is_ready).await
    }

    /// Runs kubectl in this namespace and returns what it printed and how it ended.
    pub fn kubectl(&self, arguments: &[&str]) -> Result<Output> {
        Ok(self.cluster.kubectl(["--namespace", &self.namespace])?.args(arguments).output()?)
    }

    /// What the test program in a container tells about itself.
    pub fn state(&self, pod: &str, container: &str, port: u16) -> Result<Value> {
        let url = format!("http://127.0.0.1:{port}/state");
        let output = self.kubectl(&["exec", pod, "--container", container, "--", "/testapp", "probe", &url])?;
        ensure!(output.status.success(), "no state of {pod}/{container}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(serde_json::from_slice(&output.stdout)?)
    }
}

impl Drop for Scene {
    #[expect(clippy::print_stderr, reason = "what a failing test saw")]
    fn drop(&mut self) {
        if !self.closed {
            eprintln!("logs of the bed are in {}", self.cluster.logs().display());
            for question in [["get", "pods,jobs"], ["get", "events"]] {
                if let Ok(output) = self.kubectl(&question) {
                    eprintln!("--- kubectl {}\n{}", question.join(" "), String::from_utf8_lossy(&output.stdout));
                }
            }
        }
        let _ = self.kubectl(&["delete", "namespace", &self.namespace, "--wait=false"]);
    }
}
