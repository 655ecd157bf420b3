//! The ledgers of an installation as objects: read by a watch, written by their version.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use kube::api::{DeleteParams, PostParams, Preconditions};
use kube::{Api, Client};
use parking_lot::Mutex;
use pillion_api::InjectionLedger;
use pillion_runtime::watch::{Changes, Key, Selection, Store, WatchMetrics, watch};
use tokio::time::timeout;

/// All ledgers. Clones see the same.
#[derive(Clone)]
pub(crate) struct Shelf {
    api: Api<InjectionLedger>,
    namespace: Arc<str>,
    manager: &'static str,
    store: Store<Arc<InjectionLedger>>,
    /// What this process last wrote or read, while the watch may be behind it.
    last: Arc<Mutex<BTreeMap<String, Arc<InjectionLedger>>>>,
}

/// What became of a write.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// It is stored.
    Done,
    /// Somebody else was faster.
    Late,
    /// Nobody knows whether it is stored.
    Failed(String),
}

impl Shelf {
    /// Watches the ledgers in a namespace while the future runs, and writes as this field manager.
    pub(crate) fn watch(
        client: Client,
        namespace: &str,
        manager: &'static str,
        name: &'static str,
        metrics: &WatchMetrics,
    ) -> (Self, BoxFuture<'static, ()>) {
        let api = Api::<InjectionLedger>::namespaced(client, namespace);
        let (store, driver) = watch(name, api.clone(), Selection::default(), metrics, |ledger| Some(Arc::new(ledger)));
        let last = Arc::default();
        (Self { api, namespace: namespace.into(), manager, store, last }, driver.boxed())
    }

    /// Waits until all ledgers are known.
    pub(crate) async fn completed(&self) {
        self.store.completed().await;
    }

    /// A readiness check: whether all ledgers are known.
    pub(crate) fn check_complete(&self) -> Result<(), String> {
        self.store.check_complete()
    }

    /// Tells which ledgers changed, beginning with all there are.
    pub(crate) fn changes(&self) -> Changes {
        self.store.changes()
    }

    /// The names of the sets that have a ledger.
    pub(crate) fn sets(&self) -> Vec<String> {
        self.store.read(|ledgers| ledgers.iter().map(|(key, _)| key.name.to_string()).collect())
    }

    /// The ledger of a set as far as this process knows. Where that is not the last word, a write of it comes late.
    pub(crate) fn get(&self, set: &str) -> Option<Arc<InjectionLedger>> {
        let seen = self.store.get(&Key::new(&self.namespace, set))?;
        let last = self.last.lock().get(set).filter(|last| last.metadata.uid == seen.metadata.uid).cloned();
        Some(last.filter(|last| version(last) > version(&seen)).unwrap_or(seen))
    }

    /// Asks the API server for the ledger of a set.
    pub(crate) async fn read_again(&self, set: &str, patience: Duration) {
        let read = timeout(patience, self.api.get_opt(set)).await;
        self.remember(set, read.ok().and_then(Result::ok).flatten());
    }

    /// Writes a ledger onto the version it was read at.
    pub(crate) async fn replace(&self, mut ledger: InjectionLedger, patience: Duration) -> Written {
        let set = ledger.metadata.name.clone().unwrap_or_default();
        ledger.metadata.managed_fields = None;
        match timeout(patience, self.api.replace(&set, &self.parameters(), &ledger)).await {
            Ok(Ok(written)) => {
                self.remember(&set, Some(written));
                Written::Done
            }
            Ok(Err(error)) => failed(&error),
            Err(_) => Written::Failed(NO_ANSWER.to_owned()),
        }
    }

    /// Begins a ledger.
    pub(crate) async fn create(&self, ledger: &InjectionLedger, patience: Duration) -> Written {
        match timeout(patience, self.api.create(&self.parameters(), ledger)).await {
            Ok(Ok(_)) => Written::Done,
            Ok(Err(error)) => failed(&error),
            Err(_) => Written::Failed(NO_ANSWER.to_owned()),
        }
    }

    /// Removes this very ledger, of whatever version.
    pub(crate) async fn delete(&self, ledger: &InjectionLedger, patience: Duration) -> Written {
        let preconditions = Some(Preconditions { uid: ledger.metadata.uid.clone(), resource_version: None });
        let parameters = DeleteParams { preconditions, ..DeleteParams::default() };
        let set = ledger.metadata.name.as_deref().unwrap_or_default();
        match timeout(patience, self.api.delete(set, &parameters)).await {
            Ok(Ok(_)) => Written::Done,
            Ok(Err(error)) => failed(&error),
            Err(_) => Written::Failed(NO_ANSWER.to_owned()),
        }
    }

    fn parameters(&self) -> PostParams {
        PostParams { field_manager: Some(self.manager.to_owned()), ..PostParams::default() }
    }

    fn remember(&self, set: &str, ledger: Option<InjectionLedger>) {
        let mut last = self.last.lock();
        match ledger {
            Some(ledger) => last.insert(set.to_owned(), Arc::new(ledger)),
            None => last.remove(set),
        };
    }
}

const NO_ANSWER: &str = "no answer in time";

fn failed(error: &kube::Error) -> Written {
    match error {
        // Of another version, gone, or there already.
        kube::Error::Api(status) if matches!(status.code, 404 | 409) => Written::Late,
        error => Written::Failed(error.to_string()),
    }
}

/// Versions of one object are numbers that grow. Were they not, all would be taken for old, and a conflict would tell.
fn version(ledger: &InjectionLedger) -> u64 {
    ledger.metadata.resource_version.as_deref().and_then(|version| version.parse().ok()).unwrap_or_default()
}
