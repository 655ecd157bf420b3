//! The pods that real controllers create, compared with those we say they will.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use pillion_e2e::{Scene, pods};
use pillion_inject::{WorkloadPod, pod_of};
use pillion_testbed::{Look, until};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(30);

fn workload(api_version: &str, kind: &str, name: &str, spec: &Value) -> Value {
    let mut template = pods::on_fleet(pods::pod("", &[], &[pods::container("app", &[])]));
    template["metadata"] = json!({"labels": {"app": name}, "annotations": {"note": "kept"}});
    if kind == "Job" {
        template["spec"]["restartPolicy"] = json!("Never");
    }
    template["spec"]["volumes"] = json!([{"name": "own", "emptyDir": {}}]);
    let mut spec = spec.clone();
    spec["template"] = json!({"metadata": template["metadata"], "spec": template["spec"]});
    match kind {
        "Job" => {}
        "ReplicationController" => spec["selector"] = json!({"app": name}),
        _ => spec["selector"] = json!({"matchLabels": {"app": name}}),
    }
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec})
}

fn workloads() -> Vec<Value> {
    let claim = json!({"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Mi"}}}});
    let one = json!({"replicas": 1});
    vec![
        workload("apps/v1", "Deployment", "deployment", &one),
        workload("apps/v1", "ReplicaSet", "replica-set", &one),
        workload("v1", "ReplicationController", "replication-controller", &one),
        workload("apps/v1", "DaemonSet", "daemon-set", &json!({})),
        workload(
            "apps/v1",
            "StatefulSet",
            "stateful-set",
            &json!({"replicas": 1, "serviceName": "peers", "ordinals": {"start": 3}, "volumeClaimTemplates": [claim]}),
        ),
        workload("batch/v1", "Job", "job", &json!({})),
        workload("batch/v1", "Job", "indexed-job", &json!({"completionMode": "Indexed", "completions": 1})),
    ]
}

async fn created(scene: &Scene, name: &str) -> Result<Value> {
    let parameters = ListParams::default().labels(&format!("app={name}"));
    let pod = until(&format!("a pod of {name}"), PATIENCE, || async {
        let listed = scene.api::<Pod>().list(&parameters).await;
        let found = listed.ok().and_then(|pods| pods.items.into_iter().next());
        Ok(found.map_or_else(|| Look::NotYet("none".to_owned()), Look::Done))
    })
    .await?;
    Ok(serde_json::to_value(pod)?)
}

/// What can be known of a pod before there is a cluster.
fn known(pod: &Value, said: &WorkloadPod) -> Result<Value> {
    let mut labels: BTreeMap<String, String> = serde_json::from_value(pod["metadata"]["labels"].clone())?;
    labels.retain(|key, _| !said.unknown_labels.contains(&key.as_str()));
    let volumes = pod["spec"]["volumes"].as_array().context("volumes")?;
    let is_known = |volume: &&Value| volume["name"].as_str().is_some_and(|name| !name.starts_with("kube-api-access-"));
    let container = &pod["spec"]["containers"][0];
    let variables: Vec<_> =
        container["env"].as_array().into_iter().flatten().map(|variable| &variable["name"]).collect();
    let has_name = said.pod["metadata"]["name"].is_string();
    Ok(json!({
        "labels": labels,
        "annotations": pod["metadata"]["annotations"],
        "name": if has_name { pod["metadata"]["name"].clone() } else { Value::Null },
        "namespace": pod["metadata"]["namespace"],
        "volumes": volumes.iter().filter(is_known).collect::<Vec<_>>(),
        "hostname": pod["spec"]["hostname"],
        "subdomain": pod["spec"]["subdomain"],
        "variables": variables,
    }))
}

#[tokio::test]
async fn ci_pods_are_created_as_we_say() -> Result<()> {
    let scene = Scene::open("templates").await?;
    for workload in workloads() {
        let (kind, name) = (&workload["kind"], workload["metadata"]["name"].as_str().context("a name")?);
        scene.apply(workload.clone()).await?;
        let said = pod_of(&workload, &scene.namespace)?.context("it creates pods")?;
        let pod = created(&scene, name).await?;
        assert_eq!(known(&said.pod, &said)?, known(&pod, &said)?, "{kind} {name}");
        for label in said.unknown_labels {
            assert!(pod["metadata"]["labels"][label].is_string(), "{kind} {name}: no {label}");
        }
        let prefixes = [&pod, &said.pod].map(|pod| pod["metadata"]["generateName"].as_str().unwrap_or_default());
        // A Deployment's pods are named by the ReplicaSet in between.
        let is_prefix =
            if kind == "Deployment" { prefixes[0].starts_with(prefixes[1]) } else { prefixes[0] == prefixes[1] };
        assert!(is_prefix, "{kind} {name}: {prefixes:?}");
    }
    scene.close().await?;
    Ok(())
}
