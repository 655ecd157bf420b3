//! What is stored of the sets besides the words of their users: version and status.

use std::sync::Arc;

use kube::api::{ApiResource, DynamicObject};
use kube::{Api, Client};
use pillion_api::{SidecarSet, SidecarSetStatus};
use pillion_runtime::watch::{Selection, Store, WatchMetrics, watch};
use serde_json::Value;

/// A set as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct StoredSet {
    pub(super) uid: String,
    pub(super) generation: i64,
    /// Every write of a status names the version it was made for.
    pub(super) version: String,
    pub(super) status: Value,
}

impl StoredSet {
    /// The status, as far as it is one.
    pub(super) fn status(&self) -> Option<SidecarSetStatus> {
        serde_json::from_value(self.status.clone()).ok()
    }
}

/// All sets. A set that cannot be read in any other way still has these.
pub(super) fn api(client: &Client) -> Api<DynamicObject> {
    Api::all_with(client.clone(), &ApiResource::erase::<SidecarSet>(&()))
}

pub(super) fn watch_stored(
    client: &Client,
    metrics: &WatchMetrics,
) -> (Store<Arc<StoredSet>>, impl Future<Output = ()> + Send + use<>) {
    watch("stored_sidecarsets", api(client), Selection::default(), metrics, |set| Some(Arc::new(stored(set))))
}

pub(super) fn stored(mut set: DynamicObject) -> StoredSet {
    StoredSet {
        uid: set.metadata.uid.unwrap_or_default(),
        generation: set.metadata.generation.unwrap_or_default(),
        version: set.metadata.resource_version.unwrap_or_default(),
        status: set.data.get_mut("status").map(Value::take).unwrap_or_default(),
    }
}
