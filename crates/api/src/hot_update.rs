//! What was asked for a workload: the version of a file that all its pods are to have, and how far that is.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::{CustomResource, CustomResourceExt as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::crd::tighten;

/// Which workloads can be asked: their kinds, by group.
const WORKLOADS: &[(&str, &[&str])] = &[
    ("apps", &["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"]),
    ("batch", &["Job"]),
    ("apps.kruise.io", &["CloneSet", "StatefulSet", "DaemonSet"]),
    ("game.kruise.io", &["GameServerSet"]),
];

/// What all pods of a workload are to have.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "pillion.dev",
    version = "v1alpha1",
    kind = "HotUpdate",
    plural = "hotupdates",
    shortname = "hu",
    category = "pillion",
    namespaced,
    status = "HotUpdateStatus",
    derive = "PartialEq",
    doc = "A HotUpdate says which version of a file the pods of a workload are to have. Their agents bring it in without a restart; new pods get it before they are ready. Where two name the same workload, the one that was created last holds.",
    printcolumn = r#"{"name":"Kind","type":"string","jsonPath":".spec.workload.kind","description":"Kind of the workload"}"#,
    printcolumn = r#"{"name":"Workload","type":"string","jsonPath":".spec.workload.name","description":"Its name"}"#,
    printcolumn = r#"{"name":"Version","type":"string","jsonPath":".spec.version","description":"What its pods are to have"}"#,
    printcolumn = r#"{"name":"Pods","type":"integer","jsonPath":".status.pods","description":"Pods of the workload with an agent"}"#,
    printcolumn = r#"{"name":"Done","type":"integer","jsonPath":".status.done","description":"Pods that have the version"}"#,
    printcolumn = r#"{"name":"Failed","type":"integer","jsonPath":".status.failed","description":"Pods that could not load it"}"#,
    printcolumn = r#"{"name":"Status","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].reason","description":"How far it is"}"#,
    printcolumn = r#"{"name":"Message","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].message","priority":1,"description":"The same at length"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct HotUpdateSpec {
    /// Whose pods; it cannot be changed.
    pub workload: WorkloadReference,
    /// The version: v and up to four numbers with dots between them, as v1.20.
    #[schemars(length(max = 64), regex(pattern = r"^v[0-9]{1,9}(\.[0-9]{1,9}){0,3}$"))]
    pub version: String,
    /// Where the file is. Only https; the agents' configuration says which sources they take.
    #[schemars(length(max = 2048), regex(pattern = r"^https://[^/\s@]+/\S*$"))]
    pub url: String,
    /// Its digest: 64 hexadecimal digits in lower case.
    #[schemars(length(max = 64), regex(pattern = "^[0-9a-f]{64}$"))]
    pub sha256: String,
    /// How many running pods may be at it at a time: a number, or a percentage of all, rounded up. Default 25%, at least 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maxLength" = 8))]
    pub max_in_flight: Option<IntOrString>,
}

/// An object that makes pods.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadReference {
    /// Its group and version, as apps/v1.
    #[schemars(length(min = 1, max = 317))]
    pub api_version: String,
    /// Its kind, as Deployment.
    #[schemars(length(min = 1, max = 63))]
    pub kind: String,
    /// Its name, in the namespace of the record.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// How far it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HotUpdateStatus {
    /// The generation of the record this status is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Pods of the workload that have an agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods: Option<i32>,
    /// Those that have the version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done: Option<i32>,
    /// Those that could not load it, and have what they had before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<i32>,
    /// Those that are at it, or have not been told yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<i32>,
    /// Ready and Stalled, each with its reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Option<Vec<Condition>>,
}

impl WorkloadReference {
    /// The group; empty for the core.
    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }

    /// The name that the record of a workload has where nobody gives another: `deployment-web`.
    pub fn record_name(&self) -> String {
        format!("{}-{}", self.kind.to_lowercase(), self.name)
    }
}

/// The definition of HotUpdate, ready to be applied.
pub fn hot_update_crd() -> Value {
    // A type of k8s-openapi always serialises; were it not so, every test of this module would say so.
    let mut crd = serde_json::to_value(HotUpdate::crd()).unwrap_or_default();
    crd["metadata"]["labels"] = json!({"app.kubernetes.io/part-of": "pillion"});
    if let Some(schema) = crd.pointer_mut("/spec/versions/0/schema/openAPIV3Schema") {
        tighten(schema);
        let spec = &mut schema["properties"]["spec"];
        spec["properties"]["workload"]["x-kubernetes-validations"] = json!([
            {"rule": "self == oldSelf", "message": "the workload cannot be changed: delete the record and make another"},
            {"rule": known_workload(), "message": format!("it must be one of {}", workloads())},
        ]);
        spec["properties"]["maxInFlight"]["x-kubernetes-validations"] = json!([{
            "rule": "type(self) == int ? self >= 1 : self.matches('^([1-9][0-9]?|100)%$')",
            "message": "it must be a number from 1, or a percentage from 1% to 100%",
        }]);
    }
    crd
}

fn known_workload() -> String {
    let groups = WORKLOADS.iter().map(|(group, kinds)| {
        let kinds: Vec<String> = kinds.iter().map(|kind| format!("'{kind}'")).collect();
        format!("(self.apiVersion.startsWith('{group}/') && self.kind in [{}])", kinds.join(", "))
    });
    groups.collect::<Vec<_>>().join(" || ")
}

fn workloads() -> String {
    let groups = WORKLOADS.iter().map(|(group, kinds)| format!("{} of {group}", kinds.join(", ")));
    groups.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_columns_and_scope_are_as_promised() {
        let crd = hot_update_crd();
        assert_eq!(crd["metadata"]["name"], "hotupdates.pillion.dev");
        assert_eq!(
            (&crd["spec"]["scope"], &crd["spec"]["names"]["shortNames"]),
            (&json!("Namespaced"), &json!(["hu"]))
        );
        let version = &crd["spec"]["versions"][0];
        assert_eq!(version["subresources"], json!({"status": {}}));
        let columns = version["additionalPrinterColumns"].as_array().unwrap();
        let columns: Vec<&str> = columns.iter().map(|column| column["name"].as_str().unwrap()).collect();
        assert_eq!(columns, ["Kind", "Workload", "Version", "Pods", "Done", "Failed", "Status", "Message", "Age"]);
    }

    #[test]
    fn what_is_asked_for_is_bounded_and_has_a_shape() {
        let crd = hot_update_crd();
        let spec = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
        assert_eq!(spec["required"], json!(["sha256", "url", "version", "workload"]));
        let pattern = |field: &str, text: &str| {
            let pattern = spec["properties"][field]["pattern"].as_str().unwrap();
            regex::Regex::new(pattern).unwrap().is_match(text)
        };
        for (field, good, bad) in [
            ("version", &["v1", "v1.20.3.4"][..], &["1", "v", "v1.2.3.4.5", "v1.", "v1.x", "latest"][..]),
            (
                "url",
                &["https://files.example/a", "https://files.example:8443/"],
                &[
                    "http://files.example/a",
                    "https://",
                    "https://a b/",
                    "https://user:word@files.example/a",
                    "https://host",
                ],
            ),
            ("sha256", &[&*"0a".repeat(32)], &["", &*"0A".repeat(32), &*"0".repeat(63), &*"0".repeat(65)]),
        ] {
            assert!(good.iter().all(|text| pattern(field, text)), "{field}");
            assert!(bad.iter().all(|text| !pattern(field, text)), "{field}");
        }
        assert_eq!(
            spec["properties"]["workload"]["x-kubernetes-validations"][1]["message"],
            "it must be one of Deployment, StatefulSet, DaemonSet, ReplicaSet of apps; Job of batch; CloneSet, StatefulSet, DaemonSet of apps.kruise.io; GameServerSet of game.kruise.io"
        );
    }

    #[test]
    fn a_workload_has_a_group_and_a_name_for_its_record() {
        let workload = |api_version: &str, kind: &str| WorkloadReference {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            name: "web".to_owned(),
        };
        assert_eq!(workload("apps/v1", "Deployment").group(), "apps");
        assert_eq!(workload("v1", "Pod").group(), "");
        assert_eq!(workload("game.kruise.io/v1alpha1", "GameServerSet").record_name(), "gameserverset-web");
    }
}
