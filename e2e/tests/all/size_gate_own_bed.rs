//! The gate `NativeSidecar` on, off and on again, with samples from the kubelet itself.

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use pillion_e2e::agents::{kubeconfig_of, seen};
use pillion_e2e::pods;
use pillion_e2e::sizing::{
    amount, asks, autoscaler, deployment, install_with, names, pods_of, pods_until, recommended, rightsizer,
    status_until,
};
use pillion_quantity::Resource;
use pillion_testbed::{Bed, Config, apply};
use serde_json::{Value, json};

const WEB: (&str, &str) = ("default", "web");
const CHECKPOINT: &str = "/apis/autoscaling.k8s.io/v1/namespaces/default/verticalpodautoscalercheckpoints/web-side";

fn samples(stored: Option<&Value>) -> Option<u64> {
    stored?["status"]["totalSamplesCount"].as_u64()
}

/// The token the rightsizer shows to kubelets, in a file as a pod has it.
async fn token(bed: &Bed) -> Result<String> {
    let kubeconfig = kubeconfig_of(bed.cluster(), "pillion-rightsizer").await?;
    let kubeconfig: Value = serde_json::from_slice(&std::fs::read(&kubeconfig)?)?;
    let token = kubeconfig["users"][0]["user"]["token"].as_str().context("no token")?.to_owned();
    let path = bed.cluster().logs().join("rightsizer.token");
    std::fs::write(&path, token)?;
    Ok(format!("--kubelet-token-file={}", path.display()))
}

/// In ci: `size_gate_on_off_on_gives_the_same_numbers` in `crates/rightsize`.
#[tokio::test]
async fn nightly_ours_04_the_gate_off_leaves_what_was_applied_and_on_again_goes_on() -> Result<()> {
    let bed = Bed::start(Config::control_plane("size-gate").with_node()).await?;
    // There is no metrics-server.
    let client = install_with(&bed, &["rightsizing.metricsSource=kubelet"]).await?;
    let token = token(&bed).await?;
    let flags = ["--metrics-source=kubelet", "--kubelet-insecure-skip-tls-verify", token.as_str()];
    for object in [deployment("default", "web", 1), autoscaler("default", "web", "InPlace")] {
        apply(&client, "e2e", &object).await?;
    }

    let on = rightsizer(bed.cluster(), true, &flags).await?;
    let grown = |pods: &[Pod]| {
        let [pod] = pods else { return None };
        let memory = &json!(pods::status(pod, "side"))["resources"]["requests"]["memory"];
        amount(Resource::Memory, memory).is_ok_and(|memory| memory >= 48 << 20).then(|| pod.clone())
    };
    let sized = pods_until(&client, WEB, "the sidecar to have grown", grown).await?;
    let kept = seen(&client, CHECKPOINT, "a checkpoint", samples).await?;
    on.stop().await?;

    let off = rightsizer(bed.cluster(), false, &flags).await?;
    let is_alone = |status: &_| (names(status) == ["app"]).then_some(());
    status_until(&client, WEB, "the sidecar to leave the recommendation", is_alone).await?;
    off.stop().await?;
    let [left] = &*pods_of(&client, "default", "web").await? else { anyhow::bail!("one pod") };
    assert_eq!((left.uid(), asks(left, "side")), (sized.uid(), asks(&sized, "side")), "what was applied stays");
    let untouched = seen(&client, CHECKPOINT, "the checkpoint", samples).await?;
    assert!(untouched >= kept, "{untouched} samples are kept, {kept} were");

    let _on = rightsizer(bed.cluster(), true, &flags).await?;
    status_until(&client, WEB, "the sidecar to be back", |status| recommended(status, "side").map(|_| ())).await?;
    let on_again = seen(&client, CHECKPOINT, "history to go on", |stored| samples(stored).filter(|it| *it > untouched));
    on_again.await?;
    Ok(())
}
