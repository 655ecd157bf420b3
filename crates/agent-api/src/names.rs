//! What agent, manager and command line call the same.

/// Annotation of a pod: the version it is to have ([`Wanted`](crate::Wanted)).
pub const WANTED: &str = "pillion.dev/hot-update";
/// Annotation of a pod: what became of it ([`Outcome`](crate::Outcome)).
pub const RESULT: &str = "pillion.dev/hot-update-result";
/// Condition of a pod: whether its wanted version is in place.
pub const CONDITION: &str = "pillion.dev/HotUpdate";
/// Annotation of a pod: probes for whoever can run them, as `OpenKruise` writes them.
pub const POD_PROBES: &str = "kruise.io/podprobe";

/// The container of the agent in a pod.
pub const CONTAINER: &str = "pillion-agent";
/// Service accounts of agents: this and the name of their configuration.
pub const ACCOUNT_PREFIX: &str = "pillion-agent-";
/// The name of a configuration where nobody gives another.
pub const CONFIG: &str = "sidecar-config";
/// The key of a `ConfigMap` that holds a configuration.
pub const CONFIG_KEY: &str = "config.yaml";
/// Label of the `ConfigMaps` in the manager's namespace that hold configurations, and of their copies.
pub const CONFIG_LABEL: &str = "pillion.dev/agent-config";
/// The `ConfigMap` in the manager's namespace with the parameters of the policies on agents: the keys and values that each
/// configuration needs. The chart ships it without data.
pub const POLICY_PARAMS: &str = "pillion-agent-policy-params";
/// The `ConfigMap` of a namespace that shows people the result of every pod.
pub const RESULTS: &str = "sidecar-result";
/// The key of a `ConfigMap` that holds a [`Wanted`](crate::Wanted) version.
pub const WANTED_KEY: &str = "wanted";

/// Where the agent finds its configuration.
pub const CONFIG_DIR: &str = "/etc/pillion/agent";
/// Where the agent finds the annotations of its pod.
pub const POD_DIR: &str = "/etc/pillion/pod";
/// The file in it.
pub const ANNOTATIONS_FILE: &str = "annotations";
/// Where the agent finds token, authority and namespace.
pub const TOKEN_DIR: &str = "/var/run/secrets/pillion.dev/agent";
/// Environment of the agent: the name of its pod.
pub const POD_NAME: &str = "POD_NAME";
/// Environment of the agent: the namespace of its pod.
pub const POD_NAMESPACE: &str = "POD_NAMESPACE";
/// Environment of the agent: the uid of its pod.
pub const POD_UID: &str = "POD_UID";
