//! Why a set does not match a pod.

use pillion_api::{Condition, Meaning, Namespaces, Reason, Requirement, Selector};

use crate::namespace::Namespace;

/// Why a set does not match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// [`Reason::NamespaceMismatch`] or [`Reason::SelectorMismatch`].
    pub reason: Reason,
    /// What it asks for, and what there is.
    pub message: String,
}

/// Why a set does not match a pod with these labels in this namespace; `None` if it does.
pub fn mismatch<'a>(
    set: &Meaning,
    label: impl Fn(&str) -> Option<&'a str>,
    namespace: &'a Namespace,
) -> Option<Mismatch> {
    let name = &namespace.name;
    match &set.namespaces {
        Namespaces::All => {}
        Namespaces::Named(wanted) if wanted == name => {}
        Namespaces::Named(wanted) => {
            let message = format!("spec.namespace is {wanted}, the pod is in {name}");
            return Some(Mismatch { reason: Reason::NamespaceMismatch, message });
        }
        Namespaces::Selected(selector) => {
            if let Some(failing) = selector.failing(|key| namespace.label(key)) {
                let seen = seen(failing, namespace.label(&failing.key));
                let message = format!("namespaceSelector wants {}, namespace {name} {seen}", wanted(failing));
                return Some(Mismatch { reason: Reason::NamespaceMismatch, message });
            }
        }
    }
    let failing = set.selector.failing(&label)?;
    let message = format!("selector wants {}, the pod {}", wanted(failing), seen(failing, label(&failing.key)));
    Some(Mismatch { reason: Reason::SelectorMismatch, message })
}

/// What a set asks for, as kubectl writes it: `app=web in namespaces with tier=prod`.
pub fn asked_for(set: &Meaning) -> String {
    let all = |selector: &Selector| selector.requirements().iter().map(wanted).collect::<Vec<_>>().join(", ");
    let namespaces = match &set.namespaces {
        Namespaces::All => "any namespace".to_owned(),
        Namespaces::Named(name) => format!("namespace {name}"),
        Namespaces::Selected(selector) => format!("namespaces with {}", all(selector)),
    };
    format!("{} in {namespaces}", all(&set.selector))
}

/// A requirement as kubectl writes it.
fn wanted(requirement: &Requirement) -> String {
    let key = &requirement.key;
    let list = |values: &std::collections::BTreeSet<String>| values.iter().cloned().collect::<Vec<_>>().join(", ");
    match &requirement.condition {
        Condition::In(values) if values.len() == 1 => format!("{key}={}", list(values)),
        Condition::In(values) => format!("{key} in ({})", list(values)),
        Condition::NotIn(values) => format!("{key} not in ({})", list(values)),
        Condition::Exists => format!("label {key}"),
        Condition::DoesNotExist => format!("no label {key}"),
    }
}

fn seen(requirement: &Requirement, value: Option<&str>) -> String {
    let key = &requirement.key;
    value.map_or_else(|| format!("has no label {key}"), |value| format!("has {key}={value}"))
}

#[cfg(test)]
mod tests {
    use pillion_api::review;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_set_asks_for_reads_as_a_sentence() {
        for (more, said) in [
            (json!({}), "app=web, tier in (a, b) in any namespace"),
            (json!({"namespace": "shop"}), "app=web, tier in (a, b) in namespace shop"),
            (
                json!({"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "Exists"}]}}),
                "app=web, tier in (a, b) in namespaces with label team",
            ),
        ] {
            let mut set = json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "SidecarSet", "metadata": {"name": "mesh"}, "spec": {
                "selector": {"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "tier", "operator": "In", "values": ["b", "a"]}]},
                "containers": [{"name": "proxy", "image": "proxy:1"}]}});
            set["spec"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            assert_eq!(asked_for(&review(&set).meaning.unwrap()), said);
        }
    }
}
