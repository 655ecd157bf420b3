//! New pods get the pinned revision in exactly the proportion a set asks for, however they are created.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams};
use pillion_e2e::Webhook;
use pillion_e2e::canary::{Canary, PATIENCE, SHOP, Stage, create, named, pod, pods_per_case};
use pillion_testbed::{Bed, Config, Look, apply, until};
use serde_json::{Value, json};

/// Clients that create pods at the same time, and how many pods each creates at the same time.
const CLIENTS: usize = 4;
const EACH: usize = 4;

fn partitions() -> Vec<(Value, usize)> {
    let pods = pods_per_case();
    vec![(json!("90%"), pods), (json!("33%"), pods), (json!("50%"), pods), (json!(7), pods), (json!(1), 3)]
}

/// Creates so many pods, some at the same time, by several clients.
async fn create_many(stage: &Stage, bed: &Bed, canary: &Canary, prefix: &str, many: usize) -> Result<Vec<Pod>> {
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        clients.push(Api::<Pod>::namespaced(bed.client().await?, SHOP));
    }
    let work = stream::iter(0..many).map(|number| {
        let (pods, pod) = (&clients[number % CLIENTS], pod(canary, &format!("{prefix}-{number}")));
        async move { create(pods, &pod).await.map(|(pod, _)| pod) }
    });
    let created: Vec<Pod> = work.buffer_unordered(CLIENTS * EACH).try_collect().await?;
    let _ = stage;
    Ok(created)
}

#[tokio::test]
async fn ci_one_at_a_time_every_pod_keeps_the_proportion() -> Result<()> {
    let bed = Bed::start(Config::control_plane("canary-one")).await?;
    let stage = Stage::set_up(bed.cluster()).await?;
    for (partition, many) in partitions() {
        let canary = stage.canary(&named("one", &partition), &partition, &json!({})).await?;
        let mut all = Vec::new();
        for number in 0..many {
            let (created, _) = create(&stage.pods(), &pod(&canary, &format!("{}-{number}", canary.name))).await?;
            all.push(created);
            canary.check_exact(&all)?;
        }
        let (writes, reservations) = stage.check_every_write(&canary).await?;
        canary.check_reserved(&all, reservations)?;
        assert_eq!(writes, reservations, "one pod, one write");
    }
    bed.stop().await?;
    Ok(())
}

/// In ci: `ci_one_at_a_time_every_pod_keeps_the_proportion`, and the tests of the ledger in `crates/rollout`.
#[tokio::test]
async fn nightly_sixteen_at_a_time_share_writes_and_keep_the_proportion() -> Result<()> {
    let bed = Bed::start(Config::control_plane("canary-many")).await?;
    let stage = Stage::set_up(bed.cluster()).await?;
    for (partition, many) in partitions() {
        let canary = stage.canary(&named("many", &partition), &partition, &json!({})).await?;
        let created = create_many(&stage, &bed, &canary, &canary.name, many).await?;
        canary.check_exact(&created)?;
        canary.check_exact(&stage.living(&canary).await?)?;
        let (writes, reservations) = stage.check_every_write(&canary).await?;
        canary.check_reserved(&created, reservations)?;
        ensure!(many < 16 || writes < many, "{writes} writes for {many} pods: nobody shared one");
        // The leader sees them all, and nothing is left of the reservations.
        let seen = |pods: u32| {
            move |ledger: &pillion_api::InjectionLedgerSpec| {
                ledger.reserved.is_empty() && ledger.living.values().sum::<u32>() == pods
            }
        };
        stage.ledger(&canary, "all pods to be seen", seen(u32::try_from(many)?)).await?;
    }
    let both = [
        stage.webhooks[0].metric("pillion_ledger_reservations_total").await?,
        stage.webhooks[1].metric("pillion_ledger_reservations_total").await?,
    ];
    ensure!(both.iter().all(|reserved| *reserved > 0.0), "only one replica was asked: {both:?}");
    bed.stop().await?;
    Ok(())
}

/// Refuses pods that ask for it, after all webhooks that change pods.
async fn refuse_some(stage: &Stage) -> Result<()> {
    let policy = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "refuse-some"}, "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]},
            "validations": [{"expression": "!has(object.metadata.labels) || !('refuse' in object.metadata.labels)", "message": "as it asked"}]}});
    let binding = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "refuse-some"}, "spec": {"policyName": "refuse-some", "validationActions": ["Deny"]}});
    for object in [policy, binding] {
        apply(&stage.client, "e2e", &object).await?;
    }
    let mut tried = pods_to_refuse("tried");
    tried["metadata"]["labels"]["canary"] = "none".into();
    let tried: Pod = serde_json::from_value(tried)?;
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let waited = until("pods to be refused", PATIENCE, || async {
        Ok(match stage.pods().create(&dry, &tried).await {
            Err(error) if error.to_string().contains("as it asked") => Look::Done(()),
            answer => Look::NotYet(format!("{answer:?}")),
        })
    });
    Ok(waited.await?)
}

fn pods_to_refuse(name: &str) -> Value {
    let mut pod = pillion_e2e::pods::pod(name, &[], &[pillion_e2e::pods::container("main", &[])]);
    pod["metadata"]["labels"] = json!({"refuse": "please"});
    pod
}

/// In ci: `ci_one_at_a_time_every_pod_keeps_the_proportion`, and
/// `seen_pods_are_counted_once_and_expired_ones_not_at_all` of the ledger in `crates/rollout`.
#[tokio::test]
async fn nightly_pods_that_are_refused_after_us_leave_an_excess_that_closes() -> Result<()> {
    let bed = Bed::start(Config::control_plane("canary-refused")).await?;
    let stage = Stage::set_up(bed.cluster()).await?;
    refuse_some(&stage).await?;
    for partition in [json!("90%"), json!("50%")] {
        let canary = stage.canary(&named("refused", &partition), &partition, &json!({})).await?;
        let many = pods_per_case();
        let all = stream::iter(0..many).map(|number| {
            let mut pod = pod(&canary, &format!("{}-{number}", canary.name));
            if number % 10 == 3 {
                pod["metadata"]["labels"]["refuse"] = "please".into();
            }
            let pods = stage.pods();
            async move { create(&pods, &pod).await.is_err() }
        });
        let refused: Vec<bool> = all.buffer_unordered(CLIENTS * EACH).collect().await;
        let refused = refused.into_iter().filter(|is_refused| *is_refused).count();
        assert_eq!(refused, many / 10);
        stage.check_every_write(&canary).await?;
        let (old, new) = stage.count(&canary).await?;
        let target = canary.target(old + new);
        ensure!(target.abs_diff(old) <= refused, "{old} old and {new} new, though only {refused} were refused");
        // What was refused is forgotten after a minute; then pods that come bring the rest into order.
        let began = std::time::Instant::now();
        stage.ledger(&canary, "reservations to end", |ledger| ledger.reserved.is_empty()).await?;
        ensure!(began.elapsed() > Duration::from_secs(50), "a reservation ended after {:?}", began.elapsed());
        create_many(&stage, &bed, &canary, &format!("{}-more", canary.name), many).await?;
        canary.check_exact(&stage.living(&canary).await?)?;
        stage.check_every_write(&canary).await?;
    }
    bed.stop().await?;
    Ok(())
}

/// Adds a container, so that the API server asks all others again.
fn add_container(review: &Value) -> Value {
    let containers = review["request"]["object"]["spec"]["containers"].as_array();
    let has_it = containers.into_iter().flatten().any(|it| it["name"] == "late");
    let patch = json!([{"op": "add", "path": "/spec/containers/-", "value": {"name": "late", "image": "late:1"}}]);
    let patch = k8s_openapi::ByteString(patch.to_string().into_bytes());
    let mut response = json!({"uid": review["request"]["uid"], "allowed": true});
    if !has_it {
        response["patchType"] = "JSONPatch".into();
        response["patch"] = json!(patch);
    }
    response
}

/// In ci: `ci_one_at_a_time_every_pod_keeps_the_proportion`, and
/// `a_pod_that_is_seen_again_keeps_its_revision_and_reserves_nothing` in `crates/manager`.
#[tokio::test]
async fn nightly_dry_runs_and_reviews_that_come_twice_reserve_nothing_more() -> Result<()> {
    let bed = Bed::start(Config::control_plane("canary-twice")).await?;
    let stage = Stage::set_up(bed.cluster()).await?;
    let webhook = Webhook::serve(bed.cluster().host(), add_container).await?;
    let registration = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "zz-late"}, "webhooks": [{"name": "late.example.com", "admissionReviewVersions": ["v1"],
            "sideEffects": "None", "clientConfig": webhook.client_config(), "reinvocationPolicy": "Never",
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": SHOP}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]}]});
    apply(&stage.client, "e2e", &registration).await?;
    for partition in [json!("90%"), json!("33%")] {
        let canary = stage.canary(&named("twice", &partition), &partition, &json!({})).await?;
        let many = pods_per_case();
        let all = stream::iter(0..many).map(|number| {
            let (pods, pod) = (stage.pods(), pod(&canary, &format!("{}-{number}", canary.name)));
            async move {
                if number % 3 == 0 {
                    let dry = PostParams { dry_run: true, ..PostParams::default() };
                    pods.create(&dry, &serde_json::from_value(pod.clone())?).await?;
                }
                Ok::<_, anyhow::Error>(create(&pods, &pod).await?.0)
            }
        });
        let created: Vec<Pod> = all.buffer_unordered(CLIENTS * EACH).try_collect().await?;
        let has_late =
            |pod: &Pod| pod.spec.as_ref().is_some_and(|spec| spec.containers.iter().any(|it| it.name == "late"));
        ensure!(created.iter().skip(CLIENTS * EACH).all(has_late), "the other webhook was not called");
        canary.check_exact(&created)?;
        let (_, reservations) = stage.check_every_write(&canary).await?;
        // A dry run, or a second review, would be one more.
        canary.check_reserved(&created, reservations)?;
    }
    bed.stop().await?;
    Ok(())
}

/// In ci: `ci_one_at_a_time_every_pod_keeps_the_proportion`, and
/// `seen_pods_are_counted_once_and_expired_ones_not_at_all` of the ledger in `crates/rollout`.
#[tokio::test]
async fn nightly_a_killed_replica_leaves_no_more_than_it_had_in_hand() -> Result<()> {
    let bed = Bed::start(Config::control_plane("canary-killed")).await?;
    let mut stage = Stage::set_up(bed.cluster()).await?;
    let partition = json!("50%");
    let canary = stage.canary(&named("killed", &partition), &partition, &json!({})).await?;
    let many = pods_per_case();
    let victim = stage.webhooks.remove(0);
    let mut victim = Some(victim);
    let pods = stage.pods();
    let mut lost = 0;
    let work = stream::iter(0..many).map(|number| {
        let (pods, pod) = (&pods, pod(&canary, &format!("{}-{number}", canary.name)));
        async move { create(pods, &pod).await.is_err() }
    });
    let mut work = std::pin::pin!(work.buffer_unordered(CLIENTS * EACH));
    let mut done = 0;
    while let Some(is_lost) = work.next().await {
        done += 1;
        lost += usize::from(is_lost);
        if done == many / 3 {
            victim.take().context("it is killed once")?.kill()?;
        }
    }
    stage.check_every_write(&canary).await?;
    let (old, new) = stage.count(&canary).await?;
    assert_eq!(old + new, many - lost);
    ensure!(lost <= CLIENTS * EACH, "{lost} pods were refused");
    let target = canary.target(old + new);
    ensure!(target.abs_diff(old) <= CLIENTS * EACH, "{old} old and {new} new");
    stage.ledger(&canary, "reservations to end", |ledger| ledger.reserved.is_empty()).await?;
    create_many(&stage, &bed, &canary, &format!("{}-more", canary.name), many).await?;
    canary.check_exact(&stage.living(&canary).await?)?;
    stage.check_every_write(&canary).await?;
    // Pods that went leave an excess at most; those that come next close it.
    let some = ListParams::default().labels(&format!("canary={}", canary.name)).limit(30);
    for pod in pods.list(&some).await?.items {
        let at_once = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
        pods.delete(pod.metadata.name.as_deref().unwrap_or_default(), &at_once).await?;
    }
    let left = stage.count(&canary).await?;
    let left = u32::try_from(left.0 + left.1)?;
    let is_seen = |ledger: &pillion_api::InjectionLedgerSpec| ledger.living.values().sum::<u32>() == left;
    stage.ledger(&canary, "deletions to be seen", is_seen).await?;
    create_many(&stage, &bed, &canary, &format!("{}-again", canary.name), many).await?;
    canary.check_exact(&stage.living(&canary).await?)?;
    stage.check_every_write(&canary).await?;
    bed.stop().await?;
    Ok(())
}
