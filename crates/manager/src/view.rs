//! What both roles decide from: all sets and their revisions, compiled, and the namespaces.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1::Namespace as KubeNamespace;
use kube::api::{ApiResource, DynamicObject};
use kube::core::PartialObjectMeta;
use kube::{Api, Client};
use pillion_api::revision::SET_UID_LABEL;
use pillion_api::{Meaning, SidecarSet, is_dns_label, review};
use pillion_inject::{Namespace, SetIndex};
use pillion_rollout::history::{Pinned, Revision, pinned};
use pillion_runtime::watch::{Changes, Freshness, Key, Selection, Store, WatchMetrics, watch};
use serde_json::Value;
use tokio::sync::Semaphore;
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
    revisions: Store<Arc<Revision>>,
    /// How many pods each set matches, by its status. It changes often, and compiles nothing.
    matched: Arc<ArcSwap<BTreeMap<String, usize>>>,
    client: Client,
    /// Namespaces that are asked for at once.
    lookups: Arc<Semaphore>,
}

/// So many namespaces that are not known yet are asked for at once.
const LOOKUPS: usize = 10;

/// All sets at one point in time.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// Those that can be used.
    pub sets: Arc<SetIndex>,
    /// What is to be said about each of them, and of those that cannot be used.
    pub judged: BTreeMap<String, Arc<Judged>>,
    /// All revisions that are stored, in the order of their names, by the uid of their set.
    pub revisions: BTreeMap<String, Vec<Arc<Revision>>>,
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
    pub fn watch(client: &Client, namespace: &str, metrics: &WatchMetrics) -> (Self, BoxFuture<'static, ()>) {
        // Old lists are no danger here: what happened since follows at once, and nothing is written because of them.
        let selection = Selection { freshness: Freshness::Any, ..Selection::default() };
        let kind = ApiResource::erase::<SidecarSet>(&());
        let api = Api::<DynamicObject>::all_with(client.clone(), &kind);
        let matched = Arc::new(ArcSwap::from_pointee(BTreeMap::new()));
        let counts = Arc::clone(&matched);
        let (set_objects, sets_driver) = watch("sidecarsets", api, selection.clone(), metrics, move |set| {
            take_in_count(&counts, &set);
            as_written(set)
        });
        let api = Api::<ControllerRevision>::namespaced(client.clone(), namespace);
        let ours = Selection { labels: Some(SET_UID_LABEL.to_owned()), ..selection.clone() };
        let (revisions, revisions_driver) = watch("revisions", api, ours, metrics, |revision| compiled(&revision));
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
            revisions,
            matched,
            client: client.clone(),
            lookups: Arc::new(Semaphore::new(LOOKUPS)),
        };
        let indexing = view.clone();
        let driver = async move {
            tokio::join!(sets_driver, namespaces_driver, revisions_driver, indexing.index());
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

    /// How many pods sets match, as far as their statuses tell.
    pub fn matched_pods(&self) -> Arc<BTreeMap<String, usize>> {
        self.matched.load_full()
    }

    /// A set in the words of its user.
    pub fn written(&self, set: &str) -> Option<Arc<Value>> {
        self.set_objects.get(&Key::new("", set))
    }

    /// Changes with the sets and their revisions. Its value is 0 until the sets of the first list are known.
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
        // It becomes a part of a URL.
        if !is_dns_label(name) {
            return Err(failed("this is no name of a namespace".to_owned()));
        }
        let lookup = async {
            // Names that no namespace has must not become many requests at once.
            let _permit = self.lookups.acquire().await;
            Api::<KubeNamespace>::all(self.client.clone()).get_metadata(name).await
        };
        match timeout(patience, lookup).await {
            Ok(Ok(namespace)) => Ok(Arc::new(slim(namespace))),
            Ok(Err(error)) => Err(failed(error.to_string())),
            Err(_) => Err(failed("no answer in time".to_owned())),
        }
    }

    /// A readiness check: whether all sets and namespaces are known.
    pub fn check_complete(&self) -> Result<(), String> {
        self.set_objects.check_complete().map_err(|why| format!("sidecarsets: {why}"))?;
        self.namespaces.check_complete().map_err(|why| format!("namespaces: {why}"))?;
        self.revisions.check_complete().map_err(|why| format!("revisions: {why}"))?;
        if *self.indexed.borrow() > 0 { Ok(()) } else { Err("sidecarsets: not compiled yet".to_owned()) }
    }

    /// A health check: a watch that has failed for long answers from the past.
    pub fn failing_for(&self) -> Option<Duration> {
        let all = [self.set_objects.failing_for(), self.namespaces.failing_for(), self.revisions.failing_for()];
        all.into_iter().flatten().max()
    }

    async fn index(self) {
        let (mut changes, mut of_revisions) = (self.set_objects.changes(), self.revisions.changes());
        self.set_objects.completed().await;
        self.revisions.completed().await;
        let all = self.set_objects.read(|objects| objects.iter().map(|(key, _)| key.clone()).collect());
        self.apply(all);
        loop {
            let changed = tokio::select! {
                changed = changes.next() => changed,
                _ = of_revisions.next() => BTreeSet::new(),
            };
            self.apply(changed);
        }
    }

    /// Compiles the sets that changed and puts them in place at once, with the revisions there are.
    fn apply(&self, changed: BTreeSet<Key>) {
        let Known { sets, mut judged, .. } = Known::clone(&self.known.load());
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
        let mut revisions: BTreeMap<String, Vec<Arc<Revision>>> = BTreeMap::new();
        self.revisions.read(|stored| {
            for (_, revision) in stored.iter() {
                revisions.entry(revision.set_uid.clone()).or_default().push(Arc::clone(revision));
            }
        });
        self.known.store(Arc::new(Known { sets: Arc::new(sets), judged, revisions }));
        self.indexed.send_modify(|times| *times += 1);
    }
}

impl Known {
    /// The revision a set pins.
    pub fn pinned<'a>(&'a self, set: &'a Meaning) -> Pinned<'a> {
        let uid = self.judged.get(&set.name).map_or("", |judged| judged.uid.as_str());
        match pinned(set, uid, self.revisions_of(&set.name).map(AsRef::as_ref)) {
            // Whose it is matters only to whoever must be told.
            Pinned::Missing(_) => pinned(set, uid, self.all_revisions()),
            found => found,
        }
    }

    /// All revisions that are stored, of whichever set.
    pub fn all_revisions(&self) -> impl Iterator<Item = &Revision> {
        self.revisions.values().flatten().map(AsRef::as_ref)
    }

    /// The stored revisions of a set, by name.
    pub fn revisions_of(&self, set: &str) -> impl Iterator<Item = &Arc<Revision>> {
        let uid = self.judged.get(set).map(|judged| judged.uid.as_str());
        uid.and_then(|uid| self.revisions.get(uid)).into_iter().flatten()
    }
}

impl Judged {
    fn of(object: &Value, problem: Option<String>) -> Self {
        let metadata = &object["metadata"];
        let uid = metadata["uid"].as_str().unwrap_or_default().to_owned();
        Self { uid, generation: metadata["generation"].as_i64().unwrap_or_default(), problem }
    }
}

fn take_in_count(counts: &ArcSwap<BTreeMap<String, usize>>, set: &DynamicObject) {
    let name = set.metadata.name.as_deref().unwrap_or_default();
    let count = set.data.pointer("/status/matchedPods").and_then(Value::as_u64);
    let count = count.and_then(|count| usize::try_from(count).ok());
    if counts.load().get(name).copied() == count {
        return;
    }
    counts.rcu(|before| {
        let mut next = BTreeMap::clone(before);
        match count {
            Some(count) => next.insert(name.to_owned(), count),
            None => next.remove(name),
        };
        next
    });
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

fn compiled(revision: &ControllerRevision) -> Option<Arc<Revision>> {
    let object = serde_json::to_value(revision).ok()?;
    let read = Revision::read(&object);
    if read.as_ref().is_none_or(|read| read.template.is_none()) {
        warn!(revision = revision.metadata.name, "cannot be read");
    }
    read.map(Arc::new)
}

fn slim(namespace: PartialObjectMeta<KubeNamespace>) -> Namespace {
    let metadata = namespace.metadata;
    Namespace { name: metadata.name.unwrap_or_default(), labels: metadata.labels.unwrap_or_default() }
}
