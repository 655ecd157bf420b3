//! How containers marked as sidecars are ended, as it is stored.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// How containers marked with sidecar: true are ended when all others have ended for good.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FinishStrategy {
    /// Native (default): they become init containers with restartPolicy Always, which the node ends after the others.
    /// Wrap: an agent in the pod runs their command and ends it; they need a command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<FinishMode>,
    /// How the agent of mode Wrap learns that the others have ended. Locks (default): it runs their command as well, so
    /// each of them needs one. Pod: of those without a command it asks the API server, for which the pod's account must be
    /// allowed to watch pods of its namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watch: Option<FinishWatch>,
}

/// Native (default): they become init containers with restartPolicy Always, which the node ends after the others. Wrap: an
/// agent in the pod runs their command and ends it; they need a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum FinishMode {
    /// By the node.
    #[default]
    Native,
    /// By our agent.
    Wrap,
}

/// How the agent of mode Wrap learns that the others have ended: by Locks (default), or where one has no command by the
/// status of the Pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum FinishWatch {
    /// By files in the pod.
    #[default]
    Locks,
    /// By the API server, where there is no other way.
    Pod,
}

/// The variable by which `OpenKruise` marks a sidecar, and how the other one begins.
pub const TERMINATE: &str = "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT";
/// The same, with an image it would give the container to end it.
pub const TERMINATE_WITH_IMAGE: &str = "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT_WITH_IMAGE";

/// Which of `OpenKruise`'s variables marks a container, if one does. Only a literal value does.
pub fn terminate_variable(container: &Map<String, Value>) -> Option<&'static str> {
    let mut found = None;
    for variable in container.get("env").and_then(Value::as_array).into_iter().flatten() {
        match (variable["name"].as_str(), variable["value"].as_str()) {
            (Some(TERMINATE_WITH_IMAGE), Some(image)) if !image.is_empty() => return Some(TERMINATE_WITH_IMAGE),
            (Some(TERMINATE), Some(value)) if value.eq_ignore_ascii_case("true") => found = Some(TERMINATE),
            _ => {}
        }
    }
    found
}
