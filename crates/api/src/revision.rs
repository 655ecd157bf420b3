//! What a revision of a set is: a hash of the user's own words about what pods get.
//!
//! The hash must never change with the version of the product: every pod of every cluster would be updated for nothing. So
//! it is taken of the JSON as it was written, with one spelling and in one order, and never of types. Golden hashes in the
//! tests hold it.

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

/// The fields of a set that a revision covers: exactly what decides what a pod gets.
///
/// Whether a container is marked as a sidecar is a field of the container, and covered with it. How it is ended then
/// (`finish`) is not: it is a strategy, which pods may choose otherwise, and every name there is would change with one more
/// field here, as each of them is hashed whether or not it was written.
pub const FIELDS: [&str; 9] = [
    "appVolumeMounts",
    "containers",
    "imagePullSecrets",
    "initContainers",
    "labels",
    "patchPodMetadata",
    "serviceAccountName",
    "shareProcessNamespace",
    "volumes",
];
/// Label of a stored revision: the uid of its set.
pub const SET_UID_LABEL: &str = "pillion.dev/sidecarset-uid";
/// Annotation of a stored revision: all custom versions it ever had, as a JSON array, the oldest first.
pub const CUSTOM_VERSIONS: &str = "pillion.dev/custom-versions";

/// How the hash is made. Another way gets another number, and the old one stays for what it named.
const VERSION: u8 = 1;
/// Characters of a name that make no words, and no other revision's name.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
const LENGTH: usize = 10;
/// `OpenKruise`'s spelling of a field of a container's resourcesPolicy, and ours.
const SPELLINGS: [(&str, &str); 2] =
    [("targetContainersMode", "targetContainerMode"), ("resourcesExpr", "resourceExpr")];

/// What a revision covers of a spec, in one spelling; null where nothing was written.
pub fn fields(spec: &Map<String, Value>) -> Map<String, Value> {
    let field = |key: &str| {
        let mut value = spec.get(key).cloned().unwrap_or_default();
        if matches!(key, "containers" | "initContainers") {
            value.as_array_mut().into_iter().flatten().for_each(respell);
        }
        drop_nulls(&mut value);
        let is_empty = match &value {
            Value::Array(items) => items.is_empty(),
            Value::Object(fields) => fields.is_empty(),
            _ => false,
        };
        if is_empty { Value::Null } else { value }
    };
    FIELDS.iter().map(|key| ((*key).to_owned(), field(key))).collect()
}

/// The name of a revision of a set: of these fields and no others.
pub fn name(set: &str, fields: &Map<String, Value>) -> String {
    let mut text = format!("{VERSION}\n{set}\n");
    write_object(fields, &mut text);
    let digest = Sha256::digest(text.as_bytes());
    // Ten digits of a number with 27 of them; 64 bits hold far more.
    let mut number = digest.iter().take(8).fold(0_u64, |number, byte| (number << 8) | u64::from(*byte));
    let mut name = format!("{set}-");
    for _ in 0..LENGTH {
        let (rest, digit) = (number / 27, number % 27);
        number = rest;
        name.push(char::from(ALPHABET[usize::try_from(digit).unwrap_or_default()]));
    }
    name
}

/// What a stored revision holds.
pub fn data(fields: &Map<String, Value>) -> Value {
    json!({"v": VERSION, "spec": fields})
}

/// The fields in the data of a stored revision; `None` for one that is not ours.
pub fn fields_of_data(data: &Value) -> Option<&Map<String, Value>> {
    data.get("spec")?.as_object().filter(|_| data.get("v") == Some(&json!(VERSION)))
}

fn respell(container: &mut Value) {
    let Some(policy) = container.get_mut("resourcesPolicy").and_then(Value::as_object_mut) else { return };
    for (theirs, ours) in SPELLINGS {
        if let Some(value) = policy.remove(theirs).filter(|value| !value.is_null()) {
            policy.insert(ours.to_owned(), value);
        }
    }
}

/// A field that is null is one that was not written.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

fn write(value: &Value, text: &mut String) {
    match value {
        Value::Object(fields) => write_object(fields, text),
        Value::Array(items) => {
            text.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    text.push(',');
                }
                write(item, text);
            }
            text.push(']');
        }
        simple => text.push_str(&simple.to_string()),
    }
}

/// Keys in the order of their bytes, whatever order the map keeps.
fn write_object(fields: &Map<String, Value>, text: &mut String) {
    let mut keys: Vec<&String> = fields.keys().collect();
    keys.sort_unstable();
    text.push('{');
    for (at, key) in keys.into_iter().enumerate() {
        if at > 0 {
            text.push(',');
        }
        text.push_str(&Value::from(key.as_str()).to_string());
        text.push(':');
        write(&fields[key], text);
    }
    text.push('}');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(spec: &Value) -> String {
        name("mesh", &fields(spec.as_object().unwrap()))
    }

    fn plain() -> Value {
        json!({"selector": {"matchLabels": {"app": "web"}}, "containers": [{"name": "proxy", "image": "proxy:1"}]})
    }

    fn with(key: &str, value: Value) -> Value {
        let mut spec = plain();
        spec[key] = value;
        spec
    }

    /// Whoever changes one of these makes every cluster update every pod. A new way to hash gets a new number, and the
    /// old names stay valid for the revisions that have them.
    #[test]
    fn golden_hashes_never_change() {
        let policy = json!({"targetContainerMode": "sum", "resourceExpr": {"limits": {"cpu": "max(cpu*50%, 50m)"}}});
        let golden = [
            (plain(), "mesh-8vgrzjwlxf"),
            (
                json!({"initContainers": [{"name": "proxy", "image": "proxy:1", "restartPolicy": "Always"}]}),
                "mesh-v8fz7xsjk5",
            ),
            (with("volumes", json!([{"name": "cache", "emptyDir": {}}])), "mesh-66bgsl6pgj"),
            (
                with("containers", json!([{"name": "proxy", "image": "proxy:1", "resourcesPolicy": policy}])),
                "mesh-gpkd47fwzs",
            ),
            (
                with(
                    "containers",
                    json!([{"name": "pröxy\n", "image": "\u{1f600}", "env": [{"name": "A", "value": "1.0"}], "x": [1, 1.5, true]}]),
                ),
                "mesh-7s286zsmsf",
            ),
            (json!({}), "mesh-djspgtsr4p"),
        ];
        let made: Vec<String> = golden.iter().map(|(spec, _)| of(spec)).collect();
        assert_eq!(made, golden.iter().map(|(_, name)| *name).collect::<Vec<_>>());
        assert_ne!(name("logs", &fields(plain().as_object().unwrap()))[5..], made[0][5..], "a name is of one set");
    }

    #[test]
    fn the_hash_is_of_what_a_pod_gets_and_of_nothing_else() {
        let same = [
            with("selector", json!({"matchLabels": {"app": "api"}})),
            with("namespace", json!("shop")),
            with("updateStrategy", json!({"partition": 3})),
            with("injectStrategy", json!({"paused": true})),
            with("failurePolicy", json!("Ignore")),
            with("mode", json!("Observe")),
            with("allowOptOut", json!(true)),
            with("finish", json!({"mode": "Wrap", "watch": "Pod"})),
            with("revisionHistoryLimit", json!(3)),
            with("volumes", json!([])),
            with("labels", json!({})),
            with("containers", json!([{"image": "proxy:1", "env": null, "name": "proxy"}])),
        ];
        for spec in &same {
            assert_eq!(of(spec), of(&plain()), "{spec}");
        }
        let others = [
            with("containers", json!([{"name": "proxy", "image": "proxy:2"}])),
            with("containers", json!([{"name": "proxy", "image": "proxy:1", "sidecar": true}])),
            with("containers", json!([{"name": "proxy", "image": "proxy:1", "emptyDir": {}}])),
            with("appVolumeMounts", json!([{"volume": "v", "path": "/v"}])),
            with("imagePullSecrets", json!([{"name": "s"}])),
            with("initContainers", json!([{"name": "i", "image": "i"}])),
            with("labels", json!({"a": "b"})),
            with("patchPodMetadata", json!([{"annotations": {"a": "b"}}])),
            with("serviceAccountName", json!("a")),
            with("shareProcessNamespace", json!(false)),
            with("volumes", json!([{"name": "v"}])),
        ];
        let names: std::collections::BTreeSet<String> = others.iter().chain([&plain()]).map(of).collect();
        assert_eq!(names.len(), others.len() + 1);
    }

    #[test]
    fn both_spellings_are_one_revision() {
        let with_policy = |policy: Value| {
            of(&with("containers", json!([{"name": "proxy", "image": "proxy:1", "resourcesPolicy": policy}])))
        };
        let expression = json!({"limits": {"cpu": "cpu"}});
        assert_eq!(
            with_policy(json!({"targetContainersMode": "sum", "resourcesExpr": expression})),
            with_policy(json!({"targetContainerMode": "sum", "resourceExpr": expression}))
        );
    }

    #[test]
    fn what_is_stored_is_read_again() {
        let fields = fields(plain().as_object().unwrap());
        let data = data(&fields);
        assert_eq!(fields_of_data(&data), Some(&fields));
        assert_eq!(data["spec"].as_object().unwrap().len(), FIELDS.len(), "every field is named, written or not");
        assert_eq!(fields_of_data(&json!({"spec": {"$patch": "replace"}})), None);
    }
}
