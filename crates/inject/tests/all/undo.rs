//! Takes what sets added out of a pod again, knowing only the sets and the pod before: written apart from the injection,
//! to check it.

use std::collections::BTreeSet;

use pillion_api::Meaning;
use pillion_inject::marks;
use serde_json::{Map, Value};

const TOKEN_VOLUME: &str = "kube-api-access-";

/// The pod as it was, if nothing but additions of these sets was made to it.
pub(crate) fn undo(before: &Value, after: &Value, sets: &[&Meaning]) -> Result<Value, String> {
    let mut pod = after.clone();
    let account_changed = sets.iter().any(|set| set.template.service_account_name.is_some())
        && before.pointer("/spec/serviceAccountName") != after.pointer("/spec/serviceAccountName");
    let templates = || sets.iter().map(|set| &set.template);

    let mut keys: BTreeSet<&str> = templates().flat_map(|it| &it.annotations).map(|it| it.key.as_str()).collect();
    keys.extend([marks::DECISION, marks::CONTAINERS, marks::INJECTED_SETS, pillion_api::REVISIONS]);
    restore_keys(before, &mut pod, &["metadata", "annotations"], &keys);
    let mut keys: BTreeSet<&str> = templates().flat_map(|it| it.labels.keys()).map(String::as_str).collect();
    keys.insert(marks::INJECTED_LABEL);
    restore_keys(before, &mut pod, &["metadata", "labels"], &keys);

    let mut keys = BTreeSet::new();
    if account_changed {
        keys.extend(["serviceAccountName", "serviceAccount", "automountServiceAccountToken"]);
    }
    if templates().any(|it| it.share_process_namespace.is_some()) {
        keys.insert("shareProcessNamespace");
    }
    restore_keys(before, &mut pod, &["spec"], &keys);

    let names = |list: fn(&Meaning) -> Vec<&str>| sets.iter().flat_map(|set| list(set)).collect::<BTreeSet<&str>>();
    let init = names(|set| set.template.init_containers.iter().map(|it| it.name.as_str()).collect());
    let plain = names(|set| set.template.containers.iter().map(|it| it.name.as_str()).collect());
    let volumes = names(|set| set.template.volumes.iter().map(|it| it.name.as_str()).collect());
    let secrets = names(|set| set.template.image_pull_secrets.iter().map(String::as_str).collect());
    let mounted = names(|set| set.template.app_volume_mounts.iter().map(|it| it.volume.as_str()).collect());
    for (list, added) in
        [("initContainers", &init), ("containers", &plain), ("volumes", &volumes), ("imagePullSecrets", &secrets)]
    {
        restore_list(before, &mut pod, &["spec", list], added, account_changed && list == "volumes")?;
    }
    for list in ["initContainers", "containers"] {
        let count = before["spec"][list].as_array().map_or(0, Vec::len);
        for at in 0..count {
            let at = at.to_string();
            restore_list(before, &mut pod, &["spec", list, &at, "volumeMounts"], &mounted, account_changed)?;
        }
    }
    Ok(pod)
}

fn pointer(place: &[&str]) -> String {
    place.iter().fold(String::new(), |path, step| path + "/" + &step.replace('/', "~1"))
}

/// Gives these keys of an object the value they had.
fn restore_keys(before: &Value, pod: &mut Value, place: &[&str], keys: &BTreeSet<&str>) {
    let path = pointer(place);
    let had = before.pointer(&path).and_then(Value::as_object);
    let Some(has) = pod.pointer_mut(&path).and_then(Value::as_object_mut) else { return };
    for key in keys {
        match had.and_then(|had| had.get(*key)) {
            Some(value) => has.insert((*key).to_owned(), value.clone()),
            None => has.remove(*key),
        };
    }
    if had.is_none() && has.is_empty() {
        restore_empty(before, pod, place);
    }
}

/// Takes the items of these names out of a list, except those it had.
fn restore_list(
    before: &Value,
    pod: &mut Value,
    place: &[&str],
    added: &BTreeSet<&str>,
    lost_tokens: bool,
) -> Result<(), String> {
    let path = pointer(place);
    let had = before.pointer(&path).and_then(Value::as_array);
    let Some(has) = pod.pointer_mut(&path).and_then(Value::as_array_mut) else { return Ok(()) };
    let name = |item: &Value| item.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    // What was there is there still, in its order, unchanged: everything else must be an addition.
    let mut left: Vec<Value> = Vec::new();
    let mut rest = had.into_iter().flatten().filter(|item| !(lost_tokens && name(item).starts_with(TOKEN_VOLUME)));
    let mut next = rest.next();
    for item in has.drain(..) {
        if next.is_some_and(|next| is_same_but_for_mounts(next, &item)) {
            next = rest.next();
            left.push(item);
        } else if !added.contains(name(&item).as_str()) {
            return Err(format!("{path}: {item} was not there and is of no set"));
        }
    }
    if let Some(missing) = next {
        return Err(format!("{path}: {missing} is gone"));
    }
    if lost_tokens {
        // The order of what was lost is that of the pod before.
        let mut kept = left.into_iter();
        let tokens = |item: &&Value| name(item).starts_with(TOKEN_VOLUME);
        left = had
            .into_iter()
            .flatten()
            .filter_map(|item| if tokens(&item) { Some(item.clone()) } else { kept.next() })
            .collect();
    }
    *has = left;
    if had.is_none() && has.is_empty() {
        restore_empty(before, pod, place);
    }
    Ok(())
}

/// Mounts of a container are looked at one by one.
fn is_same_but_for_mounts(one: &Value, other: &Value) -> bool {
    let without = |value: &Value| {
        let mut fields: Map<String, Value> = value.as_object().cloned().unwrap_or_default();
        fields.remove("volumeMounts");
        fields
    };
    without(one) == without(other)
}

/// What was made to hold additions goes with them: it is absent or null again.
fn restore_empty(before: &Value, pod: &mut Value, place: &[&str]) {
    let Some((last, parent)) = place.split_last() else { return };
    let had = before.pointer(&pointer(place)).cloned();
    let made_parent = before.pointer(&pointer(parent)).is_none_or(Value::is_null);
    let Some(fields) = pod.pointer_mut(&pointer(parent)).and_then(Value::as_object_mut) else { return };
    match had {
        Some(value) => fields.insert((*last).to_owned(), value),
        None => fields.remove(*last),
    };
    if made_parent && fields.is_empty() && !parent.is_empty() {
        restore_empty(before, pod, parent);
    }
}
