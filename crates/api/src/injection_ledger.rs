//! The ledger of a canary, as it is stored: what admissions and updates of one set are counted by.

use std::collections::BTreeMap;

use kube::{CustomResource, CustomResourceExt as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::crd::tighten;

/// Counts of pods by revision, living and reserved. Whoever changes them names the version they were read at.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "pillion.dev",
    version = "v1alpha1",
    kind = "InjectionLedger",
    plural = "injectionledgers",
    category = "pillion",
    namespaced,
    derive = "PartialEq",
    doc = "An InjectionLedger counts the pods of a SidecarSet by revision, so that new pods get an old one in an exact proportion. It is written by Pillion only, has the name of the set, and may be deleted: it is then counted anew.",
    printcolumn = r#"{"name":"Living","type":"string","jsonPath":".spec.living","description":"Pods by revision"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct InjectionLedgerSpec {
    /// The uid of the set: another one may have had its name.
    #[schemars(length(max = 64))]
    pub set_uid: String,
    /// Pods that live, by revision.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "Option<BTreeMap<String, i32>>", extend("maxProperties" = 1000))]
    pub living: BTreeMap<String, u32>,
    /// Ids of pods that were admitted and not seen yet, by revision.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "Option<BTreeMap<String, Vec<String>>>", extend("maxProperties" = 1000))]
    pub reserved: BTreeMap<String, Vec<String>>,
    /// Uids of pods that count as if they had this revision, because they are about to be updated to it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "Option<BTreeMap<String, Vec<String>>>", extend("maxProperties" = 1000))]
    pub claimed: BTreeMap<String, Vec<String>>,
    /// Which ordinals of a StatefulSet (namespace/name) live at which revision, such as 0-4,7. One of them that is
    /// created again has ended before.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "Option<BTreeMap<String, BTreeMap<String, String>>>", extend("maxProperties" = 1000))]
    pub ordinals: BTreeMap<String, BTreeMap<String, String>>,
}

/// The definition of InjectionLedger, ready to be applied.
pub fn injection_ledger_crd() -> Value {
    // A type of k8s-openapi always serialises; were it not so, every test of this module would say so.
    let mut crd = serde_json::to_value(InjectionLedger::crd()).unwrap_or_default();
    crd["metadata"]["labels"] = json!({"app.kubernetes.io/part-of": "pillion"});
    if let Some(schema) = crd.pointer_mut("/spec/versions/0/schema/openAPIV3Schema") {
        tighten(schema);
        // It is written as a whole; nobody's share of it is kept track of.
        schema["properties"]["spec"]["x-kubernetes-map-type"] = "atomic".into();
    }
    crd
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_empty_is_not_written_and_reads_back() {
        let empty = InjectionLedgerSpec { set_uid: "u-1".to_owned(), ..InjectionLedgerSpec::default() };
        assert_eq!(serde_json::to_value(&empty).unwrap(), json!({"setUid": "u-1"}));
        assert_eq!(serde_json::from_value::<InjectionLedgerSpec>(json!({"setUid": "u-1"})).unwrap(), empty);
        let full = json!({"setUid": "u-1", "living": {"mesh-1": 3}, "reserved": {"mesh-2": ["a.1"]},
            "claimed": {"mesh-2": ["u-9"]}, "ordinals": {"shop/web": {"mesh-1": "0-2"}}});
        let read: InjectionLedgerSpec = serde_json::from_value(full.clone()).unwrap();
        assert_eq!(serde_json::to_value(read).unwrap(), full);
    }

    #[test]
    fn its_definition_is_namespaced_and_keeps_every_field() {
        let crd = injection_ledger_crd();
        assert_eq!(crd["metadata"]["name"], "injectionledgers.pillion.dev");
        assert_eq!(
            (&crd["spec"]["scope"], &crd["spec"]["names"]["kind"]),
            (&json!("Namespaced"), &json!("InjectionLedger"))
        );
        let spec = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
        assert_eq!(spec["required"], json!(["setUid"]));
        assert_eq!(spec["x-kubernetes-map-type"], "atomic");
        let types = |field: &str| spec["properties"][field]["additionalProperties"].clone();
        assert_eq!(types("living"), json!({"type": "integer", "format": "int32"}));
        let lists = json!({"type": "array", "items": {"type": "string"}});
        assert_eq!((types("reserved"), types("claimed")), (lists.clone(), lists));
        assert_eq!(types("ordinals"), json!({"type": "object", "additionalProperties": {"type": "string"}}));
    }
}
