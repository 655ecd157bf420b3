//! What only the API server can tell of one pod: its events, and the pod itself when the watch does not bring it.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Event;
use kube::api::ListParams;
use kube::{Api, Client};
use pillion_runtime::watch::Key;
use tokio::time::timeout;
use tracing::debug;

use super::super::pods::{KeptPod, SlimPod};

const PATIENCE: Duration = Duration::from_secs(4);
/// So many events of one pod are looked at.
const MOST_EVENTS: u32 = 50;
/// Why a container does not come, in the words of its node.
const TELLING: [&str; 4] = ["Failed", "BackOff", "InspectFailed", "ErrImageNeverPull"];

/// What the events of a pod say about a container that does not come.
pub(super) async fn trouble(client: &Client, key: &Key, uid: &str) -> Option<String> {
    let api = Api::<Event>::namespaced(client.clone(), &key.namespace);
    let ours = ListParams::default().fields(&format!("involvedObject.uid={uid}")).limit(MOST_EVENTS);
    let events = match timeout(PATIENCE, api.list(&ours)).await {
        Ok(Ok(events)) => events.items,
        Ok(Err(error)) => {
            debug!(pod = %key, %error, "cannot read its events");
            return None;
        }
        Err(_) => return None,
    };
    let telling = events.into_iter().filter(|event| event.reason.as_deref().is_some_and(|it| TELLING.contains(&it)));
    // The first words are the longest: those that follow say only that it happened again.
    let mut messages: Vec<String> = telling.filter_map(|event| event.message).collect();
    messages.sort_by_key(|message| std::cmp::Reverse(message.len()));
    messages.into_iter().next()
}

/// The pod as it is stored; `None` if it is gone.
pub(super) async fn pod(client: &Client, key: &Key) -> Result<Option<Arc<KeptPod>>, String> {
    let api = Api::<SlimPod>::namespaced(client.clone(), &key.namespace);
    match timeout(PATIENCE, api.get_opt(&key.name)).await {
        Ok(Ok(pod)) => Ok(pod.and_then(|pod| pod.kept).map(Arc::new)),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("no answer in time".to_owned()),
    }
}
