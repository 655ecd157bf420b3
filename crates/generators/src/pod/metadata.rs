//! What a pod is called and what is written on it, forged marks of ours among it.

use serde_json::{Map, Value, json};

use super::Names;
use crate::draw::Draw;
use crate::json::object;
use crate::pool;

/// Marks that only we write; a pod that comes with one was copied or is forged.
const FORGED_DECISIONS: [&str; 3] = [r#"{"sets":[{"name":"mesh","verdict":"Injected"}]}"#, "{}", "not JSON"];

impl Draw<'_> {
    pub(super) fn metadata(&mut self, names: &Names, namespace: &str) -> Value {
        let (name, prefix) = if self.random.chance(50) { (Some("web-0"), None) } else { (None, Some("web-")) };
        let (labels, annotations) = (self.pod_labels(names), self.pod_annotations(names));
        let metadata = object([
            ("name", name.map(Value::from)),
            ("generateName", prefix.map(Value::from)),
            ("namespace", (self.served || self.random.chance(40)).then(|| json!(namespace))),
            ("creationTimestamp", self.served.then_some(Value::Null)),
            ("labels", self.map(labels)),
            ("annotations", self.map(annotations)),
            ("ownerReferences", self.maybe(50, Self::owners)),
        ]);
        self.with_unknown(metadata)
    }

    fn owners(&mut self) -> Value {
        let (version, kind) =
            self.random.one_of(&[("apps/v1", "ReplicaSet"), ("apps/v1", "StatefulSet"), ("batch/v1", "Job")]);
        let owner = json!({"apiVersion": version, "kind": kind, "name": "web", "uid": "5f2c", "controller": true, "blockOwnerDeletion": true});
        json!([owner])
    }

    fn pod_labels(&mut self, names: &Names) -> Map<String, Value> {
        let mut labels = Map::new();
        if self.random.chance(6) {
            return labels;
        }
        for (key, values) in pool::LABELS {
            if self.random.chance(70) {
                labels.insert(key.to_owned(), json!(self.random.one_of(values)));
            }
        }
        if let Some(main) = self.maybe(25, |draw| draw.main_container(names)) {
            labels.insert(pool::MAIN_CONTAINER.to_owned(), json!(main));
        }
        if self.random.chance(4) {
            labels.insert("pillion.dev/injected".to_owned(), json!(self.random.one_of(&["true", "false"])));
        }
        labels
    }

    fn pod_annotations(&mut self, names: &Names) -> Map<String, Value> {
        let mut annotations = Map::new();
        let mut put = |key: &str, value: &str| annotations.insert(key.to_owned(), json!(value));
        for (key, values) in pool::TEXT_ANNOTATIONS {
            if self.random.chance(25) {
                put(key, self.random.one_of(values));
            }
        }
        for key in pool::JSON_ANNOTATIONS {
            if self.random.chance(40) {
                put(key, self.random.one_of(&pool::JSON_TEXTS));
            }
        }
        if self.random.chance(25) {
            put(pool::MAIN_CONTAINER, self.main_container(names));
        }
        if self.random.chance(15) {
            let count = 1 + self.random.up_to(2);
            let comma = self.random.one_of(&[",", ", "]);
            put("pillion.dev/skip", &self.random.some_of(&pool::SETS, count).join(comma));
        }
        if self.random.chance(15) {
            let count = 1 + self.random.up_to(1);
            // All of them, or one that is not there, is a mistake that people make.
            let mut marked = self.random.some_of(&names.containers, count);
            marked.extend(self.maybe(5, |draw| draw.random.one_of(&pool::CONTAINERS)));
            put("pillion.dev/sidecars", &marked.join(","));
        }
        if self.random.chance(10) {
            put("pillion.dev/finish-mode", self.random.one_of(&["Native", "Wrap", "Wrap", "wrapped"]));
        }
        if self.random.chance(10) {
            put("pillion.dev/finish-watch", self.random.one_of(&["pod", "pod", "locks"]));
        }
        if self.random.chance(4) {
            put("pillion.dev/decision", self.random.one_of(&FORGED_DECISIONS));
        }
        if self.random.chance(4) {
            let count = 1 + self.random.up_to(2);
            let mut ours = self.random.some_of(&pool::SIDECARS, count);
            ours.push(self.random.one_of(&names.containers));
            put("pillion.dev/containers", &ours.join(","));
        }
        if self.random.chance(4) {
            put("kruise.io/sidecarset-injected-list", &self.random.some_of(&pool::SETS, 2).join(","));
        }
        if self.random.chance(2) {
            put("pillion.dev/sidecars", self.random.one_of(&names.containers));
        }
        if self.random.chance(2) {
            put("kubernetes.io/config.mirror", "0c1d");
        }
        annotations
    }

    /// The name of a container of the pod, or of none.
    fn main_container(&mut self, names: &Names) -> &'static str {
        if self.random.chance(15) { "none" } else { self.random.one_of(&names.containers) }
    }
}
