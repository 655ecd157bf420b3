//! A set and pods to roll it out over, and short ways to read how far it is.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt as _};
use pillion_api::{PodRevisions, REVISIONS, SidecarSet, SidecarSetStatus};
use pillion_testbed::{Cluster, Look, apply, until};
use serde_json::{Value, json};

use crate::{Manager, pods};

const ROLES: [&str; 2] = ["webhook", "controller"];
const FAST: [&str; 2] = ["--updates-per-second", "1000"];
const SHORT_LEASE: [&str; 2] = ["--lease", "2s"];

/// How long anything may take that nothing is promised about: longer where more pods than usual are asked for.
fn patience() -> Duration {
    if std::env::var_os("PILLION_ROLLOUT_PODS").is_some() { Duration::from_mins(15) } else { Duration::from_mins(2) }
}

/// A cluster with a manager in it, and the namespace `default` for pods.
pub struct Rollout {
    /// The bed.
    pub cluster: Cluster,
    /// A client with all rights.
    pub client: Client,
}

impl Rollout {
    /// Prepares a bed for a manager that the test starts.
    pub async fn prepare(cluster: &Cluster) -> Result<Self> {
        let client = cluster.client().await?;
        Manager::prepare(&client).await?;
        Ok(Self { cluster: cluster.clone(), client })
    }

    /// Starts a manager with both roles, ready, whose lease is short.
    pub async fn manager(&self, flags: &[&str]) -> Result<Manager> {
        Manager::ready(&self.cluster, &ROLES, &[&FAST[..], &SHORT_LEASE, flags].concat()).await
    }

    /// The same with the lease it has in real life: a machine that is busy does not make it lose it.
    pub async fn steady_manager(&self) -> Result<Manager> {
        Manager::ready(&self.cluster, &ROLES, &FAST).await
    }

    /// A build of another version in the place of one.
    pub async fn upgrade(&self, manager: Manager) -> Result<Manager> {
        let address = manager.webhook();
        manager.stop().await?;
        Manager::next_version(&self.cluster, address, &ROLES, &FAST).await
    }

    /// All sets.
    pub fn sets(&self) -> Api<SidecarSet> {
        Api::all(self.client.clone())
    }

    /// All pods of the tests.
    pub fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), "default")
    }

    /// Writes a set of this name for pods with label `app` of the same value, with a sidecar `proxy`.
    pub async fn set(&self, name: &str, spec: Value) -> Result<()> {
        let mut set = set(name);
        for (key, value) in spec.as_object().context("a spec is an object")? {
            set["spec"][key] = value.clone();
        }
        apply(&self.client, "e2e", &set).await?;
        self.until_injecting(name).await
    }

    /// Changes a set.
    pub async fn edit(&self, name: &str, spec: Value) -> Result<()> {
        let patch = Patch::Merge(json!({"spec": spec}));
        self.sets().patch(name, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// Waits until a pod that is only tried comes back with the set's newest revision.
    pub async fn until_injecting(&self, name: &str) -> Result<()> {
        let pod: Pod = serde_json::from_value(pod("tried", name))?;
        let dry = PostParams { dry_run: true, ..PostParams::default() };
        let waited = until("the webhook to inject", patience(), || async {
            Ok(match self.pods().create(&dry, &pod).await {
                Ok(pod) if revision(&pod, name).is_some() => Look::Done(()),
                Ok(_) => Look::NotYet("not injected".to_owned()),
                Err(error) => Look::NotYet(error.to_string()),
            })
        });
        Ok(waited.await?)
    }

    /// Creates simulated pods for a set and waits until they are ready.
    pub async fn fleet(&self, set: &str, count: usize) -> Result<Vec<String>> {
        self.fleet_with(set, count, &json!({})).await
    }

    /// The same with more labels.
    pub async fn fleet_with(&self, set: &str, count: usize, labels: &Value) -> Result<Vec<String>> {
        let names: Vec<String> = (0..count).map(|at| format!("{set}-{at}")).collect();
        self.create(set, &names, labels).await?;
        Ok(names)
    }

    /// Creates simulated pods of these names for a set, sixteen at a time, and waits until they are ready.
    pub async fn create(&self, set: &str, names: &[String], labels: &Value) -> Result<()> {
        let api = &self.pods();
        stream::iter(names)
            .map(|name| async move {
                let mut pod = pods::on_fleet(pod(name, set));
                for (key, value) in labels.as_object().into_iter().flatten() {
                    pod["metadata"]["labels"][key] = value.clone();
                }
                let pod: Pod = serde_json::from_value(pod)?;
                api.create(&PostParams::default(), &pod).await.context("a pod")
            })
            .buffer_unordered(16)
            .try_for_each(|_| async { Ok(()) })
            .await?;
        self.until_ready(set, names.len()).await
    }

    /// Creates pods on the real node, with this grace period in seconds, and waits until they are ready.
    pub async fn on_node(&self, set: &str, count: usize, grace: u32) -> Result<()> {
        for at in 0..count {
            let mut pod = pod(&format!("{set}-{at}"), set);
            pod["spec"]["terminationGracePeriodSeconds"] = grace.into();
            self.pods().create(&PostParams::default(), &serde_json::from_value(pod)?).await?;
        }
        self.until_ready(set, count).await
    }

    async fn until_ready(&self, set: &str, count: usize) -> Result<()> {
        self.pods_until(set, &format!("{count} pods of {set} to be ready"), |pods| {
            let ready = pods.iter().filter(|pod| pods::is_ready(pod)).count();
            if ready >= count { Look::Done(()) } else { Look::NotYet(format!("{ready} ready")) }
        })
        .await
    }

    /// Waits until the pods of a set are as they should be.
    pub async fn pods_until<T>(&self, set: &str, what: &str, look: impl Fn(&[Pod]) -> Look<T>) -> Result<T> {
        let ours = ListParams::default().labels(&format!("app={set}"));
        let waited = until(what, patience(), || async {
            Ok(match self.pods().list(&ours).await {
                Ok(pods) => look(&pods.items),
                Err(error) => Look::NotYet(error.to_string()),
            })
        });
        Ok(waited.await?)
    }

    /// The pods of a set.
    pub async fn listed(&self, set: &str) -> Result<Vec<Pod>> {
        Ok(self.pods().list(&ListParams::default().labels(&format!("app={set}"))).await?.items)
    }

    /// Waits until the status of a set, of its present generation, is as it should be.
    pub async fn status_until(
        &self,
        set: &str,
        what: &str,
        holds: impl Fn(&SidecarSetStatus) -> bool,
    ) -> Result<SidecarSetStatus> {
        let what = format!("{set}: {what}");
        let waited = until(&what, patience(), || async {
            Ok(match self.sets().get(set).await {
                Ok(set) => match set.status {
                    Some(status) if status.observed_generation == set.metadata.generation && holds(&status) => {
                        Look::Done(status)
                    }
                    status => Look::NotYet(json!(status).to_string()),
                },
                Err(error) => Look::NotYet(error.to_string()),
            })
        });
        Ok(waited.await?)
    }

    /// Waits until all pods of a set have its newest revision, run it and are ready, and the status says so.
    pub async fn until_done(&self, set: &str, pods: i32) -> Result<SidecarSetStatus> {
        self.status_until(set, "all pods to be updated", |status| {
            let counts = [status.matched_pods, status.updated_pods, status.updated_ready_pods, status.ready_pods];
            counts == [Some(pods); 4] && condition(status, "Progressing") == Some(("False", "UpToDate"))
        })
        .await
    }

    /// What kubectl prints.
    pub fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        let output = self.cluster.kubectl(arguments)?.output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "kubectl {arguments:?}: {said}");
        Ok(String::from_utf8(output.stdout)?)
    }
}

/// A set of this name for pods with label `app` of the same value, with a native sidecar `proxy`.
pub fn set(name: &str) -> Value {
    json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "SidecarSet", "metadata": {"name": name}, "spec": {
        "selector": {"matchLabels": {"app": name}}, "initContainers": [proxy(pods::V1)]}})
}

/// The sidecar with this image.
pub fn proxy(image: &str) -> Value {
    let mut proxy = pods::sidecar("proxy", &[]);
    proxy["image"] = image.into();
    proxy
}

/// A pod for a set.
pub fn pod(name: &str, set: &str) -> Value {
    let mut pod = pods::pod(name, &[], &[pods::container("main", &[])]);
    pod["metadata"]["labels"] = json!({"app": set});
    pod
}

/// The revision a pod has of a set.
pub fn revision(pod: &Pod, set: &str) -> Option<String> {
    let revisions = PodRevisions::parse(pod.annotations().get(REVISIONS)?)?;
    Some(revisions.of(set)?.is.clone())
}

/// The image a container should run.
pub fn image(pod: &Pod, container: &str) -> Option<String> {
    let spec = pod.spec.as_ref()?;
    let mut all = spec.init_containers.iter().flatten().chain(&spec.containers);
    all.find(|it| it.name == container)?.image.clone()
}

/// How many pods should run each image of a container.
pub fn images(pods: &[Pod], container: &str) -> BTreeMap<String, usize> {
    let mut images = BTreeMap::new();
    for image in pods.iter().filter_map(|pod| image(pod, container)) {
        *images.entry(image).or_default() += 1;
    }
    images
}

/// Status and reason of a condition.
pub fn condition<'a>(status: &'a SidecarSetStatus, kind: &str) -> Option<(&'a str, &'a str)> {
    let condition = status.conditions.iter().flatten().find(|it| it.type_ == kind)?;
    Some((condition.status.as_str(), condition.reason.as_str()))
}

/// The message of a condition.
pub fn message<'a>(status: &'a SidecarSetStatus, kind: &str) -> &'a str {
    status.conditions.iter().flatten().find(|it| it.type_ == kind).map_or("", |it| it.message.as_str())
}
