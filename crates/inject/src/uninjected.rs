//! The pod that an injected pod was before, as far as it can be told: what its workload would create again.
//!
//! A pod says which containers are ours and by which sets they came. What else those sets add is taken out as they stand
//! now. What a set has overwritten is not known any more, and what it merged into an annotation stays: asked again, the
//! same set gives the same pod.

use pillion_api::{Condition, Meaning, PatchPolicy, REVISIONS, Selector, Template};
use serde_json::{Map, Value};

use crate::evaluate::{mounted, used_volumes};
use crate::finish::unwrap;
use crate::marks;
use crate::pod::{Pod, text};
use crate::sidecar::{one_spelling, place};

const CONTAINER_LISTS: [&str; 2] = ["initContainers", "containers"];

/// Takes out of a pod what sets have added. `set` knows the sets by their names.
pub fn uninjected<'a>(pod: &Value, set: impl Fn(&str) -> Option<&'a Meaning>) -> Value {
    let mut before = pod.clone();
    let Ok(read) = Pod::read(pod) else { return before };
    unwrap(&mut before);
    let ours = marks::ours(&read);
    if ours.is_empty() {
        return before;
    }
    let sets = marks::names(read.annotations.get(marks::INJECTED_SETS).copied());
    let sets: Vec<&Meaning> = sets.iter().filter_map(|name| set(name)).collect();
    // They matched before anything was added.
    let has_own_label = |key: &str| sets.iter().any(|set| requires(&set.selector, key));
    for list in CONTAINER_LISTS {
        retain(&mut before["spec"], list, |container| !text(container, "name").is_some_and(|it| ours.contains(&it)));
    }
    for set in &sets {
        for (key, value) in set.template.labels.iter().filter(|(key, _)| !has_own_label(key)) {
            remove(&mut before["metadata"], "labels", key, |own| own == value);
        }
        take_out(&mut before, &set.template);
    }
    for (field, keys) in [
        ("annotations", &[marks::DECISION, marks::CONTAINERS, marks::INJECTED_SETS, REVISIONS][..]),
        ("labels", &[marks::INJECTED_LABEL]),
    ] {
        for key in keys {
            remove(&mut before["metadata"], field, key, |_| true);
        }
    }
    before
}

/// Whether what a selector selects has a label of this key.
fn requires(selector: &Selector, key: &str) -> bool {
    let mut all = selector.requirements().iter().filter(|requirement| requirement.key == key);
    all.any(|requirement| matches!(requirement.condition, Condition::In(_) | Condition::Exists))
}

fn take_out(pod: &mut Value, template: &Template) {
    for patch in &template.annotations {
        // What was merged into something of the pod's own is another text, and stays.
        let is_ours = |own: &str| own == patch.value || patch.policy == PatchPolicy::Overwrite;
        remove(&mut pod["metadata"], "annotations", &patch.key, is_ours);
    }
    let spec = &mut pod["spec"];
    take_out_volumes(spec, template);
    retain(spec, "imagePullSecrets", |secret| {
        !text(secret, "name").is_some_and(|name| template.image_pull_secrets.iter().any(|ours| ours == name))
    });
    let Some(spec) = spec.as_object_mut() else { return };
    if template.share_process_namespace.is_some() {
        spec.remove("shareProcessNamespace");
    }
    if template.service_account_name.as_deref() == text(spec, "serviceAccountName") {
        for field in ["serviceAccountName", "serviceAccount", "automountServiceAccountToken"] {
            spec.remove(field);
        }
    }
}

/// A volume that a container of the pod still mounts is its own.
fn take_out_volumes(spec: &mut Value, template: &Template) {
    for list in CONTAINER_LISTS {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            retain(container, "volumeMounts", |mount| {
                !template.app_volume_mounts.iter().any(|ours| {
                    text(mount, "name") == Some(&ours.volume)
                        && place(mount).as_deref() == Some(&one_spelling(&ours.path))
                })
            });
        }
    }
    let containers = CONTAINER_LISTS.into_iter().filter_map(|list| spec.get(list)?.as_array()).flatten();
    let used: Vec<String> = containers.filter_map(Value::as_object).flat_map(mounted).map(str::to_owned).collect();
    retain(spec, "volumes", |volume| {
        let Some(name) = text(volume, "name") else { return true };
        used.iter().any(|used| used == name) || used_volumes(template).all(|ours| ours.name != name)
    });
}

/// Keeps of a list what is to be kept; one that is empty then is gone.
fn retain(parent: &mut Value, list: &str, keep: impl Fn(&Map<String, Value>) -> bool) {
    let Some(fields) = parent.as_object_mut() else { return };
    let Some(items) = fields.get_mut(list).and_then(Value::as_array_mut) else { return };
    items.retain(|item| item.as_object().is_none_or(&keep));
    if items.is_empty() {
        fields.remove(list);
    }
}

fn remove(metadata: &mut Value, field: &str, key: &str, is_ours: impl Fn(&str) -> bool) {
    let Some(texts) = metadata.get_mut(field).and_then(Value::as_object_mut) else { return };
    if texts.get(key).and_then(Value::as_str).is_some_and(is_ours) {
        texts.remove(key);
    }
}
