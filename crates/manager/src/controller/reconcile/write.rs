//! Writes statuses: only those that changed, only while this replica leads, and only onto the version they were made for.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::StreamExt as _;
use kube::api::{Patch, PatchParams};
use pillion_api::{API_VERSION, SidecarSetStatus};
use pillion_runtime::watch::Store;
use serde_json::{Value, json};
use tokio::time::timeout;
use tracing::{debug, warn};

use super::super::Context;
use super::super::sets::{StoredSet, api, stored};

/// Field manager of statuses.
const MANAGER: &str = "pillion-controller";
/// So many are written at a time.
const AT_ONCE: usize = 8;

/// A status that a set should have.
pub(super) struct Desired {
    pub(super) name: String,
    /// The set it was made for.
    pub(super) stored: Arc<StoredSet>,
    pub(super) status: SidecarSetStatus,
}

/// Remembers what it wrote.
#[derive(Default)]
pub(super) struct Writer {
    written: BTreeMap<String, Written>,
}

/// What was written, and what became of it.
#[derive(Clone, Debug, PartialEq)]
struct Written {
    status: Value,
    result: Value,
}

/// Whether a status is to be written. One that the API server stored otherwise than it was written is not written over
/// and over: what it made of it is what there is.
fn is_due(status: &Value, stored: &Value, written: Option<&Written>) -> bool {
    status != stored && written.is_none_or(|before| before.status != *status || before.result != *stored)
}

impl Writer {
    /// Writes what is due. Whether all of it was written.
    pub(super) async fn write(
        &mut self,
        context: &Context,
        sets: &Store<Arc<StoredSet>>,
        desired: Vec<Desired>,
    ) -> bool {
        self.written.retain(|name, _| sets.get(&pillion_runtime::watch::Key::new("", name)).is_some());
        let due = desired.into_iter().filter_map(|desired| {
            let status = serde_json::to_value(&desired.status).unwrap_or_default();
            is_due(&status, &desired.stored.status, self.written.get(&desired.name)).then_some((desired, status))
        });
        let due: Vec<(Desired, Value)> = due.collect();
        let writes = futures::stream::iter(due).map(|(desired, status)| write(context, desired, status));
        let results: Vec<_> = writes.buffer_unordered(AT_ONCE).collect().await;
        let mut is_done = true;
        for (name, written) in results {
            match written {
                Some(written) => {
                    self.written.insert(name, written);
                }
                None => is_done = false,
            }
        }
        is_done
    }
}

async fn write(context: &Context, desired: Desired, status: Value) -> (String, Option<Written>) {
    let Desired { name, stored: made_for, .. } = desired;
    if !context.leadership.is_held_for(context.patience) {
        return (name, None);
    }
    let patch = json!({
        "apiVersion": API_VERSION,
        "kind": "SidecarSet",
        // Of another set of this name, or of a later version, another status is true.
        "metadata": {"name": name, "uid": made_for.uid, "resourceVersion": made_for.version},
        "status": status,
    });
    let parameters = PatchParams::apply(MANAGER).force();
    let sets = api(&context.client);
    let answer = timeout(context.patience, sets.patch_status(&name, &parameters, &Patch::Apply(&patch))).await;
    let why = match answer {
        Ok(Ok(set)) => {
            context.metrics.statuses.inc();
            debug!(set = name, "status written");
            return (name, Some(Written { status, result: stored(set).status }));
        }
        // Somebody was faster; the watch brings what they wrote.
        Ok(Err(kube::Error::Api(answer))) if matches!(answer.code, 404 | 409) => {
            debug!(set = name, code = answer.code, "the set has changed meanwhile");
            return (name, None);
        }
        Ok(Err(error)) => error.to_string(),
        Err(_) => "no answer in time".to_owned(),
    };
    context.metrics.failed_statuses.inc();
    warn!(set = name, why, "cannot write the status");
    (name, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_written_once_whatever_the_api_server_makes_of_it() {
        let (wanted, other, pruned) = (json!({"a": 1, "b": 2}), json!({"a": 3}), json!({"a": 1}));
        assert!(is_due(&wanted, &Value::Null, None));
        assert!(!is_due(&wanted, &wanted, None));
        let written = Written { status: wanted.clone(), result: pruned.clone() };
        assert!(!is_due(&wanted, &pruned, Some(&written)), "it was pruned");
        assert!(is_due(&wanted, &other, Some(&written)), "somebody changed it since");
        assert!(is_due(&other, &pruned, Some(&written)), "there is something else to say");
    }
}
