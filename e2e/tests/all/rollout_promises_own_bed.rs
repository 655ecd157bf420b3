//! What is promised of every rollout, held against the API server's own log: budgets, one write per pod, no write for
//! nothing, and an end whatever happens in between.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use pillion_e2e::rollouts::{Rollout, image, images, proxy};
use pillion_e2e::{Manager, pods};
use pillion_testbed::{Bed, Config, Fleet, Look, Signal};
use serde_json::json;

use crate::rollout_replay::{Counted, Promise, reads_of_pods, replay};

/// An image that no pod of the fleet has at first.
const V3: &str = "registry.local/pillion/testapp:v3";

/// `PILLION_ROLLOUT_PODS` makes more of them.
fn pods_of_the_large_rollout() -> usize {
    std::env::var("PILLION_ROLLOUT_PODS").ok().and_then(|text| text.parse().ok()).unwrap_or(500)
}

fn tenth(pods: usize) -> usize {
    pods.div_ceil(10)
}

fn none(_: usize) -> usize {
    0
}

fn one(_: usize) -> usize {
    1
}

fn two(_: usize) -> usize {
    2
}

async fn version(rollout: &Rollout) -> Result<u64> {
    let listed = rollout.pods().list(&ListParams::default().limit(1)).await?;
    listed.metadata.resource_version.context("a list has a version")?.parse().context("a number")
}

/// User and system time of a process, in milliseconds.
fn cpu_ms(manager: &Manager) -> Result<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", manager.pid()?.as_raw_nonzero()))?;
    let fields: Vec<&str> = stat.rsplit(')').next().context("a stat has a name")?.split_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>()? + fields[12].parse::<u64>()?;
    Ok(ticks * 10)
}

/// In ci: `rollout_scenarios_own_bed::ci_an_image_change_reaches_running_pods_as_the_strategy_says`, with few pods.
#[tokio::test]
async fn nightly_a_large_rollout_keeps_its_budget_and_writes_once_to_every_pod() -> Result<()> {
    let count = pods_of_the_large_rollout();
    let bed = Bed::start(Config::control_plane("promises").with_fleet(Fleet::of(10.max(count / 200)))).await?;
    let rollout = Rollout::prepare(bed.cluster()).await?;
    let manager = rollout.steady_manager().await?;
    rollout.set("large", json!({"updateStrategy": {"maxUnavailable": "10%"}})).await?;
    rollout.fleet("large", count).await?;
    let pods = i32::try_from(count)?;
    rollout.until_done("large", pods).await?;
    let (since, cpu, began) = (version(&rollout).await?, cpu_ms(&manager)?, Instant::now());
    let edited_at = Timestamp::now();
    let written = manager.metric("pillion_status_writes").await?;
    rollout.edit("large", json!({"initContainers": [proxy(pods::V2)]})).await?;
    let status = rollout.until_done("large", pods).await?;
    let (took, used) = (began.elapsed(), cpu_ms(&manager)? - cpu);
    let newest = status.latest_revision.context("it has one")?;
    let promise = Promise { set: "large", newest: &newest, max_unavailable: tenth, pinned: none };
    let counted = replay(bed.cluster().audit_log(), since, &promise)?;
    let Counted { taken, refused, most_unavailable, .. } = &counted;
    eprintln!(
        "{count} pods in {took:?}: {used} ms of CPU, at most {most_unavailable} unavailable, {refused} writes not taken, {} statuses",
        manager.metric("pillion_status_writes").await? - written
    );
    let reads = reads_of_pods(bed.cluster().audit_log(), edited_at)?;
    assert_eq!(reads, Vec::<String>::new(), "no pod is read for its update");
    assert_eq!(taken.len(), count, "every pod was updated");
    assert!(taken.values().all(|writes| *writes == 1), "none twice");
    assert!(*refused * 100 <= count, "{refused} of {count} writes were not taken");
    assert!(*most_unavailable <= tenth(count) && *most_unavailable * 2 > tenth(count), "{most_unavailable}");
    let statuses = manager.metric("pillion_status_writes").await? - written;
    assert!(statuses <= took.as_secs_f64() + 10.0, "{statuses} statuses in {took:?}");
    assert_eq!(manager.metric("pillion_plan_violations").await?.to_string(), "0");

    // I7: then nothing is written any more; I14: also not by another build of the manager, or when the set is edited where
    // no revision looks.
    let before = version(&rollout).await?;
    let manager = rollout.upgrade(manager).await?;
    let (_, metrics) = manager.get("/metrics").await?;
    assert!(metrics.contains("99.0.0-next"), "it is of another version");
    rollout.edit("large", json!({"updateStrategy": {"maxUnavailable": "20%"}})).await?;
    rollout.until_done("large", pods).await?;
    let counted = replay(bed.cluster().audit_log(), before, &promise)?;
    assert_eq!(counted.taken.len(), 0, "{:?}", counted.taken);
    Ok(())
}

/// `OpenKruise`'s issue 2253: a pod that goes while it is updated must not hold the others for ever.
/// In ci: `rollout_scenarios_own_bed` for the writes; the law `with_pods_that_come_and_go_too` of `crates/sim`.
#[tokio::test]
async fn nightly_openkruise_2253_a_pod_that_goes_in_the_middle_of_its_update_holds_nobody() -> Result<()> {
    let bed = Bed::start(Config::control_plane("2253").with_fleet(Fleet::of(3))).await?;
    let rollout = Rollout::prepare(bed.cluster()).await?;
    let _manager = rollout.manager(&[]).await?;
    rollout.set("going", json!({"updateStrategy": {"maxUnavailable": 1, "probe": false}})).await?;
    let names = rollout.fleet("going", 5).await?;
    rollout.until_done("going", 5).await?;
    // None of them comes back by itself, so the rollout stands at whichever is first.
    let stuck = json!({"metadata": {"annotations": {"bed.pillion.dev/image-stuck": "yes"}}});
    for name in &names {
        rollout.pods().patch(name, &PatchParams::default(), &Patch::Merge(&stuck)).await?;
    }
    rollout.edit("going", json!({"initContainers": [proxy(pods::V2)]})).await?;
    for left in (0..5).rev() {
        let first = rollout
            .pods_until("going", "one pod to be under way", |pods| {
                let under_way: Vec<&Pod> =
                    pods.iter().filter(|pod| image(pod, "proxy").as_deref() == Some(pods::V2)).collect();
                match under_way[..] {
                    [pod] if pod.metadata.deletion_timestamp.is_none() => Look::Done(pod.name_any()),
                    _ => Look::NotYet(format!("{:?}", images(pods, "proxy"))),
                }
            })
            .await?;
        rollout.pods().delete(&first, &DeleteParams::default().grace_period(0)).await?;
        let gone = format!("{left} pods to be left");
        rollout
            .pods_until("going", &gone, |pods| {
                if pods.len() == left { Look::Done(()) } else { Look::NotYet(pods.len().to_string()) }
            })
            .await?;
    }
    rollout.until_done("going", 0).await?;
    Ok(())
}

/// In ci: `runtime_watch_own_bed` restarts the API server under a watch; the laws of `crates/sim` for the plan.
#[tokio::test]
async fn nightly_a_rollout_ends_though_the_api_server_and_etcd_go_down_meanwhile() -> Result<()> {
    let mut bed = Bed::start(Config::control_plane("outage").with_fleet(Fleet::of(3))).await?;
    let rollout = Rollout::prepare(bed.cluster()).await?;
    let _manager = rollout.manager(&[]).await?;
    rollout.set("outage", json!({"updateStrategy": {"maxUnavailable": 2}})).await?;
    rollout.fleet("outage", 20).await?;
    rollout.until_done("outage", 20).await?;
    let since = version(&rollout).await?;
    rollout.edit("outage", json!({"initContainers": [proxy(pods::V2)]})).await?;
    for part in ["kube-apiserver", "etcd"] {
        let before = rollout.listed("outage").await?;
        let updated = images(&before, "proxy").get(pods::V2).copied().unwrap_or_default();
        rollout
            .pods_until("outage", "some more pods to be updated", |pods| {
                let now = images(pods, "proxy").get(pods::V2).copied().unwrap_or_default();
                if now > updated + 1 { Look::Done(()) } else { Look::NotYet(now.to_string()) }
            })
            .await?;
        bed.signal(part, Signal::Kill).await?;
        bed.start_again(part).await?;
    }
    let status = rollout.until_done("outage", 20).await?;
    let newest = status.latest_revision.context("it has one")?;
    let promise = Promise { set: "outage", newest: &newest, max_unavailable: two, pinned: none };
    let counted = replay(bed.cluster().audit_log(), since, &promise)?;
    assert!(counted.taken.values().all(|writes| *writes == 1), "{:?}", counted.taken);
    assert_eq!(images(&rollout.listed("outage").await?, "proxy"), [(pods::V2.to_owned(), 20)].into());
    Ok(())
}

/// In ci: `runtime_lease` kills leaders; the law `a_manager_that_forgets_what_it_wrote_breaks_a_rule` of
/// `crates/sim`.
#[tokio::test]
async fn nightly_a_leader_killed_after_every_write_leaves_nothing_undone_and_does_nothing_twice() -> Result<()> {
    const PODS: usize = 20;
    let bed = Bed::start(Config::control_plane("killed").with_fleet(Fleet::of(3))).await?;
    let rollout = Rollout::prepare(bed.cluster()).await?;
    let mut manager = rollout.manager(&[]).await?;
    rollout.set("killed", json!({"updateStrategy": {"maxUnavailable": 1}})).await?;
    rollout.fleet("killed", PODS).await?;
    rollout.until_done("killed", 20).await?;
    let since = version(&rollout).await?;
    rollout.edit("killed", json!({"initContainers": [proxy(V3)]})).await?;
    let api: Api<Pod> = rollout.pods();
    let ours = ListParams::default().labels("app=killed");
    for written in 1..=PODS {
        // As soon as a write is seen, whoever made it is gone; a status, a revision or another pod may be half done.
        let limit = Instant::now() + Duration::from_mins(1);
        loop {
            let listed = api.list(&ours).await?.items;
            if images(&listed, "proxy").get(V3).copied().unwrap_or_default() >= written {
                break;
            }
            ensure!(Instant::now() < limit, "write {written} does not come: {:?}", images(&listed, "proxy"));
        }
        manager.kill()?;
        manager = rollout.manager(&[]).await?;
    }
    let status = rollout.until_done("killed", 20).await?;
    let newest = status.latest_revision.context("it has one")?;
    let promise = Promise { set: "killed", newest: &newest, max_unavailable: one, pinned: none };
    let counted = replay(bed.cluster().audit_log(), since, &promise)?;
    assert_eq!(counted.taken.len(), PODS);
    assert!(counted.taken.values().all(|writes| *writes == 1), "{:?}", counted.taken);
    drop(manager);
    Ok(())
}
