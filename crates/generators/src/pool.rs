//! The few names everything is called by. They are few so that things meet: labels match, names clash, variables are found.

/// Labels of pods, each with its values.
pub(crate) const LABELS: [(&str, &[&str]); 4] = [
    ("app", &["web", "api", "batch"]),
    ("tier", &["front", "back"]),
    ("example.com/track", &["stable", "canary", ""]),
    ("team", &["red", "blue", "green"]),
];
/// A label or annotation of pods that holds the name of a container.
pub(crate) const MAIN_CONTAINER: &str = "example.com/main-container";

pub(crate) const NAMESPACES: [&str; 4] = ["default", "shop", "payments", "kube-system"];
/// Labels of namespaces, each with its values.
pub(crate) const NAMESPACE_LABELS: [(&str, &[&str]); 2] = [("env", &["prod", "test"]), ("sidecars", &["wanted"])];

/// Names of sets. A pod's `pillion.dev/skip` names some of them.
pub(crate) const SETS: [&str; 8] = ["mesh", "logging", "secrets", "tracing", "backup", "audit", "mesh-2", "a"];

pub(crate) const CONTAINERS: [&str; 7] = ["app", "web", "worker", "cache", "metrics", "db", "app-2"];
pub(crate) const INIT_CONTAINERS: [&str; 4] = ["migrate", "prepare", "fetch", "wait"];
pub(crate) const NATIVE_SIDECARS: [&str; 4] = ["proxy", "logs", "dns", "vault"];
/// Names of a set's containers; the last ones are also names of a pod's.
pub(crate) const SIDECARS: [&str; 16] = [
    "agent", "tunnel", "tracer", "warden", "relay", "auditor", "shipper", "envoy", "keys", "probe", "scraper",
    "mirror", "proxy", "logs", "metrics", "prepare",
];
/// Patterns for names of containers, from those that match all to those that match none.
pub(crate) const PATTERNS: [&str; 8] =
    [".*", "^app", "^(app|web|worker)$", "e", "^[a-m]", "^db$|^vault$", "^none$", r"-\d$"];

pub(crate) const VOLUMES: [&str; 5] = ["data", "config", "scratch", "spool", "certs"];
/// Volumes without a file system.
pub(crate) const DEVICES: [&str; 2] = ["disk", "disk-2"];
pub(crate) const PATHS: [&str; 6] = ["/data", "/etc/config", "/var/log/app", "/scratch", "/certs", "/data/nested"];
pub(crate) const DEVICE_PATHS: [&str; 2] = ["/dev/xvda", "/dev/xvdb"];
pub(crate) const VARIABLES: [&str; 6] = ["LOG_LEVEL", "REGION", "POD_NAME", "SERVICE", "HOME_DIR", "TOKEN-FILE.1"];
/// Kruise's mark of an injected container, which some users set themselves.
pub(crate) const IS_INJECTED: &str = "IS_INJECTED";

pub(crate) const SECRETS: [&str; 3] = ["registry", "mirror-registry", "team-registry"];
pub(crate) const ACCOUNTS: [&str; 3] = ["builder", "sidecars", "web"];
pub(crate) const IMAGES: [&str; 4] = [
    "registry.example/web:1.4",
    "registry.example/proxy@sha256:0c1d",
    "busybox",
    "registry.example:5000/team/tool:latest",
];

/// Annotations that both pods and sets write, with values that are texts.
pub(crate) const TEXT_ANNOTATIONS: [(&str, &[&str]); 3] = [
    ("example.com/owner", &["platform", "shop team", ""]),
    ("example.com/scrape", &["true", "false"]),
    ("note", &["a \"quoted\" line\nand another", "~1 / ~0"]),
];
/// Annotations that both write, with JSON as their values.
pub(crate) const JSON_ANNOTATIONS: [&str; 2] = ["example.com/limits", "example.com/routes"];
/// What a pod may have in such an annotation.
pub(crate) const JSON_TEXTS: [&str; 6] =
    [r#"{"rate": 10}"#, r#"{"rate": 20, "deep": {"a": [1], "b": null}}"#, "[1, 2]", "{broken", "rate=10", ""];
/// What a set may merge into it.
pub(crate) const MERGE_PATCHES: [&str; 4] =
    [r#"{"rate": 99}"#, r#"{"deep": {"a": null, "c": true}}"#, "{}", r#"{"rate":null}"#];
