//! metrics-server tells what a native sidecar of the real node uses.

use std::time::Duration;

use anyhow::Result;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use pillion_e2e::{Scene, pods};
use pillion_testbed::{Look, until};
use serde_json::Value;

#[tokio::test]
async fn ci_usage_of_a_native_sidecar_is_served() -> Result<()> {
    let scene = Scene::open("metrics").await?;
    let side = pods::sidecar("side", &["--hold=48Mi", "--burn=100"]);
    scene.ready_pod(pods::pod("used", &[side], &[pods::container("app", &[])])).await?;

    let kind =
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("metrics.k8s.io", "v1beta1", "PodMetrics"), "pods");
    let metrics: Api<DynamicObject> = Api::namespaced_with(scene.client.clone(), &scene.namespace, &kind);
    let usage = until("metrics of the pod", Duration::from_secs(90), || async {
        Ok(match metrics.get_opt("used").await {
            Ok(Some(found)) => Look::Done(found.data["containers"].clone()),
            Ok(None) => Look::NotYet("none yet".to_owned()),
            Err(error) => Look::NotYet(error.to_string()),
        })
    })
    .await?;

    let names: Vec<&str> = usage.as_array().into_iter().flatten().filter_map(|entry| entry["name"].as_str()).collect();
    assert!(names.contains(&"side") && names.contains(&"app"), "{usage}");
    let side =
        usage.as_array().into_iter().flatten().find(|entry| entry["name"] == "side").cloned().unwrap_or_default();
    let kibibytes = number(&side["usage"]["memory"], "Ki");
    assert!((48 * 1024..64 * 1024).contains(&kibibytes), "48Mi are held, {side} is told");
    let nanocores = number(&side["usage"]["cpu"], "n");
    assert!((50_000_000..200_000_000).contains(&nanocores), "100m are burnt, {side} is told");
    scene.close().await?;
    Ok(())
}

fn number(quantity: &Value, suffix: &str) -> u64 {
    let text = quantity.as_str().unwrap_or_default();
    text.strip_suffix(suffix).and_then(|number| number.parse().ok()).unwrap_or_default()
}
