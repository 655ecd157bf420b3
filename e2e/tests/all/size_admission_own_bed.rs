//! Sizing when pods are created: a real Deployment, an autoscaler whose status the test writes, a set that follows the size of
//! the app, and another webhook that makes the API server ask twice.

use std::time::Duration;

use anyhow::{Context, Result};
use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use kube::core::DynamicObject;
use kube::discovery::ApiResource;
use kube::{Client, ResourceExt};
use pillion_e2e::manager::NAMESPACE;
use pillion_e2e::sizing::amount;
use pillion_e2e::{Manager, Webhook, pods};
use pillion_quantity::Resource;
use pillion_testbed::{Bed, Config, Look, apply, until};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_mins(2);

fn deployment() -> Value {
    let requests = |cpu: &str, memory: &str| json!({"requests": {"cpu": cpu, "memory": memory}});
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "default"}, "spec": {
    "replicas": 1, "selector": {"matchLabels": {"app": "web"}},
    "template": {"metadata": {"labels": {"app": "web"}}, "spec": {
        "initContainers": [
            {"name": "setup", "image": pods::V1, "resources": requests("900m", "64Mi")},
            {"name": "native", "image": pods::V1, "restartPolicy": "Always", "resources": requests("10m", "20Mi")},
        ],
        "containers": [{"name": "app", "image": pods::V1, "resources": requests("100m", "64Mi")}],
    }}}})
}

/// One container of its own, which has half of what the app has, and one that the autoscaler knows.
fn set() -> Value {
    let policy = json!({"targetContainersMode": "sum", "targetContainersNameRegex": "^app$",
        "resourcesExpr": {"requests": {"cpu": "cpu*50%"}}});
    json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "SidecarSet", "metadata": {"name": "mesh"}, "spec": {
    "selector": {"matchLabels": {"app": "web"}},
    "containers": [
        {"name": "follower", "image": pods::V1, "resourcesPolicy": policy},
        {"name": "proxy", "image": pods::V1, "resources": {"requests": {"cpu": "1"}}},
    ]}})
}

fn autoscaler() -> Value {
    json!({"apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscaler",
        "metadata": {"name": "sizes", "namespace": "default"},
        "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "recommenders": [{"name": "pillion"}], "updatePolicy": {"updateMode": "Initial"}}})
}

fn status() -> Value {
    let recommended = |name: &str, cpu: &str, memory: &str| {
        let list = json!({"cpu": cpu, "memory": memory});
        json!({"containerName": name, "target": list, "lowerBound": list, "upperBound": list, "uncappedTarget": list})
    };
    json!({"status": {
    "conditions": [{"type": "RecommendationProvided", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
    "recommendation": {"containerRecommendations": [
        recommended("app", "400m", "512Mi"), recommended("native", "30m", "40Mi"),
        recommended("proxy", "60m", "80Mi"), recommended("setup", "1", "1Gi"),
    ]}}})
}

/// Changes every pod once after us, so that we are asked again.
fn another(review: &Value) -> Value {
    let object = &review["request"]["object"];
    let allowed = json!({"uid": review["request"]["uid"], "allowed": true});
    if object["metadata"]["labels"]["another"] == "was-here" {
        return allowed;
    }
    let patch = json!([{"op": "add", "path": "/metadata/labels/another", "value": "was-here"}]);
    let patch = ByteString(patch.to_string().into_bytes());
    json!({"uid": review["request"]["uid"], "allowed": true, "patchType": "JSONPatch", "patch": patch})
}

/// Ends the pods there are, and gives the one that comes instead when it is as it should be.
async fn next_pod(client: &Client, what: &str, holds: impl Fn(&Value) -> bool) -> Result<Value> {
    let api = Api::<Pod>::namespaced(client.clone(), "default");
    let now = DeleteParams::default().grace_period(0);
    let waited = until(what, PATIENCE, || async {
        let listed = match api.list(&ListParams::default().labels("app=web")).await {
            Ok(listed) => listed.items,
            Err(error) => return Ok(Look::NotYet(error.to_string())),
        };
        for pod in listed.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()) {
            let shown = json!(pod);
            if holds(&shown) {
                return Ok(Look::Done(shown));
            }
            // Another may be reviewed with what is known by then.
            let _ = api.delete(&pod.name_any(), &now).await;
        }
        Ok(Look::NotYet(format!(
            "{:?}",
            listed.iter().map(|pod| json!(pod.spec)["containers"].to_string()).collect::<Vec<_>>()
        )))
    });
    Ok(waited.await?)
}

fn requests(pod: &Value, list: &str, name: &str) -> Value {
    let containers = pod["spec"][list].as_array().into_iter().flatten();
    containers.into_iter().find(|it| it["name"] == name).map_or(Value::Null, |it| it["resources"]["requests"].clone())
}

fn is_sized(pod: &Value) -> bool {
    requests(pod, "containers", "app")["cpu"] == "400m"
}

async fn prepared(bed: &Bed) -> Result<Client> {
    let client = bed.client().await?;
    Manager::prepare(&client).await?;
    for crd in [pillion_api::vertical_pod_autoscaler_crd(), pillion_api::vertical_pod_autoscaler_checkpoint_crd()] {
        apply(&client, "e2e", &crd).await?;
    }
    Manager::until_served(&client, &["/apis/autoscaling.k8s.io/v1/verticalpodautoscalers"]).await?;
    apply(&client, "e2e", &autoscaler()).await?;
    let kind = ApiResource::erase::<pillion_api::VerticalPodAutoscaler>(&());
    let api = Api::<DynamicObject>::namespaced_with(client.clone(), "default", &kind);
    api.patch_status("sizes", &PatchParams::default(), &Patch::Merge(status())).await?;
    apply(&client, "e2e", &set()).await?;
    Ok(client)
}

#[tokio::test]
async fn ci_pods_get_their_sizes_when_they_are_created_and_a_second_review_changes_nothing() -> Result<()> {
    let bed = Bed::start(Config::control_plane("sizes").with_controllers()).await?;
    let client = prepared(&bed).await?;
    let on = ["--rightsizing", "--feature-gates", "NativeSidecar=true"];
    let manager = Manager::ready(bed.cluster(), &["webhook"], &on).await?;
    let mut other = Webhook::serve(bed.cluster().host(), another).await?;
    let registration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration", "metadata": {"name": "zzz"},
        "webhooks": [{"name": "another.e2e.pillion.dev", "clientConfig": other.client_config(),
            "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Fail",
            "reinvocationPolicy": "IfNeeded",
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]}],
    });
    apply(&client, "e2e", &registration).await?;
    apply(&client, "e2e", &deployment()).await?;

    let was_here = |pod: &Value| pod["metadata"]["labels"]["another"] == "was-here";
    let pod = next_pod(&client, "a sized pod", |pod| is_sized(pod) && was_here(pod)).await?;
    assert_eq!(requests(&pod, "containers", "app"), json!({"cpu": "400m", "memory": "512Mi"}));
    assert_eq!(requests(&pod, "initContainers", "native"), json!({"cpu": "30m", "memory": "40Mi"}));
    assert_eq!(requests(&pod, "initContainers", "setup"), json!({"cpu": "900m", "memory": "64Mi"}), "plain init");
    // The expression saw the sized app, and the other container of the set has the autoscaler's size.
    assert_eq!(requests(&pod, "containers", "follower"), json!({"cpu": "200m"}));
    assert_eq!(requests(&pod, "containers", "proxy"), json!({"cpu": "60m", "memory": "80Mi"}));
    let annotations = &pod["metadata"]["annotations"];
    let mut observed: Vec<&str> =
        annotations["vpaObservedContainers"].as_str().context("observed")?.split(", ").collect();
    observed.sort_unstable();
    assert_eq!(observed, ["app", "follower", "native", "proxy"]);
    let record: Value = serde_json::from_str(annotations["pillion.dev/decision"].as_str().context("a record")?)?;
    assert_eq!(record["sizedBy"], json!({"proxy": "sizes"}));

    // What the other webhook saw is the pod after our first review. The API server asked us again, and nothing changed.
    let seen = loop {
        let review = other.next_review().await?;
        if is_sized(&review["request"]["object"]) {
            break review["request"]["object"].clone();
        }
    };
    assert_eq!(seen["spec"]["containers"], pod["spec"]["containers"]);
    let reviews = manager.metric("pillion_admission_reviews_total{about=\"Pods\"").await?;
    assert!(reviews >= 2.0, "{reviews} reviews");

    // A webhook that sizes pods says so.
    let leases = Api::<Lease>::namespaced(client.clone(), NAMESPACE);
    until("the sign that pods are sized", PATIENCE, || async {
        let lease = leases.get_opt("pillion-webhook-alive").await.ok().flatten();
        let renewed = lease.and_then(|lease| lease.spec?.renew_time);
        Ok(match renewed {
            Some(renewed) if Timestamp::now().duration_since(renewed.0).as_secs() < 60 => Look::Done(()),
            renewed => Look::NotYet(format!("{renewed:?}")),
        })
    })
    .await?;

    // The bounds of the namespace hold.
    let range = json!({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "small", "namespace": "default"},
        "spec": {"limits": [{"type": "Container", "max": {"memory": "256Mi"}}]}});
    apply(&client, "e2e", &range).await?;
    next_pod(&client, "a pod within the limit range", |pod| {
        is_sized(pod) && requests(pod, "containers", "app")["memory"] != "512Mi"
    })
    .await?;
    let limit_ranges = Api::<k8s_openapi::api::core::v1::LimitRange>::namespaced(client.clone(), "default");
    limit_ranges.delete("small", &DeleteParams::default()).await?;

    // Those of whole pods, too: the API server refuses a pod that asks for less, and ours comes to 552Mi by itself.
    let range = json!({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "large", "namespace": "default"},
        "spec": {"limits": [{"type": "Pod", "min": {"memory": "1Gi"}}]}});
    apply(&client, "e2e", &range).await?;
    let memory = |pod: &Value, list: &str, name: &str| amount(Resource::Memory, &requests(pod, list, name)["memory"]);
    let is_more = |pod: &Value| memory(pod, "containers", "app").is_ok_and(|memory| memory > 512 << 20);
    let large = next_pod(&client, "a pod of the least size", is_more).await?;
    let (app, native) = (memory(&large, "containers", "app")?, memory(&large, "initContainers", "native")?);
    // Those of the pod itself, which are sized first, in proportion and with no more than rounding asks for.
    assert!(((1 << 30)..(1 << 30) + 16).contains(&(app + native)), "{app} {native}");
    assert_eq!((app * 40) >> 20, (native * 512) >> 20, "{app} {native}");
    assert_eq!(memory(&large, "containers", "proxy")?, 80 << 20);
    limit_ranges.delete("large", &DeleteParams::default()).await?;

    // Switched off is switched off for sizes, too.
    let switch = |word: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "pillion-switch", "namespace": NAMESPACE}, "data": {"injection": word}})
    };
    apply(&client, "e2e", &switch("off")).await?;
    next_pod(&client, "a pod that nothing was done to", |pod| {
        requests(pod, "containers", "app") == json!({"cpu": "100m", "memory": "64Mi"})
    })
    .await?;
    apply(&client, "e2e", &switch("on")).await?;
    next_pod(&client, "a sized pod again", is_sized).await?;

    // Beside upstream, only what upstream takes for Off is ours.
    let upstream = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "vpa-webhook-config"}});
    apply(&client, "e2e", &upstream).await?;
    next_pod(&client, "a pod that is left to upstream", |pod| {
        !is_sized(pod) && requests(pod, "containers", "follower")["cpu"] == "50m"
    })
    .await?;
    let mut own = autoscaler();
    own["spec"]["updatePolicy"]["updateMode"] = json!("Off");
    own["metadata"]["annotations"] = json!({"pillion.dev/update-mode": "Initial"});
    apply(&client, "e2e", &own).await?;
    next_pod(&client, "a sized pod beside upstream", is_sized).await?;
    manager.stop().await?;
    bed.stop().await?;
    Ok(())
}

/// In ci: `ci_pods_get_their_sizes_when_they_are_created_and_a_second_review_changes_nothing`;
/// `size_gate_on_off_on_gives_the_same_numbers` in `crates/rightsize`.
#[tokio::test]
async fn nightly_without_the_gate_native_sidecars_are_as_they_were() -> Result<()> {
    let bed = Bed::start(Config::control_plane("gateless").with_controllers()).await?;
    let client = prepared(&bed).await?;
    let manager = Manager::ready(bed.cluster(), &["webhook"], &["--rightsizing"]).await?;
    apply(&client, "e2e", &deployment()).await?;
    let pod = next_pod(&client, "a sized pod", is_sized).await?;
    assert_eq!(requests(&pod, "initContainers", "native"), json!({"cpu": "10m", "memory": "20Mi"}));
    assert_eq!(requests(&pod, "initContainers", "setup"), json!({"cpu": "900m", "memory": "64Mi"}));
    let observed = pod["metadata"]["annotations"]["vpaObservedContainers"].as_str().context("observed")?;
    assert!(!observed.contains("native"), "{observed}");
    manager.stop().await?;
    bed.stop().await?;
    Ok(())
}
