//! Containers and volumes of a set: JSON that is carried as it is, with typed sight of the fields rules read.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::resources_policy::ResourcesPolicy;

/// A container as the user wrote it. Fields this crate has never heard of stay.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SidecarContainer(pub Map<String, Value>);

/// A volume as the user wrote it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Volume(pub Map<String, Value>);

/// A container of the pod API, with the fields below besides. All fields of Kubernetes' own container are accepted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContainerFields {
    /// Name of the container in the pod. A pod that has a container of this name is a clash, never overwritten.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub name: String,
    /// Image of the container. A change of it is rolled out in place.
    #[schemars(length(min = 1, max = 1024))]
    pub image: String,
    /// Always makes an init container a native sidecar, which runs as long as the pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub restart_policy: Option<String>,
    /// Fixed resources. Not together with resourcesPolicy, except for claims.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
    /// Resources computed, when a pod is created, from those of the pod's own containers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources_policy: Option<ResourcesPolicy>,
    /// True: this container ends when all others have ended for good, so that a Job can finish.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sidecar: Option<bool>,
    /// Where it goes: BeforeAppContainer (default for containers) or AfterAppContainer (default for init containers).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_inject_policy: Option<PodInjectPolicy>,
    /// With type enabled it gets the volume mounts of the pod's own containers. Default disabled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share_volume_policy: Option<SharePolicy>,
    /// With type enabled it gets the volume devices of the pod's own containers. Default disabled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share_volume_device_policy: Option<SharePolicy>,
    /// Environment variables to copy from the pod's own containers. Its own variables win.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "atomic"))]
    pub transfer_env: Option<Vec<TransferEnv>>,
    /// Only upgradeType ColdUpgrade (the default) is supported; a hot upgrade is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upgrade_strategy: Option<UpgradeStrategy>,
}

/// The names of fields that are ours and not Kubernetes'; they never reach a pod.
pub const OWN_FIELDS: [&str; 7] = [
    "podInjectPolicy",
    "resourcesPolicy",
    "shareVolumeDevicePolicy",
    "shareVolumePolicy",
    "sidecar",
    "transferEnv",
    "upgradeStrategy",
];

impl SidecarContainer {
    /// The fields rules read.
    pub fn fields(&self) -> Result<ContainerFields, serde_json::Error> {
        ContainerFields::deserialize(&Value::Object(self.0.clone()))
    }

    /// The container for a pod: everything but our own fields.
    pub fn for_pod(&self) -> Map<String, Value> {
        self.0
            .iter()
            .filter(|(key, _)| !OWN_FIELDS.contains(&key.as_str()))
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect()
    }
}

impl Volume {
    /// Its name, if it has one.
    pub fn name(&self) -> Option<&str> {
        self.0.get("name").and_then(Value::as_str)
    }
}

impl JsonSchema for SidecarContainer {
    fn schema_name() -> Cow<'static, str> {
        "SidecarContainer".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = ContainerFields::json_schema(generator);
        schema.insert("x-kubernetes-preserve-unknown-fields".to_owned(), true.into());
        schema
    }
}

/// A volume of the pod API. All fields are accepted.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "stands for the schema of `Volume` only")]
struct VolumeFields {
    /// Name of the volume in the pod.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    name: String,
}

impl JsonSchema for Volume {
    fn schema_name() -> Cow<'static, str> {
        "SidecarSetVolume".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = VolumeFields::json_schema(generator);
        schema.insert("x-kubernetes-preserve-unknown-fields".to_owned(), true.into());
        schema
    }
}

/// Fixed resources of a container.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct Resources {
    /// What the container may not exceed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<AnyObject>")]
    pub limits: Option<Map<String, Value>>,
    /// What the container is promised.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<AnyObject>")]
    pub requests: Option<Map<String, Value>>,
}

/// An object of which the schema says nothing: a quantity may be a string, a whole number or a fraction.
#[derive(JsonSchema)]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
struct AnyObject {}

/// Where it goes: BeforeAppContainer (default for containers) or AfterAppContainer (default for init containers).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PodInjectPolicy {
    /// Before those of the pod.
    BeforeAppContainer,
    /// After those of the pod.
    AfterAppContainer,
}

/// Whether something of the pod's own containers is shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SharePolicy {
    /// enabled or disabled, which is the default.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<ShareType>,
}

/// enabled or disabled, which is the default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ShareType {
    /// It is.
    Enabled,
    /// It is not.
    Disabled,
}

/// Variables to copy from one container of the pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TransferEnv {
    /// The container to copy from, by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub source_container_name: Option<String>,
    /// The container to copy from, by a field of the pod that holds its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_container_name_from: Option<SourceContainerNameFrom>,
    /// The variable to copy.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub env_name: Option<String>,
    /// The variables to copy, besides envName.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 1024)), extend("x-kubernetes-list-type" = "atomic"))]
    pub env_names: Option<Vec<String>>,
}

/// Where the name of a container is found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SourceContainerNameFrom {
    /// A field of the pod.
    pub field_ref: FieldRef,
}

/// A field of the pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FieldRef {
    /// Version the path is written in: v1, which is also the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["v1"]))]
    pub api_version: Option<String>,
    /// metadata.name, metadata.labels['KEY'] or metadata.annotations['KEY'].
    #[schemars(length(min = 1, max = 512))]
    pub field_path: String,
}

/// How OpenKruise updates a container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpgradeStrategy {
    /// ColdUpgrade, the default, is the only one supported.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub upgrade_type: Option<String>,
    /// Part of a hot upgrade, which is not supported.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub hot_upgrade_empty_image: Option<String>,
}
