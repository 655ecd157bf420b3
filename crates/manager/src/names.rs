//! The objects that are ours by name. There is one installation in a cluster, so the names are fixed; the chart and the
//! command line use the same ones.

/// Name of both webhook registrations.
pub const REGISTRATION: &str = "pillion";
/// The webhook that reviews pods of all namespaces but those that require injection. It fails open.
pub const POD_WEBHOOK: &str = "pods.pillion.dev";
/// The webhook that reviews pods of namespaces that require injection. It fails closed.
pub const REQUIRED_POD_WEBHOOK: &str = "required-pods.pillion.dev";
/// The webhook that reviews sets.
pub const SET_WEBHOOK: &str = "sidecarsets.pillion.dev";
/// Label of namespaces, and its value where injection is required.
pub const INJECTION_LABEL: (&str, &str) = ("pillion.dev/injection", "required");

/// The Secret with the authority that signs what the webhook serves with.
pub const CA_SECRET: &str = "pillion-webhook-ca";
/// The `ConfigMap` that says whether injection is switched off.
pub const SWITCH: &str = "pillion-switch";
/// The lease of the controller that acts.
pub const CONTROLLER_LEASE: &str = "pillion-controller";
/// The `ClusterRole` and the `ServiceAccount` of the webhook: what it makes goes when they go.
pub const WEBHOOK_ACCOUNT: &str = "pillion-webhook";

/// Where the API server sends reviews of pods.
pub const POD_PATH: &str = "/pods";
/// Where the API server sends reviews of sets.
pub const SET_PATH: &str = "/sidecarsets";

/// Field manager of everything that any replica may write in the same way.
pub const FIELD_MANAGER: &str = "pillion";
/// The namespace whose pods are never reviewed, besides our own.
pub const NEVER_REVIEWED: &str = "kube-system";
