//! Pods made of the test program, and short ways to read their status.

use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use serde_json::{Value, json};

/// The test program, version 1.
pub const V1: &str = "registry.local/pillion/testapp:v1";
/// The same program, another image.
pub const V2: &str = "registry.local/pillion/testapp:v2";

/// A container that runs the test program with these arguments after `run`.
pub fn container(name: &str, arguments: &[&str]) -> Value {
    let mut all = vec!["run", "--name", name];
    all.extend(arguments);
    json!({"name": name, "image": V1, "args": all, "imagePullPolicy": "Never"})
}

/// The same as a native sidecar.
pub fn sidecar(name: &str, arguments: &[&str]) -> Value {
    let mut sidecar = container(name, arguments);
    sidecar["restartPolicy"] = "Always".into();
    sidecar
}

/// A pod of these containers that ends within a second when deleted.
pub fn pod(name: &str, sidecars: &[Value], containers: &[Value]) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
           "spec": {"terminationGracePeriodSeconds": 1, "initContainers": sidecars, "containers": containers}})
}

/// Lets a pod, or a pod template, run on the simulated nodes and nowhere else.
pub fn on_fleet(mut pod: Value) -> Value {
    pod["spec"]["nodeSelector"] = json!({"pillion.dev/node": "fleet"});
    pod["spec"]["tolerations"] = json!([{"key": "pillion.dev/fleet", "operator": "Exists"}]);
    pod
}

/// Status of a container or init container.
pub fn status<'a>(pod: &'a Pod, container: &str) -> Option<&'a ContainerStatus> {
    let status = pod.status.as_ref()?;
    let all = status.init_container_statuses.iter().flatten().chain(status.container_statuses.iter().flatten());
    all.into_iter().find(|status| status.name == container)
}

/// Why a container waits.
pub fn waits_for(pod: &Pod, container: &str) -> Option<String> {
    status(pod, container)?.state.as_ref()?.waiting.as_ref()?.reason.clone()
}

/// Whether a container runs.
pub fn runs(pod: &Pod, container: &str) -> bool {
    status(pod, container).and_then(|status| status.state.as_ref()).is_some_and(|state| state.running.is_some())
}

/// Whether the pod's condition Ready is True.
pub fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}
