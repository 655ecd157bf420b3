//! Pods that are reviewed again, as a real API server sends them: with its defaults filled in, its quantities, and its own
//! plugins run a second time. Nothing of them may change.

use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, PostParams};
use pillion_api::{Meaning, review};
use pillion_e2e::{Scene, Webhook, fixture};
use pillion_inject::{Candidate, Decision, Installation, Namespace, SetIndex, inject};
use pillion_testbed::{Look, until};
use serde_json::{Value, json};

/// Sets with what the API server touches: quantities, probes, ports, volumes of many kinds, accounts.
fn sets() -> Value {
    let policy = |cpu: &str| json!({"targetContainerMode": "sum", "resourceExpr": {"limits": {"cpu": cpu, "memory": "memory*0.5"}}});
    json!([
        {"name": "mesh", "spec": {
            "selector": {"matchLabels": {"mesh": "on"}},
            "initContainers": [{
                "name": "proxy", "image": "registry.local/proxy:1", "restartPolicy": "Always",
                "ports": [{"containerPort": 15001}], "startupProbe": {"httpGet": {"port": 15021}},
                "env": [{"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
                "volumeMounts": [{"name": "certificates", "mountPath": "/certificates/", "readOnly": false}],
                "resourcesPolicy": policy("cpu*1.5"),
            }],
            "volumes": [
                {"name": "certificates", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}},
                    {"downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}}]}},
                {"name": "agent", "emptyDir": {"sizeLimit": "1024Mi", "medium": ""}},
            ],
            "serviceAccountName": "mesh", "shareProcessNamespace": false,
            "appVolumeMounts": [{"volume": "agent", "path": "/agent", "readOnly": true}],
        }},
        {"name": "logs", "spec": {
            "selector": {"matchLabels": {"logs": "on"}},
            "containers": [{
                "name": "shipper", "image": "registry.local/shipper", "shareVolumePolicy": {"type": "enabled"},
                "command": [], "tty": false, "resources": {"limits": {"cpu": 0.25, "memory": "1024Ki"}},
                "volumeMounts": [{"name": "spool", "mountPath": "/spool"}, {"name": "config", "mountPath": "/config"},
                    {"name": "host", "mountPath": "/host", "subPath": ""}],
            }],
            "volumes": [{"name": "spool"}, {"name": "config", "configMap": {"name": "logs", "optional": true}},
                {"name": "host", "hostPath": {"path": "/var/log"}}],
            "imagePullSecrets": [{"name": "registry"}], "labels": {"logged": "yes"},
            "patchPodMetadata": [{"annotations": {"example.com/logs": ""}, "patchPolicy": "Overwrite"}],
        }},
    ])
}

fn meanings() -> SetIndex {
    let read = |set: &Value| -> Option<Meaning> {
        let (version, kind) = ("apps.kruise.io/v1alpha1", "SidecarSet");
        let metadata = json!({"name": set["name"]});
        review(&json!({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": set["spec"]})).meaning
    };
    SetIndex::new(sets().as_array().into_iter().flatten().map(|set| read(set).expect("the set is valid")))
}

/// Decides as the webhook does, and hands on what was decided.
fn decided<T>(pod: &Value, with: impl FnOnce(Decision<'_>) -> T) -> T {
    let (index, namespace) = (meanings(), Namespace::named("shop"));
    let labels: Vec<(&str, &str)> = pod["metadata"]["labels"]
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
        .collect();
    let matching = index.matching(&labels, &namespace);
    let candidates = matching.iter().map(|set| Candidate::latest(set));
    with(inject(pod, &namespace, candidates, Installation::default()))
}

fn allowed(review: &Value, patch: &Value) -> Value {
    let patch = ByteString(patch.to_string().into_bytes());
    json!({"uid": review["request"]["uid"], "allowed": true, "patchType": "JSONPatch", "patch": patch})
}

fn ours(review: &Value) -> Value {
    allowed(review, &decided(&review["request"]["object"], |decision| json!(decision.patch)))
}

/// Another webhook, which comes after ours and is the reason that ours is asked again.
fn another(review: &Value) -> Value {
    allowed(review, &json!([{"op": "add", "path": "/metadata/annotations/another", "value": "seen"}]))
}

fn pod(labels: &Value) -> Value {
    let app = json!({
        "name": "app", "image": "registry.local/app:1", "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        "resources": {"limits": {"cpu": "0.5", "memory": "1000Mi"}},
    });
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "again", "labels": labels},
        "spec": {"containers": [app], "volumes": [{"name": "data", "emptyDir": {}}]}})
}

#[tokio::test]
async fn ci_a_pod_that_the_api_server_sends_again_stays_as_it_is() -> Result<()> {
    let scene = Scene::open("again").await?;
    scene.apply(json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "mesh"}})).await?;
    let mut webhook = Webhook::serve(scene.cluster.host(), ours).await?;
    let other = Webhook::serve(scene.cluster.host(), another).await?;
    let registered = |name: &str, webhook: &Webhook, reinvoked: &str| {
        json!({
            "name": format!("{name}.e2e.pillion.dev"), "clientConfig": webhook.client_config(),
            "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Fail", "timeoutSeconds": 5,
            "reinvocationPolicy": reinvoked,
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": scene.namespace}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
        })
    };
    let registration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": scene.namespace},
        "webhooks": [registered("ours", &webhook, "IfNeeded"), registered("another", &other, "Never")],
    });
    scene.apply_to_cluster(&registration).await?;

    let mut seen = Vec::new();
    for labels in [json!({"mesh": "on", "logs": "on"}), json!({"logs": "on"})] {
        let pod: Pod = serde_json::from_value(pod(&labels))?;
        let dry_run = PostParams { dry_run: true, ..PostParams::default() };
        // A registration takes effect some time after it was created.
        until("the webhooks to be asked", Duration::from_secs(30), || async {
            let created = scene.api::<Pod>().create(&dry_run, &pod).await.map_err(|error| error.to_string());
            let annotations = created.as_ref().ok().and_then(|pod| pod.metadata.annotations.as_ref());
            let is_done = annotations.is_some_and(|all| all.contains_key("another"));
            Ok(if is_done { Look::Done(()) } else { Look::NotYet(format!("{created:?}")) })
        })
        .await?;
        let mut next = async || -> Result<Value> {
            let review = tokio::time::timeout(Duration::from_secs(10), webhook.next_review()).await;
            without_chance(&review.context("no review came")??["request"]["object"], &scene.namespace)
        };
        let (first, second) = (next().await?, next().await?);
        seen.push(json!({"first": first, "second": second}));
    }
    let registrations = Api::<MutatingWebhookConfiguration>::all(scene.client.clone());
    registrations.delete(&scene.namespace, &DeleteParams::default()).await?;

    for pods in &seen {
        let changed = decided(&pods["first"], |decision| decision.patch.len());
        assert!(changed > 5, "{changed}");
        assert_eq!(decided(&pods["second"], |decision| json!(decision.patch)), json!([]));
    }
    fixture::compare("pods-reviewed-again.json", &json!({"sets": sets(), "pods": seen}))?;
    scene.close().await?;
    Ok(())
}

/// The pod with everything that differs between runs replaced.
fn without_chance(pod: &Value, namespace: &str) -> Result<Value> {
    let mut text = pod.to_string().replace(namespace, "shop");
    let volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
    for name in volumes.filter_map(|volume| volume["name"].as_str()).filter(|name| name.starts_with("kube-api-access-"))
    {
        text = text.replace(name, "kube-api-access-00000");
    }
    let mut pod: Value = serde_json::from_str(&text)?;
    pod["metadata"].as_object_mut().context("metadata")?.remove("managedFields");
    Ok(pod)
}
