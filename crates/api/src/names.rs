//! The objects of an installation, by name. There is one installation in a cluster, so the names are fixed; the manager, the
//! command line and the chart use the same ones.

/// Name of both webhook registrations.
pub const REGISTRATION: &str = "pillion";
/// The webhook that reviews pods of all namespaces but those that require injection. It fails open.
pub const POD_WEBHOOK: &str = "pods.pillion.dev";
/// The webhook that reviews pods of namespaces that require injection. It fails closed.
pub const REQUIRED_POD_WEBHOOK: &str = "required-pods.pillion.dev";
/// The webhook that reviews sets.
pub const SET_WEBHOOK: &str = "sidecarsets.pillion.dev";
/// The Secret with the authority that signs what the webhook serves with.
pub const CA_SECRET: &str = "pillion-webhook-ca";
/// The ConfigMap that says whether injection is switched off.
pub const SWITCH: &str = "pillion-switch";
/// The key in it.
pub const SWITCH_KEY: &str = "injection";
/// The value that switches off; any other does not.
pub const SWITCHED_OFF: &str = "off";
/// The namespace whose pods are never reviewed or changed, besides our own, so that a cluster can always start.
pub const NEVER_REVIEWED: &str = "kube-system";
/// Label of namespaces, and its value where injection is required.
pub const INJECTION_LABEL: (&str, &str) = ("pillion.dev/injection", "required");
