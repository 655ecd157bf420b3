//! Whether injection is switched off: a `ConfigMap`, so that `pillion off` works also when nothing of us runs.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client};
use pillion_runtime::watch::{Key, Selection, Store, WatchMetrics, watch};

use crate::names;

/// The switch of an installation. Clones read the same one.
#[derive(Clone)]
pub struct Switch {
    store: Store<bool>,
    key: Key,
}

impl Switch {
    /// Watches the switch of the installation in a namespace while the future runs.
    pub fn watch(
        client: Client,
        namespace: &str,
        metrics: &WatchMetrics,
    ) -> (Self, impl Future<Output = ()> + Send + use<>) {
        let api = Api::<ConfigMap>::namespaced(client, namespace);
        let selection = Selection { fields: Some(format!("metadata.name={}", names::SWITCH)), ..Selection::default() };
        let (store, driver) = watch("switch", api, selection, metrics, |map: ConfigMap| Some(says_off(map.data)));
        (Self { store, key: Key::new(namespace, names::SWITCH) }, driver)
    }

    /// Whether injection is switched off. Without a switch it is on.
    pub fn is_off(&self) -> bool {
        self.store.get(&self.key).unwrap_or(false)
    }

    /// The store behind it, for readiness and changes.
    pub fn store(&self) -> &Store<bool> {
        &self.store
    }
}

fn says_off(data: Option<BTreeMap<String, String>>) -> bool {
    data.is_some_and(|data| data.get(names::SWITCH_KEY).is_some_and(|value| value == names::SWITCHED_OFF))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_word_off_switches_off() {
        let map = |key: &str, value: &str| Some(BTreeMap::from([(key.to_owned(), value.to_owned())]));
        assert!(says_off(map("injection", "off")));
        for data in [None, Some(BTreeMap::new()), map("injection", "on"), map("injection", ""), map("other", "off")] {
            assert!(!says_off(data));
        }
    }
}
