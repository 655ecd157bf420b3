//! Comparison of two volumes of which the API server has read one.

use serde_json::{Map, Value, json};

use crate::plain_form::plain;

/// Whether who has the one has the other.
pub(crate) fn is_same(one: &Map<String, Value>, other: &Map<String, Value>) -> bool {
    one == other || bare(one) == bare(other)
}

/// A volume without what need not be said.
fn bare(volume: &Map<String, Value>) -> Map<String, Value> {
    let given = volume.iter().filter(|(_, value)| !value.is_null());
    let mut bare: Map<String, Value> = given.map(|(key, value)| (key.clone(), plain(key, value))).collect();
    if bare.keys().all(|key| key == "name") {
        // A volume of no kind is an empty folder.
        bare.insert("emptyDir".to_owned(), json!({}));
    }
    bare
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(one: &Value, other: &Value) -> bool {
        let [one, other] = [one, other].map(|volume| volume.as_object().unwrap());
        let found = is_same(one, other);
        assert_eq!(found, is_same(other, one));
        found
    }

    #[test]
    fn a_volume_of_no_kind_is_an_empty_folder_and_no_other() {
        let none = json!({"name": "v"});
        assert!(same(&none, &json!({"name": "v", "emptyDir": {}})));
        assert!(same(&none, &json!({"name": "v", "emptyDir": {"medium": ""}, "secret": null})));
        for other in [
            json!({"name": "w"}),
            json!({"name": "v", "downwardAPI": {}}),
            json!({"name": "v", "emptyDir": {"medium": "Memory"}}),
        ] {
            assert!(!same(&none, &other), "{other}");
        }
    }

    #[test]
    fn defaults_and_quantities_have_one_spelling() {
        let claim = |storage: Value, mode: Value| {
            let spec = json!({"resources": {"requests": {"storage": storage}}, "volumeMode": mode});
            json!({"name": "v", "ephemeral": {"volumeClaimTemplate": {"metadata": {}, "spec": spec}}})
        };
        assert!(same(&claim(json!("1024Mi"), json!(null)), &claim(json!("1Gi"), json!("Filesystem"))));
        assert!(same(&claim(json!(1_073_741_824), json!(null)), &claim(json!("1073741824"), json!(""))));
        assert!(!same(&claim(json!("1Gi"), json!(null)), &claim(json!("2Gi"), json!(null))));
        assert!(!same(&claim(json!("1Gi"), json!(null)), &claim(json!("1Gi"), json!("Block"))));
        assert!(!same(&claim(json!("many"), json!(null)), &claim(json!("more"), json!(null))));
        // A default is one of its own field only.
        let secret = |mode: Value| json!({"name": "v", "secret": {"secretName": "420", "defaultMode": mode}});
        assert!(same(&secret(json!(null)), &secret(json!(420))));
        assert!(!same(&secret(json!(null)), &secret(json!(3600))));
        assert!(!same(&secret(json!(null)), &secret(json!(0))));
    }
}
