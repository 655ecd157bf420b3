//! What an update strategy says beyond numbers: budgets of others, the order of pods, and when an update stops by itself.

use anyhow::{Context, Result};
use kube::api::ListParams;
use pillion_e2e::pods;
use pillion_e2e::rollouts::{Rollout, condition, images, message, proxy};
use pillion_testbed::{Bed, Config, Fleet, Look, apply};
use serde_json::json;

use crate::rollout_replay::{Counted, Promise, replay};

/// Its program knows no word `run`, and ends at once with code 2.
const CRASHING: &str = "registry.local/pillion/pause:1";

/// Updates a set that stands, and gives what the API server's log tells of it.
async fn updated(rollout: &Rollout, set: &str, pods: i32, max_unavailable: fn(usize) -> usize) -> Result<Counted> {
    let listed = rollout.pods().list(&ListParams::default().limit(1)).await?;
    let since = listed.metadata.resource_version.context("a list has a version")?.parse()?;
    rollout.edit(set, json!({"initContainers": [proxy(pods::V2)]})).await?;
    let newest = rollout.until_done(set, pods).await?.latest_revision.context("it has one")?;
    replay(rollout.cluster.audit_log(), since, &Promise { set, newest: &newest, max_unavailable, pinned: |_| 0 })
}

#[tokio::test]
async fn ci_a_disruption_budget_of_the_pods_is_kept() -> Result<()> {
    let bed = Bed::start(Config::control_plane("budget").with_fleet(Fleet::of(3))).await?;
    let rollout = Rollout::prepare(bed.cluster()).await?;
    let _manager = rollout.manager(&[]).await?;
    let strategy = json!({"updateStrategy": {"maxUnavailable": 4, "probe": false}});
    rollout.set("kept", strategy.clone()).await?;
    rollout.set("free", strategy).await?;
    for set in ["kept", "free"] {
        rollout.fleet(set, 8).await?;
        rollout.until_done(set, 8).await?;
    }
    let budget = |available: u32| {
        json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "kept", "namespace": "default"},
            "spec": {"minAvailable": available, "selector": {"matchLabels": {"app": "kept"}}}})
    };
    let allowed = async |available: u32, allowed: &str| -> Result<()> {
        apply(&rollout.client, "e2e", &budget(available)).await?;
        let what = [
            "get",
            "pdb",
            "kept",
            "-o",
            "jsonpath={.metadata.generation}/{.status.observedGeneration}/{.status.disruptionsAllowed}",
        ];
        let waited = pillion_testbed::until("the budget to be counted", std::time::Duration::from_mins(1), || async {
            let seen = rollout.kubectl(&what).unwrap_or_default();
            let parts: Vec<&str> = seen.split('/').collect();
            let is_counted = parts.len() == 3 && parts[0] == parts[1] && parts[2] == allowed;
            Ok(if is_counted { Look::Done(()) } else { Look::NotYet(seen) })
        });
        Ok(waited.await?)
    };

    // It allows none: nothing moves, and the status says whose word that is.
    allowed(8, "0").await?;
    rollout.edit("kept", json!({"initContainers": [proxy("registry.local/pillion/testapp:v3")]})).await?;
    let held = |it: &_| condition(it, "Progressing") == Some(("False", "DisruptionBudget"));
    let status = rollout.status_until("kept", "the budget to hold it", held).await?;
    assert_eq!((status.updated_pods, status.ready_pods), (Some(0), Some(8)));
    let said = message(&status, "Progressing");
    assert!(said.contains("default/kept"), "{said}");
    assert_eq!(images(&rollout.listed("kept").await?, "proxy"), [(pods::V1.to_owned(), 8)].into());

    // It allows one, and the set alone would allow four.
    allowed(7, "1").await?;
    let counted = updated(&rollout, "kept", 8, |_| 1).await?;
    assert_eq!((counted.taken.len(), counted.most_unavailable), (8, 1));
    let counted = updated(&rollout, "free", 8, |_| 4).await?;
    assert_eq!((counted.taken.len(), counted.most_unavailable), (8, 4));
    Ok(())
}

/// In ci: Tests of the order in `crates/rollout` (`planner/order.rs`).
#[tokio::test]
async fn nightly_pods_are_updated_in_the_order_the_strategy_asks_for() -> Result<()> {
    let bed = Bed::start(Config::control_plane("order").with_fleet(Fleet::of(3))).await?;
    let rollout = Rollout::prepare(bed.cluster()).await?;
    let _manager = rollout.manager(&[]).await?;
    let strategies = [
        (
            "weights",
            json!({"priorityStrategy": {"weightPriority": [
            {"weight": 30, "matchSelector": {"matchLabels": {"tier": "low"}}},
            {"weight": 20, "matchSelector": {"matchLabels": {"tier": "middle"}}}]}}),
        ),
        ("ordered", json!({"priorityStrategy": {"orderPriority": [{"orderedKey": "rank"}]}})),
        ("scattered", json!({"scatterStrategy": [{"key": "tier", "value": "low"}]})),
    ];
    let tiers = ["high", "middle", "low"];
    for (set, strategy) in strategies {
        let mut strategy = strategy;
        strategy["maxUnavailable"] = json!(1);
        rollout.set(set, json!({"updateStrategy": strategy})).await?;
        for at in 0..6 {
            let labels = json!({"tier": tiers[at / 2], "rank": format!("r-{at}")});
            rollout.create(set, &[format!("{set}-{at}")], &labels).await?;
        }
        rollout.until_done(set, 6).await?;
        let order = updated(&rollout, set, 6, |_| 1).await?.order;
        let numbers: Vec<usize> = order.iter().filter_map(|name| name.rsplit('-').next()?.parse().ok()).collect();
        let by_tier: Vec<&str> = numbers.iter().map(|at| tiers[at / 2]).collect();
        match set {
            "weights" => assert_eq!(by_tier, ["low", "low", "middle", "middle", "high", "high"]),
            "ordered" => assert_eq!(numbers, [5, 4, 3, 2, 1, 0]),
            // One of the two at each end of the others.
            _ => assert_eq!((by_tier[0], by_tier[5]), ("low", "low"), "{by_tier:?}"),
        }
    }
    Ok(())
}

/// In ci: Tests of the health gate in `crates/rollout` (`planner/gate.rs`).
#[tokio::test]
async fn nightly_crashing_pods_close_the_gate_and_get_back_what_they_had_where_that_is_asked_for() -> Result<()> {
    let bed = Bed::start(Config::control_plane("gate").with_node()).await?;
    let rollout = Rollout::prepare(bed.cluster()).await?;
    let _manager = rollout.manager(&[]).await?;
    let strategy =
        |rollback: bool| json!({"updateStrategy": {"maxUnavailable": 2, "healthGate": {"rollback": rollback}}});
    for (set, rollback) in [("stays", false), ("returns", true)] {
        rollout.set(set, strategy(rollback)).await?;
        rollout.on_node(set, 5, 1).await?;
        rollout.until_done(set, 5).await?;
        rollout.edit(set, json!({"initContainers": [proxy(CRASHING)]})).await?;
    }
    let is_closed = |reason: &'static str| move |it: &_| condition(it, "Stalled") == Some(("True", reason));
    // Without a word about it the first pod stays as it is, and nobody follows, though it ran for a moment.
    let status = rollout.status_until("stays", "the gate to close", is_closed("HealthGate")).await?;
    assert_eq!((status.updated_pods, status.ready_pods), (Some(1), Some(4)));
    let stayed = [(CRASHING.to_owned(), 1), (pods::V1.to_owned(), 4)].into();
    assert_eq!(images(&rollout.listed("stays").await?, "proxy"), stayed);
    // With it that pod gets the old image back, runs, and the update stays where it is.
    let is_back = |it: &_| is_closed("GateRollback")(it) && it.ready_pods == Some(5);
    let status = rollout.status_until("returns", "all pods to be well again", is_back).await?;
    assert_eq!(status.updated_pods, Some(0));
    assert_eq!(images(&rollout.listed("returns").await?, "proxy"), [(pods::V1.to_owned(), 5)].into());
    let said = message(&status, "Stalled");
    assert!(said.contains("1 of 5 pods were not well with "), "{said}");

    // A good image opens it for both.
    for set in ["stays", "returns"] {
        rollout.edit(set, json!({"initContainers": [proxy(pods::V2)]})).await?;
        rollout.until_done(set, 5).await?;
        assert_eq!(images(&rollout.listed(set).await?, "proxy"), [(pods::V2.to_owned(), 5)].into());
    }
    Ok(())
}
