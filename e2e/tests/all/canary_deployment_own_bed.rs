//! A canary while its Deployment rolls: what always pinning does to it, and that a proportion stays what it is.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use pillion_api::SidecarSet;
use pillion_e2e::canary::{Canary, PATIENCE, SHOP, Stage, named, pods_per_case};
use pillion_e2e::pods;
use pillion_testbed::{Bed, Config, Fleet, Look, apply, until};
use serde_json::{Value, json};

fn deployment(canary: &Canary, replicas: usize) -> Value {
    let template = pods::on_fleet(json!({"metadata": {"labels": {"canary": canary.name}},
        "spec": {"terminationGracePeriodSeconds": 1, "containers": [pods::container("main", &[])]}}));
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": canary.name, "namespace": SHOP},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"canary": canary.name}}, "template": template,
            "strategy": {"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}}})
}

/// Waits until only pods of the newest template are there, and all of them are ready.
async fn until_rolled(stage: &Stage, canary: &Canary, replicas: usize) -> Result<Vec<Pod>> {
    let deployments = Api::<Deployment>::namespaced(stage.client.clone(), SHOP);
    let waited = until("the Deployment to have rolled", PATIENCE, || async {
        let (deployment, listed) = match (
            deployments.get(&canary.name).await,
            stage.pods().list(&ListParams::default().labels(&format!("canary={}", canary.name))).await,
        ) {
            (Ok(deployment), Ok(listed)) => (deployment, listed),
            other => return Ok(Look::NotYet(format!("{other:?}"))),
        };
        let status = deployment.status.unwrap_or_default();
        let wanted = i32::try_from(replicas).unwrap_or_default();
        let is_current = status.observed_generation == deployment.metadata.generation;
        let counts = [status.updated_replicas, status.ready_replicas, status.replicas];
        let is_rolled = is_current && counts == [Some(wanted); 3] && listed.items.len() == replicas;
        Ok(if is_rolled {
            Look::Done(listed.items)
        } else {
            Look::NotYet(format!("{counts:?}, {}", listed.items.len()))
        })
    });
    Ok(waited.await?)
}

/// Waits until the ledger counts what there is: nobody who has gone, and nobody twice.
async fn until_counted(stage: &Stage, canary: &Canary, replicas: usize) -> Result<()> {
    let began = Instant::now();
    let is_true = |ledger: &pillion_api::InjectionLedgerSpec| {
        ledger.reserved.is_empty() && ledger.living.values().sum::<u32>() as usize == replicas
    };
    stage.ledger(canary, "the ledger to count what there is", is_true).await?;
    ensure!(began.elapsed() < Duration::from_secs(30), "a pod that had come and gone was counted until it expired");
    Ok(())
}

async fn roll(stage: &Stage, canary: &Canary, version: &str) -> Result<()> {
    let patch = json!({"spec": {"template": {"metadata": {"annotations": {"version": version}}}}});
    let deployments = Api::<Deployment>::namespaced(stage.client.clone(), SHOP);
    deployments.patch(&canary.name, &PatchParams::default(), &Patch::Merge(&patch)).await?;
    Ok(())
}

/// In ci: `canary_exact_own_bed::ci_one_at_a_time_every_pod_keeps_the_proportion`, without a rolling Deployment.
#[tokio::test]
async fn nightly_a_deployment_that_rolls_with_surge_comes_out_exact() -> Result<()> {
    let bed = Bed::start(Config::control_plane("canary-rolls").with_fleet(Fleet::of(2))).await?;
    let stage = Stage::set_up(bed.cluster()).await?;
    let many = pods_per_case() / 2;
    for (partition, replicas) in [(json!("90%"), many), (json!("33%"), many), (json!(7), many), (json!(1), 3)] {
        let canary = stage.canary(&named("rolls", &partition), &partition, &json!({})).await?;
        apply(&stage.client, "e2e", &deployment(&canary, replicas)).await?;
        canary.check_exact(&until_rolled(&stage, &canary, replicas).await?)?;
        for version in ["2", "3"] {
            until_counted(&stage, &canary, replicas).await?;
            roll(&stage, &canary, version).await?;
            let rolled = until_rolled(&stage, &canary, replicas).await?;
            if let Err(error) = canary.check_exact(&rolled) {
                return Err(error.context(format!("version {version}: {:?}", stage.history(&canary).await)));
            }
        }
        stage.check_every_write(&canary).await?;
        until_counted(&stage, &canary, replicas).await?;
    }
    bed.stop().await?;
    Ok(())
}

/// The disadvantage that is known of pinning all new pods: what was updated falls back when its Deployment rolls.
/// In ci: `rollout_scenarios_own_bed::ci_an_image_change_reaches_running_pods_as_the_strategy_says`, and the
/// planner's tests of pinned revisions.
#[tokio::test]
async fn nightly_pinning_always_takes_updated_pods_back_and_a_proportion_does_not() -> Result<()> {
    let bed = Bed::start(Config::control_plane("canary-falls-back").with_fleet(Fleet::of(2))).await?;
    let stage = Stage::set_up(bed.cluster()).await?;
    let (replicas, partition) = (20, json!("10%"));
    for (name, injection, (old, new)) in [
        ("always", json!({"controllerRevision": "pinned"}), (replicas, 0)),
        ("proportion", json!({}), (2, replicas - 2)),
    ] {
        // All pods begin with the pinned revision; then nine of ten are updated where they run.
        let canary = stage.canary(name, &json!("100%"), &injection).await?;
        apply(&stage.client, "e2e", &deployment(&canary, replicas)).await?;
        assert_eq!(canary.count(&until_rolled(&stage, &canary, replicas).await?)?, (replicas, 0), "{name}");
        let canary = Canary { partition: partition.clone(), ..canary };
        let update = json!({"spec": {"updateStrategy": {"type": "RollingUpdate", "partition": partition, "maxUnavailable": "50%"}}});
        let sets = Api::<SidecarSet>::all(stage.client.clone());
        sets.patch(name, &PatchParams::default(), &Patch::Merge(&update)).await?;
        let waited = until("nine of ten to be updated", PATIENCE, || async {
            let counted = stage.count(&canary).await.map_err(|error| error.to_string());
            Ok(if counted == Ok((2, replicas - 2)) { Look::Done(()) } else { Look::NotYet(format!("{counted:?}")) })
        });
        waited.await.with_context(|| name.to_owned())?;
        // From here on only creations count.
        let stop = json!({"spec": {"updateStrategy": {"type": "NotUpdate"}}});
        sets.patch(name, &PatchParams::default(), &Patch::Merge(&stop)).await?;
        tokio::time::timeout(PATIENCE, settle(&stage, &canary)).await.context("the set to settle")??;
        roll(&stage, &canary, "2").await?;
        let rolled = canary.count(&until_rolled(&stage, &canary, replicas).await?)?;
        ensure!(rolled == (old, new), "{name}: {rolled:?} instead of {:?}", (old, new));
    }
    bed.stop().await?;
    Ok(())
}

/// Waits until the status is about the last edit.
async fn settle(stage: &Stage, canary: &Canary) -> Result<()> {
    let sets = Api::<SidecarSet>::all(stage.client.clone());
    let waited = until("the status to be about the edit", Duration::from_mins(1), || async {
        Ok(match sets.get(&canary.name).await {
            Ok(set) if set.status.as_ref().and_then(|it| it.observed_generation) == set.metadata.generation => {
                Look::Done(())
            }
            answer => Look::NotYet(format!("{:?}", answer.map(|set| set.status))),
        })
    });
    Ok(waited.await?)
}
