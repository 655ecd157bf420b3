//! The workloads of the kinds every cluster has, read as far as sizing looks at them: whose pods they select, how many they
//! should be, and what stands above them.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use arc_swap::ArcSwap;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{ApiResource, GroupVersionKind};
use kube::core::DynamicResourceScope;
use kube::{Api, Client, Resource};
use pillion_api::{LabelSelector, Selector};
use pillion_rightsize::ContainerType;
use pillion_runtime::watch::{Freshness, Key, Listing, Selection, Store, WatchMetrics, watch};
use serde::Deserialize;
use serde_json::Value;

/// Names of namespaces, for a watch that keeps nothing of the others.
pub(super) type Namespaces = Arc<ArcSwap<BTreeSet<Box<str>>>>;

/// The kinds: group, version, kind, and the name of the watch.
const KINDS: [(&str, &str, &str, &str); 7] = [
    ("apps", "v1", "Deployment", "sized_deployments"),
    ("apps", "v1", "ReplicaSet", "sized_replica_sets"),
    ("apps", "v1", "StatefulSet", "sized_stateful_sets"),
    ("apps", "v1", "DaemonSet", "sized_daemon_sets"),
    ("", "v1", "ReplicationController", "sized_replication_controllers"),
    ("batch", "v1", "Job", "sized_jobs"),
    ("batch", "v1", "CronJob", "sized_cron_jobs"),
];

/// A workload, as far as it is looked at.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Workload {
    pub(super) uid: Box<str>,
    /// What made it: kind and name.
    pub(super) above: Option<(Box<str>, Box<str>)>,
    /// How many pods it should have, where that can be said: of a `DaemonSet`, how many are ready.
    pub(super) replicas: Option<u32>,
    /// Which pods are its own.
    pub(super) selector: Option<Selector>,
    /// The containers of its template, without those that start and end before the others.
    pub(super) containers: Box<[(Box<str>, ContainerType)]>,
}

/// All of them.
#[derive(Clone)]
pub(super) struct Workloads {
    /// In the order of the kinds.
    stores: [Store<Arc<Workload>>; 7],
}

impl Workloads {
    /// Watches workloads of these namespaces while the future runs. Whoever adds a namespace has them listed again.
    pub(super) fn watch(
        client: &Client,
        namespaces: &Namespaces,
        metrics: &WatchMetrics,
    ) -> (Self, BoxFuture<'static, ()>) {
        let mut drivers = Vec::new();
        let stores = KINDS.map(|(group, version, kind, name)| {
            let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
            let api = Api::<SlimWorkload>::all_with(client.clone(), &resource);
            let selection = Selection { freshness: Freshness::Any, ..Selection::default() };
            let namespaces = Arc::clone(namespaces);
            let (store, driver) = watch(name, api, selection, metrics, move |object: SlimWorkload| {
                let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
                namespaces.load().contains(namespace).then(|| Arc::new(object.workload))
            });
            drivers.push(driver.boxed());
            store
        });
        (Self { stores }, futures::future::join_all(drivers).map(drop).boxed())
    }

    /// Waits until all of them are known.
    pub(super) async fn completed(&self) {
        futures::future::join_all(self.stores.iter().map(|store| store.completed().boxed())).await;
    }

    /// Has all of them listed again.
    pub(super) fn list_again(&self) -> Vec<Listing> {
        self.stores.iter().map(Store::list_again).collect()
    }

    /// Whether all that was asked for has been listed.
    pub(super) fn has_listed(&self, listings: &[Listing]) -> bool {
        self.stores.iter().zip(listings).all(|(store, listing)| store.has_listed(*listing))
    }

    /// Whether a kind is one of these.
    pub(super) fn knows(kind: &str) -> bool {
        KINDS.iter().any(|(.., own, _)| *own == kind)
    }

    /// A workload.
    pub(super) fn get(&self, namespace: &str, kind: &str, name: &str) -> Option<Arc<Workload>> {
        let at = KINDS.iter().position(|(.., own, _)| *own == kind)?;
        self.stores[at].get(&Key::new(namespace, name))
    }

    /// The object a person knows: what stands above all others over this one, by kind and name.
    pub(super) fn topmost(&self, namespace: &str, kind: &str, name: &str) -> (Box<str>, Box<str>) {
        let (mut kind, mut name): (Box<str>, Box<str>) = (kind.into(), name.into());
        // Nobody has more; and a circle has an end.
        for _ in 0..KINDS.len() {
            match self.get(namespace, &kind, &name).and_then(|workload| workload.above.clone()) {
                Some(above) => (kind, name) = above,
                None => break,
            }
        }
        (kind, name)
    }
}

/// A workload as the API server tells it.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "RawWorkload")]
struct SlimWorkload {
    metadata: ObjectMeta,
    workload: Workload,
}

#[derive(Clone, Debug, Deserialize)]
struct RawWorkload {
    #[serde(default)]
    metadata: RawMetadata,
    #[serde(default)]
    spec: RawSpec,
    #[serde(default)]
    status: RawStatus,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawMetadata {
    namespace: Option<String>,
    name: Option<String>,
    uid: Option<Box<str>>,
    resource_version: Option<String>,
    owner_references: Option<Vec<RawOwner>>,
}

#[derive(Clone, Debug, Deserialize)]
struct RawOwner {
    kind: Box<str>,
    name: Box<str>,
    controller: Option<bool>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawSpec {
    replicas: Option<u32>,
    /// Of a `ReplicationController` only labels, of others a selector.
    selector: Option<Value>,
    template: Option<RawTemplate>,
    job_template: Option<RawJob>,
}

#[derive(Clone, Debug, Deserialize)]
struct RawJob {
    spec: RawJobSpec,
}

#[derive(Clone, Debug, Deserialize)]
struct RawJobSpec {
    template: RawTemplate,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct RawTemplate {
    #[serde(default)]
    metadata: RawTemplateMetadata,
    #[serde(default)]
    spec: RawTemplateSpec,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct RawTemplateMetadata {
    labels: Option<Value>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawTemplateSpec {
    containers: Option<Vec<RawContainer>>,
    init_containers: Option<Vec<RawContainer>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawContainer {
    name: Box<str>,
    restart_policy: Option<Box<str>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawStatus {
    number_ready: Option<u32>,
}

impl From<RawWorkload> for SlimWorkload {
    fn from(raw: RawWorkload) -> Self {
        let RawWorkload { metadata, spec, status } = raw;
        let template = spec.template.or(spec.job_template.map(|job| job.spec.template)).unwrap_or_default();
        // A CronJob has no selector, and makes pods with the labels of its template.
        let selector = spec.selector.or_else(|| template.metadata.labels.clone()).and_then(selector);
        let owners = metadata.owner_references.unwrap_or_default();
        let above = owners.into_iter().find(|owner| owner.controller == Some(true));
        let sidecars = template.spec.init_containers.unwrap_or_default().into_iter();
        let sidecars = sidecars.filter(|container| container.restart_policy.as_deref() == Some("Always"));
        let apps = template.spec.containers.unwrap_or_default().into_iter();
        let containers = sidecars
            .map(|container| (container.name, ContainerType::NativeSidecar))
            .chain(apps.map(|container| (container.name, ContainerType::App)));
        Self {
            workload: Workload {
                uid: metadata.uid.unwrap_or_default(),
                above: above.map(|owner| (owner.kind, owner.name)),
                replicas: status.number_ready.or(spec.replicas),
                selector,
                containers: containers.collect(),
            },
            metadata: ObjectMeta {
                namespace: metadata.namespace,
                name: metadata.name,
                resource_version: metadata.resource_version,
                ..ObjectMeta::default()
            },
        }
    }
}

/// Reads a selector, or labels that are one.
fn selector(stored: Value) -> Option<Selector> {
    let is_selector = stored.as_object()?.keys().all(|key| key == "matchLabels" || key == "matchExpressions");
    let stored = if is_selector { stored } else { serde_json::json!({"matchLabels": stored}) };
    Selector::compile(&serde_json::from_value::<LabelSelector>(stored).ok()?)
}

impl Resource for SlimWorkload {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(resource: &ApiResource) -> Cow<'_, str> {
        resource.kind.as_str().into()
    }

    fn group(resource: &ApiResource) -> Cow<'_, str> {
        resource.group.as_str().into()
    }

    fn version(resource: &ApiResource) -> Cow<'_, str> {
        resource.version.as_str().into()
    }

    fn plural(resource: &ApiResource) -> Cow<'_, str> {
        resource.plural.as_str().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(object: Value) -> Workload {
        serde_json::from_value::<SlimWorkload>(object).unwrap().workload
    }

    fn matches(workload: &Workload, labels: &[(&str, &'static str)]) -> bool {
        let label = |key: &str| labels.iter().find(|(own, _)| *own == key).map(|(_, value)| *value);
        workload.selector.as_ref().is_some_and(|selector| selector.matches(label))
    }

    #[test]
    fn of_a_workload_is_kept_what_is_looked_at() {
        let set = read(json!({"metadata": {"name": "web-5d", "namespace": "shop", "uid": "u-1",
                "ownerReferences": [{"kind": "Other", "name": "o"}, {"kind": "Deployment", "name": "web", "controller": true}]},
            "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "old", "operator": "DoesNotExist"}]},
                "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "app"}],
                    "initContainers": [{"name": "setup"}, {"name": "proxy", "restartPolicy": "Always"}]}}}}));
        assert_eq!((&*set.uid, set.replicas), ("u-1", Some(3)));
        assert_eq!(set.above, Some(("Deployment".into(), "web".into())));
        let containers: Vec<_> = set.containers.iter().map(|(name, kind)| (&**name, *kind)).collect();
        assert_eq!(containers, [("proxy", ContainerType::NativeSidecar), ("app", ContainerType::App)]);
        assert!(matches(&set, &[("app", "web")]) && !matches(&set, &[("app", "web"), ("old", "1")]));
    }

    #[test]
    fn labels_alone_are_a_selector_too() {
        let controller = read(json!({"metadata": {}, "spec": {"replicas": 2, "selector": {"app": "old"}}}));
        assert!(matches(&controller, &[("app", "old")]) && !matches(&controller, &[("app", "web")]));
        let template = json!({"metadata": {"labels": {"job": "night"}}, "spec": {"containers": [{"name": "app"}]}});
        let cron = read(json!({"metadata": {}, "spec": {"jobTemplate": {"spec": {"template": template}}}}));
        assert!(matches(&cron, &[("job", "night")]));
        assert_eq!(cron.containers.len(), 1);
    }

    #[test]
    fn of_a_daemon_set_counts_how_many_are_ready() {
        let set = read(json!({"metadata": {}, "spec": {}, "status": {"numberReady": 5, "desiredNumberScheduled": 6}}));
        assert_eq!(set.replicas, Some(5));
    }
}
