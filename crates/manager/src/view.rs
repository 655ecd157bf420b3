//! What both roles decide from: all sets, compiled, and the namespaces.

use std::collections::{BTreeMap, BTreeSet};
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
use pillion_runtime::watch::{Changes, Freshness, Key, Selection, Store, WatchMetrics, watch};
use serde_json::Value;
use tokio::sync::watch::{Receiver, Sender};
use tokio::time::timeout;
use tracing::{debug, warn};

/// All sets and namespaces. Clones see the same.
#[derive(Clone)]
pub struct View {
    known: Arc<ArcSwap<Known>>,
    /// How often sets were put into the index; 0 before those of the first list are.
    indexed: Arc<Sender<u64>>,
    set_objects: Store<Arc<Value>>,
    namespaces: Store<Arc<Namespace>>,
    client: Client,
}

/// All sets at one point in time.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// Those that can be used.
    pub sets: Arc<SetIndex>,
    /// What is to be said about each of them, and of those that cannot be used.
    pub judged: BTreeMap<String, Arc<Judged>>,
}

/// A set as it was when it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// Its uid: another set may have had its name.
    pub uid: String,
    /// Its generation.
    pub generation: i64,
    /// Why it cannot be used, if it cannot.
    pub problem: Option<String>,
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
            known: Arc::new(ArcSwap::from_pointee(Known::default())),
            indexed: Arc::new(Sender::new(0)),
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
        Arc::clone(&self.known.load().sets)
    }

    /// All sets, and what is to be said about them.
    pub fn known(&self) -> Arc<Known> {
        self.known.load_full()
    }

    /// Changes with the sets. Its value is 0 until the sets of the first list are known.
    pub fn set_changes(&self) -> Receiver<u64> {
        self.indexed.subscribe()
    }

    /// Waits until all sets and namespaces are known.
    pub async fn completed(&self) {
        self.namespaces.completed().await;
        let mut indexed = self.indexed.subscribe();
        let seen = indexed.wait_for(|times| *times > 0).await;
        drop(seen.expect("the sending end lives as long as this view"));
    }

    /// A namespace, if it is known.
    pub fn known_namespace(&self, name: &str) -> Option<Arc<Namespace>> {
        self.namespaces.get(&Key::new("", name))
    }

    /// All namespaces that are known.
    pub fn namespaces(&self) -> BTreeMap<Key, Arc<Namespace>> {
        self.namespaces.snapshot()
    }

    /// Tells which namespaces changed, beginning with all there are.
    pub fn namespace_changes(&self) -> Changes {
        self.namespaces.changes()
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
        if *self.indexed.borrow() > 0 { Ok(()) } else { Err("sidecarsets: not compiled yet".to_owned()) }
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
        loop {
            let changed = changes.next().await;
            self.apply(changed);
        }
    }

    /// Compiles the sets that changed and puts them in place at once.
    fn apply(&self, changed: BTreeSet<Key>) {
        let Known { sets, mut judged } = Known::clone(&self.known.load());
        let mut sets = SetIndex::clone(&sets);
        for key in changed {
            let Some(object) = self.set_objects.get(&key) else {
                sets.remove(&key.name);
                judged.remove(&*key.name);
                continue;
            };
            let reviewed = review(&object);
            let problem = reviewed.errors().next().map(ToString::to_string);
            if let Some(meaning) = reviewed.meaning {
                sets.insert(meaning);
            } else {
                warn!(set = %key, problem, "cannot be used");
                sets.remove(&key.name);
            }
            judged.insert(key.name.into(), Arc::new(Judged::of(&object, problem)));
        }
        debug!(sets = sets.sets().len(), "sets compiled");
        self.known.store(Arc::new(Known { sets: Arc::new(sets), judged }));
        self.indexed.send_modify(|times| *times += 1);
    }
}

impl Judged {
    fn of(object: &Value, problem: Option<String>) -> Self {
        let metadata = &object["metadata"];
        let uid = metadata["uid"].as_str().unwrap_or_default().to_owned();
        Self { uid, generation: metadata["generation"].as_i64().unwrap_or_default(), problem }
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
