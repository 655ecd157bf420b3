//! Tells of pods that were refused: nobody else sees them, as they never are.

use k8s_openapi::api::core::v1::ObjectReference;
use pillion_api::API_VERSION;

use crate::admission::pods::{Owner, Refused};
use crate::events::{Events, Note};

/// Tells of refusals.
#[derive(Clone)]
pub(super) struct RefusalEvents(pub(super) Events);

impl RefusalEvents {
    /// Tells the set, if it was one, and the object that wanted the pod.
    pub(super) fn tell(&self, namespace: &str, set_uid: Option<String>, refused: Refused) {
        let set = refused.set.map(|name| ObjectReference {
            api_version: Some(API_VERSION.to_owned()),
            kind: Some("SidecarSet".to_owned()),
            name: Some(name),
            // By the uid kubectl finds the events of an object.
            uid: set_uid,
            ..ObjectReference::default()
        });
        let owner = refused.owner.map(|owner| reference(namespace, owner));
        let note = |regarding, related, message: String| Note {
            regarding,
            related,
            is_warning: true,
            reason: format!("Refused{}", refused.reason.name()),
            action: "Inject",
            message,
        };
        if let Some(owner) = &owner {
            self.0.tell(note(owner.clone(), set.clone(), refused.message.clone()));
        }
        let Some(set) = set else { return };
        let message = format!("refused a pod of namespace {namespace}: {}", refused.message);
        self.0.tell(note(set, owner, message));
    }
}

fn reference(namespace: &str, owner: Owner) -> ObjectReference {
    ObjectReference {
        api_version: Some(owner.api_version),
        kind: Some(owner.kind),
        namespace: Some(namespace.to_owned()),
        name: Some(owner.name),
        uid: Some(owner.uid),
        ..ObjectReference::default()
    }
}
