//! Stores revisions, and lets them go.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::apps::v1::ControllerRevision;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use pillion_api::revision::CUSTOM_VERSIONS;
use pillion_rollout::history::Step;
use serde_json::json;
use tokio::time::{Instant, timeout};
use tracing::{info, warn};

use super::super::Context;

/// The revisions of a set are looked at again so long after a try to store them.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Sets whose revisions are being stored, or are looked at again at a time. A set that is edited while its last revision is
/// being stored brings no further event when that is done, so it is looked at again after a success, too.
#[derive(Debug, Default)]
pub(super) struct Storing(BTreeMap<String, Option<Instant>>);

impl Storing {
    pub(super) fn is_under_way(&self, set: &str) -> bool {
        matches!(self.0.get(set), Some(None))
    }

    pub(super) fn begin(&mut self, set: &str) {
        self.0.insert(set.to_owned(), None);
    }

    /// Takes in that there is nothing to store.
    pub(super) fn rest(&mut self, set: &str) {
        self.0.remove(set);
    }

    /// Takes in that a try has ended, with success or without.
    pub(super) fn ended(&mut self, set: String, now: Instant) {
        self.0.insert(set, Some(now + LOOK_AGAIN));
    }

    /// The sets whose time has come.
    pub(super) fn due(&mut self, now: Instant) -> Vec<String> {
        self.0.extract_if(.., |_, at| at.is_some_and(|at| at <= now)).map(|(set, _)| set).collect()
    }

    /// The times at which sets are due.
    pub(super) fn wakes(&self) -> impl Iterator<Item = Instant> {
        self.0.values().flatten().copied()
    }
}

/// Carries out steps in order, up to the first that fails.
pub(super) async fn carry_out(context: &Context, set: &str, steps: Vec<Step>) {
    for step in steps {
        if !context.leadership.is_held_for(context.patience) {
            return;
        }
        match timeout(context.patience, one(context, &step)).await {
            Ok(Ok(())) => info!(set, step = words(&step), "revision"),
            Ok(Err(error)) => {
                warn!(set, step = words(&step), %error, "cannot be done to a revision");
                return;
            }
            Err(_) => {
                warn!(set, step = words(&step), "no answer in time about a revision");
                return;
            }
        }
    }
}

async fn one(context: &Context, step: &Step) -> Result<(), kube::Error> {
    let api = Api::<ControllerRevision>::namespaced(context.client.clone(), &context.settings.namespace);
    let done = match step {
        Step::Create(object) => match serde_json::from_value::<ControllerRevision>(object.clone()) {
            Ok(revision) => api.create(&PostParams::default(), &revision).await.map(drop),
            Err(error) => Err(kube::Error::SerdeError(error)),
        },
        Step::Change { name, number, custom_versions } => {
            let annotations = json!({CUSTOM_VERSIONS: json!(custom_versions).to_string()});
            let patch = json!({"metadata": {"annotations": annotations}, "revision": number});
            api.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await.map(drop)
        }
        Step::Delete(name) => api.delete(name, &DeleteParams::default()).await.map(drop),
    };
    match done {
        // It was done before, by a leader that did not hear of it.
        Err(kube::Error::Api(status)) if is_done_already(step, status.code) => Ok(()),
        done => done,
    }
}

fn is_done_already(step: &Step, code: u16) -> bool {
    match step {
        Step::Create(_) => code == 409,
        Step::Change { .. } | Step::Delete(_) => code == 404,
    }
}

fn words(step: &Step) -> String {
    match step {
        Step::Create(object) => format!("stored {} as {}", object["metadata"]["name"], object["revision"]),
        Step::Change { name, number, custom_versions } => format!("{name} is {number}, {}", custom_versions.join(", ")),
        Step::Delete(name) => format!("let {name} go"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_that_was_edited_while_its_revision_was_stored_is_looked_at_again() {
        let (mut storing, now) = (Storing::default(), Instant::now());
        storing.begin("mesh");
        // The edit comes now, and another try must wait for the first.
        assert!(storing.is_under_way("mesh"));
        assert_eq!(storing.wakes().next(), None);
        assert_eq!(storing.due(now + LOOK_AGAIN), [""; 0]);
        storing.ended("mesh".to_owned(), now);
        assert!(!storing.is_under_way("mesh"));
        assert_eq!(storing.wakes().collect::<Vec<_>>(), [now + LOOK_AGAIN]);
        assert_eq!(storing.due(now + LOOK_AGAIN - Duration::from_millis(1)), [""; 0]);
        assert_eq!(storing.due(now + LOOK_AGAIN), ["mesh"]);
        assert_eq!(storing.due(now + LOOK_AGAIN), [""; 0]);
    }

    #[test]
    fn a_set_with_nothing_to_store_is_left_alone() {
        let (mut storing, now) = (Storing::default(), Instant::now());
        storing.ended("mesh".to_owned(), now);
        storing.rest("mesh");
        assert_eq!(storing.wakes().next(), None);
        assert_eq!(storing.due(now + LOOK_AGAIN), [""; 0]);
    }
}
