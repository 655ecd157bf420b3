//! Where patches go: to the API server, or for a look to a person.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Context;
use pillion_agent_api::Target;
use serde_json::{Map, Value, json};

use super::shown::{FIELD_MANAGER, Shown};
use crate::api_server::{ApiError, ApiServer, PatchKind};
use crate::json_field::{self, NoValue};
use crate::pod::PodIdentity;

/// Where patches go.
pub(crate) trait Sink: Send {
    /// The pod as it is.
    fn look(&mut self) -> Result<Shown, ApiError>;

    /// The pod after a strategic merge patch of its status.
    fn write(&mut self, patch: &Value) -> Result<Shown, ApiError>;

    /// What a field of another object holds, as text; none if it is not there.
    fn look_at(&mut self, target: &Target) -> Result<Option<String>, ApiError>;

    /// Writes a field of another object.
    fn write_to(&mut self, target: &Target, value: &str) -> Result<(), ApiError>;
}

/// The cluster that the pod is in.
pub(crate) struct Cluster {
    pub(crate) api_server: Arc<ApiServer>,
    pub(crate) pod: Arc<PodIdentity>,
}

impl Cluster {
    fn patch_pod(&self, kind: PatchKind, patch: &Value) -> Result<Shown, ApiError> {
        let body = self.api_server.patch(&path_of_pod(&self.pod), kind, patch)?;
        Ok(serde_json::from_reader(body).context("the API server sends something that is no pod")?)
    }
}

/// Plain values in the environment of the app, as the API server tells them.
pub(crate) fn app_environment(
    api_server: &Arc<ApiServer>,
    pod: &Arc<PodIdentity>,
) -> anyhow::Result<BTreeMap<String, String>> {
    let mut cluster = Cluster { api_server: Arc::clone(api_server), pod: Arc::clone(pod) };
    Ok(cluster.look()?.app_environment())
}

impl Sink for Cluster {
    fn look(&mut self) -> Result<Shown, ApiError> {
        // No right to read is needed for this, and the fence holds it to this pod. What changes nothing is not stored.
        self.patch_pod(PatchKind::Merge, &json!({}))
    }

    fn write(&mut self, patch: &Value) -> Result<Shown, ApiError> {
        self.patch_pod(PatchKind::StrategicMerge, patch)
    }

    fn look_at(&mut self, target: &Target) -> Result<Option<String>, ApiError> {
        let body = self.api_server.patch(&path_of(target), PatchKind::Merge, &json!({}))?;
        match json_field::find(body, &segments(&target.pointer)) {
            Ok(value) => Ok(Some(value)),
            Err(NoValue::Missing(_) | NoValue::NotScalar(_)) => Ok(None),
            Err(error) => Err(anyhow::Error::new(error).context("the API server sends something unexpected").into()),
        }
    }

    fn write_to(&mut self, target: &Target, value: &str) -> Result<(), ApiError> {
        self.api_server.patch(&path_of(target), PatchKind::Merge, &patch_of_target(target, value)).map(drop)
    }
}

pub(crate) fn path_of_pod(pod: &PodIdentity) -> String {
    let PodIdentity { name, namespace, .. } = pod;
    format!("/api/v1/namespaces/{namespace}/pods/{name}/status?fieldManager={FIELD_MANAGER}")
}

pub(crate) fn path_of(target: &Target) -> String {
    let Target { group, version, resource, namespace, name, .. } = target;
    let api = if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") };
    format!("/{api}/namespaces/{namespace}/{resource}/{name}?fieldManager={FIELD_MANAGER}")
}

/// A merge patch that makes the way to the field where there is none.
pub(crate) fn patch_of_target(target: &Target, value: &str) -> Value {
    let inner = Value::from(value);
    segments(&target.pointer).into_iter().rev().fold(inner, |inner, key| Value::Object(Map::from_iter([(key, inner)])))
}

fn segments(pointer: &str) -> Vec<String> {
    // `~1` first, or `~01` would become a slash.
    pointer.split('/').skip(1).map(|segment| segment.replace("~1", "/").replace("~0", "~")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(group: &str, pointer: &str) -> Target {
        Target {
            group: group.to_owned(),
            version: "v1alpha1".to_owned(),
            resource: "gameservers".to_owned(),
            namespace: "games".to_owned(),
            name: "g-0".to_owned(),
            pointer: pointer.to_owned(),
        }
    }

    #[test]
    fn paths_name_the_object_and_the_writer() {
        assert_eq!(
            path_of(&target("game.kruise.io", "/spec/opsState")),
            "/apis/game.kruise.io/v1alpha1/namespaces/games/gameservers/g-0?fieldManager=pillion-agent"
        );
        assert_eq!(
            path_of(&target("", "/data/a")),
            "/api/v1alpha1/namespaces/games/gameservers/g-0?fieldManager=pillion-agent"
        );
    }

    /// Another implementation replaced a field with a JSON patch, which fails where the field is not there yet.
    #[test]
    fn b02_the_way_to_a_field_is_made_where_there_is_none() {
        let patch = |pointer: &str| patch_of_target(&target("", pointer), "None");
        assert_eq!(patch("/spec/opsState"), json!({"spec": {"opsState": "None"}}));
        assert_eq!(
            patch("/metadata/annotations/a~1b~0c~01"),
            json!({"metadata": {"annotations": {"a/b~c~1": "None"}}})
        );
    }
}
