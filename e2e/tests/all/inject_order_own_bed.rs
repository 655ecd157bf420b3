//! Beside others: a second webhook that changes the pod before or after us, and a cluster that starts without us.

use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{Node, Pod, ServiceAccount};
use kube::api::{Api, PostParams};
use kube::{Client, ResourceExt};
use pillion_e2e::manager::NAMESPACE;
use pillion_e2e::{Manager, Webhook, pods};
use pillion_testbed::{Bed, Config, Look, Signal, apply, until};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(40);

fn set() -> Value {
    json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "SidecarSet", "metadata": {"name": "mesh"}, "spec": {
        "selector": {"matchLabels": {"app": "web"}}, "labels": {"meshed": "yes"},
        "containers": [{"name": "proxy", "image": pods::V1, "imagePullPolicy": "Never", "resourcesPolicy": {
            "targetContainersMode": "sum", "targetContainersNameRegex": ".*",
            "resourceExpr": {"limits": {"cpu": "cpu*50%"}}}}],
        "initContainers": [{"name": "first", "image": pods::V1, "restartPolicy": "Always"}],
        "volumes": [{"name": "shared", "emptyDir": {}}],
        "appVolumeMounts": [{"volume": "shared", "path": "/shared"}],
        "patchPodMetadata": [{"annotations": {"mesh": "on"}, "patchPolicy": "Retain"}]}})
}

fn pod(name: &str) -> Result<Pod> {
    let mut app = pods::container("app", &[]);
    app["resources"] = json!({"limits": {"cpu": "400m"}});
    let mut pod = pods::pod(name, &[], &[app]);
    pod["metadata"]["labels"] = json!({"app": "web"});
    Ok(serde_json::from_value(pod)?)
}

/// Another injector: adds a container with a limit in front, once.
fn another(review: &Value) -> Value {
    let containers = review["request"]["object"]["spec"]["containers"].as_array().cloned().unwrap_or_default();
    let allowed = json!({"uid": review["request"]["uid"], "allowed": true});
    if containers.iter().any(|container| container["name"] == "another") {
        return allowed;
    }
    let container = json!({"name": "another", "image": pods::V1, "resources": {"limits": {"cpu": "200m"}}});
    let patch = json!([{"op": "add", "path": "/spec/containers/0", "value": container}]);
    let patch = ByteString(patch.to_string().into_bytes());
    json!({"uid": review["request"]["uid"], "allowed": true, "patchType": "JSONPatch", "patch": patch})
}

async fn create(client: &Client, pod: &Pod) -> kube::Result<Pod> {
    let parameters = PostParams { dry_run: true, ..PostParams::default() };
    Api::<Pod>::namespaced(client.clone(), "default").create(&parameters, pod).await
}

async fn until_created(client: &Client, what: &str, holds: impl Fn(&Pod) -> bool) -> Result<Pod> {
    let pod = pod("tried")?;
    let waited = until(what, PATIENCE, || async {
        Ok(match create(client, &pod).await {
            Ok(created) if holds(&created) => Look::Done(created),
            Ok(created) => Look::NotYet(format!("{:?}", names(&created))),
            Err(error) => Look::NotYet(error.to_string()),
        })
    });
    Ok(waited.await?)
}

fn names(pod: &Pod) -> Vec<String> {
    let spec = pod.spec.clone().unwrap_or_default();
    spec.init_containers.into_iter().flatten().chain(spec.containers).map(|container| container.name).collect()
}

/// In ci: `inject_again` sends pods again on a real API server.
#[tokio::test]
async fn nightly_nothing_is_added_twice_beside_a_second_webhook_in_either_order() -> Result<()> {
    let bed = Bed::start(Config::control_plane("order").with_controllers()).await?;
    let client = bed.client().await?;
    Manager::prepare(&client).await?;
    let manager = Manager::ready(bed.cluster(), &["webhook"], &[]).await?;
    apply(&client, "e2e", &set()).await?;
    let alone = until_created(&client, "the set to be known", |pod| names(pod).len() == 3).await?;
    assert_eq!(names(&alone), ["first", "proxy", "app"]);
    // Nothing is left for the API server to add to what we added, so it asks once.
    let reviews = manager.metric("pillion_admission_reviews_total{about=\"Pods\"").await?;
    create(&client, &pod("once")?).await?;
    let after = manager.metric("pillion_admission_reviews_total{about=\"Pods\"").await?;
    assert!((after - reviews - 1.0).abs() < f64::EPSILON, "{} reviews of one pod", after - reviews);

    let other = Webhook::serve(bed.cluster().host(), another).await?;
    // Webhooks are called in the order of the names of their registrations; ours is `pillion`.
    for (name, reinvoked, proxy_cpu, order) in [
        // It came first: we see its container, and follow it.
        ("aaa", "Never", "300m", ["first", "proxy", "another", "app"]),
        ("aaa", "IfNeeded", "300m", ["first", "proxy", "another", "app"]),
        // It came after us: we are asked again, keep what we decided, and add nothing a second time.
        ("zzz", "Never", "200m", ["first", "another", "proxy", "app"]),
        ("zzz", "IfNeeded", "200m", ["first", "another", "proxy", "app"]),
    ] {
        let registration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": name},
            "webhooks": [{"name": "another.e2e.pillion.dev", "clientConfig": other.client_config(),
                "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Fail",
                "reinvocationPolicy": reinvoked,
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}},
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]}],
        });
        apply(&client, "e2e", &registration).await?;
        let reviews = manager.metric("pillion_admission_reviews_total{about=\"Pods\"").await?;
        let both = until_created(&client, "both webhooks", |pod| names(pod).len() == 4).await?;
        assert_eq!(names(&both), order, "{name} {reinvoked}");
        let spec = both.spec.clone().context("spec")?;
        let proxy = spec.containers.iter().find(|container| container.name == "proxy").context("proxy")?;
        assert_eq!(json!(proxy.resources)["limits"]["cpu"], proxy_cpu, "{name} {reinvoked}");
        let mounts = |name: &str| {
            let container = spec.containers.iter().find(|container| container.name == name);
            let mounts = container.and_then(|container| container.volume_mounts.clone()).unwrap_or_default();
            mounts.iter().filter(|mount| mount.name == "shared").count()
        };
        assert_eq!((mounts("app"), spec.volumes.iter().flatten().filter(|it| it.name == "shared").count()), (1, 1));
        assert_eq!(both.annotations()["pillion.dev/containers"], "first,proxy");
        assert_eq!(both.annotations()["kruise.io/sidecarset-injected-list"], "mesh");
        // Where it comes after us the pod was really reviewed twice.
        if name == "zzz" {
            let after = manager.metric("pillion_admission_reviews_total{about=\"Pods\"").await?;
            assert!(after - reviews >= 2.0, "{} reviews", after - reviews);
        }
        Api::<k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration>::all(client.clone())
            .delete(name, &kube::api::DeleteParams::default())
            .await?;
        until_created(&client, "the other webhook to be gone", |pod| names(pod).len() == 3).await?;
    }
    manager.stop().await?;
    bed.stop().await?;
    Ok(())
}

#[tokio::test]
async fn ci_a_cluster_starts_from_nothing_while_we_are_registered_and_down() -> Result<()> {
    let mut bed = Bed::start(Config::control_plane("boot").with_node().durable()).await?;
    let client = bed.client().await?;
    Manager::prepare(&client).await?;
    let manager = Manager::ready(bed.cluster(), &["webhook"], &[]).await?;
    apply(&client, "e2e", &set()).await?;
    until_created(&client, "the set to be known", |pod| names(pod).len() == 3).await?;
    let required = json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "strict", "labels": {"pillion.dev/injection": "required"}}});
    apply(&client, "e2e", &required).await?;
    let address = manager.webhook();
    manager.kill()?;
    for part in ["etcd", "kube-apiserver", "kubelet"] {
        bed.signal(part, Signal::Kill).await?;
        bed.start_again(part).await?;
    }

    // Nodes come back, and pods are made where nobody requires us; so also our own, and the cluster's.
    let client = bed.client().await?;
    for namespace in ["default", "kube-system", NAMESPACE] {
        let accounts = Api::<ServiceAccount>::namespaced(client.clone(), namespace);
        let api = Api::<Pod>::namespaced(client.clone(), namespace);
        let pod = pod("after-the-start")?;
        until("a pod to be made", PATIENCE, || async {
            if let Err(error) = accounts.get("default").await {
                return Ok(Look::NotYet(error.to_string()));
            }
            Ok(match api.create(&PostParams::default(), &pod).await {
                Ok(_) => Look::Done(()),
                Err(kube::Error::Api(status)) if status.code == 409 => Look::Done(()),
                Err(error) => Look::NotYet(error.to_string()),
            })
        })
        .await?;
        let ready = until("the pod to be Ready", PATIENCE, || async {
            Ok(match api.get("after-the-start").await {
                Ok(pod) if pods::is_ready(&pod) => Look::Done(pod),
                Ok(pod) => Look::NotYet(json!(pod.status).to_string()),
                Err(error) => Look::NotYet(error.to_string()),
            })
        })
        .await?;
        assert_eq!(names(&ready), ["app"], "{namespace}: nobody was there to inject");
    }
    let nodes = Api::<Node>::all(client.clone()).list(&kube::api::ListParams::default()).await?;
    assert_eq!(nodes.items.len(), 1);
    // Where we are required, and only there, a pod has to wait for us.
    let strict = Api::<Pod>::namespaced(client.clone(), "strict");
    let refusal = strict.create(&PostParams::default(), &pod("strict")?).await.unwrap_err();
    assert!(refusal.to_string().contains("required-pods.pillion.dev"), "{refusal}");

    let manager = Manager::start_at(bed.cluster(), address, &["webhook"], &[]).await?;
    manager.until_ready().await?;
    until_created(&client, "pods to be injected again", |pod| names(pod).len() == 3).await?;
    strict.create(&PostParams::default(), &pod("strict")?).await?;
    manager.stop().await?;
    bed.stop().await?;
    Ok(())
}
