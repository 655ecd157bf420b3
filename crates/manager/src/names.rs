//! Names that only the manager and its chart use, beside those of every installation.

pub use pillion_api::names::{
    CA_SECRET, INJECTION_LABEL, NEVER_REVIEWED, POD_WEBHOOK, REGISTRATION, REQUIRED_POD_WEBHOOK, SET_WEBHOOK, SWITCH,
    SWITCH_KEY, SWITCHED_OFF,
};

/// The lease of the controller that acts.
pub const CONTROLLER_LEASE: &str = "pillion-controller";
/// The lease of the agent controller that acts, and the `ClusterRole` that owns what it makes.
pub const AGENT_LEASE: &str = "pillion-agent-controller";
/// The lease of the rightsizer that acts.
pub const RIGHTSIZER_LEASE: &str = "pillion-rightsizer";
/// The lease that webhook replicas renew while they size pods: a pod is evicted only where the next one would be sized.
pub const WEBHOOK_ALIVE_LEASE: &str = "pillion-webhook-alive";
/// The `ClusterRole` and the `ServiceAccount` of the webhook: what it makes goes when they go.
pub const WEBHOOK_ACCOUNT: &str = "pillion-webhook";

/// Where the API server sends reviews of pods.
pub const POD_PATH: &str = "/pods";
/// Where the API server sends reviews of sets.
pub const SET_PATH: &str = "/sidecarsets";

/// Field manager of everything that any replica may write in the same way.
pub const FIELD_MANAGER: &str = "pillion";
