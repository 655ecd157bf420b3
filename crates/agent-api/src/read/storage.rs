//! Where a result is told.

use std::collections::{BTreeMap, BTreeSet};

use super::field::{Entry, Object, Reader, Text};
use crate::marks::{self, BadKey};
use crate::names::{POD_NAME, POD_NAMESPACE};
use crate::{MarkerPolicy, Storage, Target};

/// Longer ones are no states.
const MAX_STATE: usize = 256;

/// Reads a `storageConfig`.
pub(super) fn read(reader: &mut Reader<'_>, fields: &Object<'_>) -> Storage {
    let mut storage = Storage::default();
    let kind = reader.choice(fields, "type");
    for (name, child) in [("InKube", "inKube"), ("HTTPMetric", "httpMetric")] {
        if kind == Some(name) && !fields.has(child) {
            reader.error(&fields.entry, format!("type is {name}, and there is no {child}"), format!("give {child}"));
            return storage;
        }
    }
    if let Some(in_kube) = reader.child(fields, "inKube") {
        read_in_kube(reader, &in_kube, &mut storage);
    }
    if let Some(metric) = reader.child(fields, "httpMetric") {
        storage.metric_name = reader.text(&metric, "metricName").and_then(|name| metric_name(reader, name));
    }
    if !["inKube", "httpMetric"].iter().any(|child| fields.has(child)) {
        reader.error(&fields.entry, "there is no place for the result", "give inKube, httpMetric or both");
    }
    storage
}

fn read_in_kube(reader: &mut Reader<'_>, fields: &Object<'_>, storage: &mut Storage) {
    storage.annotation_key = checked(reader, fields, "annotationKey", marks::annotation);
    storage.label_key = checked(reader, fields, "labelKey", marks::label);
    storage.condition_type = checked(reader, fields, "conditionType", marks::condition);
    let mut states = BTreeSet::new();
    for item in reader.items(fields, "markerPolicies") {
        let Some(of_policy) = reader.object(&item, crate::keys::MARKER_POLICY) else { continue };
        let Some(policy) = policy(reader, &of_policy) else { continue };
        if !states.insert(policy.state.clone()) {
            let which = policy.state.as_ref().map_or_else(|| "default".to_owned(), |state| format!("state {state:?}"));
            reader.error(&item, format!("a second policy for the {which}"), "put what both say into one");
        }
        storage.marker_policies.push(policy);
    }
    read_target(reader, fields, storage);
    let places = ["annotationKey", "labelKey", "conditionType", "jsonPath", "markerPolicies"];
    if !places.iter().any(|place| fields.has(place)) {
        let help = format!("give at least one of {}", places.join(", "));
        reader.error(&fields.entry, "there is no place for the result", help);
    }
}

fn policy(reader: &mut Reader<'_>, fields: &Object<'_>) -> Option<MarkerPolicy> {
    let labels = marks_of(reader, fields, "labels", marks::label);
    let annotations = marks_of(reader, fields, "annotations", marks::annotation);
    let value = reader.text(fields, "value").and_then(|value| checked_value(reader, value));
    let is_default = reader.switch(fields, "default");
    let state = reader.text(fields, "state");
    let state = match (state, is_default) {
        (None, true) => None,
        (Some(state), false) => Some(checked_state(reader, state)?),
        (Some(state), true) => {
            reader.error(&state.entry, "a policy is for a state or the default", "remove state or default");
            return None;
        }
        (None, false) => {
            // A state that is given and wrong has been told of.
            if !fields.has("state") {
                reader.error(&fields.entry, "state is missing", "give it, or default: true");
            }
            return None;
        }
    };
    if !given(fields, &["labels", "annotations", "value"]) {
        reader.error(&fields.entry, "the policy sets nothing", "give labels, annotations or value");
    }
    Some(MarkerPolicy { state, labels, annotations, value })
}

/// The parameters of the policies have one line for each allowed value, so a value is one line.
fn checked_value(reader: &mut Reader<'_>, value: Text<'_>) -> Option<String> {
    let is_good = (1..=MAX_STATE).contains(&value.value.len()) && !value.value.chars().any(char::is_control);
    if !is_good {
        let help = format!("write 1 to {MAX_STATE} bytes on one line");
        reader.error(&value.entry, format!("{:?} can be no value", value.value), help);
    }
    is_good.then_some(value.value)
}

fn given(fields: &Object<'_>, names: &[&str]) -> bool {
    names.iter().any(|name| fields.has(name))
}

/// A state is compared without the blanks around it, so it must have none.
pub(super) fn checked_state(reader: &mut Reader<'_>, state: Text<'_>) -> Option<String> {
    let is_good = state.is_open
        || (!state.value.is_empty() && state.value.trim() == state.value && state.value.len() <= MAX_STATE);
    if !is_good {
        let message = format!("{:?} can be no state", state.value);
        let help = format!("write 1 to {MAX_STATE} bytes without blanks around them");
        reader.error(&state.entry, message, help);
    }
    is_good.then_some(state.value)
}

fn marks_of(
    reader: &mut Reader<'_>,
    fields: &Object<'_>,
    name: &str,
    may_set: fn(&str) -> Result<(), BadKey>,
) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for (key, text) in reader.texts(fields, name) {
        if let Err(BadKey { message, help }) = may_set(key) {
            reader.error_at_key(&text.entry, message, help);
        } else if name == "labels" && !text.is_open && !marks::label_value(&text.value) {
            let help = "write at most 63 letters, digits, dashes, underscores and dots";
            reader.error(&text.entry, format!("{:?} can be no value of a label", text.value), help);
        } else {
            found.insert(key.to_owned(), text.value);
        }
    }
    found
}

fn checked(
    reader: &mut Reader<'_>,
    fields: &Object<'_>,
    name: &str,
    may_set: fn(&str) -> Result<(), BadKey>,
) -> Option<String> {
    let text = reader.text(fields, name)?;
    match may_set(&text.value) {
        Ok(()) => Some(text.value),
        Err(BadKey { message, help }) => {
            reader.error(&text.entry, message, help);
            None
        }
    }
}

fn read_target(reader: &mut Reader<'_>, fields: &Object<'_>, storage: &mut Storage) {
    let target = reader.child(fields, "target");
    let pointer = reader.text(fields, "jsonPath");
    let has_value = storage.marker_policies.iter().any(|policy| policy.value.is_some());
    let (target, pointer) = match (target, pointer) {
        (Some(target), Some(pointer)) => (target, pointer),
        (Some(target), None) => {
            if !fields.has("jsonPath") {
                let help = "give jsonPath, beside target: the field of the object, such as /spec/opsState";
                reader.error(&target.entry, "a target without jsonPath", help);
            }
            return;
        }
        (None, Some(pointer)) => {
            if !fields.has("target") {
                let help = "give target: an agent may not change fields of its pod; for labels, annotations and \
                            conditions there are labelKey, annotationKey and conditionType";
                reader.error(&pointer.entry, "a jsonPath without target", help);
            }
            return;
        }
        (None, None) => {
            if has_value && !given(fields, &["target", "jsonPath"]) {
                let help = "give target and jsonPath, or remove value";
                reader.error(&fields.entry, "a policy has a value, and there is nowhere to write it", help);
            }
            return;
        }
    };
    let (entry, pointer) = (pointer.entry.clone(), checked_pointer(reader, pointer));
    let texts = ["group", "version", "resource"].map(|name| checked_part(reader, &target, name));
    let namespace = own(reader, &target, "namespace", POD_NAMESPACE);
    let name = own(reader, &target, "name", POD_NAME);
    let ([Some(group), Some(version), Some(resource)], Some(namespace), Some(name), Some(pointer)) =
        (texts, namespace, name, pointer)
    else {
        return;
    };
    if group.is_empty() && matches!(resource.as_str(), "pods" | "secrets" | "configmaps") {
        let help = "name an object of your own, such as gameservers of game.kruise.io";
        reader.error(&target.entry, format!("an agent must not write to {resource}"), help);
        return;
    }
    // Deleting what one watches over is not a state of it.
    let kills =
        group == "game.kruise.io" && storage.marker_policies.iter().any(|it| it.value.as_deref() == Some("Kill"));
    if kills {
        let help = "use WaitToBeDeleted, and leave the deletion to those who scale";
        reader.error(&entry, "the value Kill deletes the game server, which no agent may", help);
    }
    if !has_value {
        let message = format!("nothing will be written to {pointer}: no policy says which value a state stands for");
        let help = "give each policy its value, such as value: None for a game server that is idle; a state is not a \
                    value, and the object would take any text for one";
        reader.warning(&entry, message, help);
    }
    storage.target = Some(Target { group, version, resource, namespace, name, pointer });
}

fn checked_part(reader: &mut Reader<'_>, target: &Object<'_>, name: &str) -> Option<String> {
    let text = reader.text(target, name)?;
    let is_good = (name == "group" && text.value.is_empty()) || marks::is_domain(&text.value);
    if !is_good {
        let help = "write it as kubectl api-resources does";
        reader.error(&text.entry, format!("{:?} is no {name}", text.value), help);
    }
    is_good.then_some(text.value)
}

/// The policies let an agent write only to the object that has the name of its pod.
fn own(reader: &mut Reader<'_>, target: &Object<'_>, name: &str, variable: &str) -> Option<String> {
    let text = reader.text(target, name)?;
    let expected = format!("${{SELF:{variable}}}");
    if target.get(name).is_some_and(|entry| entry.value.as_str().map(str::trim) != Some(&expected)) {
        let help = format!("write {expected}, or leave it out");
        reader.error(&text.entry, format!("the {name} of a target is its pod's, and no other"), help);
        return None;
    }
    Some(text.value)
}

fn checked_pointer(reader: &mut Reader<'_>, text: Text<'_>) -> Option<String> {
    let pointer = text.value;
    let problem = match pointer.strip_prefix('/').map(|rest| rest.split('/').collect::<Vec<_>>()) {
        None => Some("does not begin with a slash"),
        Some(segments) if segments.iter().any(|segment| segment.is_empty()) => Some("has an empty segment"),
        Some(segments) if segments.iter().any(|it| it.bytes().all(|byte| byte.is_ascii_digit()) || *it == "-") => {
            Some("leads into a list, which an agent cannot change a part of")
        }
        Some(segments) if segments.iter().any(|it| !is_escaped_well(it)) => Some("has a ~ that is not ~0 or ~1"),
        Some(segments) if matches!(segments[0], "metadata" | "apiVersion" | "kind" | "status") => {
            Some("is not a field that an agent may write")
        }
        Some(_) if pointer.len() > MAX_STATE => Some("is too long"),
        Some(_) => None,
    };
    match problem {
        None => Some(pointer),
        Some(problem) => {
            let help = "write the way to a field with slashes, such as /spec/opsState";
            reader.error(&text.entry, format!("{pointer} {problem}"), help);
            None
        }
    }
}

fn is_escaped_well(segment: &str) -> bool {
    segment.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']))
}

fn metric_name(reader: &mut Reader<'_>, name: Text<'_>) -> Option<String> {
    let is_good = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | ':');
    let first = name.value.chars().next();
    let is_name = first.is_some_and(|first| is_good(first) && !first.is_ascii_digit());
    if is_name && name.value.chars().all(is_good) && name.value.len() <= MAX_STATE {
        return Some(name.value);
    }
    let help = "write letters, digits and underscores, a letter first";
    reader.error(&name.entry, format!("{:?} is no name of a metric", name.value), help);
    None
}

/// Of what a plugin's result can be told in, whether only these are given.
pub(super) fn only(reader: &mut Reader<'_>, entry: &Entry<'_>, storage: &mut Storage) {
    let kept = Storage {
        annotation_key: storage.annotation_key.take(),
        label_key: storage.label_key.take(),
        ..Storage::default()
    };
    if *storage != Storage::default() {
        let help =
            "give inKube.annotationKey and inKube.labelKey only; the condition pillion.dev/HotUpdate is always set";
        reader.error(entry, "the result of hot_update has no such place", help);
    }
    *storage = kept;
}
