//! One write to one pod.

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{Patch, PatchParams};
use pillion_plan::{Action, PodUpdate};
use serde_json::Value;
use tokio::time::timeout;
use tracing::{debug, info, warn};

use super::super::Context;
use super::super::metrics::Updated;

/// What became of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The API server has taken it.
    Written,
    /// The pod is not what the plan was made from.
    Changed,
    /// The pod is not there any more.
    Gone,
    /// The API server does not want it, or this replica may not write.
    Refused(String),
    /// There was no answer: it may have arrived.
    Unknown(String),
}

impl Outcome {
    pub(super) fn counted(&self) -> Updated {
        match self {
            Self::Written => Updated::Written,
            Self::Changed => Updated::Changed,
            Self::Gone => Updated::Gone,
            Self::Refused(_) => Updated::Refused,
            Self::Unknown(_) => Updated::Unknown,
        }
    }
}

pub(super) async fn carry_out(context: &Context, action: &Action) -> Outcome {
    let update = action.update();
    if !context.leadership.is_held_for(context.patience) {
        return Outcome::Refused("this replica may not lead for much longer".to_owned());
    }
    if let Some(patch) = update.resize() {
        let outcome = write(context, update, Some("resize"), patch).await;
        if outcome != Outcome::Written {
            tell(action, &outcome);
            return outcome;
        }
    }
    let outcome = write(context, update, None, update.patch()).await;
    tell(action, &outcome);
    outcome
}

fn tell(action: &Action, outcome: &Outcome) {
    match outcome {
        Outcome::Written => info!("{action}"),
        Outcome::Changed | Outcome::Gone => debug!(?outcome, "{action}"),
        Outcome::Refused(why) | Outcome::Unknown(why) => warn!(why, "{action}"),
    }
}

/// The answer is read as far as its kind: nobody needs the pod, which the watch brings.
async fn write(context: &Context, update: &PodUpdate, subresource: Option<&str>, patch: Value) -> Outcome {
    let operations = match serde_json::from_value(patch) {
        Ok(operations) => operations,
        Err(error) => return Outcome::Refused(error.to_string()),
    };
    let patch = Patch::<()>::Json(operations);
    let api = Api::<Pod>::namespaced(context.writer.clone(), &update.namespace);
    let name = &update.name;
    let parameters = PatchParams::default();
    let written = async {
        match subresource {
            Some(subresource) => api.patch_subresource(subresource, name, &parameters, &patch).await.map(drop),
            None => api.patch_metadata(name, &parameters, &patch).await.map(drop),
        }
    };
    match timeout(context.patience, written).await {
        Ok(Ok(())) => Outcome::Written,
        Ok(Err(kube::Error::Api(status))) => match status.code {
            404 => Outcome::Gone,
            409 => Outcome::Changed,
            // A test of a JSON patch that does not hold is told so, and nothing else of ours is.
            422 if status.message.contains("testing") || status.message.contains("rejected our request") => {
                Outcome::Changed
            }
            _ => Outcome::Refused(status.message.clone()),
        },
        Ok(Err(error)) => Outcome::Unknown(error.to_string()),
        Err(_) => Outcome::Unknown("no answer in time".to_owned()),
    }
}
