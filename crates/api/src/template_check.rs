//! Strict validation of container and volume templates: what the API server checks when it creates a pod.
//!
//! A SidecarSet with an invalid template makes the API server reject every pod that it selects, whatever its failurePolicy.
//! The check therefore runs when a SidecarSet is written, and in `pillion lint`. It never runs on stored SidecarSets, so that
//! these stay served.
//!
//! Only the template is known, so these checks of the API server are left out because they depend on the rest of the pod:
//!
//! - volumes and resource claims that the pod itself must have;
//! - names and host ports that app containers use;
//! - `lifecycle.preStop.sleep` and the pod's grace period, `resizePolicy` and the pod's restartPolicy;
//! - `procMount: Unmasked` and `hostUsers`, `stopSignal`, `windowsOptions` and `spec.os`;
//! - pod-level `spec.resources`;
//! - admission plugins and Pod Security Standards.
//!
//! `e2e/tests/all/safe_templates.rs` compares the result with a real API server.

mod claims;
mod disks;
mod downward;
mod env;
mod field;
mod lifecycle;
mod mounts;
mod ports;
mod probes;
mod projected;
mod resources;
mod restarts;
mod security_context;
mod selectors;
mod syntax;
mod volumes;

use std::collections::BTreeSet;

use serde_json::Value;

use crate::container::OWN_FIELDS;
use crate::problem::{Collected, FieldPath, Problem};
use crate::schema_check;
use field::{Field, Problems};
use mounts::Volumes;
pub use syntax::is_dns_label;

/// The schema of containers and volumes, reduced from what a Kubernetes 1.36 API server serves.
pub const TEMPLATE_SCHEMA: &str = include_str!("template_check/kubernetes-1.36.json");

/// The place of a container in the pod.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Container,
    /// An init container that terminates before the app containers start.
    RegularInit,
    NativeSidecar,
}

/// Returns everything that the API server would reject in the templates of a SidecarSet, and warnings about fields that
/// Kubernetes 1.36 does not have.
pub(crate) fn check(object: &Value) -> Vec<Problem> {
    let Some(spec) = object.get("spec").map(|spec| Field::new(spec, FieldPath::of("spec"))) else { return Vec::new() };
    let mut found = Collected::default();
    let of_set: Volumes<'_> = spec.items("volumes").map(|volume| (volume.text("name"), volume.value)).collect();
    for list in ["initContainers", "containers"] {
        for container in spec.items(list) {
            // Nothing that is found from here on would be told.
            if found.is_full() {
                break;
            }
            let mut problems = Problems::default();
            check_container(&container, kind_of(list, &container), &of_set, &mut problems);
            found.extend(merged(schema_check::check_container(container.value, &container.path), problems));
        }
    }
    let mut problems = Problems::default();
    ports::check_host_ports(spec.items("containers"), &mut problems);
    for container in spec.items("initContainers") {
        ports::check_host_ports([container], &mut problems);
    }
    found.extend(problems.0.into_vec());
    for volume in spec.items("volumes") {
        if found.is_full() {
            break;
        }
        let mut problems = Problems::default();
        volumes::check(&volume, &mut problems);
        found.extend(merged(schema_check::check_volume(volume.value, &volume.path), problems));
    }
    found.into_vec()
}

fn kind_of(list: &str, container: &Field<'_>) -> Kind {
    match (list, container.text("restartPolicy")) {
        ("containers", _) => Kind::Container,
        (_, "Always") => Kind::NativeSidecar,
        _ => Kind::RegularInit,
    }
}

fn check_container(container: &Field<'_>, kind: Kind, volumes: &Volumes<'_>, problems: &mut Problems) {
    problems.require(container, "image");
    let image = container.text("image");
    if image.trim() != image {
        problems.error(container.at("image"), format!("{image:?} has spaces around it"), "remove the spaces");
    }
    problems.one_of(container, "imagePullPolicy", &["", "Always", "IfNotPresent", "Never"]);
    problems.one_of(container, "terminationMessagePolicy", &["", "File", "FallbackToLogsOnError"]);
    env::check(container, problems);
    ports::check(container, problems);
    mounts::check(container, volumes, problems);
    resources::check(container, kind, problems);
    restarts::check(container, problems);
    security_context::check(container, problems);
    if kind == Kind::RegularInit {
        for name in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
            if container.has(name) {
                let message = format!("an init container without restartPolicy: Always has no {name}");
                problems.error(container.at(name), message, "remove it, or set restartPolicy: Always");
            }
        }
    } else {
        lifecycle::check(container, problems);
        probes::check(container, problems);
    }
}

/// Joins the findings of the schema and of the rules. A field that the schema rejects is not rejected twice.
fn merged(of_schema: Vec<Problem>, of_rules: Problems) -> impl Iterator<Item = Problem> {
    let rejected: BTreeSet<FieldPath> = of_schema.iter().map(|problem| problem.path.clone()).collect();
    of_schema
        .into_iter()
        .chain(of_rules.0.into_vec().into_iter().filter(move |problem| !rejected.contains(&problem.path)))
}

/// Returns the reduced schema of containers or volumes. Fields that only a SidecarSet has accept any value: the schema of
/// the SidecarSet itself describes them.
pub(crate) fn schema(kind: &str) -> Value {
    let mut schemas: Value = serde_json::from_str(TEMPLATE_SCHEMA).unwrap_or_default();
    let mut schema = schemas.get_mut(kind).map(Value::take).unwrap_or_default();
    if kind == "container"
        && let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut)
    {
        properties.extend(OWN_FIELDS.map(|field| (field.to_owned(), Value::Object(serde_json::Map::new()))));
    }
    schema
}
