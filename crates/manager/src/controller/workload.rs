//! Finds the workload behind a pod: the Deployment above its `ReplicaSet`, the `CronJob` above its Job.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use kube::{Api, Client};
use tokio::time::timeout;
use tracing::debug;

use crate::admission::pods::Owner;

/// So many are remembered; then all are forgotten.
const REMEMBERED: usize = 10_000;
const PATIENCE: Duration = Duration::from_secs(3);

/// Who stands behind whom. An owner never changes, so what was found once is remembered.
pub(super) struct Workloads {
    client: Client,
    /// By uid.
    found: BTreeMap<String, ObjectReference>,
}

impl Workloads {
    pub(super) fn new(client: Client) -> Self {
        Self { client, found: BTreeMap::new() }
    }

    /// The object a person knows: the owner, or whoever owns it.
    pub(super) async fn above(&mut self, namespace: &str, owner: &Owner) -> ObjectReference {
        if let Some(found) = self.found.get(&owner.uid) {
            return found.clone();
        }
        let own = reference(namespace, &owner.api_version, &owner.kind, &owner.name, &owner.uid);
        let above = match self.owner_of(namespace, owner).await {
            Ok(above) => above,
            Err(why) => {
                // Asked again next time: it may be known then.
                debug!(kind = owner.kind, namespace, name = owner.name, why, "cannot find the workload");
                return own;
            }
        };
        let found =
            above.map_or(own, |above| reference(namespace, &above.api_version, &above.kind, &above.name, &above.uid));
        if self.found.len() >= REMEMBERED {
            self.found.clear();
        }
        self.found.insert(owner.uid.clone(), found.clone());
        found
    }

    async fn owner_of(&self, namespace: &str, owner: &Owner) -> Result<Option<OwnerReference>, String> {
        let (group, version, kind) = match (owner.api_version.as_str(), owner.kind.as_str()) {
            ("apps/v1", kind @ "ReplicaSet") => ("apps", "v1", kind),
            ("batch/v1", kind @ "Job") => ("batch", "v1", kind),
            _ => return Ok(None),
        };
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        let api = Api::<DynamicObject>::namespaced_with(self.client.clone(), namespace, &resource);
        let asked = timeout(PATIENCE, api.get_metadata_opt(&owner.name)).await;
        let answer = asked.map_err(|_| "no answer in time".to_owned())?.map_err(|error| error.to_string())?;
        // One of the same name that came later owns nothing of this pod.
        let metadata = answer.map(|object| object.metadata).filter(|it| it.uid.as_deref() == Some(&owner.uid));
        let owners = metadata.and_then(|metadata| metadata.owner_references).unwrap_or_default();
        Ok(owners.into_iter().find(|above| above.controller == Some(true)))
    }
}

fn reference(namespace: &str, api_version: &str, kind: &str, name: &str, uid: &str) -> ObjectReference {
    ObjectReference {
        api_version: Some(api_version.to_owned()),
        kind: Some(kind.to_owned()),
        namespace: Some(namespace.to_owned()),
        name: Some(name.to_owned()),
        uid: Some(uid.to_owned()),
        ..ObjectReference::default()
    }
}
