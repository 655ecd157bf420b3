//! References to fields of the pod and to resources of its containers, from variables and from files.

use pillion_quantity::Quantity;

use super::field::{Field, Problems};
use super::resources::quantity_text;
use super::syntax::{is_annotation_key, is_qualified_name};

/// The place a reference is used in. Each has fields of its own.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    Variable,
    File,
}

const OF_VARIABLES: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
const OF_FILES: [&str; 5] =
    ["metadata.name", "metadata.namespace", "metadata.labels", "metadata.annotations", "metadata.uid"];
/// An old name that the API server replaces by `spec.nodeName`.
const OLD_NODE_NAME: &str = "spec.host";
const RESOURCES: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

pub(super) fn check_field_ref(reference: &Field<'_>, used_by: Use, problems: &mut Problems) {
    let version = reference.text("apiVersion");
    if !version.is_empty() && version != "v1" {
        problems.error(reference.at("apiVersion"), format!("Unsupported value: {version:?}"), "write v1");
    }
    let path = reference.text("fieldPath");
    let allowed: &[&str] = if used_by == Use::Variable { &OF_VARIABLES } else { &OF_FILES };
    let is_valid = match subscripted(path) {
        Some(("metadata.annotations", key)) => is_annotation_key(key),
        Some(("metadata.labels", key)) => is_qualified_name(key),
        Some(_) => false,
        None if path == OLD_NODE_NAME => used_by == Use::Variable,
        None => allowed.contains(&path),
    };
    if !path.is_empty() && !is_valid {
        let help = format!("use metadata.labels['KEY'], metadata.annotations['KEY'], {}", allowed.join(", "));
        problems.error(reference.at("fieldPath"), format!("Unsupported value: {path:?}"), help);
    }
}

/// Splits `metadata.labels['KEY']` into the field and the key.
fn subscripted(path: &str) -> Option<(&str, &str)> {
    let (field, key) = path.strip_suffix("']")?.split_once("['")?;
    (!field.is_empty()).then_some((field, key))
}

pub(super) fn check_resource_ref(reference: &Field<'_>, used_by: Use, problems: &mut Problems) {
    if used_by == Use::File {
        problems.require(reference, "containerName");
    }
    let resource = reference.text("resource");
    let name = resource.strip_prefix("limits.").or_else(|| resource.strip_prefix("requests."));
    let is_known = name.is_some_and(|name| RESOURCES.contains(&name) || name.starts_with("hugepages-"));
    if !resource.is_empty() && !is_known {
        let help = format!("use limits or requests of {} or hugepages-SIZE, such as limits.cpu", RESOURCES.join(", "));
        problems.error(reference.at("resource"), format!("Unsupported value: {resource:?}"), help);
    }
    check_divisor(reference, name.filter(|_| is_known), problems);
}

fn check_divisor(reference: &Field<'_>, name: Option<&str>, problems: &mut Problems) {
    let Some(text) = reference.get("divisor").map(|divisor| quantity_text(divisor.value)) else { return };
    let (Ok(divisor), Some(name)) = (text.parse::<Quantity>(), name) else { return };
    let printed = divisor.to_string();
    let is_valid = match printed.strip_prefix('1') {
        _ if divisor.is_zero() => true,
        Some("m") => name == "cpu",
        Some("") => true,
        Some("k" | "M" | "G" | "T" | "P" | "E" | "Ki" | "Mi" | "Gi" | "Ti" | "Pi" | "Ei") => name != "cpu",
        _ => false,
    };
    if !is_valid {
        let help = if name == "cpu" { "use 1 or 1m" } else { "use 1 or one unit, such as 1k, 1M, 1Ki or 1Mi" };
        problems.error(reference.at("divisor"), format!("{text} is no divisor of {name}"), help);
    }
}
