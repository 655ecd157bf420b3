//! `--local`: patches are printed, one JSON line each, and done to a pod that exists only here.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::Arc;

use anyhow::Context;
use pillion_agent_api::Target;
use serde::Deserialize;
use serde_json::{Value, json};

use super::shown::Shown;
use super::sink::{Sink, patch_of_target, path_of, path_of_pod};
use crate::api_server::ApiError;
use crate::pod::PodIdentity;

/// Prints patches.
pub(crate) struct Local<W> {
    out: W,
    path: String,
    pod: Value,
    fields: BTreeMap<String, String>,
}

impl Local<File> {
    /// Prints on stdout.
    pub(crate) fn new(pod: &Arc<PodIdentity>) -> io::Result<Self> {
        // A descriptor of its own has no lock that a program around this one may hold.
        Ok(Self::to(File::from(io::stdout().as_fd().try_clone_to_owned()?), pod))
    }
}

impl<W: Write> Local<W> {
    fn to(out: W, pod: &PodIdentity) -> Self {
        let shown = json!({"metadata": {}, "status": {"conditions": []}});
        Self { out, path: path_of_pod(pod), pod: shown, fields: BTreeMap::new() }
    }

    fn print(&mut self, path: &str, patch: &Value) -> Result<(), ApiError> {
        let line = format!("{}\n", json!({"path": path, "patch": patch}));
        // One write, so that lines stay whole.
        self.out.write_all(line.as_bytes()).and_then(|()| self.out.flush()).context("cannot print a patch")?;
        Ok(())
    }

    fn shown(&self) -> Shown {
        Shown::deserialize(&self.pod).expect("our own patches leave a pod")
    }
}

impl<W: Write + Send> Sink for Local<W> {
    fn look(&mut self) -> Result<Shown, ApiError> {
        Ok(self.shown())
    }

    fn write(&mut self, patch: &Value) -> Result<Shown, ApiError> {
        let path = self.path.clone();
        self.print(&path, patch)?;
        apply(&mut self.pod, patch);
        Ok(self.shown())
    }

    fn look_at(&mut self, target: &Target) -> Result<Option<String>, ApiError> {
        Ok(self.fields.get(&format!("{}{}", path_of(target), target.pointer)).cloned())
    }

    fn write_to(&mut self, target: &Target, value: &str) -> Result<(), ApiError> {
        self.print(&path_of(target), &patch_of_target(target, value))?;
        self.fields.insert(format!("{}{}", path_of(target), target.pointer), value.to_owned());
        Ok(())
    }
}

/// Does to a pod what the API server does with a strategic merge patch of ours: maps are merged, `null` removes,
/// conditions are merged by their type.
pub(super) fn apply(pod: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *pod = patch.clone();
        return;
    };
    if !pod.is_object() {
        *pod = json!({});
    }
    for (key, value) in patch {
        match value {
            Value::Null => drop(pod.as_object_mut().map(|map| map.remove(key))),
            Value::Array(entries) if key == "conditions" => merge_by_type(&mut pod[key], entries),
            _ => apply(&mut pod[key], value),
        }
    }
}

fn merge_by_type(conditions: &mut Value, entries: &[Value]) {
    let mut merged = conditions.as_array().cloned().unwrap_or_default();
    for entry in entries {
        let at = merged.iter().position(|condition| condition["type"] == entry["type"]);
        match at {
            Some(at) if entry["$patch"] == "delete" => drop(merged.remove(at)),
            Some(at) => apply(&mut merged[at], entry),
            None if entry["$patch"] == "delete" => {}
            None => merged.push(entry.clone()),
        }
    }
    *conditions = Value::Array(merged);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{Content, Place};

    #[test]
    fn patches_are_printed_and_done() {
        let pod = PodIdentity {
            name: "p".to_owned(),
            namespace: "n".to_owned(),
            uid: "u".to_owned(),
            annotations_file: "/dev/null".into(),
        };
        let mut out = Vec::new();
        let mut local = Local::to(&mut out, &pod);
        let shown = local.write(&json!({"metadata": {"labels": {"a": "1", "b": null}}})).unwrap();
        assert!(shown.holds(&Place::Label("a".to_owned()), Some(&Content::Text("1".to_owned()))));
        let target = Target {
            group: String::new(),
            version: "v1".to_owned(),
            resource: "things".to_owned(),
            namespace: "n".to_owned(),
            name: "p".to_owned(),
            pointer: "/spec/x".to_owned(),
        };
        local.write_to(&target, "y").unwrap();
        assert_eq!(local.look_at(&target).unwrap(), Some("y".to_owned()));
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "{\"patch\":{\"metadata\":{\"labels\":{\"a\":\"1\",\"b\":null}}},\
             \"path\":\"/api/v1/namespaces/n/pods/p/status?fieldManager=pillion-agent\"}\n\
             {\"patch\":{\"spec\":{\"x\":\"y\"}},\
             \"path\":\"/api/v1/namespaces/n/things/p?fieldManager=pillion-agent\"}\n"
        );
    }

    #[test]
    fn conditions_are_merged_by_their_type() {
        let mut pod = json!({"status": {"conditions": [{"type": "A", "status": "True", "x": 1}, {"type": "B"}]}});
        let patch = json!({"status": {"conditions": [
            {"type": "A", "status": "False"}, {"$patch": "delete", "type": "B"}, {"$patch": "delete", "type": "D"},
            {"type": "C", "status": "True"},
        ]}});
        apply(&mut pod, &patch);
        let expected = json!([{"type": "A", "status": "False", "x": 1}, {"type": "C", "status": "True"}]);
        assert_eq!(pod["status"]["conditions"], expected);
    }
}
