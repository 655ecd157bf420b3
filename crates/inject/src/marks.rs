//! The marks of ours, and of `OpenKruise`, on pods and containers.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::pod::{Pod, items, text};

/// Pod annotation with the record of decisions.
pub const DECISION: &str = "pillion.dev/decision";
/// Pod annotation with the names of the containers that are ours, separated by commas.
pub const CONTAINERS: &str = "pillion.dev/containers";
/// Pod label by which injected pods are watched.
pub const INJECTED_LABEL: &str = "pillion.dev/injected";
/// Pod annotation in which a pod names sets it wants to leave out.
pub const SKIP: &str = "pillion.dev/skip";
/// Pod annotation in which a pod names its containers that are sidecars, separated by commas.
pub const SIDECARS: &str = "pillion.dev/sidecars";
/// Pod annotation that says how sidecars are ended: `Native` or `Wrap`.
pub const FINISH_MODE: &str = "pillion.dev/finish-mode";
/// Pod annotation that says how our agent learns that the others have ended: `locks` or `pod`.
pub const FINISH_WATCH: &str = "pillion.dev/finish-watch";
/// Pod annotation, read by others too, with the names of the sets that were applied.
pub const INJECTED_SETS: &str = "kruise.io/sidecarset-injected-list";
/// Pod annotation of the copy of a static pod.
pub const MIRROR: &str = "kubernetes.io/config.mirror";

const INJECTED_ENV: &str = "IS_INJECTED";

/// Names separated by commas.
pub fn names(list: Option<&str>) -> BTreeSet<String> {
    let names = list.into_iter().flat_map(|list| list.split(','));
    names.map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

pub(crate) fn join(names: &BTreeSet<String>) -> String {
    names.iter().map(String::as_str).collect::<Vec<_>>().join(",")
}

/// The containers that are ours from an earlier review: each was injected, and is on the list.
pub(crate) fn ours<'a>(pod: &Pod<'a>) -> Vec<&'a str> {
    let listed = names(pod.annotations.get(CONTAINERS).copied());
    let injected = pod.all().filter(|container| container.is_injected).map(|container| container.name);
    injected.filter(|name| listed.contains(*name)).collect()
}

/// The same of a pod that was not read yet: what it has of sets from an earlier review.
pub fn injected(pod: &Value) -> BTreeSet<String> {
    let listed = names(pod["metadata"]["annotations"][CONTAINERS].as_str());
    let lists = ["initContainers", "containers"].map(|list| pod["spec"][list].as_array());
    let containers = lists.into_iter().flatten().flatten().filter_map(Value::as_object);
    let injected = containers.filter(|container| is_injected(container)).filter_map(|it| text(it, "name"));
    injected.filter(|name| listed.contains(*name)).map(str::to_owned).collect()
}

/// Whether a container carries the variable that says a `SidecarSet` put it there.
pub(crate) fn is_injected(container: &Map<String, Value>) -> bool {
    items(container, "env")
        .any(|env| text(env, "name").is_some_and(|name| is_injected_variable(name, text(env, "value"))))
}

/// The variable that says a `SidecarSet` put a container there.
pub(crate) fn injected_env() -> Value {
    json!({"name": INJECTED_ENV, "value": "true"})
}

/// Whether a variable is the one that says a `SidecarSet` put its container there.
pub fn is_injected_variable(name: &str, value: Option<&str>) -> bool {
    name == INJECTED_ENV && value == Some("true")
}

/// Whether a variable of this name is that one.
pub(crate) fn is_injected_name(name: &str) -> bool {
    name == INJECTED_ENV
}
