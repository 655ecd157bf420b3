//! The container a sidecar becomes in a pod: with its mark, shared mounts, and variables from the pod's own containers.

use std::collections::BTreeSet;

use pillion_api::{PodField, Reason, Sidecar, TransferSource};
use serde_json::{Map, Value};

use crate::decision::{Refusal, Size, Warning};
use crate::marks;
use crate::pod::{Container, Pod, items, text};
use crate::size::size;

/// A container for a pod.
pub(crate) struct Built<'a> {
    pub(crate) container: Value,
    pub(crate) sizes: Vec<Size<'a>>,
    pub(crate) warnings: Vec<Warning>,
}

pub(crate) fn build<'a>(pod: &Pod<'a>, sidecar: &'a Sidecar) -> Result<Built<'a>, Refusal> {
    let (mut container, warnings) = build_without_sizes(pod, sidecar);
    let sizes = match &sidecar.resources {
        Some(policy) => size(pod, sidecar, policy, &mut container)?,
        None => Vec::new(),
    };
    Ok(Built { container: Value::Object(container), sizes, warnings })
}

/// The same with nothing from the pod.
pub(crate) fn build_alone(sidecar: &Sidecar) -> Map<String, Value> {
    let mut container = sidecar.container.clone();
    container.insert("env".to_owned(), Value::Array(Environment::new(sidecar).values));
    container
}

/// The same with the resources of the template.
pub(crate) fn build_without_sizes(pod: &Pod<'_>, sidecar: &Sidecar) -> (Map<String, Value>, Vec<Warning>) {
    let mut container = sidecar.container.clone();
    let mut environment = Environment::new(sidecar);
    environment.transfer(pod);
    let mut mounts = list(&container, "volumeMounts");
    let mut devices = list(&container, "volumeDevices");
    if sidecar.shares_volumes {
        share(pod, "volumeMounts", "mountPath", &mut mounts, &devices, |from, mount| {
            let expression = text(mount, "subPathExpr").unwrap_or_default();
            environment.copy_references(from, expression);
        });
    }
    if sidecar.shares_devices {
        share(pod, "volumeDevices", "devicePath", &mut devices, &mounts, |_, _| {});
    }
    for (field, values) in [("env", environment.values), ("volumeMounts", mounts), ("volumeDevices", devices)] {
        if !values.is_empty() {
            container.insert(field.to_owned(), Value::Array(values));
        }
    }
    (container, environment.warnings)
}

fn list(container: &Map<String, Value>, field: &str) -> Vec<Value> {
    container.get(field).and_then(Value::as_array).cloned().unwrap_or_default()
}

/// Copies what the pod's own containers have mounted, unless the path is taken.
fn share<'a>(
    pod: &Pod<'a>,
    field: &str,
    path: &str,
    own: &mut Vec<Value>,
    others: &[Value],
    mut with: impl FnMut(&Container<'a>, &Map<String, Value>),
) {
    let paths = own.iter().chain(others).filter_map(Value::as_object).filter_map(place);
    let mut taken: BTreeSet<String> = paths.collect();
    for from in pod.own_containers() {
        for item in items(from.json, field) {
            if text(item, path).is_some() && place(item).is_some_and(|place| taken.insert(place)) {
                with(from, item);
                own.push(Value::Object(item.clone()));
            }
        }
    }
}

/// Where something is mounted; one place has one spelling.
pub(crate) fn place(item: &Map<String, Value>) -> Option<String> {
    let path = text(item, "mountPath").or_else(|| text(item, "devicePath"))?;
    Some(one_spelling(path))
}

/// A path without what does not change where it leads.
pub(crate) fn one_spelling(path: &str) -> String {
    let parts = path.split('/').filter(|part| !part.is_empty() && *part != ".");
    format!("/{}", parts.collect::<Vec<_>>().join("/"))
}

/// The variables of a sidecar. Its own win over copied ones.
struct Environment<'a> {
    sidecar: &'a Sidecar,
    values: Vec<Value>,
    warnings: Vec<Warning>,
}

impl<'a> Environment<'a> {
    fn new(sidecar: &'a Sidecar) -> Self {
        let mut values = list(&sidecar.container, "env");
        values.retain(|value| {
            value.get("name").and_then(Value::as_str).is_none_or(|name| !marks::is_injected_name(name))
        });
        values.push(marks::injected_env());
        Self { sidecar, values, warnings: Vec::new() }
    }

    fn has(&self, name: &str) -> bool {
        self.values.iter().any(|value| value.get("name").and_then(Value::as_str) == Some(name))
    }

    fn transfer(&mut self, pod: &Pod<'_>) {
        for transfer in &self.sidecar.transfers {
            let Some(source) = source(pod, &transfer.source) else {
                self.warn(&format!("the pod has no {}", described(&transfer.source)));
                continue;
            };
            for name in &transfer.names {
                if self.has(name) {
                    continue;
                }
                match find(source, name) {
                    Some(value) => self.values.push(Value::Object(value.clone())),
                    None => self.warn(&format!("container {} of the pod has no variable {name}", source.name)),
                }
            }
        }
    }

    /// Copies the variables that `$(NAME)` in a text refers to, and those their own values refer to, in usable order.
    fn copy_references(&mut self, from: &Container<'_>, expression: &str) {
        self.copy(from, expression, &mut BTreeSet::new());
    }

    fn copy(&mut self, from: &Container<'_>, expression: &str, seen: &mut BTreeSet<String>) {
        for name in references(expression) {
            if self.has(name) || !seen.insert(name.to_owned()) {
                continue;
            }
            match find(from, name) {
                Some(value) => {
                    self.copy(from, text(value, "value").unwrap_or_default(), seen);
                    self.values.push(Value::Object(value.clone()));
                }
                None => self.warn(&format!("container {} of the pod has no variable {name}", from.name)),
            }
        }
    }

    fn warn(&mut self, message: &str) {
        let message = format!("container {}: {message}", self.sidecar.name);
        self.warnings.push(Warning { reason: Reason::EnvNotFound, message });
    }
}

fn source<'p, 'a>(pod: &'p Pod<'a>, source: &TransferSource) -> Option<&'p Container<'a>> {
    let name = match source {
        TransferSource::Container(name) => Some(name.as_str()),
        TransferSource::FromPod(PodField::Name) => pod.name,
        TransferSource::FromPod(PodField::Label(key)) => pod.labels.get(key.as_str()).copied(),
        TransferSource::FromPod(PodField::Annotation(key)) => pod.annotations.get(key.as_str()).copied(),
    };
    pod.own_containers().find(|container| Some(container.name) == name)
}

fn described(source: &TransferSource) -> String {
    match source {
        TransferSource::Container(name) => format!("container {name} to copy variables from"),
        TransferSource::FromPod(field) => {
            let field = match field {
                PodField::Name => "metadata.name".to_owned(),
                PodField::Label(key) => format!("metadata.labels['{key}']"),
                PodField::Annotation(key) => format!("metadata.annotations['{key}']"),
            };
            format!("container of the name in {field} to copy variables from")
        }
    }
}

/// The last of a name counts, as for the container itself.
fn find<'a>(container: &Container<'a>, name: &str) -> Option<&'a Map<String, Value>> {
    items(container.json, "env").filter(|env| text(env, "name") == Some(name)).last()
}

/// The names in `$(NAME)`; `$$` is a plain dollar.
fn references(expression: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = expression;
    while let Some(at) = rest.find('$') {
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            rest = after;
        } else if let Some((name, after)) = rest.strip_prefix('(').and_then(|inner| inner.split_once(')')) {
            found.push(name);
            rest = after;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_found_as_kubernetes_expands_them() {
        for (expression, names) in [
            ("logs/$(POD)", vec!["POD"]),
            ("$(A)/$(B_1)$(C.d)", vec!["A", "B_1", "C.d"]),
            ("$$(A)/$$$(B)", vec!["B"]),
            ("$(A", vec![]),
            ("$A $", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(references(expression), names, "{expression}");
        }
    }

    #[test]
    fn one_place_has_one_spelling() {
        for path in ["/a/b", "/a/b/", "//a/./b"] {
            assert_eq!(one_spelling(path), "/a/b");
        }
        assert_eq!(one_spelling("/"), "/");
    }
}
