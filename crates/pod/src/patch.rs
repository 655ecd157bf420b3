//! A JSON patch (RFC 6902), made by editing a pod.

use serde::Serialize;
use serde_json::{Map, Value};

/// One operation. Paths are JSON pointers.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub enum Operation {
    /// Puts a value into an object or list.
    Add {
        /// Where.
        path: String,
        /// What.
        value: Value,
    },
    /// Puts a value in the place of another.
    Replace {
        /// Where.
        path: String,
        /// What.
        value: Value,
    },
    /// Takes a value away.
    Remove {
        /// Where.
        path: String,
    },
}

/// A pod that is being edited, and the operations that do the same to the original.
#[derive(Debug)]
pub struct Editor {
    pod: Value,
    patch: Vec<Operation>,
}

/// A step into an object or a list.
#[derive(Clone, Copy, Debug)]
pub enum Step<'a> {
    /// A field of an object.
    Key(&'a str),
    /// An item of a list.
    At(usize),
}

impl Editor {
    /// A pod before any change.
    pub fn new(pod: Value) -> Self {
        Self { pod, patch: Vec::new() }
    }

    /// The pod with the changes, and the changes.
    pub fn finish(self) -> (Value, Vec<Operation>) {
        (self.pod, self.patch)
    }

    /// The pod as it is so far.
    pub fn pod(&self) -> &Value {
        &self.pod
    }

    /// What is at a place; `None` where nothing is.
    pub fn get(&self, steps: &[Step<'_>]) -> Option<&Value> {
        steps.iter().try_fold(&self.pod, |value, step| match step {
            Step::Key(key) => value.get(key),
            Step::At(at) => value.get(at),
        })
    }

    /// Gives a field of an object a value; does nothing where it has it. The object is made where it is missing.
    pub fn set(&mut self, object: &[Step<'_>], key: &str, value: Value) {
        let Some(fields) = self.object(object) else {
            self.write(object, Value::Object(Map::from_iter([(key.to_owned(), value)])), false);
            return;
        };
        let present = fields.get(key);
        if present == Some(&value) {
            return;
        }
        let is_there = present.is_some();
        self.write(&[object, &[Step::Key(key)]].concat(), value, is_there);
    }

    /// Takes a field of an object away, if it is there.
    pub fn unset(&mut self, object: &[Step<'_>], key: &str) {
        if self.object(object).is_some_and(|fields| fields.contains_key(key)) {
            self.remove(&[object, &[Step::Key(key)]].concat());
        }
    }

    /// Puts a value into a list, which is made where it is missing. `None` is its end.
    pub fn insert(&mut self, list: &[Step<'_>], at: Option<usize>, value: Value) {
        let Some(items) = self.get(list).and_then(Value::as_array) else {
            self.write(list, Value::Array(vec![value]), false);
            return;
        };
        let at = at.unwrap_or(items.len()).min(items.len());
        let path = pointer(&[list, &[Step::At(at)]].concat());
        if let Some(Value::Array(items)) = self.get_mut(list) {
            items.insert(at, value.clone());
        }
        self.patch.push(Operation::Add { path, value });
    }

    /// Takes an item of a list away.
    pub fn remove(&mut self, place: &[Step<'_>]) {
        let Some((last, parent)) = place.split_last() else { return };
        match (self.get_mut(parent), last) {
            (Some(Value::Object(fields)), Step::Key(key)) if fields.contains_key(*key) => {
                fields.remove(*key);
            }
            (Some(Value::Array(items)), Step::At(at)) if *at < items.len() => {
                items.remove(*at);
            }
            _ => return,
        }
        self.patch.push(Operation::Remove { path: pointer(place) });
    }

    fn object(&self, place: &[Step<'_>]) -> Option<&Map<String, Value>> {
        self.get(place).and_then(Value::as_object)
    }

    fn get_mut(&mut self, steps: &[Step<'_>]) -> Option<&mut Value> {
        steps.iter().try_fold(&mut self.pod, |value, step| match step {
            Step::Key(key) => value.get_mut(key),
            Step::At(at) => value.get_mut(at),
        })
    }

    /// Writes a field of an object that is there, or that is made.
    fn write(&mut self, place: &[Step<'_>], value: Value, is_there: bool) {
        let Some((Step::Key(key), parent)) = place.split_last() else { return };
        if self.object(parent).is_none() {
            // What is null or missing becomes an object with this one field; the operation is one further up.
            return self.write(parent, Value::Object(Map::from_iter([((*key).to_owned(), value)])), false);
        }
        let path = pointer(place);
        if let Some(Value::Object(fields)) = self.get_mut(parent) {
            fields.insert((*key).to_owned(), value.clone());
        }
        self.patch.push(if is_there { Operation::Replace { path, value } } else { Operation::Add { path, value } });
    }
}

fn pointer(steps: &[Step<'_>]) -> String {
    let mut text = String::new();
    for step in steps {
        text.push('/');
        match step {
            Step::Key(key) => text.push_str(&key.replace('~', "~0").replace('/', "~1")),
            Step::At(at) => text.push_str(&at.to_string()),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const SPEC: &[Step<'_>] = &[Step::Key("spec")];
    const ANNOTATIONS: &[Step<'_>] = &[Step::Key("metadata"), Step::Key("annotations")];
    const VOLUMES: &[Step<'_>] = &[Step::Key("spec"), Step::Key("volumes")];

    fn edited(pod: Value, edit: impl FnOnce(&mut Editor)) -> (Value, Value) {
        let mut editor = Editor::new(pod);
        edit(&mut editor);
        let (pod, patch) = editor.finish();
        (pod, serde_json::to_value(patch).unwrap())
    }

    #[test]
    fn objects_and_lists_are_made_where_they_are_missing() {
        for missing in [json!({}), json!({"spec": null, "metadata": null})] {
            let (pod, patch) = edited(missing, |editor| {
                editor.insert(VOLUMES, Some(3), json!("v"));
                editor.set(ANNOTATIONS, "a/b~c", json!("1"));
                editor.set(ANNOTATIONS, "d", json!("2"));
            });
            assert_eq!(pod, json!({"spec": {"volumes": ["v"]}, "metadata": {"annotations": {"a/b~c": "1", "d": "2"}}}));
            assert_eq!(
                patch,
                json!([
                    {"op": "add", "path": "/spec", "value": {"volumes": ["v"]}},
                    {"op": "add", "path": "/metadata", "value": {"annotations": {"a/b~c": "1"}}},
                    {"op": "add", "path": "/metadata/annotations/d", "value": "2"},
                ])
            );
        }
    }

    #[test]
    fn what_is_there_is_replaced_only_if_it_differs() {
        let (_, patch) = edited(json!({"metadata": {"annotations": {"a/b": "1", "c": "2"}}}), |editor| {
            editor.set(ANNOTATIONS, "a/b", json!("1"));
            editor.set(ANNOTATIONS, "c", json!("3"));
            editor.set(ANNOTATIONS, "~1/~", json!("4"));
            editor.unset(ANNOTATIONS, "a/b");
            editor.unset(ANNOTATIONS, "nothing");
        });
        assert_eq!(
            patch,
            json!([
                {"op": "replace", "path": "/metadata/annotations/c", "value": "3"},
                {"op": "add", "path": "/metadata/annotations/~01~1~0", "value": "4"},
                {"op": "remove", "path": "/metadata/annotations/a~1b"},
            ])
        );
    }

    #[test]
    fn a_list_takes_values_before_its_items_and_at_its_end() {
        let (pod, patch) = edited(json!({"spec": {"volumes": [1, 2]}}), |editor| {
            editor.insert(VOLUMES, Some(0), json!(0));
            editor.insert(VOLUMES, None, json!(3));
            editor.remove(&[VOLUMES, &[Step::At(1)]].concat());
            editor.remove(&[VOLUMES, &[Step::At(9)]].concat());
            editor.set(SPEC, "hostPID", json!(true));
        });
        assert_eq!(pod, json!({"spec": {"volumes": [0, 2, 3], "hostPID": true}}));
        assert_eq!(
            patch,
            json!([
                {"op": "add", "path": "/spec/volumes/0", "value": 0},
                {"op": "add", "path": "/spec/volumes/3", "value": 3},
                {"op": "remove", "path": "/spec/volumes/1"},
                {"op": "add", "path": "/spec/hostPID", "value": true},
            ])
        );
    }
}
