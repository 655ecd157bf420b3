//! Where writes leave: only while this replica leads, and each no longer than it may take.

use k8s_openapi::api::core::v1::{ConfigMap, Pod, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, Role, RoleBinding};
use kube::Api;
use kube::api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, Preconditions};
use pillion_agent_api::names::WANTED;
use pillion_api::{HotUpdate, HotUpdateStatus};
use pillion_plan::annotation_path;
use serde_json::{Value, json};
use tracing::{debug, warn};

use super::Context;
use super::objects::Record;
use super::plan::{Kind, Place, Write};
use crate::{asking, names};

/// Field manager of all that is written here.
const MANAGER: &str = "pillion-agent-controller";

/// Why something was not written.
#[derive(Debug)]
pub(super) enum Failed {
    /// It does not matter: what it was for is gone, or going.
    Gone,
    /// It is tried again.
    Refused(String),
}

impl Kind {
    fn resource(self) -> ApiResource {
        match self {
            Self::Binding => ApiResource::erase::<RoleBinding>(&()),
            Self::Role => ApiResource::erase::<Role>(&()),
            Self::Account => ApiResource::erase::<ServiceAccount>(&()),
            Self::ConfigMap => ApiResource::erase::<ConfigMap>(&()),
        }
    }
}

impl Context {
    /// The owner of everything that the agent controller creates: its `ClusterRole`. Uninstalling removes the policies on
    /// agents, and must not leave permissions that they limited. `None` for a process that was not installed by the chart.
    pub(super) async fn owner(&self) -> Result<Option<Value>, Failed> {
        let api = Api::<ClusterRole>::all(self.client.clone());
        let role = self.asked(api.get_opt(names::AGENT_LEASE)).await?;
        let uid = role.and_then(|role| role.metadata.uid);
        Ok(uid.map(|uid| {
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "name": names::AGENT_LEASE, "uid": uid})
        }))
    }

    /// Does one write; what is made belongs to this owner.
    pub(super) async fn write(&self, write: &Write, owner: Option<&Value>) -> Result<(), Failed> {
        match write {
            Write::Apply { place, labels, body, extra } => self.apply(place, labels, body, extra, owner).await,
            Write::Delete { place, uid } => self.delete(place, Some(uid)).await,
        }
    }

    async fn apply(
        &self,
        place: &Place,
        labels: &Value,
        body: &Value,
        extra: &[String],
        owner: Option<&Value>,
    ) -> Result<(), Failed> {
        let Place { kind, namespace, name } = place;
        let resource = kind.resource();
        let api = Api::<DynamicObject>::namespaced_with(self.client.clone(), namespace, &resource);
        let mut object = json!({"apiVersion": resource.api_version, "kind": resource.kind,
            "metadata": {"name": name, "namespace": namespace, "labels": labels}});
        if let Some(owner) = owner {
            object["metadata"]["ownerReferences"] = json!([owner]);
        }
        for (field, value) in body.as_object().into_iter().flatten() {
            object[field] = value.clone();
        }
        if !extra.is_empty() {
            let gone: serde_json::Map<_, _> = extra.iter().map(|key| (key.clone(), Value::Null)).collect();
            let patch = Patch::Merge(json!({"data": gone}));
            let parameters = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
            self.asked(api.patch(name, &parameters, &patch)).await?;
        }
        let applied = self.asked(api.patch(name, &PatchParams::apply(MANAGER).force(), &Patch::Apply(&object))).await;
        debug!(kind = resource.kind, namespace, name, is_done = applied.is_ok(), "applied");
        match applied {
            // A role that a binding names cannot be changed, nor a ConfigMap that somebody made immutable: they are made
            // anew, as the watch tells that they are gone.
            Err(Failed::Refused(why)) if why.contains("is invalid") => {
                warn!(kind = resource.kind, namespace, name, why, "cannot be changed: it is made anew");
                self.delete(place, None).await?;
                Err(Failed::Refused(why))
            }
            Err(failed) => Err(failed),
            Ok(_) => Ok(()),
        }
    }

    async fn delete(&self, place: &Place, uid: Option<&str>) -> Result<(), Failed> {
        let Place { kind, namespace, name } = place;
        let resource = kind.resource();
        let api = Api::<DynamicObject>::namespaced_with(self.client.clone(), namespace, &resource);
        let preconditions = uid.map(|uid| Preconditions { uid: Some(uid.to_owned()), resource_version: None });
        let parameters = DeleteParams { preconditions, ..DeleteParams::default() };
        let deleted = self.asked(api.delete(name, &parameters)).await;
        debug!(kind = resource.kind, namespace, name, is_done = deleted.is_ok(), "deleted");
        deleted.map(drop)
    }

    /// Tells a pod, and no other of its name, of a version.
    pub(super) async fn tell(&self, namespace: &str, name: &str, uid: &str, wanted: &str) -> Result<(), Failed> {
        let api = Api::<Pod>::namespaced(self.client.clone(), namespace);
        // A pod with an agent has annotations: those of injection.
        let patch = json!([
            {"op": "test", "path": "/metadata/uid", "value": uid},
            {"op": "add", "path": annotation_path(WANTED), "value": wanted},
        ]);
        let patch = serde_json::from_value(patch).map_err(|error| Failed::Refused(error.to_string()))?;
        let parameters = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        self.asked(api.patch_metadata(name, &parameters, &Patch::Json::<()>(patch))).await?;
        Ok(())
    }

    /// Writes the status of a record, of this very version.
    pub(super) async fn write_status(
        &self,
        namespace: &str,
        name: &str,
        record: &Record,
        status: &HotUpdateStatus,
    ) -> Result<(), Failed> {
        let api = Api::<HotUpdate>::namespaced(self.client.clone(), namespace);
        let object = json!({"apiVersion": "pillion.dev/v1alpha1", "kind": "HotUpdate", "status": status,
            "metadata": {"name": name, "namespace": namespace, "uid": record.uid, "resourceVersion": record.version}});
        let parameters = PatchParams::apply(MANAGER).force();
        self.asked(api.patch_status(name, &parameters, &Patch::Apply(&object))).await?;
        Ok(())
    }

    async fn asked<T>(&self, request: impl Future<Output = kube::Result<T>>) -> Result<T, Failed> {
        asking::asked(&self.leadership, self.patience, request).await.map_err(|failed| {
            if failed.is_gone() { Failed::Gone } else { Failed::Refused(failed.message().to_owned()) }
        })
    }
}
