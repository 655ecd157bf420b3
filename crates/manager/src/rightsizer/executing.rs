//! One write to one running pod, with its events.

use k8s_openapi::api::core::v1::{ObjectReference, Pod};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use pillion_rightsize::{PodEviction, PodResize, SizeAction};
use pillion_runtime::watch::Key;
use serde_json::Value;
use tracing::{debug, info, warn};

use super::{Context, MANAGER};
use crate::asking::Failed;
use crate::events::Note;

/// The cause of an answer that says no node has such room.
const NO_ROOM_CAUSES: [&str; 2] = ["NodeCapacity", "UnsupportedPlatform"];
/// The words of the same answer where it has no cause.
const NO_ROOM_WORDS: &str = "enough allocatable resources";

/// What became of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It was made.
    Done,
    /// The node never has such room.
    NoRoom,
    /// The pod is gone or changed, must wait, or the API server did not want it.
    NotDone,
}

impl Context {
    /// Carries out one write for the sake of an autoscaler.
    pub(super) async fn carry_out(&self, autoscaler: &Key, uid: Option<String>, action: &SizeAction) -> Outcome {
        let outcome = match action {
            SizeAction::Resize(resize) | SizeAction::Unboost(resize) => self.resize(autoscaler, uid, resize).await,
            SizeAction::Evict(eviction) => self.evict(autoscaler, uid, eviction).await,
        };
        if outcome == Outcome::Done {
            info!(%autoscaler, "{action}");
        }
        outcome
    }

    async fn resize(&self, autoscaler: &Key, uid: Option<String>, resize: &PodResize) -> Outcome {
        let pods = Api::<Pod>::namespaced(self.writer.clone(), &resize.namespace);
        let parameters = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        let pod = pod_reference(&resize.namespace, &resize.name, &resize.uid);
        if !resize.changes.is_empty() {
            let operations = match serde_json::from_value(resize.patch()) {
                Ok(operations) => operations,
                Err(error) => {
                    warn!(%error, "a resize is no JSON patch");
                    return Outcome::NotDone;
                }
            };
            let patch = Patch::Json::<()>(operations);
            let written = self.asked(pods.patch_subresource("resize", &resize.name, &parameters, &patch)).await;
            if let Err(failed) = written {
                return self.not_resized(autoscaler, uid, pod, &failed);
            }
            self.metrics.in_place_updated.inc();
        }
        // The size is what counts; a mark that is missing is made up for by what is remembered.
        let marks = self.asked(pods.patch_metadata(&resize.name, &parameters, &Patch::Merge(resize.marks()))).await;
        if let Err(failed) = marks {
            debug!(%autoscaler, pod = %resize.name, why = failed.message(), "a resized pod cannot be marked");
        }
        let message = format!("Pod was resized in place by VPA {}", autoscaler.name);
        self.tell(pod, Some(reference(autoscaler, uid)), false, "InPlaceResizedByVPA", "Resize", message);
        Outcome::Done
    }

    fn not_resized(&self, autoscaler: &Key, uid: Option<String>, pod: ObjectReference, failed: &Failed) -> Outcome {
        let (name, why) = (pod.name.clone().unwrap_or_default(), failed.message());
        if failed.is_gone() {
            debug!(%autoscaler, pod = name, why, "a pod has changed before it was resized");
            return Outcome::NotDone;
        }
        self.metrics.failed_in_place.inc();
        warn!(%autoscaler, pod = name, why, "a pod cannot be resized");
        let has_no_room = is_without_room(failed);
        let message = format!("Pod was not resized in place: {why}");
        self.tell(pod, Some(reference(autoscaler, uid)), true, "InPlaceResizeSkipped", "Resize", message);
        if has_no_room { Outcome::NoRoom } else { Outcome::NotDone }
    }

    async fn evict(&self, autoscaler: &Key, uid: Option<String>, eviction: &PodEviction) -> Outcome {
        let pods = Api::<Pod>::namespaced(self.writer.clone(), &eviction.namespace);
        let parameters = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
        let object = eviction.object();
        let evicted = pods.create_subresource::<_, Value>("eviction", &eviction.name, &parameters, &object);
        let evicted = self.asked(evicted).await;
        let pod = pod_reference(&eviction.namespace, &eviction.name, &eviction.uid);
        let name = &eviction.name;
        match evicted {
            Ok(_) => {
                self.metrics.evicted.inc();
                let own = reference(autoscaler, uid);
                let message = "Pod was evicted by VPA Updater to apply resource recommendation.".to_owned();
                self.tell(pod.clone(), Some(own.clone()), false, "EvictedByVPA", "Evict", message);
                let message = format!("Pod {name} was evicted to apply the recommendation: {}", eviction.why);
                self.tell(own, Some(pod), false, "EvictedPod", "Evict", message);
                Outcome::Done
            }
            Err(failed) if failed.code() == Some(429) => {
                debug!(%autoscaler, pod = %name, why = failed.message(), "a budget does not allow the eviction now");
                self.metrics.failed_evictions.inc();
                Outcome::NotDone
            }
            Err(failed) if failed.is_gone() => Outcome::NotDone,
            Err(failed) => {
                self.metrics.failed_evictions.inc();
                warn!(%autoscaler, pod = %name, why = failed.message(), "a pod cannot be evicted");
                Outcome::NotDone
            }
        }
    }

    fn tell(
        &self,
        regarding: ObjectReference,
        related: Option<ObjectReference>,
        is_warning: bool,
        reason: &str,
        action: &'static str,
        message: String,
    ) {
        self.events.tell(Note { regarding, related, is_warning, reason: reason.to_owned(), action, message });
    }
}

/// Whether the node could never hold it, as the API server says since 1.36.
fn is_without_room(failed: &Failed) -> bool {
    let Failed::Answered(status) = failed else { return false };
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let has_cause = causes.into_iter().any(|cause| NO_ROOM_CAUSES.contains(&cause.reason.as_str()));
    status.code == 403 && (has_cause || status.message.contains(NO_ROOM_WORDS))
}

fn pod_reference(namespace: &str, name: &str, uid: &str) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Pod".to_owned()),
        namespace: Some(namespace.to_owned()),
        name: Some(name.to_owned()),
        uid: Some(uid.to_owned()),
        ..ObjectReference::default()
    }
}

fn reference(autoscaler: &Key, uid: Option<String>) -> ObjectReference {
    ObjectReference {
        api_version: Some("autoscaling.k8s.io/v1".to_owned()),
        kind: Some("VerticalPodAutoscaler".to_owned()),
        namespace: Some(autoscaler.namespace.to_string()),
        name: Some(autoscaler.name.to_string()),
        uid,
        ..ObjectReference::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_node_that_never_has_room_is_told_from_a_right_that_is_missing() {
        let failed = |code: u16, message: &str, reasons: &[&str]| {
            let causes: Vec<Value> = reasons.iter().map(|reason| json!({"reason": reason})).collect();
            let status = json!({"code": code, "message": message, "details": {"causes": causes}});
            Failed::Answered(Box::new(serde_json::from_value(status).unwrap()))
        };
        assert!(is_without_room(&failed(403, "no", &["NodeCapacity"])));
        assert!(is_without_room(&failed(403, "node didn't have enough allocatable resources: cpu", &[])));
        assert!(!is_without_room(&failed(403, "pods is forbidden", &["Other"])));
        assert!(!is_without_room(&failed(422, "enough allocatable resources", &[])));
        assert!(!is_without_room(&Failed::Unanswered("enough allocatable resources".to_owned())));
    }
}
