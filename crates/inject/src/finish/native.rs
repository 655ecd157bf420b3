//! A sidecar that becomes an init container with `restartPolicy: Always`, and is otherwise what it was.

use pillion_api::Reason;
use serde_json::{Value, json};

use super::marks::Marked;
use super::{CONTAINERS, Failed, INIT_CONTAINERS};
use crate::pod::{Pod, items, text};
use pillion_pod::{Editor, Step};

/// Whether a container can move.
pub(super) fn check<'a>(pod: &Pod<'_>, marked: &Marked<'a>) -> Result<(), Failed<'a>> {
    let Some(container) = pod.containers.iter().find(|container| container.name == marked.name) else { return Ok(()) };
    let failed = |reason, message| Err(Failed::new(marked.source, reason, message));
    let name = &marked.name;
    if let Some(policy) = text(container.json, "restartPolicy").filter(|policy| *policy != "Always") {
        let message = format!("container {name} has restartPolicy {policy}, a native sidecar is always restarted");
        return failed(Reason::OwnRestartRules, message);
    }
    if items(container.json, "restartPolicyRules").next().is_some() {
        let message = format!("container {name} has restartPolicyRules, a native sidecar is always restarted");
        return failed(Reason::OwnRestartRules, message);
    }
    // What a set added is not known to the owner.
    match clone_set(pod).filter(|_| !container.is_injected) {
        Some(owner) => {
            let message = format!("CloneSet {owner} updates container {name} by its place among containers");
            failed(Reason::OwnerNamesContainers, message)
        }
        None => Ok(()),
    }
}

/// The name of the `CloneSet` that made the pod.
fn clone_set<'a>(pod: &Pod<'a>) -> Option<&'a str> {
    let owners = pod.json.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    let mut owners = owners.into_iter().flatten().filter_map(Value::as_object);
    let owner = owners.find(|owner| {
        text(owner, "kind") == Some("CloneSet")
            && text(owner, "apiVersion").is_some_and(|version| version.starts_with("apps.kruise.io/"))
    })?;
    text(owner, "name")
}

/// Moves containers to the end of the init containers, in their order.
pub(super) fn apply(editor: &mut Editor, names: &[String]) {
    for name in names {
        let containers = editor.get(CONTAINERS).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let Some(at) = containers.iter().position(|it| it["name"] == name.as_str()) else { continue };
        let mut container = containers[at].clone();
        container["restartPolicy"] = json!("Always");
        editor.remove(&[CONTAINERS, &[Step::At(at)]].concat());
        editor.insert(INIT_CONTAINERS, None, container);
    }
}
