//! What stands above the content of a pod that exists: its metadata, and the object that makes it anew.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;

/// The metadata of an object, as far as deciders look at them.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Metadata {
    /// Its namespace.
    pub namespace: Option<Box<str>>,
    /// Its name.
    pub name: Option<Box<str>>,
    /// Its uid.
    pub uid: Option<Box<str>>,
    /// The version the API server gave it.
    pub resource_version: Option<Box<str>>,
    /// Its labels.
    pub labels: Option<BTreeMap<Box<str>, Box<str>>>,
    /// Its annotations.
    pub annotations: Option<BTreeMap<Box<str>, Box<str>>>,
    /// When it was created.
    pub creation_timestamp: Option<Timestamp>,
    /// When it was told to go, where it was.
    pub deletion_timestamp: Option<Timestamp>,
    owner_references: Option<Vec<OwnerReference>>,
}

/// An object that makes pods.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Owner {
    /// Group and version.
    pub api_version: Box<str>,
    /// Its kind.
    pub kind: Box<str>,
    /// Its name.
    pub name: Box<str>,
    /// Its uid.
    pub uid: Box<str>,
}

#[derive(Clone, Debug, Deserialize)]
struct OwnerReference {
    #[serde(flatten)]
    owner: Owner,
    controller: Option<bool>,
}

impl Metadata {
    /// Takes out the owner that makes the object anew: one that does not say that it does is none.
    pub fn take_controller(&mut self) -> Option<Owner> {
        let owners = self.owner_references.take().unwrap_or_default();
        owners.into_iter().find(|reference| reference.controller == Some(true)).map(|reference| reference.owner)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_controller_is_the_owner_that_says_so() {
        let owner = |name: &str, controller: Option<bool>| json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": "u", "controller": controller});
        let of = |owners: serde_json::Value| {
            let mut metadata: Metadata = serde_json::from_value(json!({"ownerReferences": owners})).unwrap();
            metadata.take_controller().map(|owner| owner.name)
        };
        assert_eq!(of(json!([owner("a", None), owner("b", Some(false)), owner("c", Some(true))])), Some("c".into()));
        assert_eq!(of(json!([owner("a", None)])), None);
        assert_eq!(of(json!(null)), None);
    }
}
