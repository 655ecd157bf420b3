//! JSON patches of a set that test what was read before they change it, and the same for kubectl.
//!
//! A version precondition would fail whenever the controller writes the status, which is every second of a rollout. A test
//! of the fields that matter fails only when somebody else changed those.

use serde_json::{Map, Value, json};

use crate::live::kinds::Kind;

/// Operations on one object.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Patch(Vec<Value>);

impl Patch {
    /// Goes through only where a field is as it was read.
    pub(super) fn test(&mut self, object: &Value, path: &[&str]) {
        let value = at(object, path).cloned().unwrap_or_default();
        self.0.push(json!({"op": "test", "path": pointer(path), "value": value}));
    }

    /// Gives a field another value, and makes what it is in where that is not there.
    pub(super) fn put(&mut self, object: &Value, path: &[&str], value: Value) {
        let depth = self.test_deepest(object, path);
        let nested = path[depth..]
            .iter()
            .rev()
            .fold(value, |value, key| Value::Object(Map::from_iter([((*key).to_owned(), value)])));
        self.0.push(json!({"op": "add", "path": pointer(&path[..depth]), "value": nested}));
    }

    /// Takes a field away, where it is.
    pub(super) fn take(&mut self, object: &Value, path: &[&str]) {
        if at(object, path).is_some() {
            self.test(object, path);
            self.0.push(json!({"op": "remove", "path": pointer(path)}));
        }
    }

    /// The same without a test, for those who have tested more.
    pub(super) fn write(&mut self, object: &Value, path: &[&str], value: Value) {
        let mut tested = Self::default();
        if value.is_null() {
            tested.take(object, path);
        } else {
            tested.put(object, path, value);
        }
        self.0.extend(tested.0.into_iter().filter(|operation| operation["op"] != "test"));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// For the API server.
    pub(super) fn json(&self) -> Value {
        Value::Array(self.0.clone())
    }

    /// The command that does the same, with these flags for the cluster.
    pub(super) fn kubectl(&self, kind: Kind, name: &str, flags: &str) -> String {
        let kind = kind.name.to_ascii_lowercase();
        format!("kubectl{flags} patch {kind} {name} --type=json -p {}", quoted(&self.json().to_string()))
    }

    /// Tests the field, or the outermost of what it is in that is not there; how many keys lead to that.
    fn test_deepest(&mut self, object: &Value, path: &[&str]) -> usize {
        let depth = (1..path.len()).find(|depth| at(object, &path[..*depth]).is_none()).unwrap_or(path.len());
        self.test(object, &path[..depth]);
        depth
    }
}

/// A field that is there; one that is null is not.
fn at<'a>(object: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(object, |value, key| value.get(key)).filter(|value| !value.is_null())
}

fn pointer(path: &[&str]) -> String {
    let keys = path.iter().map(|key| key.replace('~', "~0").replace('/', "~1"));
    keys.flat_map(|key| ["/".to_owned(), key]).collect()
}

/// One word for a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::live::kinds::SIDECAR_SET;

    fn put(object: &Value, path: &[&str], value: Value) -> Value {
        let mut patch = Patch::default();
        patch.put(object, path, value);
        patch.json()
    }

    #[test]
    fn what_a_field_is_in_is_made_where_it_is_not_there() {
        let path = ["spec", "updateStrategy", "paused"];
        assert_eq!(
            put(&json!({"spec": {"updateStrategy": {"paused": false}}}), &path, json!(true)),
            json!([{"op": "test", "path": "/spec/updateStrategy/paused", "value": false},
                {"op": "add", "path": "/spec/updateStrategy/paused", "value": true}])
        );
        assert_eq!(
            put(&json!({"spec": {"updateStrategy": {}}}), &path, json!(true)),
            json!([{"op": "test", "path": "/spec/updateStrategy/paused", "value": null},
                {"op": "add", "path": "/spec/updateStrategy/paused", "value": true}])
        );
        for object in [json!({"spec": {}}), json!({"spec": {"updateStrategy": null}})] {
            assert_eq!(
                put(&object, &path, json!(true)),
                json!([{"op": "test", "path": "/spec/updateStrategy", "value": null},
                    {"op": "add", "path": "/spec/updateStrategy", "value": {"paused": true}}])
            );
        }
    }

    #[test]
    fn what_is_not_there_is_not_taken_away() {
        let object = json!({"metadata": {"labels": {"a/b~c": "d"}}});
        let mut patch = Patch::default();
        patch.take(&object, &["spec", "volumes"]);
        assert!(patch.is_empty());
        patch.take(&object, &["metadata", "labels", "a/b~c"]);
        assert_eq!(
            patch.json(),
            json!([{"op": "test", "path": "/metadata/labels/a~1b~0c", "value": "d"},
                {"op": "remove", "path": "/metadata/labels/a~1b~0c"}])
        );
    }

    #[test]
    fn the_command_is_one_word_for_a_shell() {
        let mut patch = Patch::default();
        patch.write(&json!({"spec": {}}), &["spec", "labels"], json!({"a": "it's"}));
        assert_eq!(
            patch.kubectl(SIDECAR_SET, "mesh", " --context near"),
            r#"kubectl --context near patch sidecarset mesh --type=json -p '[{"op":"add","path":"/spec/labels","value":{"a":"it'\''s"}}]'"#
        );
    }

    fn objects() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![any::<bool>().prop_map(Value::from), any::<u8>().prop_map(Value::from)];
        leaf.prop_recursive(3, 16, 3, |inner| {
            prop::collection::btree_map("[a-c/~]", inner, 0..3).prop_map(|map| json!(map))
        })
        .prop_filter("an object", Value::is_object)
    }

    fn apply(patch: &Patch, object: &mut Value) {
        let operations: json_patch::Patch = serde_json::from_value(patch.json()).unwrap();
        json_patch::patch(object, &operations).unwrap();
    }

    proptest! {
        /// Where nothing else is at the place, a write gives the field its value and leaves the rest.
        #[test]
        fn a_written_field_has_its_value(object in objects(), path in prop::collection::vec("[a-c/~]", 1..4), value: u8) {
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            prop_assume!((1..path.len()).all(|depth| at(&object, &path[..depth]).is_none_or(Value::is_object)));
            let mut patch = Patch::default();
            patch.write(&object, &path, json!(value));
            let mut patched = object.clone();
            apply(&patch, &mut patched);
            prop_assert_eq!(at(&patched, &path), Some(&json!(value)));
            // Taken away again, nothing but empty objects is left of it.
            let mut back = Patch::default();
            back.take(&patched, &path);
            apply(&back, &mut patched);
            prop_assert_eq!(at(&patched, &path), None);
        }
    }
}
