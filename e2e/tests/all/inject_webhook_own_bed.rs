//! The webhook on a real API server: it registers itself, injects, refuses, and heals what others break.

use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use k8s_openapi::api::core::v1::{Namespace, Pod, Secret};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use pillion_e2e::manager::NAMESPACE;
use pillion_e2e::{Manager, pods};
use pillion_testbed::{Bed, Config, Error, Look, apply, until};
use serde_json::{Value, json};

/// What is broken by hand is whole again within this time.
const HEALED: Duration = Duration::from_secs(30);

fn set(name: &str, app: &str) -> Value {
    json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "SidecarSet", "metadata": {"name": name}, "spec": {
        "selector": {"matchLabels": {"app": app}},
        "containers": [{"name": "proxy", "image": pods::V1, "resourcesPolicy": {
            "targetContainersMode": "sum", "targetContainersNameRegex": "^main$",
            "resourceExpr": {"limits": {"cpu": "max(cpu*50%, 50m)"}, "requests": {"cpu": "cpu*50%"}}}}]}})
}

fn pod(name: &str, app: &str) -> Result<Pod> {
    let mut main = pods::container("main", &[]);
    main["resources"] = json!({"limits": {"cpu": "400m"}, "requests": {"cpu": "100m"}});
    let mut pod = pods::pod(name, &[], &[main]);
    pod["metadata"]["labels"] = json!({"app": app});
    Ok(serde_json::from_value(pod)?)
}

async fn create(client: &Client, pod: &Pod, dry_run: bool) -> kube::Result<Pod> {
    let parameters = PostParams { dry_run, ..PostParams::default() };
    Api::<Pod>::namespaced(client.clone(), "default").create(&parameters, pod).await
}

/// Waits until a pod that is only tried is injected: the set has then reached the webhook.
async fn until_injected(client: &Client, app: &str) -> Result<Pod> {
    let pod = pod("tried", app)?;
    let waited = until("the set to be applied", HEALED, || async {
        Ok(match create(client, &pod, true).await {
            Ok(created) if created.labels().contains_key("pillion.dev/injected") => Look::Done(created),
            Ok(_) => Look::NotYet("not injected".to_owned()),
            Err(error) => Look::NotYet(error.to_string()),
        })
    });
    Ok(waited.await?)
}

async fn until_there<K>(api: Api<K>, name: &str, holds: impl Fn(&K) -> bool) -> Result<K, Error>
where
    K: kube::Resource + Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    until(&format!("{name} to be as it was"), HEALED, || async {
        Ok(match api.get_opt(name).await {
            Ok(Some(object)) if holds(&object) => Look::Done(object),
            Ok(found) => Look::NotYet(format!("{found:?}")),
            Err(error) => Look::NotYet(error.to_string()),
        })
    })
    .await
}

#[tokio::test]
async fn ci_a_pod_is_injected_or_refused_and_a_set_is_judged() -> Result<()> {
    let bed = Bed::start(Config::control_plane("webhook").with_controllers()).await?;
    let client = bed.client().await?;
    Manager::prepare(&client).await?;
    let manager = Manager::ready(bed.cluster(), &["webhook"], &[]).await?;

    apply(&client, "e2e", &set("mesh", "web")).await?;
    let injected = until_injected(&client, "web").await?;
    let spec = injected.spec.clone().context("spec")?;
    let names: Vec<&str> = spec.containers.iter().map(|container| container.name.as_str()).collect();
    assert_eq!(names, ["proxy", "main"]);
    let proxy = json!(spec.containers[0].resources);
    assert_eq!(proxy, json!({"limits": {"cpu": "200m"}, "requests": {"cpu": "50m"}}));
    assert_eq!(injected.annotations()["pillion.dev/containers"], "proxy");

    // A pod that no set means passes untouched, and loses marks it may not have.
    let mut other = pod("other", "other")?;
    other.annotations_mut().insert("pillion.dev/decision".to_owned(), "forged".to_owned());
    let created = create(&client, &other, true).await?;
    assert_eq!(created.annotations().get("pillion.dev/decision"), None);

    // No container is a target: the pod is refused with the code and the way out.
    let mut without = pod("without", "web")?;
    without.spec.as_mut().context("spec")?.containers[0].name = "other".to_owned();
    let Err(kube::Error::Api(refusal)) = create(&client, &without, true).await else {
        anyhow::bail!("a pod without a target was not refused")
    };
    assert_eq!(refusal.code, 403);
    assert!(refusal.message.contains("SidecarSet mesh: PL302: "), "{}", refusal.message);

    // Of sets, what the schema cannot see is refused here, and what is only unwise is told.
    let mut wrong = set("wrong", "web");
    wrong["spec"]["containers"][0]["resourcesPolicy"]["resourceExpr"]["limits"]["cpu"] = "cpu*50%cpu".into();
    let refusal = apply(&client, "e2e", &wrong).await.map(|_| ()).unwrap_err();
    let refusal = format!("{:#}", anyhow::Error::from(refusal));
    assert!(refusal.contains("sidecarsets.pillion.dev") && refusal.contains("PL115"), "{refusal}");

    // In our own namespace and in kube-system nobody asks us.
    for namespace in [NAMESPACE, "kube-system"] {
        let api = Api::<Pod>::namespaced(client.clone(), namespace);
        until_there(Api::<Namespace>::all(client.clone()), namespace, |_| true).await?;
        let created = until("a service account", HEALED, || async {
            let parameters = PostParams { dry_run: true, ..PostParams::default() };
            Ok(
                match api
                    .create(
                        &parameters,
                        &pod("left-alone", "web")
                            .map_err(|_| Error::Lacking { what: "a pod".to_owned(), way_out: "mend the test" })?,
                    )
                    .await
                {
                    Ok(created) => Look::Done(created),
                    Err(error) => Look::NotYet(error.to_string()),
                },
            )
        })
        .await?;
        assert_eq!(created.labels().get("pillion.dev/injected"), None, "{namespace}");
    }

    let ended = manager.stop().await?;
    assert!(ended.success(), "{ended:?}");
    bed.stop().await?;
    Ok(())
}

#[tokio::test]
async fn ci_what_is_deleted_or_changed_by_hand_comes_back() -> Result<()> {
    let bed = Bed::start(Config::control_plane("heals")).await?;
    let client = bed.client().await?;
    Manager::prepare(&client).await?;
    let manager = Manager::ready(bed.cluster(), &["webhook"], &[]).await?;
    apply(&client, "e2e", &set("mesh", "web")).await?;
    apply(
        &client,
        "e2e",
        &json!({"apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": "default", "namespace": "default"}}),
    )
    .await?;
    until_injected(&client, "web").await?;

    // A quiet cluster is left alone: nothing is written again and again.
    let applied = manager.metric("pillion_registrations_applied_total").await?;
    assert!((applied - 2.0).abs() < f64::EPSILON, "{applied} writes of two registrations");

    let secrets = Api::<Secret>::namespaced(client.clone(), NAMESPACE);
    let mutating = Api::<MutatingWebhookConfiguration>::all(client.clone());
    let validating = Api::<ValidatingWebhookConfiguration>::all(client.clone());
    let before = secrets.get("pillion-webhook-ca").await?;
    secrets.delete("pillion-webhook-ca", &DeleteParams::default()).await?;
    mutating.delete("pillion", &DeleteParams::default()).await?;
    validating.delete("pillion", &DeleteParams::default()).await?;
    let after = until_there(secrets, "pillion-webhook-ca", |_| true).await?;
    // The same authority, so that no replica and no API server has to change anything.
    assert_eq!(after.data, before.data);
    until_there(mutating.clone(), "pillion", |found| found.webhooks.iter().flatten().count() == 2).await?;
    until_there(validating, "pillion", |found| found.webhooks.iter().flatten().count() == 1).await?;
    until_injected(&client, "web").await?;

    // A changed field is put right; what others added beside it stays.
    let patch = json!([{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Fail"},
        {"op": "replace", "path": "/webhooks/1/namespaceSelector", "value": {}},
        {"op": "add", "path": "/metadata/labels/added", "value": "by-another"}]);
    let patch: json_patch::Patch = serde_json::from_value(patch)?;
    mutating.patch("pillion", &PatchParams::default(), &Patch::<()>::Json(patch)).await?;
    let healed = until_there(mutating, "pillion", |found| {
        let webhooks: Vec<_> = found.webhooks.iter().flatten().collect();
        let policies: Vec<_> = webhooks.iter().map(|webhook| webhook.failure_policy.as_deref()).collect();
        let selector = webhooks.get(1).and_then(|webhook| webhook.namespace_selector.as_ref());
        policies == [Some("Ignore"), Some("Fail")] && selector.is_some_and(|it| it.match_expressions.is_some())
    })
    .await?;
    assert_eq!(healed.labels()["added"], "by-another");
    manager.stop().await?;
    bed.stop().await?;
    Ok(())
}

#[tokio::test]
async fn ci_switched_off_injects_nothing_also_when_nothing_runs() -> Result<()> {
    let bed = Bed::start(Config::control_plane("switch").with_controllers()).await?;
    let client = bed.client().await?;
    Manager::prepare(&client).await?;
    let manager = Manager::ready(bed.cluster(), &["webhook"], &[]).await?;
    apply(&client, "e2e", &set("mesh", "web")).await?;
    until_injected(&client, "web").await?;

    let switch = |value: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "pillion-switch", "namespace": NAMESPACE},
            "data": {"injection": value}})
    };
    let mutating = Api::<MutatingWebhookConfiguration>::all(client.clone());
    apply(&client, "e2e", &switch("off")).await?;
    until_there(mutating.clone(), "pillion", |found| found.webhooks.iter().flatten().count() == 0).await?;
    let pod = pod("tried", "web")?;
    until("pods to pass untouched", HEALED, || async {
        Ok(match create(&client, &pod, true).await {
            Ok(created) if !created.labels().contains_key("pillion.dev/injected") => Look::Done(()),
            other => Look::NotYet(format!("{:?}", other.map(|pod| pod.labels().clone()))),
        })
    })
    .await?;
    manager.until_ready().await?;
    apply(&client, "e2e", &switch("on")).await?;
    until_injected(&client, "web").await?;

    // A namespace that requires injection gets no pod while nothing answers, and any pod once the registration is empty.
    let label = json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "default", "labels": {"pillion.dev/injection": "required"}}});
    apply(&client, "e2e", &label).await?;
    until_injected(&client, "web").await?;
    manager.kill()?;
    let Err(kube::Error::Api(refusal)) = create(&client, &pod, true).await else {
        anyhow::bail!("a pod passed though injection is required and nobody answers")
    };
    assert!(refusal.message.contains("required-pods.pillion.dev"), "{}", refusal.message);
    let empty = Patch::Merge(json!({"webhooks": []}));
    mutating.patch("pillion", &PatchParams::default(), &empty).await?;
    until("the API server to hear of it", HEALED, || async {
        Ok(match create(&client, &pod, true).await {
            Ok(_) => Look::Done(()),
            Err(error) => Look::NotYet(error.to_string()),
        })
    })
    .await?;
    bed.stop().await?;
    Ok(())
}

/// In ci: `ci_what_is_deleted_or_changed_by_hand_comes_back`; the rotation is a simulation in `crates/manager`.
#[tokio::test]
async fn nightly_a_new_authority_is_trusted_before_it_is_used() -> Result<()> {
    let bed = Bed::start(Config::control_plane("rotation").with_controllers()).await?;
    let client = bed.client().await?;
    Manager::prepare(&client).await?;
    let manager = Manager::ready(bed.cluster(), &["webhook"], &[]).await?;
    apply(&client, "e2e", &set("mesh", "web")).await?;
    let label = json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "default", "labels": {"pillion.dev/injection": "required"}}});
    apply(&client, "e2e", &label).await?;
    until_injected(&client, "web").await?;

    let secrets = Api::<Secret>::namespaced(client.clone(), NAMESPACE);
    let certificate = |secret: &Secret| secret.data.as_ref().and_then(|data| data.get("tls.crt").cloned());
    let before = certificate(&secrets.get("pillion-webhook-ca").await?);
    let ask = Patch::Merge(json!({"metadata": {"annotations": {"pillion.dev/rotate": "now"}}}));
    secrets.patch("pillion-webhook-ca", &PatchParams::default(), &ask).await?;

    // Every pod on the way is injected: the namespace requires it, so a certificate nobody trusts would refuse it.
    let pod = pod("tried", "web")?;
    let mut reviews = 0;
    let began = std::time::Instant::now();
    loop {
        let created = create(&client, &pod, true).await.context("a review failed during the rotation")?;
        assert!(created.labels().contains_key("pillion.dev/injected"));
        reviews += 1;
        let secret = secrets.get("pillion-webhook-ca").await?;
        if certificate(&secret) != before {
            assert!(secret.annotations().get("pillion.dev/rotate").is_none());
            assert_eq!(secret.data.context("data")?.len(), 2, "the next one is the current one");
            break;
        }
        anyhow::ensure!(began.elapsed() < Duration::from_mins(1), "no new authority after {reviews} reviews");
    }
    for _ in 0..200 {
        let created = create(&client, &pod, true).await.context("a review failed after the rotation")?;
        assert!(created.labels().contains_key("pillion.dev/injected"));
    }
    assert!(manager.log().matches("serving with a new leaf").count() == 2, "{}", manager.log());
    manager.stop().await?;
    bed.stop().await?;
    Ok(())
}
