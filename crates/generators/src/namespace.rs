//! Namespaces: a name and labels.

use std::collections::BTreeMap;

use proptest::strategy::Strategy;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::drawn::Drawn;
use crate::pool;
use crate::random::Random;

/// A namespace, as far as it decides anything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Namespace {
    /// Its name.
    pub name: String,
    /// Its labels; the API server adds `kubernetes.io/metadata.name` to every namespace.
    pub labels: BTreeMap<String, String>,
}

/// Namespaces; a few are `kube-system`.
pub fn namespace() -> impl Strategy<Value = Namespace> + Clone {
    Drawn::new(draw, is_whole).prop_map(read)
}

pub(crate) fn draw(random: &mut Random) -> Value {
    let name = name(random);
    let mut labels = serde_json::Map::from_iter([("kubernetes.io/metadata.name".to_owned(), json!(name))]);
    for (key, values) in pool::NAMESPACE_LABELS {
        if random.chance(60) {
            labels.insert(key.to_owned(), json!(random.one_of(values)));
        }
    }
    json!({"name": name, "labels": labels})
}

/// The name of a namespace.
pub(crate) fn name(random: &mut Random) -> &'static str {
    let [usual @ .., system] = pool::NAMESPACES;
    if random.chance(3) { system } else { random.one_of(&usual) }
}

pub(crate) fn is_whole(namespace: &Value) -> bool {
    let name = namespace.get("name");
    name.is_some() && name == namespace.pointer("/labels/kubernetes.io~1metadata.name")
}

pub(crate) fn read(namespace: Value) -> Namespace {
    serde_json::from_value(namespace).expect("what is drawn here has a name and labels")
}
