//! Agents in pods without the agent: the chart that gives them their rights, and tokens as they have them.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use http::Method;
use k8s_openapi::api::core::v1::Pod;
use kube::{Client, ResourceExt as _};
use pillion_agent_api::names::{ACCOUNT_PREFIX, CONFIG, CONFIG_KEY, CONFIG_LABEL};
use pillion_testbed::{Bed, Cluster, Look, apply, until};
use serde_json::{Value, json};

use crate::chart::{self, helm, said};
use crate::manager::{Manager, NAMESPACE};
use crate::pods;

/// How long anything may take that nothing is promised about.
pub const PATIENCE: Duration = Duration::from_mins(1);

/// The account of agents with the configuration that nobody gave another name.
pub const ACCOUNT: &str = "pillion-agent-sidecar-config";

/// A configuration of a game server: its state becomes a label, a cost, a condition and a field; its rules are updated.
pub const GAME: &str = "
plugins:
- name: http_probe
  config:
    endpoints:
    - url: http://localhost:8080/state
      storageConfig:
        inKube:
          labelKey: example.com/state
          conditionType: example.com/Idle
          target: {group: game.kruise.io, version: v1alpha1, resource: gameservers}
          jsonPath: /spec/opsState
          markerPolicies:
          - {state: idle, value: None, annotations: {controller.kubernetes.io/pod-deletion-cost: '-10'}}
          - {state: allocated, value: Allocated, annotations: {controller.kubernetes.io/pod-deletion-cost: '10'}}
- name: pod_probe
- name: hot_update
  config:
    fileDir: /rules
    loadPatchType: signal
    signal: {processName: app, signalName: SIGHUP}
    allowedSources: [https://files.example.com/]
";

/// A cluster whose chart is installed with agents switched on. Nothing of it runs: what does, the test starts.
pub async fn install(bed: &Bed) -> Result<Client> {
    let client = bed.client().await?;
    let target = "agent.targets[0]";
    let values = [
        "featureGates.InPodAgent=true".to_owned(),
        format!("{target}.group=game.kruise.io,{target}.version=v1alpha1,{target}.resource=gameservers"),
        format!("{target}.pointer=/spec/opsState"),
        // Where a bed has a node, our images are not for it.
        "nodeSelector.pillion\\.dev/nowhere=yes".to_owned(),
    ];
    let values: Vec<&str> = values.iter().map(String::as_str).collect();
    said(helm(bed.cluster(), "install", &values, &["--create-namespace"])?)?;
    apply(&client, "e2e", &game_server_crd()).await?;
    let paths = [
        "/apis/apps.kruise.io/v1alpha1/sidecarsets",
        "/apis/pillion.dev/v1alpha1/hotupdates",
        "/apis/game.kruise.io/v1alpha1/gameservers",
    ];
    Manager::until_served(&client, &paths).await?;
    Ok(client)
}

/// Starts the agent controller with the rights it has in real life, and nothing more.
pub async fn controller(cluster: &Cluster) -> Result<Manager> {
    let kubeconfig = kubeconfig_of(cluster, "pillion-agent-controller").await?;
    let flags = [
        "--feature-gates=InPodAgent=true",
        "--agent-targets=game.kruise.io/v1alpha1/gameservers/spec/opsState",
        "--lease=2s",
    ];
    let manager = Manager::start_as(cluster, &kubeconfig, &["agent-controller"], &flags).await?;
    manager.until_ready().await?;
    Ok(manager)
}

/// A kubeconfig with a token of an account of our namespace.
pub async fn kubeconfig_of(cluster: &Cluster, account: &str) -> Result<PathBuf> {
    let token = chart::token_of(cluster, NAMESPACE, account, None).await?;
    let mut kubeconfig: Value = serde_json::from_slice(&fs::read(cluster.kubeconfig())?)?;
    kubeconfig["users"][0]["user"] = json!({"token": token});
    let path = cluster.logs().join(format!("{account}.kubeconfig"));
    fs::write(&path, kubeconfig.to_string())?;
    Ok(path)
}

/// A client with the token that the agent of a pod has.
pub async fn client_of_pod(cluster: &Cluster, pod: &Pod) -> Result<Client> {
    let namespace = pod.namespace().context("a pod has a namespace")?;
    let account = pod.spec.as_ref().and_then(|spec| spec.service_account_name.clone()).context("no account")?;
    let token = chart::token_of(cluster, &namespace, &account, Some(pod)).await?;
    Ok(cluster.client_with_token(&token).await?)
}

/// The central `ConfigMap` of a configuration.
pub fn config(text: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {CONFIG_KEY: text},
        "metadata": {"name": CONFIG, "namespace": NAMESPACE, "labels": {CONFIG_LABEL: "true"}}})
}

/// A set that adds an agent to pods with label `agent: "yes"` of namespaces with label `agents: "yes"`.
pub fn set(name: &str) -> Value {
    json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "SidecarSet", "metadata": {"name": name}, "spec": {
        "selector": {"matchLabels": {"agent": "yes"}}, "namespaceSelector": {"matchLabels": {"agents": "yes"}},
        "serviceAccountName": format!("{ACCOUNT_PREFIX}{CONFIG}"),
        "containers": [{"name": "pillion-agent", "image": pods::V1}]}})
}

/// A namespace, with or without agents.
pub fn namespace(name: &str, agents: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {"agents": agents}}})
}

/// A definition of the group and kind that game servers have.
pub fn game_server_crd() -> Value {
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "gameservers.game.kruise.io", "annotations": {"api-approved.kubernetes.io": "unapproved, a test"}},
        "spec": {"group": "game.kruise.io", "scope": "Namespaced",
            "names": {"kind": "GameServer", "plural": "gameservers", "singular": "gameserver"},
            "versions": [{"name": "v1alpha1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": open, "status": open}}}}]}})
}

/// Sends a request as it is, and gives what became of it or why nothing did.
pub async fn send(
    client: &Client,
    method: Method,
    path: &str,
    body: &Value,
) -> Result<std::result::Result<Value, String>> {
    let content = match (&method, path.contains("fieldManager"), body) {
        (&Method::PATCH, true, _) => "application/apply-patch+yaml",
        (&Method::PATCH, false, Value::Array(_)) => "application/json-patch+json",
        (&Method::PATCH, false, _) if path.starts_with("/apis/game.kruise.io") => "application/merge-patch+json",
        (&Method::PATCH, false, _) => "application/strategic-merge-patch+json",
        _ => "application/json",
    };
    let body = if body.is_null() { Vec::new() } else { serde_json::to_vec(body)? };
    let request =
        http::Request::builder().method(method).uri(path).header(http::header::CONTENT_TYPE, content).body(body)?;
    match client.request::<Value>(request).await {
        Ok(object) => Ok(Ok(object)),
        Err(kube::Error::Api(status)) => Ok(Err(status.message.clone())),
        Err(error) => Err(error.into()),
    }
}

/// Waits until an object is as it should be; `None` where it is not there.
pub async fn seen<T>(client: &Client, path: &str, what: &str, look: impl Fn(Option<&Value>) -> Option<T>) -> Result<T> {
    let waited = until(what, PATIENCE, || async {
        let request = http::Request::get(path).body(Vec::new()).unwrap_or_default();
        let object = match client.request::<Value>(request).await {
            Ok(object) => Some(object),
            Err(kube::Error::Api(status)) if status.code == 404 => None,
            Err(error) => return Ok(Look::NotYet(error.to_string())),
        };
        Ok(match look(object.as_ref()) {
            Some(found) => Look::Done(found),
            None => Look::NotYet(json!(object).to_string()),
        })
    });
    Ok(waited.await?)
}
