//! Rolling updates on a real node: what its kubelet really does to sidecars, and what the rollout makes of it.

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use pillion_api::SidecarSetStatus;
use pillion_e2e::pods;
use pillion_e2e::rollouts::{Rollout, condition, image, images, message, proxy};
use pillion_testbed::{Bed, Config, Look};
use serde_json::{Value, json};

/// An image that is nowhere.
const MISSING: &str = "registry.local/pillion/testapp:missing";

fn restarts(pod: &Pod, container: &str) -> i32 {
    pods::status(pod, container).map_or(-1, |status| status.restart_count)
}

fn with_image(pods: &[Pod], wanted: &str) -> Vec<String> {
    pods.iter().filter(|pod| image(pod, "proxy").as_deref() == Some(wanted)).map(ResourceExt::name_any).collect()
}

#[tokio::test]
async fn ci_only_the_sidecar_restarts_and_counts_as_unavailable_until_the_new_one_is_ready() -> Result<()> {
    let bed = Bed::start(Config::control_plane("rollout-node").with_node()).await?;
    let rollout = Rollout::prepare(bed.cluster()).await?;
    let _manager = rollout.manager(&[]).await?;

    // It ignores TERM, so that the old one runs, Ready, for the whole grace period after the write.
    let stubborn = |image: &str| {
        let mut proxy = proxy(image);
        proxy["args"] = json!(["run", "--name", "proxy", "--ignore-term"]);
        proxy
    };
    rollout.set("slow", json!({"initContainers": [stubborn(pods::V1)]})).await?;
    rollout.on_node("slow", 2, 4).await?;
    rollout.until_done("slow", 2).await?;
    rollout.edit("slow", json!({"initContainers": [stubborn(pods::V2)]})).await?;
    let (first, while_ready) = rollout
        .pods_until("slow", "the first pod to be written", |pods| match &with_image(pods, pods::V2)[..] {
            [name] => {
                let pod = pods.iter().find(|pod| pod.name_any() == *name);
                Look::Done((name.clone(), pod.is_some_and(pods::is_ready)))
            }
            names => Look::NotYet(format!("{names:?}")),
        })
        .await?;
    assert!(while_ready, "the pod stays Ready while its old container does not end");
    // The second is written only when the first one's new container is there.
    let at_second = rollout
        .pods_until("slow", "the second pod to be written", |pods| {
            if with_image(pods, pods::V2).len() == 2 {
                Look::Done(pods.to_vec())
            } else {
                Look::NotYet("not yet".to_owned())
            }
        })
        .await?;
    let pod = at_second.iter().find(|pod| pod.name_any() == first).context("it is there")?;
    assert_eq!((restarts(pod, "proxy"), pods::is_ready(pod)), (1, true), "the first was done before the second began");
    rollout.until_done("slow", 2).await?;
    for pod in rollout.listed("slow").await? {
        assert_eq!((restarts(&pod, "proxy"), restarts(&pod, "main")), (1, 0), "{}", pod.name_any());
    }
    Ok(())
}

// Scenarios 12 and 18.
/// In ci: `ci_only_the_sidecar_restarts_and_counts_as_unavailable_until_the_new_one_is_ready`;
/// `with_the_first_pod_tried_alone_it_stops_at_one` in `crates/sim`.
#[tokio::test]
async fn nightly_an_image_that_cannot_be_had_stops_at_the_first_pod_and_a_good_one_mends_it() -> Result<()> {
    let bed = Bed::start(Config::control_plane("rollout-image").with_node()).await?;
    let rollout = Rollout::prepare(bed.cluster()).await?;
    let _manager = rollout.manager(&[]).await?;
    rollout.set("native", json!({"updateStrategy": {"maxUnavailable": "50%"}})).await?;
    // The same beside the app, and without a first pod.
    let plain = |image: &str| json!([{"name": "proxy", "image": image, "imagePullPolicy": "Never", "args": ["run"]}]);
    rollout
        .set("plain", json!({"initContainers": [], "containers": plain(pods::V1), "updateStrategy": {"maxUnavailable": "50%", "probe": false}}))
        .await?;
    rollout.on_node("native", 4, 1).await?;
    rollout.on_node("plain", 4, 1).await?;
    rollout.until_done("native", 4).await?;
    rollout.until_done("plain", 4).await?;

    rollout.edit("native", json!({"initContainers": [proxy(MISSING)]})).await?;
    rollout.edit("plain", json!({"containers": plain(MISSING)})).await?;
    for (set, updated) in [("plain", 2), ("native", 1)] {
        // One pod of the budget is enough to say so; the others follow.
        let stalled = |it: &SidecarSetStatus| {
            condition(it, "Stalled") == Some(("True", "ImageUnavailable")) && it.ready_pods == Some(4 - updated)
        };
        let status = rollout.status_until(set, "to say that it is stalled", stalled).await?;
        assert_eq!((status.updated_pods, status.updated_ready_pods), (Some(updated), Some(0)), "{set}");
        let said = message(&status, "Stalled");
        assert!(
            said.contains(MISSING) && said.contains("ErrImageNeverPull") || said.contains("not present"),
            "{set}: {said}"
        );
        assert_eq!(condition(&status, "Ready"), Some(("False", "ImageUnavailable")), "{set}");
        assert_eq!(with_image(&rollout.listed(set).await?, MISSING).len(), usize::try_from(updated)?, "{set}");
    }
    let shown = rollout.kubectl(&["get", "sidecarsets"])?;
    assert_eq!(shown.matches("ImageUnavailable").count(), 2, "{shown}");

    rollout.edit("native", json!({"initContainers": [proxy(pods::V2)]})).await?;
    rollout.edit("plain", json!({"containers": plain(pods::V2)})).await?;
    for set in ["native", "plain"] {
        rollout.until_done(set, 4).await?;
        let pods = rollout.listed(set).await?;
        assert_eq!(images(&pods, "proxy"), [(pods::V2.to_owned(), 4)].into());
        assert!(pods.iter().all(pods::is_ready), "{set}");
    }
    Ok(())
}

/// In ci: `size_node_own_bed::ci_a_native_sidecar_is_recommended_for_and_resized_in_place` resizes on the same node.
#[tokio::test]
async fn nightly_resources_are_changed_without_a_restart_where_the_set_allows_it() -> Result<()> {
    let bed = Bed::start(Config::control_plane("rollout-resize").with_node()).await?;
    let rollout = Rollout::prepare(bed.cluster()).await?;
    let _manager = rollout.manager(&[]).await?;
    let sized = |memory: &str| {
        let mut proxy = proxy(pods::V1);
        proxy["resources"] = json!({"limits": {"memory": memory}, "requests": {"memory": "16Mi"}});
        proxy
    };
    for (set, resize) in [("grows", true), ("waits", false)] {
        rollout.set(set, json!({"initContainers": [sized("64Mi")], "updateStrategy": {"resize": resize}})).await?;
        rollout.on_node(set, 2, 1).await?;
        rollout.until_done(set, 2).await?;
        rollout.edit(set, json!({"initContainers": [sized("96Mi")]})).await?;
    }
    rollout.until_done("grows", 2).await?;
    let limit = |pod: &Pod| -> Value { json!(pods::status(pod, "proxy"))["resources"]["limits"]["memory"].clone() };
    rollout
        .pods_until("grows", "the node to have followed", |pods| {
            let limits: Vec<Value> = pods.iter().map(limit).collect();
            if limits == ["96Mi", "96Mi"] { Look::Done(()) } else { Look::NotYet(format!("{limits:?}")) }
        })
        .await?;
    for pod in rollout.listed("grows").await? {
        assert_eq!((restarts(&pod, "proxy"), restarts(&pod, "main")), (0, 0), "{}", pod.name_any());
    }
    let status = rollout.status_until("waits", "to need new pods", |it| it.needs_recreate_pods == Some(2)).await?;
    assert!(
        message(&status, "Progressing").contains("resources of container proxy"),
        "{}",
        message(&status, "Progressing")
    );
    Ok(())
}
