//! Stores revisions, and lets them go.

use k8s_openapi::api::apps::v1::ControllerRevision;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use pillion_api::revision::CUSTOM_VERSIONS;
use pillion_rollout::history::Step;
use serde_json::json;
use tokio::time::timeout;
use tracing::{info, warn};

use super::super::Context;

/// Carries out steps in order. Whether all of them were.
pub(super) async fn carry_out(context: &Context, set: &str, steps: Vec<Step>) -> bool {
    for step in steps {
        if !context.leadership.is_held_for(context.patience) {
            return false;
        }
        match timeout(context.patience, one(context, &step)).await {
            Ok(Ok(())) => info!(set, step = words(&step), "revision"),
            Ok(Err(error)) => {
                warn!(set, step = words(&step), %error, "cannot be done to a revision");
                return false;
            }
            Err(_) => {
                warn!(set, step = words(&step), "no answer in time about a revision");
                return false;
            }
        }
    }
    true
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
