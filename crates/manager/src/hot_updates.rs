//! Which versions of files were asked for workloads, for pods that are about to be created.

use std::sync::Arc;

use arc_swap::ArcSwap;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use kube::{Api, Client};
use pillion_api::{HotUpdate, HotUpdateSpec};
use pillion_inject::hot_update::HotUpdates;
use pillion_runtime::watch::{Freshness, Selection, Store, WatchMetrics, watch};

/// All records. Clones see the same.
#[derive(Clone)]
pub struct Asked {
    table: Arc<ArcSwap<HotUpdates>>,
    records: Store<Arc<(i64, HotUpdateSpec)>>,
}

impl Asked {
    /// Watches the records of all namespaces while the future runs.
    pub fn watch(client: &Client, metrics: &WatchMetrics) -> (Self, BoxFuture<'static, ()>) {
        let api = Api::<HotUpdate>::all(client.clone());
        let selection = Selection { freshness: Freshness::Any, ..Selection::default() };
        let (records, driver) = watch("asked_hot_updates", api, selection, metrics, |record: HotUpdate| {
            let created = record.metadata.creation_timestamp.map_or(0, |time| time.0.as_second());
            Some(Arc::new((created, record.spec)))
        });
        let asked = Self { table: Arc::default(), records };
        let indexing = asked.clone();
        let driver = async move {
            tokio::join!(driver, indexing.index());
        };
        (asked, driver.boxed())
    }

    /// What was asked.
    pub fn table(&self) -> Arc<HotUpdates> {
        self.table.load_full()
    }

    /// A readiness check: whether all records are known.
    pub fn check_complete(&self) -> Result<(), String> {
        self.records.check_complete()
    }

    async fn index(self) {
        let mut changes = self.records.changes();
        loop {
            changes.next().await;
            let mut table = HotUpdates::default();
            self.records.read(|records| {
                for (key, record) in records.iter() {
                    table.insert(&key.namespace, &key.name, record.0, &record.1);
                }
            });
            self.table.store(Arc::new(table));
        }
    }
}
