//! What is right in itself and may yet be unwelcome in a cluster.

use pillion_expr::{Field, Resource, Side};

use crate::Reason;
use crate::meaning::{Meaning, Sidecar, SidecarKind};
use crate::problem::{FieldPath, Problem};

/// Containers without requests. Whether that matters depends on who else is in the cluster, so it is no part of a review.
pub fn advice(set: &Meaning) -> Vec<Problem> {
    let template = &set.template;
    let lists = [("initContainers", &template.init_containers), ("containers", &template.containers)];
    let mut found = Vec::new();
    for (field, list) in lists {
        for (at, sidecar) in list.iter().enumerate() {
            let path = FieldPath::of("spec").field(field).index(at).field("resources");
            found.extend(without_request(sidecar, path));
        }
    }
    found
}

fn without_request(sidecar: &Sidecar, path: FieldPath) -> Option<Problem> {
    let missing: Vec<&str> = [Resource::Cpu, Resource::Memory]
        .into_iter()
        .filter(|it| !has_request(sidecar, *it))
        .map(Resource::name)
        .collect();
    if missing.is_empty() {
        return None;
    }
    // The sum an autoscaler divides by leaves out what has ended before the pod runs.
    let who = match sidecar.kind {
        SidecarKind::PlainInit => "a ResourceQuota of the namespace may need it",
        SidecarKind::Container | SidecarKind::NativeSidecar => {
            "an autoscaler on utilisation, or a ResourceQuota of the namespace, needs it"
        }
    };
    let message = format!("container {} has no request for {}: {who}", sidecar.name, missing.join(" and "));
    let help = match sidecar.kind {
        SidecarKind::PlainInit => "give it resources.requests",
        SidecarKind::Container | SidecarKind::NativeSidecar => "give it resources.requests, or a resourcesPolicy",
    };
    Some(Problem::warning(Reason::NoRequest, path, message, help))
}

/// Where there is only a limit, Kubernetes takes it for the request.
fn has_request(sidecar: &Sidecar, resource: Resource) -> bool {
    [Side::Requests, Side::Limits].into_iter().any(|side| {
        let fixed = sidecar.container.get("resources").and_then(|it| it.get(side.to_string()));
        fixed.and_then(|amounts| amounts.get(resource.name())).is_some_and(|amount| !amount.is_null())
            || sidecar.resources.as_ref().is_some_and(|it| it.program(Field { side, resource }).is_some())
    })
}
