//! Why a set does not match a pod.

use pillion_api::{Condition, Meaning, Namespaces, Reason, Requirement};

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
