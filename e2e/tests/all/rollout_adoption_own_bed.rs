//! Pods that `OpenKruise` injected: they are recognised, counted, and become ours with their first update.

use anyhow::Result;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::PostParams;
use pillion_e2e::pods;
use pillion_e2e::rollouts::{Rollout, images, pod, proxy};
use pillion_testbed::{Bed, Config, Fleet, Look};
use serde_json::json;

/// In ci: `inject_fences_own_bed` for the write that takes a pod over; `planner/adoption.rs` in `crates/rollout`.
#[tokio::test]
async fn nightly_a_pod_of_openkruise_becomes_ours_with_its_first_update_and_by_one_write() -> Result<()> {
    let bed = Bed::start(Config::control_plane("adoption").with_fleet(Fleet::of(2))).await?;
    let rollout = Rollout::prepare(bed.cluster()).await?;
    // What it leaves behind: the sidecar with its variable, and the list of sets; no label of ours, no list of containers.
    for at in 0..3 {
        let mut side = proxy(pods::V1);
        side["env"] = json!([{"name": "IS_INJECTED", "value": "true"}]);
        let mut legacy = pods::on_fleet(pod(&format!("taken-{at}"), "taken"));
        legacy["spec"]["initContainers"] = json!([side]);
        legacy["metadata"]["annotations"] =
            json!({"kruise.io/sidecarset-injected-list": "taken", "kruise.io/sidecarset-hash": "{}"});
        let legacy: Pod = serde_json::from_value(legacy)?;
        rollout.pods().create(&PostParams::default(), &legacy).await?;
    }
    rollout
        .pods_until("taken", "all to be ready", |pods| {
            if pods.len() == 3 && pods.iter().all(pods::is_ready) {
                Look::Done(())
            } else {
                Look::NotYet(pods.len().to_string())
            }
        })
        .await?;
    let _manager = rollout.manager(&[]).await?;
    rollout.set("taken", json!({})).await?;
    // They have what the set asks for: they count, and nothing is written to them.
    let status = rollout.status_until("taken", "to count them", |it| it.updated_pods == Some(3)).await?;
    assert_eq!((status.matched_pods, status.injected_pods, status.missed_pods), (Some(3), Some(3), Some(0)));
    assert!(rollout.listed("taken").await?.iter().all(|pod| !pod.labels().contains_key("pillion.dev/injected")));

    rollout.edit("taken", json!({"initContainers": [proxy(pods::V2)]})).await?;
    rollout.until_done("taken", 3).await?;
    let pods = rollout.listed("taken").await?;
    assert_eq!(images(&pods, "proxy"), [(pods::V2.to_owned(), 3)].into());
    for pod in &pods {
        assert_eq!(pod.labels().get("pillion.dev/injected").map(String::as_str), Some("true"), "{}", pod.name_any());
        assert_eq!(
            pod.annotations().get("pillion.dev/containers").map(String::as_str),
            Some("proxy"),
            "{}",
            pod.name_any()
        );
        let kept = pod.annotations().get("kruise.io/sidecarset-injected-list").map(String::as_str);
        assert_eq!(kept, Some("taken"), "{}", pod.name_any());
    }
    Ok(())
}
