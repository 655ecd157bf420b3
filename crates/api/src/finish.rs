//! How containers marked as sidecars are ended, as it is stored.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How containers marked with sidecar: true are ended when all others have ended for good.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FinishStrategy {
    /// Native (default): they become init containers with restartPolicy Always, which the node ends after the others.
    /// Wrap: an agent in the pod runs their command and ends it; they need a command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<FinishMode>,
    /// How the agent of mode Wrap learns that the others have ended. Locks (default): it runs their command as well, so
    /// each of them needs one. Pod: of those without a command it asks the API server, for which the pod's account must be
    /// allowed to get pods of its namespace.
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
