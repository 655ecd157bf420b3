//! What of a namespace decides about its pods.

use std::collections::BTreeMap;

use pillion_api::NAMESPACE_NAME_LABEL;
use pillion_api::names::NEVER_REVIEWED;

/// A namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Namespace {
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
}

impl Namespace {
    /// A namespace without labels besides its name.
    pub fn named(name: &str) -> Self {
        Self { name: name.to_owned(), labels: BTreeMap::new() }
    }

    /// The value of a label. The one with the name is there even where nobody wrote it, as in a cluster.
    pub fn label(&self, key: &str) -> Option<&str> {
        if key == NAMESPACE_NAME_LABEL { Some(&self.name) } else { self.labels.get(key).map(String::as_str) }
    }

    /// All labels, the one with the name included.
    pub(crate) fn labels(&self) -> impl Iterator<Item = (&str, &str)> {
        let others = self.labels.iter().filter(|(key, _)| *key != NAMESPACE_NAME_LABEL);
        others.map(|(key, value)| (key.as_str(), value.as_str())).chain([(NAMESPACE_NAME_LABEL, self.name.as_str())])
    }

    /// Whether its pods are left alone whatever a set says.
    pub fn is_excluded(&self, own_namespace: Option<&str>) -> bool {
        self.name == NEVER_REVIEWED || Some(self.name.as_str()) == own_namespace
    }
}
