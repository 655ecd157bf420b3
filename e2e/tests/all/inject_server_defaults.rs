//! What the API server fills in before and after webhooks, compared with what we say it does: our offline view of a pod
//! is only as true as this.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use kube::api::{Api, DeleteParams};
use pillion_e2e::{Scene, Webhook};
use pillion_inject::{LimitRange, fill_in};
use pillion_pod::qos_class;
use pillion_quantity::Quantity;
use pillion_testbed::{Look, until};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(30);

fn pod(spec: &Value) -> Value {
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "dry-"}, "spec": spec});
    for list in ["containers", "initContainers"] {
        for container in pod["spec"].get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            container["image"] = json!("app:1");
        }
    }
    pod
}

/// Pods that every `LimitRange` of this file lets pass.
fn pods() -> Vec<Value> {
    let with = |resources: Value| json!({"name": "app", "resources": resources});
    let limits = |cpu: &str, memory: &str| json!({"limits": {"cpu": cpu, "memory": memory}});
    let specs = [
        json!({"containers": [{"name": "app"}]}),
        json!({"containers": [with(json!({}))], "serviceAccountName": "default"}),
        json!({"containers": [with(limits("200m", "128Mi"))]}),
        json!({"containers": [with(json!({"limits": {"cpu": "200m"}}))]}),
        json!({"containers": [with(json!({"requests": {"cpu": "100m"}}))]}),
        json!({"containers": [with(json!({"requests": {"memory": "64Mi"}, "limits": {"cpu": "0.3"}}))]}),
        json!({"containers": [with(json!({"requests": {"cpu": "100m"}, "limits": {"cpu": "200m", "memory": "0.125Gi"}}))]}),
        json!({"containers": [with(json!({"limits": {"ephemeral-storage": "1Gi"}}))]}),
        json!({"containers": [with(limits("200m", "128Mi"))], "initContainers": [{"name": "init"}]}),
        json!({"containers": [{"name": "app"}],
               "initContainers": [{"name": "init", "resources": limits("300m", "200Mi")},
                                  {"name": "native", "restartPolicy": "Always", "resources": {"limits": {"memory": "64Mi"}}}]}),
        json!({"containers": [with(limits("200m", "128Mi"))],
               "initContainers": [{"name": "native", "restartPolicy": "Always", "resources": limits("100m", "64Mi")}]}),
    ];
    specs.iter().map(pod).collect()
}

fn limit_range(items: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "sizes"}, "spec": {"limits": items}})
}

/// Each with its own namespace.
fn limit_ranges() -> Vec<(&'static str, Option<Value>)> {
    let container = |mut item: Value| {
        item["type"] = json!("Container");
        Some(limit_range(&json!([item])))
    };
    vec![
        ("bare", None),
        ("limit", container(json!({"default": {"cpu": "400m", "memory": "256Mi"}}))),
        ("both", container(json!({"default": {"cpu": "400m"}, "defaultRequest": {"cpu": "50m", "memory": "32Mi"}}))),
        ("max", container(json!({"max": {"cpu": "1", "memory": "1Gi"}}))),
        ("min", container(json!({"min": {"cpu": "10m", "memory": "16Mi"}}))),
        (
            "all",
            container(json!({"max": {"cpu": "1", "memory": "1Gi"}, "min": {"cpu": "10m"}, "default": {"cpu": "350m"},
                             "defaultRequest": {"memory": "24Mi"}})),
        ),
        (
            "several",
            Some(limit_range(&json!([
                {"type": "Pod", "max": {"memory": "8Gi"}},
                {"type": "Container", "default": {"memory": "256Mi"}, "defaultRequest": {"cpu": "20m"}},
            ]))),
        ),
    ]
}

async fn dry_run(scene: &Scene, pod: &Value) -> Result<Value> {
    let path = format!("/api/v1/namespaces/{}/pods?dryRun=All", scene.namespace);
    let request = http::Request::post(path)
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(serde_json::to_vec(pod)?)?;
    scene.client.request(request).await.with_context(|| format!("{pod} is refused"))
}

/// Applies a `LimitRange` and waits until the API server uses it.
async fn apply_limit_range(scene: &Scene, limit_range: &Value) -> Result<()> {
    scene.apply(limit_range.clone()).await?;
    let probe = pod(&json!({"containers": [{"name": "app"}]}));
    until("the LimitRange to be used", PATIENCE, || async {
        let seen = dry_run(scene, &probe).await.map_err(|error| error.to_string());
        let is_used = seen.as_ref().is_ok_and(|pod| pod["spec"]["containers"][0]["resources"] != json!({}));
        Ok(if is_used { Look::Done(()) } else { Look::NotYet(format!("{seen:?}")) })
    })
    .await?;
    Ok(())
}

/// What injection reads of a pod, with every amount as a value: the API server writes `0.3` as `300m`.
fn facts(pod: &Value) -> Result<BTreeMap<String, Option<Quantity>>> {
    let mut facts = BTreeMap::new();
    for field in ["/metadata/namespace", "/spec/serviceAccountName", "/spec/serviceAccount"] {
        let text = pod.pointer(field).and_then(Value::as_str).with_context(|| format!("no {field}"))?;
        facts.insert(format!("{field} {text}"), None);
    }
    for list in ["containers", "initContainers"] {
        for container in pod["spec"].get(list).and_then(Value::as_array).into_iter().flatten() {
            for side in ["limits", "requests"] {
                for (resource, amount) in container["resources"][side].as_object().into_iter().flatten() {
                    let key = format!("{list} {} {side} {resource}", container["name"]);
                    facts.insert(key, Some(amount.as_str().context("a text")?.parse()?));
                }
            }
        }
    }
    Ok(facts)
}

#[tokio::test]
async fn ci_resources_account_and_class_are_what_we_say() -> Result<()> {
    let mut compared = 0;
    for (name, limit_range) in limit_ranges() {
        let scene = Scene::open(&format!("defaults-{name}")).await?;
        let mut ranges = Vec::new();
        if let Some(limit_range) = &limit_range {
            apply_limit_range(&scene, limit_range).await?;
            ranges.push(LimitRange::read(limit_range)?);
        }
        for written in pods() {
            let served = dry_run(&scene, &written).await?;
            let mut ours = written.clone();
            fill_in(&mut ours, &scene.namespace, &ranges.iter().collect::<Vec<_>>());
            assert_eq!(facts(&ours)?, facts(&served)?, "{name}: {written}");
            let class = qos_class(&ours)?.to_string();
            assert_eq!(served["status"]["qosClass"].as_str(), Some(class.as_str()), "{name}: {written}");
            compared += 1;
        }
        scene.close().await?;
    }
    assert_eq!(compared, 77);
    Ok(())
}

/// The sidecars of the test's webhook: one with limits only, one with nothing.
fn sidecars() -> [Value; 2] {
    [
        json!({"name": "limited", "image": "sidecar:1", "resources": {"limits": {"cpu": "100m"}}}),
        json!({"name": "plain", "image": "sidecar:1"}),
    ]
}

fn inject_sidecars(review: &Value) -> Value {
    let add = sidecars().map(|sidecar| json!({"op": "add", "path": "/spec/containers/-", "value": sidecar}));
    let patch = ByteString(json!(add).to_string().into_bytes());
    json!({"uid": review["request"]["uid"], "allowed": true, "patchType": "JSONPatch", "patch": patch})
}

#[tokio::test]
async fn ci_what_a_webhook_adds_is_filled_in_too() -> Result<()> {
    let scene = Scene::open("defaults-after").await?;
    let range = limit_range(
        &json!([{"type": "Container", "default": {"memory": "256Mi"}, "defaultRequest": {"memory": "64Mi"}}]),
    );
    apply_limit_range(&scene, &range).await?;
    let mut webhook = Webhook::serve(scene.cluster.host(), inject_sidecars).await?;
    let registration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": scene.namespace},
        "webhooks": [{
            "name": "inject.e2e.pillion.dev", "clientConfig": webhook.client_config(),
            "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Fail", "timeoutSeconds": 3,
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": scene.namespace}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
        }],
    });
    scene.apply_to_cluster(&registration).await?;
    let written = pod(&json!({"containers": [{"name": "app", "resources": {"limits": {"cpu": "200m"}}}]}));
    let served = until("the webhook to be asked", PATIENCE, || async {
        let served = dry_run(&scene, &written).await.map_err(|error| error.to_string());
        let is_injected = served.as_ref().is_ok_and(|pod| pod["spec"]["containers"][2].is_object());
        Ok(if is_injected { Look::Done(served.unwrap_or_default()) } else { Look::NotYet(format!("{served:?}")) })
    })
    .await?;
    let registrations = Api::<MutatingWebhookConfiguration>::all(scene.client.clone());
    registrations.delete(&scene.namespace, &DeleteParams::default()).await?;

    let range = LimitRange::read(&range)?;
    let mut before = written.clone();
    fill_in(&mut before, &scene.namespace, &[&range]);
    let review = webhook.next_review().await?;
    assert_eq!(facts(&before)?, facts(&review["request"]["object"])?, "what the webhook is shown");
    let mut after = before;
    after["spec"]["containers"].as_array_mut().context("containers")?.extend(sidecars());
    let filled = fill_in(&mut after, &scene.namespace, &[&range]);
    assert_eq!(filled.len(), 5, "{filled:?}");
    assert_eq!(facts(&after)?, facts(&served)?, "what becomes of it");
    scene.close().await?;
    Ok(())
}
