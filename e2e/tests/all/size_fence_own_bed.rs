//! What a stolen token of the rightsizer can do to pods: size them, mark them, and evict them where they are sized anew.

use anyhow::Result;
use http::Method;
use pillion_e2e::agents::{kubeconfig_of, send};
use pillion_e2e::pods::{V2, container, pod, sidecar};
use pillion_e2e::sizing::install;
use pillion_testbed::{Bed, Config, Look, apply, until};
use serde_json::{Value, json};

const POD: &str = "/api/v1/namespaces/default/pods/web";
const SYSTEM_POD: &str = "/api/v1/namespaces/kube-system/pods/web";

fn eviction(namespace: &str) -> Value {
    json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "web", "namespace": namespace}})
}

fn resized(list: &str, name: &str, resources: &Value) -> Value {
    json!({"spec": {list: [{"name": name, "resources": resources}]}})
}

#[tokio::test]
async fn ci_a_stolen_token_of_the_rightsizer_sizes_and_marks_pods_and_does_nothing_else() -> Result<()> {
    let bed = Bed::start(Config::control_plane("size-fence")).await?;
    let client = install(&bed).await?;
    let asks = json!({"requests": {"cpu": "10m", "memory": "16Mi"}});
    let mut pod = pod("web", &[container("setup", &[]), sidecar("side", &[])], &[container("app", &[])]);
    for at in ["/spec/initContainers/0", "/spec/initContainers/1", "/spec/containers/0"] {
        pod.pointer_mut(at).unwrap()["resources"] = asks.clone();
    }
    for namespace in ["default", "kube-system"] {
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": namespace}});
        apply(&client, "e2e", &account).await?;
        pod["metadata"]["namespace"] = namespace.into();
        apply(&client, "e2e", &pod).await?;
    }
    let kubeconfig = kubeconfig_of(bed.cluster(), "pillion-rightsizer").await?;
    let kubeconfig: Value = serde_json::from_slice(&std::fs::read(kubeconfig)?)?;
    let token = kubeconfig["users"][0]["user"]["token"].as_str().unwrap_or_default();
    let thief = bed.cluster().client_with_token(token).await?;
    let labels = json!({"metadata": {"labels": {"a": "b"}}});
    // The policies come by a watch.
    until("the fence to be in force", pillion_e2e::sizing::PATIENCE, || async {
        Ok(match send(&thief, Method::PATCH, &format!("{POD}?dryRun=All"), &labels).await {
            Ok(Err(words)) if words.contains("metadata.labels may not be changed") => Look::Done(()),
            other => Look::NotYet(format!("{other:?}")),
        })
    })
    .await?;

    let resize = format!("{POD}/resize");
    let more = json!({"requests": {"cpu": "20m", "memory": "32Mi"}});
    let marks = json!({"metadata": {"annotations": {"vpaInPlaceUpdated": "true", "vpaCpuStartupBoost/app": "{}"}}});
    for (what, path, body) in [
        ("sizes an app", resize.clone(), resized("containers", "app", &more)),
        ("sizes a native sidecar", resize.clone(), resized("initContainers", "side", &more)),
        ("marks it", POD.to_owned(), marks),
    ] {
        let answer = send(&thief, Method::PATCH, &path, &body).await?;
        assert!(answer.is_ok(), "{what}: {answer:?}");
    }
    let image = json!({"spec": {"containers": [{"name": "app", "image": V2}]}});
    let other = json!({"metadata": {"annotations": {"pillion.dev/containers": "app"}}});
    for (what, method, path, body, refusal) in [
        ("an image", Method::PATCH, POD.to_owned(), image, "container app may not be changed"),
        ("a mark that is not its own", Method::PATCH, POD.to_owned(), other, "pillion.dev/containers"),
        (
            "a plain init container",
            Method::PATCH,
            resize,
            resized("initContainers", "setup", &more),
            "resources of container setup may not be changed",
        ),
        ("a status", Method::PATCH, format!("{POD}/status"), json!({"status": {"phase": "Failed"}}), "forbidden"),
        ("a deletion", Method::DELETE, POD.to_owned(), json!({}), "forbidden"),
        (
            "an eviction of the system",
            Method::POST,
            format!("{SYSTEM_POD}/eviction"),
            eviction("kube-system"),
            "may not evict pods of namespace kube-system",
        ),
    ] {
        let words = send(&thief, method, &path, &body).await?.err();
        assert!(words.as_ref().is_some_and(|words| words.contains(refusal)), "{what}: {words:?}");
    }
    let evicted = send(&thief, Method::POST, &format!("{POD}/eviction"), &eviction("default")).await?;
    assert!(evicted.is_ok(), "{evicted:?}");
    Ok(())
}
