//! The `ConfigMap` and the `SidecarSet` of a configuration.

use std::collections::{BTreeMap, BTreeSet};

use pillion_agent_api::{Config, HotUpdate, PluginConfig, Reload, StartOrder, names};
use serde_json::{Map, Value, json};

const CONFIG_VOLUME: &str = "pillion-agent-config";
const POD_VOLUME: &str = "pillion-agent-pod";
const TOKEN_VOLUME: &str = "pillion-agent-token";
const FILES_VOLUME: &str = "pillion-agent-files";
/// Where the program is in its image.
const PROGRAM: &str = "/pillion-agent";
/// How long a token lives; the node renews it long before.
const TOKEN_SECONDS: u32 = 3600;
/// Between two looks of the probe that holds the app back.
const PROBE_SECONDS: u32 = 2;
/// For all that an update does besides the download.
const BESIDES_DOWNLOAD_SECONDS: u32 = 60;

/// What a person says besides the configuration.
pub(super) struct Given<'a> {
    pub(super) name: String,
    pub(super) config_name: String,
    pub(super) image: &'a str,
    pub(super) selector: &'a [(String, String)],
    pub(super) namespace_selector: &'a [(String, String)],
    pub(super) app_containers: &'a str,
    pub(super) secrets: Vec<Mount<'a>>,
    pub(super) env: &'a [(String, String)],
    pub(super) pillion_namespace: &'a str,
}

/// A Secret, and where the agent finds it.
pub(super) struct Mount<'a> {
    pub(super) name: &'a str,
    pub(super) path: &'a str,
}

/// The objects, in the order they are to be applied.
pub(super) fn made(config: &Config, text: &str, given: &Given<'_>) -> [Value; 2] {
    let config_map = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": given.config_name,
            "namespace": given.pillion_namespace,
            "labels": {names::CONFIG_LABEL: "true"},
        },
        "data": {names::CONFIG_KEY: text},
    });
    [config_map, sidecar_set(config, given)]
}

fn sidecar_set(config: &Config, given: &Given<'_>) -> Value {
    let map = |pairs: &[(String, String)]| pairs.iter().cloned().collect::<BTreeMap<_, _>>();
    let mut spec = json!({
        "selector": {"matchLabels": map(given.selector)},
        "serviceAccountName": format!("{}{}", names::ACCOUNT_PREFIX, given.config_name),
        "volumes": volumes(config, given),
    });
    if !given.namespace_selector.is_empty() {
        spec["namespaceSelector"] = json!({"matchLabels": map(given.namespace_selector)});
    }
    let list = match config.form.start_order {
        StartOrder::Before => "initContainers",
        StartOrder::After => "containers",
    };
    spec[list] = json!([container(config, given)]);
    if let Some(update) = hot_update(config) {
        spec["appVolumeMounts"] = json!([{
            "targetContainersNameRegex": given.app_containers,
            "volume": FILES_VOLUME,
            "path": update.file_dir,
            "readOnly": true,
        }]);
        if matches!(update.reload, Reload::Signal(_)) {
            spec["shareProcessNamespace"] = json!(true);
        }
    }
    json!({
        "apiVersion": pillion_api::API_VERSION,
        "kind": "SidecarSet",
        "metadata": {"name": given.name},
        "spec": spec,
    })
}

fn container(config: &Config, given: &Given<'_>) -> Value {
    let mut mounts = vec![
        json!({"name": CONFIG_VOLUME, "mountPath": names::CONFIG_DIR, "readOnly": true}),
        json!({"name": POD_VOLUME, "mountPath": names::POD_DIR, "readOnly": true}),
        json!({"name": TOKEN_VOLUME, "mountPath": names::TOKEN_DIR, "readOnly": true}),
    ];
    let update = hot_update(config);
    mounts.extend(update.map(|update| json!({"name": FILES_VOLUME, "mountPath": update.file_dir})));
    for Mount { name, path } in &given.secrets {
        mounts.push(json!({"name": secret_volume(name), "mountPath": path, "readOnly": true}));
    }
    let field = |name: &str, path: &str| json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}});
    let mut env = vec![
        field(names::POD_NAME, "metadata.name"),
        field(names::POD_NAMESPACE, "metadata.namespace"),
        field(names::POD_UID, "metadata.uid"),
    ];
    env.extend(given.env.iter().map(|(name, value)| json!({"name": name, "value": value})));
    let is_native = config.form.start_order == StartOrder::Before;
    let mut container = json!({
        "name": names::CONTAINER,
        "image": given.image,
        "args": ["run", "--config", format!("{}/{}", names::CONFIG_DIR, names::CONFIG_KEY)],
        "env": env,
        "volumeMounts": mounts,
        "resources": resources(config),
        "podInjectPolicy": if is_native { "BeforeAppContainer" } else { "AfterAppContainer" },
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": true,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    });
    if is_native {
        container["restartPolicy"] = json!("Always");
    }
    if let Some(update) = update {
        let (probe, value) = ready_probe(update, is_native);
        container[probe] = value;
    }
    let listener = update.and_then(|update| update.listener.as_ref());
    let ports = [("agent-metrics", config.metrics_port), ("hot-update", listener.map(|listener| listener.port))];
    let ports: Vec<_> =
        ports.iter().filter_map(|(name, port)| Some(json!({"name": name, "containerPort": (*port)?}))).collect();
    if !ports.is_empty() {
        container["ports"] = json!(ports);
    }
    container
}

/// Holds the pod back until the wanted version is in place: before the app starts, or before the pod is ready.
fn ready_probe(update: &HotUpdate, is_native: bool) -> (&'static str, Value) {
    let probe = json!({"exec": {"command": [PROGRAM, "ready"]}, "periodSeconds": PROBE_SECONDS, "timeoutSeconds": 5});
    if !is_native {
        return ("readinessProbe", probe);
    }
    // A container that is not started by then is started anew, so it gets the time that an update may take.
    let seconds = update.bounds.total_seconds + BESIDES_DOWNLOAD_SECONDS;
    let mut probe = probe;
    probe["failureThreshold"] = json!(seconds.div_ceil(PROBE_SECONDS));
    ("startupProbe", probe)
}

/// What the configuration says, as request and limit; else what the agent was measured to need.
fn resources(config: &Config) -> Value {
    let given = &config.form.resources;
    let of = |name: &str, least: &str| given.get(name).cloned().unwrap_or_else(|| least.to_owned());
    let mut limits = Map::new();
    limits.insert("memory".to_owned(), json!(of("memory", "32Mi")));
    limits.extend(given.get("cpu").map(|cpu| ("cpu".to_owned(), json!(cpu))));
    json!({"requests": {"cpu": of("cpu", "5m"), "memory": of("memory", "16Mi")}, "limits": limits})
}

fn volumes(config: &Config, given: &Given<'_>) -> Vec<Value> {
    let annotations = json!({"path": names::ANNOTATIONS_FILE, "fieldRef": {"fieldPath": "metadata.annotations"}});
    let namespace = json!({"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}});
    let authority = json!({"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]});
    let mut volumes = vec![
        json!({"name": CONFIG_VOLUME, "configMap": {"name": given.config_name}}),
        json!({"name": POD_VOLUME, "downwardAPI": {"items": [annotations]}}),
        json!({"name": TOKEN_VOLUME, "projected": {"sources": [
            {"serviceAccountToken": {"path": "token", "expirationSeconds": TOKEN_SECONDS}},
            {"configMap": authority},
            {"downwardAPI": {"items": [namespace]}},
        ]}}),
    ];
    volumes.extend(hot_update(config).map(|update| {
        // All that are kept, and the one that is coming.
        let bytes = update.bounds.max_bytes.saturating_mul(u64::from(update.bounds.keep) + 1);
        json!({"name": FILES_VOLUME, "emptyDir": {"sizeLimit": bytes_text(bytes)}})
    }));
    let secrets: BTreeSet<&str> = given.secrets.iter().map(|mount| mount.name).collect();
    volumes.extend(secrets.iter().map(|name| json!({"name": secret_volume(name), "secret": {"secretName": name}})));
    volumes
}

fn secret_volume(name: &str) -> String {
    format!("pillion-agent-secret-{}", name.replace('.', "-"))
}

/// In the largest unit that is whole.
fn bytes_text(bytes: u64) -> String {
    let units = [("Gi", 30), ("Mi", 20), ("Ki", 10)];
    let fits = units.iter().find(|(_, bits)| bytes >= 1 << bits && bytes.trailing_zeros() >= *bits);
    fits.map_or_else(|| bytes.to_string(), |(unit, bits)| format!("{}{unit}", bytes >> bits))
}

fn hot_update(config: &Config) -> Option<&HotUpdate> {
    config.plugins.iter().find_map(|plugin| match &plugin.config {
        PluginConfig::HotUpdate(update) => Some(&**update),
        PluginConfig::HttpProbe(_) | PluginConfig::PodProbe(_) => None,
    })
}

/// Files that the configuration names and no volume holds.
pub(super) fn files_outside(config: &Config, given: &Given<'_>) -> Vec<String> {
    let Some(update) = hot_update(config) else { return Vec::new() };
    let of_sources = update.sources.iter().flat_map(|source| [&source.authorization_file, &source.ca_file]);
    let of_listener = update.listener.iter().flat_map(|listener| [&listener.certificate, &listener.key]);
    let files = of_sources.flatten().chain(of_listener).cloned();
    let is_below = |path: &str, folder: &str| {
        path.strip_prefix(folder.trim_end_matches('/')).is_some_and(|rest| rest.starts_with('/'))
    };
    let files: BTreeSet<String> = files.collect();
    files.into_iter().filter(|path| !given.secrets.iter().any(|mount| is_below(path, mount.path))).collect()
}

/// Variables of the agent that the configuration uses and nobody sets.
pub(super) fn variables_outside(text: &str, given: &Given<'_>) -> Vec<String> {
    let known = [names::POD_NAME, names::POD_NAMESPACE, names::POD_UID];
    let used = text.split("${SELF:").skip(1).filter_map(|rest| rest.split_once('}')).map(|(name, _)| name);
    let used: BTreeSet<&str> = used.filter(|name| !known.contains(name)).collect();
    used.into_iter().filter(|name| !given.env.iter().any(|(set, _)| set == name)).map(str::to_owned).collect()
}
