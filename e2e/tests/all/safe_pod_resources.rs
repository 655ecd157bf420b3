//! Sidecars in pods with `spec.resources`: a set is applied if and only if the API server accepts the pod with its sidecars.

use anyhow::{Context, Result, ensure};
use pillion_api::{Reason, validate_write};
use pillion_e2e::Scene;
use pillion_inject::{Candidate, Installation, Namespace, Outcome, inject};
use serde_json::{Value, json};

/// A pod and a sidecar.
struct Case {
    name: &'static str,
    /// `spec.resources` of the pod.
    pod: Value,
    /// Resources of the app.
    app: Value,
    /// Resources of the sidecar.
    sidecar: Value,
    is_native: bool,
    is_applied: bool,
}

fn case(name: &'static str, pod: Value, app: Value, sidecar: Value, is_applied: bool) -> Case {
    Case { name, pod, app, sidecar, is_native: false, is_applied }
}

fn cpu(side: &str, amount: &str) -> Value {
    json!({side: {"cpu": amount}})
}

fn cases() -> Vec<Case> {
    let (requests, limits) = (|amount| cpu("requests", amount), |amount| cpu("limits", amount));
    let mut cases = vec![
        case("no resources of the pod", json!({}), requests("1"), requests("1"), true),
        case("room for both", requests("2"), requests("1"), requests("1"), true),
        case("one millicore too much", requests("2"), requests("1"), requests("1001m"), false),
        case("a limit that becomes a request", requests("2"), requests("1"), limits("1001m"), false),
        case("requests that come from those of containers", limits("4"), requests("1"), requests("1"), false),
        case("a sidecar without requests", limits("4"), requests("1"), json!({}), true),
        case(
            "a limit as large as that of the pod",
            limits("2"),
            json!({}),
            json!({"limits": {"cpu": "2"}, "requests": {"cpu": "0"}}),
            true,
        ),
        case(
            "a limit above that of the pod",
            limits("2"),
            json!({}),
            json!({"limits": {"cpu": "2001m"}, "requests": {"cpu": "0"}}),
            false,
        ),
        case("another resource", json!({"requests": {"memory": "1Gi"}}), requests("1"), requests("1"), true),
    ];
    // The API server does not compare limits of init containers.
    let is_limit = |case: &Case| case.name == "a limit above that of the pod";
    let native: Vec<Case> = cases
        .iter()
        .map(|it| {
            let (pod, app, sidecar) = (it.pod.clone(), it.app.clone(), it.sidecar.clone());
            Case { name: it.name, pod, app, sidecar, is_native: true, is_applied: it.is_applied || is_limit(it) }
        })
        .collect();
    cases.extend(native);
    cases
}

impl Case {
    fn container(&self) -> Value {
        let mut container = json!({"name": "side", "image": "side:1", "resources": self.sidecar});
        if self.is_native {
            container["restartPolicy"] = json!("Always");
        }
        container
    }

    fn list(&self) -> &'static str {
        if self.is_native { "initContainers" } else { "containers" }
    }
}

/// The pod as the API server would store it, or its error.
async fn created(scene: &Scene, spec: &Value) -> Result<std::result::Result<Value, String>> {
    let pod =
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod", "labels": {"app": "web"}}, "spec": spec});
    let request = http::Request::post(format!("/api/v1/namespaces/{}/pods?dryRun=All", scene.namespace))
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(pod.to_string().into_bytes())?;
    match scene.client.request::<Value>(request).await {
        Ok(pod) => Ok(Ok(pod)),
        Err(kube::Error::Api(status)) if status.code == 422 => Ok(Err(status.message)),
        Err(error) => Err(error.into()),
    }
}

async fn compare(scene: &Scene, case: &Case) -> Result<()> {
    let app = json!({"name": "app", "image": "app:1", "resources": case.app});
    let spec = json!({"automountServiceAccountToken": false, "resources": case.pod, "containers": [app]});
    let pod = created(scene, &spec).await?.map_err(anyhow::Error::msg)?;
    let mut set = json!({"selector": {"matchLabels": {"app": "web"}}, "failurePolicy": "Ignore"});
    set[case.list()] = json!([case.container()]);
    let set = json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "SidecarSet", "metadata": {"name": "mesh"}, "spec": set});
    let set = validate_write(&set).meaning.context("the set has errors")?;
    let decision = inject(&pod, &Namespace::named("shop"), [Candidate::latest(&set)], Installation::default());
    let verdict = &decision.verdicts[0];
    let expected = if case.is_applied {
        (Outcome::Applied, Reason::Injected)
    } else {
        (Outcome::Ignored, Reason::PodResourcesExceeded)
    };
    ensure!((verdict.outcome, verdict.reason) == expected, "{:?}: {}", verdict.reason, verdict.message);
    let mut with_sidecar = pod["spec"].clone();
    let mut containers = with_sidecar[case.list()].as_array().cloned().unwrap_or_default();
    containers.push(case.container());
    with_sidecar[case.list()] = json!(containers);
    let answer = created(scene, &with_sidecar).await?;
    ensure!(answer.is_ok() == case.is_applied, "the API server says {answer:?}");
    if let Some(injected) = &decision.pod {
        created(scene, &injected["spec"]).await?.map_err(anyhow::Error::msg)?;
    }
    Ok(())
}

#[tokio::test]
async fn ci_a_set_is_applied_if_its_sidecars_fit_into_the_resources_of_the_pod() -> Result<()> {
    let scene = Scene::open("pod-resources").await?;
    for case in cases() {
        compare(&scene, &case).await.with_context(|| format!("{} (native: {})", case.name, case.is_native))?;
    }
    scene.close().await
}
