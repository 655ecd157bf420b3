//! A pod is not believed when it is created, and the work of other admission plugins is not undone.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::{Api, PostParams};
use pillion_api::{PodRevision, PodRevisions, REVISIONS};
use pillion_e2e::rollouts::{Rollout, condition, image, pod, proxy, revision};
use pillion_e2e::{Webhook, pods};
use pillion_testbed::{Bed, Config, Fleet, Look, apply, until};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_mins(1);

fn revisions(pod: &Pod) -> Result<PodRevision> {
    let text = pod.annotations().get(REVISIONS).context("no revisions")?;
    PodRevisions::parse(text).and_then(|all| all.of("mesh").cloned()).with_context(|| text.clone())
}

/// A pod with the sidecar and the annotations of an injected one, as its author would write it.
fn forged(name: &str, image: &str, entry: &Value) -> Result<Pod> {
    let mut sidecar = proxy(image);
    sidecar["env"] = json!([{"name": "IS_INJECTED", "value": "true"}]);
    let mut pod = pods::on_fleet(pod(name, "mesh"));
    pod["spec"]["initContainers"] = json!([sidecar]);
    pod["metadata"]["labels"]["pillion.dev/injected"] = json!("true");
    pod["metadata"]["annotations"] = json!({"kruise.io/sidecarset-injected-list": "mesh",
        "pillion.dev/containers": "proxy", REVISIONS: json!({"mesh": entry}).to_string()});
    Ok(serde_json::from_value(pod)?)
}

/// The result of a dry run that creates a pod, as soon as it is as it should be.
async fn until_tried<T>(what: &str, api: &Api<Pod>, wanted: impl Fn(&Pod) -> Option<T>) -> Result<T> {
    let pod: Pod = serde_json::from_value(pod("tried", "mesh"))?;
    let parameters = PostParams { dry_run: true, ..PostParams::default() };
    let waited = until(what, PATIENCE, || async {
        Ok(match api.create(&parameters, &pod).await {
            Ok(tried) => wanted(&tried).map_or_else(|| Look::NotYet(format!("{:?}", tried.spec)), Look::Done),
            Err(error) => Look::NotYet(error.to_string()),
        })
    });
    Ok(waited.await?)
}

/// Pods of a tenant that say that the newest revision failed, or that they have it, close no gate and count for nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ci_a_forged_pod_does_not_stop_a_rollout() -> Result<()> {
    let bed = Bed::start(Config::control_plane("forged").with_fleet(Fleet::of(2))).await?;
    let rollout = Rollout::prepare(bed.cluster()).await?;
    let manager = rollout.manager(&[]).await?;
    rollout.set("mesh", json!({})).await?;
    rollout.fleet("mesh", 3).await?;
    rollout.edit("mesh", json!({"initContainers": [proxy(pods::V2)], "updateStrategy": {"paused": true}})).await?;
    let api = rollout.pods();
    let newest = until_tried("the newest revision", &api, |tried| {
        revision(tried, "mesh").filter(|_| image(tried, "proxy").as_deref() == Some(pods::V2))
    })
    .await?;
    let old = revision(&rollout.listed("mesh").await?[0], "mesh").context("a revision")?;

    let claims = [
        ("failed", pods::V1, json!({"is": old, "failed": newest})),
        ("late", pods::V2, json!({"is": newest, "since": 1, "from": old, "was": {"proxy": "0 ab"}})),
        ("other", "registry.example/miner:1", json!({"is": newest, "since": 1})),
    ];
    for (name, image_of_claim, entry) in &claims {
        let created = api.create(&PostParams::default(), &forged(name, image_of_claim, entry)?).await?;
        let given = revisions(&created)?;
        let is = entry["is"].as_str().context("a name")?;
        ensure!(given == PodRevision::new(is), "{name}: {given:?}");
        let expected = if *name == "failed" { pods::V1 } else { pods::V2 };
        ensure!(image(&created, "proxy").as_deref() == Some(expected), "{name}: {:?}", image(&created, "proxy"));
    }
    rollout.edit("mesh", json!({"updateStrategy": {"paused": false}})).await?;
    let status = rollout.until_done("mesh", 6).await?;
    ensure!(condition(&status, "Degraded").is_none_or(|(status, _)| status == "False"), "{status:?}");
    manager.stop().await?;
    bed.stop().await?;
    Ok(())
}

/// Another admission plugin: pulls every image through a mirror.
fn mirror(review: &Value) -> Value {
    let spec = &review["request"]["object"]["spec"];
    let mut patch = Vec::new();
    for list in ["initContainers", "containers"] {
        for (at, container) in spec[list].as_array().into_iter().flatten().enumerate() {
            let image = container["image"].as_str().unwrap_or_default();
            if !image.starts_with("mirror.local/") {
                let value = format!("mirror.local/{image}");
                patch.push(json!({"op": "replace", "path": format!("/spec/{list}/{at}/image"), "value": value}));
            }
        }
    }
    let patch = ByteString(json!(patch).to_string().into_bytes());
    json!({"uid": review["request"]["uid"], "allowed": true, "patchType": "JSONPatch", "patch": patch})
}

/// A review after an image-rewriting webhook, a copy of a running pod, and pods from a backup and from another cluster.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ci_what_others_did_to_a_pod_is_kept() -> Result<()> {
    let bed = Bed::start(Config::control_plane("kept").with_controllers()).await?;
    let rollout = Rollout::prepare(bed.cluster()).await?;
    let manager = rollout.manager(&[]).await?;
    rollout.set("mesh", json!({})).await?;
    let api = rollout.pods();
    let original = api.create(&PostParams::default(), &serde_json::from_value(pod("original", "mesh"))?).await?;
    let given = revisions(&original)?;
    ensure!(given == PodRevision::new(&*given.is), "{given:?}");

    // As `kubectl get -o yaml | kubectl create -f -` and backups do it.
    let copy_of = |name: &str| -> Result<Value> {
        let mut copy = serde_json::to_value(&original)?;
        copy["metadata"] =
            json!({"name": name, "labels": copy["metadata"]["labels"], "annotations": copy["metadata"]["annotations"]});
        copy["status"] = Value::Null;
        Ok(copy)
    };
    let create = async |pod: Value| -> Result<Pod> {
        Ok(api.create(&PostParams::default(), &serde_json::from_value(pod)?).await?)
    };
    let copy = create(copy_of("copy")?).await?;
    ensure!(copy.annotations() == original.annotations(), "{:?}", copy.annotations());
    ensure!(json!(copy.spec)["initContainers"] == json!(original.spec)["initContainers"], "{:?}", copy.spec);

    // A revision that is stored is kept after the set has changed.
    rollout.edit("mesh", json!({"initContainers": [proxy(pods::V2)]})).await?;
    let is_new = |tried: &Pod| (image(tried, "proxy").as_deref() == Some(pods::V2)).then_some(());
    until_tried("a new pod to have the new image", &api, is_new).await?;
    let restored = create(copy_of("restored")?).await?;
    let found = (image(&restored, "proxy"), revisions(&restored)?);
    ensure!(found == (Some(pods::V1.to_owned()), given.clone()), "{found:?}");

    // Of another cluster, with a revision that nobody knows here.
    let mut foreign = copy_of("foreign")?;
    foreign["metadata"]["annotations"][REVISIONS] = json!(json!({"mesh": {"is": "mesh-foreign"}}).to_string());
    let foreign = create(foreign).await?;
    ensure!(image(&foreign, "proxy").as_deref() == Some(pods::V2), "{:?}", image(&foreign, "proxy"));
    ensure!(revisions(&foreign)?.is != "mesh-foreign" && !revisions(&foreign)?.altered, "{:?}", revisions(&foreign)?);

    let other = Webhook::serve(bed.cluster().host(), mirror).await?;
    let registration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration", "metadata": {"name": "zzz"},
        "webhooks": [{"name": "mirror.e2e.pillion.dev", "clientConfig": other.client_config(), "admissionReviewVersions": ["v1"],
            "sideEffects": "None", "failurePolicy": "Fail", "reinvocationPolicy": "Never",
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]}],
    });
    apply(&rollout.client, "e2e", &registration).await?;
    let is_mirrored = |tried: &Pod| image(tried, "main").is_some_and(|image| image.starts_with("mirror.local/"));
    let mirrored = until_tried("the mirror", &api, |tried| is_mirrored(tried).then(|| tried.clone())).await?;
    let proxy_image = format!("mirror.local/{}", pods::V2);
    ensure!(image(&mirrored, "proxy") == Some(proxy_image), "{:?}", image(&mirrored, "proxy"));
    ensure!(revisions(&mirrored)?.altered, "{:?}", revisions(&mirrored)?);
    manager.stop().await?;
    bed.stop().await?;
    Ok(())
}

/// The example that requires sidecars rejects a pod without, and nobody else's.
#[tokio::test]
async fn ci_the_example_policy_requires_named_containers() -> Result<()> {
    let bed = Bed::start(Config::control_plane("require")).await?;
    let client = bed.client().await?;
    for object in [
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "strict", "labels": {"pillion.dev/injection": "required"}}}),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": "strict"}}),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": "default"}}),
    ] {
        apply(&client, "e2e", &object).await?;
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/policies/require-sidecars.yaml");
    let output = bed.cluster().kubectl(["apply", "-f", path])?.output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let created = async |namespace: &str, sidecar: Option<&str>| -> Result<Option<String>> {
        let mut pod = pods::pod("tried", &[], &[pods::container("app", &[])]);
        if let Some(image) = sidecar {
            pod["spec"]["initContainers"] = json!([{"name": "proxy", "image": image, "restartPolicy": "Always"}]);
        }
        let parameters = PostParams { dry_run: true, ..PostParams::default() };
        let api = Api::<Pod>::namespaced(client.clone(), namespace);
        Ok(api.create(&parameters, &serde_json::from_value(pod)?).await.err().map(|error| error.to_string()))
    };
    until("the policy to be active", PATIENCE, || async {
        Ok(match created("strict", None).await {
            Ok(Some(message)) if message.contains("container proxy is missing or has another image") => Look::Done(()),
            other => Look::NotYet(format!("{other:?}")),
        })
    })
    .await?;
    let another = created("strict", Some("registry.example/miner:1")).await?;
    ensure!(another.as_ref().is_some_and(|message| message.contains("has another image")), "{another:?}");
    for (namespace, sidecar) in [("strict", Some("registry.example/proxy:1")), ("default", None)] {
        let rejection = created(namespace, sidecar).await?;
        ensure!(rejection.is_none(), "{namespace}: {rejection:?}");
    }
    bed.stop().await?;
    Ok(())
}
