//! A native sidecar that has too little memory to live is given more, in place, though nobody could ever measure it.

use anyhow::Result;
use kube::ResourceExt;
use pillion_e2e::pods;
use pillion_e2e::sizing::{amount, asks, autoscaler, deployment, install, pods_until, rightsizer};
use pillion_quantity::Resource;
use pillion_testbed::{Bed, Config, apply};
use serde_json::json;

/// In ci: `ours_02_gap_02_…` in `crates/rightsize`.
#[tokio::test]
async fn nightly_ours_02_a_sidecar_that_runs_out_of_memory_is_given_more_in_place() -> Result<()> {
    let bed = Bed::start(Config::control_plane("size-oom").with_node().with_metrics()).await?;
    let client = install(&bed).await?;
    let mut web = deployment("default", "web", 1);
    let side = &mut web["spec"]["template"]["spec"]["initContainers"][1];
    *side = pods::sidecar("side", &["--hold=96Mi"]);
    side["resources"] = json!({"requests": {"memory": "32Mi"}, "limits": {"memory": "64Mi"}});
    for object in [web, autoscaler("default", "web", "InPlace")] {
        apply(&client, "e2e", &object).await?;
    }
    let killed = |pods: &[_]| {
        let [pod] = pods else { return None };
        let status = json!(pods::status(pod, "side"));
        let states = [&status["state"], &status["lastState"]];
        states.iter().any(|state| state["terminated"]["reason"] == "OOMKilled").then(|| pod.clone())
    };
    let before = pods_until(&client, ("default", "web"), "the sidecar to run out of memory", killed).await?;

    // It happened before the rightsizer was there to see it.
    let _rightsizer = rightsizer(bed.cluster(), true, &[]).await?;
    let lives = |pods: &[_]| {
        let [pod] = pods else { return None };
        let limit = &json!(pods::status(pod, "side"))["resources"]["limits"]["memory"];
        let is_enough = amount(Resource::Memory, limit).is_ok_and(|limit| limit > 96 << 20);
        (is_enough && pods::runs(pod, "side") && pods::is_ready(pod)).then(|| pod.clone())
    };
    let after = pods_until(&client, ("default", "web"), "the sidecar to live", lives).await?;
    assert_eq!(after.uid(), before.uid(), "in place");
    // What it had and 100Mi more fall into a bucket, of which the end counts, and 15 % come on top. The limit stays twice that.
    let asked = amount(Resource::Memory, &asks(&after, "side")["requests"]["memory"])?;
    assert!(asked >= (132 << 20), "{asked}");
    assert_eq!(amount(Resource::Memory, &asks(&after, "side")["limits"]["memory"])?, 2 * asked);
    Ok(())
}
