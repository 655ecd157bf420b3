//! What reviews are answered from: all sets, compiled, and the namespaces.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Namespace as KubeNamespace;
use kube::api::{ApiResource, DynamicObject};
use kube::core::PartialObjectMeta;
use kube::{Api, Client};
use pillion_api::{SidecarSet, review};
use pillion_inject::{Namespace, SetIndex};
use pillion_runtime::watch::{Freshness, Key, Selection, Store, WatchMetrics, watch};
use serde_json::Value;
use tokio::sync::watch::Sender;
use tokio::time::timeout;
use tracing::{debug, warn};

/// What reviews are answered from. Clones see the same.
#[derive(Clone)]
pub struct View {
    sets: Arc<ArcSwap<SetIndex>>,
    /// Whether the sets of the first list are in the index.
    indexed: Arc<Sender<bool>>,
    set_objects: Store<Arc<Value>>,
    namespaces: Store<Arc<Namespace>>,
    client: Client,
}

/// Why a review cannot be answered.
#[derive(Debug, thiserror::Error)]
pub enum LookupError {
    /// The namespace of the pod is not in the cache, and the API server does not tell.
    #[error("cannot read namespace {name}: {why}")]
    Namespace {
        /// Its name.
        name: String,
        /// Why.
        why: String,
    },
}

impl View {
    /// Watches sets and namespaces while the future runs.
    pub fn watch(client: &Client, metrics: &WatchMetrics) -> (Self, BoxFuture<'static, ()>) {
        // Old lists are no danger here: what happened since follows at once, and nothing is written because of them.
        let selection = Selection { freshness: Freshness::Any, ..Selection::default() };
        let kind = ApiResource::erase::<SidecarSet>(&());
        let api = Api::<DynamicObject>::all_with(client.clone(), &kind);
        let (set_objects, sets_driver) = watch("sidecarsets", api, selection.clone(), metrics, as_written);
        let api = Api::<PartialObjectMeta<KubeNamespace>>::all(client.clone());
        let (namespaces, namespaces_driver) =
            watch("namespaces", api, selection, metrics, |namespace: PartialObjectMeta<KubeNamespace>| {
                Some(Arc::new(slim(namespace)))
            });
        let view = Self {
            sets: Arc::new(ArcSwap::from_pointee(SetIndex::default())),
            indexed: Arc::new(Sender::new(false)),
            set_objects,
            namespaces,
            client: client.clone(),
        };
        let indexing = view.clone();
        let driver = async move {
            tokio::join!(sets_driver, namespaces_driver, indexing.index());
        };
        (view, driver.boxed())
    }

    /// All sets that can be used.
    pub fn sets(&self) -> Arc<SetIndex> {
        self.sets.load_full()
    }

    /// The namespace of a pod. One that is not known yet is asked for, for at most so long.
    pub async fn namespace(&self, name: &str, patience: Duration) -> Result<Arc<Namespace>, LookupError> {
        if let Some(namespace) = self.namespaces.get(&Key::new("", name)) {
            return Ok(namespace);
        }
        let failed = |why: String| LookupError::Namespace { name: name.to_owned(), why };
        let api = Api::<KubeNamespace>::all(self.client.clone());
        match timeout(patience, api.get_metadata(name)).await {
            Ok(Ok(namespace)) => Ok(Arc::new(slim(namespace))),
            Ok(Err(error)) => Err(failed(error.to_string())),
            Err(_) => Err(failed("no answer in time".to_owned())),
        }
    }

    /// A readiness check: whether all sets and namespaces are known.
    pub fn check_complete(&self) -> Result<(), String> {
        self.set_objects.check_complete().map_err(|why| format!("sidecarsets: {why}"))?;
        self.namespaces.check_complete().map_err(|why| format!("namespaces: {why}"))?;
        if *self.indexed.borrow() { Ok(()) } else { Err("sidecarsets: not compiled yet".to_owned()) }
    }

    /// A health check: a watch that has failed for long answers from the past.
    pub fn failing_for(&self) -> Option<Duration> {
        [self.set_objects.failing_for(), self.namespaces.failing_for()].into_iter().flatten().max()
    }

    async fn index(self) {
        let mut changes = self.set_objects.changes();
        self.set_objects.completed().await;
        let all = self.set_objects.read(|objects| objects.iter().map(|(key, _)| key.clone()).collect());
        self.apply(all);
        self.indexed.send_replace(true);
        loop {
            let changed = changes.next().await;
            self.apply(changed);
        }
    }

    /// Compiles the sets that changed and puts them in place at once.
    fn apply(&self, changed: BTreeSet<Key>) {
        let mut sets = SetIndex::clone(&self.sets.load());
        for key in changed {
            let Some(object) = self.set_objects.get(&key) else {
                sets.remove(&key.name);
                continue;
            };
            let judged = review(&object);
            if let Some(meaning) = judged.meaning {
                sets.insert(meaning);
            } else {
                let problem = judged.problems.first().map(ToString::to_string).unwrap_or_default();
                warn!(set = %key, problem, "cannot be used");
                sets.remove(&key.name);
            }
        }
        debug!(sets = sets.sets().len(), "sets compiled");
        self.sets.store(Arc::new(sets));
    }
}

/// A set in the words of its user: what others wrote into it, and changes often, is not kept.
fn as_written(mut set: DynamicObject) -> Option<Arc<Value>> {
    set.metadata.managed_fields = None;
    set.metadata.resource_version = None;
    if let Some(fields) = set.data.as_object_mut() {
        fields.remove("status");
    }
    match serde_json::to_value(&set) {
        Ok(written) => Some(Arc::new(written)),
        Err(error) => {
            warn!(set = set.metadata.name, %error, "cannot be read");
            None
        }
    }
}

fn slim(namespace: PartialObjectMeta<KubeNamespace>) -> Namespace {
    let metadata = namespace.metadata;
    Namespace { name: metadata.name.unwrap_or_default(), labels: metadata.labels.unwrap_or_default() }
}
