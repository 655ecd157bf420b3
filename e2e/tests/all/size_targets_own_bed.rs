//! Whose pods an autoscaler finds: of Jobs, of `CronJobs`, and of any kind with a scale; and what is kept of one that is gone.

use anyhow::Result;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, Patch, PatchParams};
use kube::core::{DynamicObject, GroupVersionKind};
use kube::discovery::ApiResource;
use kube::{Client, ResourceExt};
use pillion_e2e::sizing::{
    asks, autoscaler, checkpoint, fix, install, message, names, pods_of, pods_until, rightsizer, status_until,
};
use pillion_e2e::{Manager, agents, pods};
use pillion_testbed::{Bed, Config, Fleet, apply};
use serde_json::{Value, json};

const SPACE: &str = "default";

fn template(name: &str) -> Value {
    let mut app = pods::container("app", &[]);
    app["resources"] = json!({"requests": {"cpu": "20m", "memory": "16Mi"}});
    json!({"metadata": {"labels": {"app": name}}, "spec": {"restartPolicy": "Never", "containers": [app]}})
}

/// An autoscaler of an object of the same name, which wants 40m of cpu for the app.
async fn wanting(client: &Client, version: &str, kind: &str, name: &str, mode: &str) -> Result<()> {
    let mut own = autoscaler(SPACE, name, mode);
    own["spec"]["targetRef"] = json!({"apiVersion": version, "kind": kind, "name": name});
    fix(&mut own, "app", "40m", "16Mi");
    apply(client, "e2e", &checkpoint(SPACE, name, "app")).await?;
    apply(client, "e2e", &own).await?;
    Ok(())
}

async fn is_recommended_for(client: &Client, name: &str) -> Result<()> {
    status_until(client, (SPACE, name), "a recommendation", |status| (names(status) == ["app"]).then_some(())).await
}

/// In ci: `size_node_own_bed`, for a Deployment.
#[tokio::test]
async fn nightly_jobs_and_cron_jobs_are_recommended_for_and_the_next_pod_is_sized() -> Result<()> {
    let bed = Bed::start(Config::control_plane("size-jobs").with_controllers()).await?;
    let client = install(&bed).await?;
    let _webhook = Manager::ready(bed.cluster(), &["webhook"], &["--rightsizing"]).await?;
    let _rightsizer = rightsizer(bed.cluster(), false, &[]).await?;
    let job = json!({"template": template("report")});
    for object in [
        json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "report", "namespace": SPACE},
            "spec": {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": job}}}),
        json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "once", "namespace": SPACE},
            "spec": {"suspend": true, "template": template("once")}}),
    ] {
        apply(&client, "e2e", &object).await?;
    }
    wanting(&client, "batch/v1", "CronJob", "report", "Initial").await?;
    wanting(&client, "batch/v1", "Job", "once", "Initial").await?;
    for name in ["report", "once"] {
        is_recommended_for(&client, name).await?;
    }

    // As its controller names a Job: by the minute it is due.
    let mut made = bed.cluster().kubectl(["create", "job", "report-29400001", "--from=cronjob/report"])?;
    assert!(made.status()?.success());
    let jobs = ApiResource::from_gvk(&GroupVersionKind::gvk("batch", "v1", "Job"));
    let resumed = Patch::Merge(json!({"spec": {"suspend": false}}));
    let api = Api::<DynamicObject>::namespaced_with(client.clone(), SPACE, &jobs);
    api.patch("once", &PatchParams::default(), &resumed).await?;
    for name in ["report", "once"] {
        let sized = pods_until(&client, (SPACE, name), "a pod", |all| all.first().cloned()).await?;
        assert_eq!(asks(&sized, "app"), json!({"requests": {"cpu": "40m", "memory": "16Mi"}}), "{name}");
    }
    Ok(())
}

/// A kind of its own that can be scaled.
fn games() -> Value {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "games.e2e.pillion.dev"},
        "spec": {"group": "e2e.pillion.dev", "scope": "Namespaced", "names": {"kind": "Game", "plural": "games"}, "versions": [{
            "name": "v1", "served": true, "storage": true,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": any, "status": any}}},
            "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector"}}}]}})
}

/// In ci: `size_node_own_bed`, for a Deployment.
#[tokio::test]
async fn nightly_pods_of_any_kind_with_a_scale_are_found_and_evicted() -> Result<()> {
    let bed = Bed::start(Config::control_plane("size-scale").with_fleet(Fleet::of(1))).await?;
    let client = install(&bed).await?;
    apply(&client, "e2e", &games()).await?;
    Manager::until_served(&client, &["/apis/e2e.pillion.dev/v1/games"]).await?;
    let game = json!({"apiVersion": "e2e.pillion.dev/v1", "kind": "Game", "metadata": {"name": "lobby", "namespace": SPACE},
        "spec": {"replicas": 2}});
    let made = apply(&client, "e2e", &game).await?;
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("e2e.pillion.dev", "v1", "Game"));
    let api = Api::<DynamicObject>::namespaced_with(client.clone(), SPACE, &kind);
    let status = Patch::Merge(json!({"status": {"replicas": 2, "selector": "app=lobby"}}));
    api.patch_status("lobby", &PatchParams::default(), &status).await?;
    for name in ["lobby-0", "lobby-1"] {
        let mut pod = pods::on_fleet(template("lobby"));
        pod["spec"]["restartPolicy"] = json!("Always");
        pod["apiVersion"] = json!("v1");
        pod["kind"] = json!("Pod");
        pod["metadata"]["name"] = json!(name);
        pod["metadata"]["namespace"] = json!(SPACE);
        pod["metadata"]["ownerReferences"] = json!([{"apiVersion": "e2e.pillion.dev/v1", "kind": "Game",
            "name": "lobby", "uid": made.uid(), "controller": true}]);
        apply(&client, "e2e", &pod).await?;
    }
    wanting(&client, "e2e.pillion.dev/v1", "Game", "lobby", "Recreate").await?;
    // A kind without a scale cannot be a target, and the object says so.
    wanting(&client, "v1", "ConfigMap", "nothing", "Recreate").await?;

    let _rightsizer = rightsizer(bed.cluster(), false, &[]).await?;
    is_recommended_for(&client, "lobby").await?;
    let unsupported = |status: &_| message(status, "ConfigUnsupported");
    let said = status_until(&client, (SPACE, "nothing"), "why it is not served", unsupported).await?;
    assert_eq!(said, "ConfigMap of v1 cannot be scaled, so its pods cannot be found: name another target");
    assert_eq!(pods_of(&client, SPACE, "lobby").await?.len(), 2, "no webhook would size new ones");

    let _webhook = Manager::ready(bed.cluster(), &["webhook"], &["--rightsizing"]).await?;
    // Of two that there are to be, one may be missing. Nobody makes it again, so the other stays, and the object says why.
    let left = |all: &[Pod]| (all.len() == 1).then(|| all[0].name_any());
    let left = pods_until(&client, (SPACE, "lobby"), "one pod to be evicted", left).await?;
    let stays = |status: &_| message(status, "TooFewReplicas");
    let said = status_until(&client, (SPACE, "lobby"), "why the other stays", stays).await?;
    assert!(said.starts_with(&format!("pod {left} waits: so few of its kind (1) are not disturbed")), "{said}");
    assert_eq!(pods_of(&client, SPACE, "lobby").await?.len(), 1);
    Ok(())
}

/// In ci: Nothing on a cluster; tests of checkpoints in `crates/rightsize` for their content.
#[tokio::test]
async fn nightly_what_was_learned_for_an_autoscaler_that_is_gone_is_removed_and_nothing_else() -> Result<()> {
    let bed = Bed::start(Config::control_plane("size-orphans").with_controllers()).await?;
    let client = install(&bed).await?;
    for name in ["kept", "gone"] {
        let labels = json!({"app": name});
        let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": SPACE},
            "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels},
                "spec": {"containers": [pods::container("app", &[])]}}}});
        apply(&client, "e2e", &deployment).await?;
        wanting(&client, "apps/v1", "Deployment", name, "Off").await?;
        // As ours are.
        let mut ours = checkpoint(SPACE, name, "app");
        ours["metadata"]["labels"] = json!({"pillion.dev/recommender": "pillion"});
        apply(&client, "e2e", &ours).await?;
    }
    // Of an autoscaler that never was ours: upstream's to remove.
    apply(&client, "e2e", &checkpoint(SPACE, "foreign", "app")).await?;
    let _rightsizer = rightsizer(bed.cluster(), false, &[]).await?;
    let group = "/apis/autoscaling.k8s.io/v1/namespaces/default";
    let path = |name: &str| format!("{group}/verticalpodautoscalercheckpoints/{name}-app");
    for name in ["kept", "gone"] {
        is_recommended_for(&client, name).await?;
    }

    let deleted = http::Request::delete(format!("{group}/verticalpodautoscalers/gone")).body(Vec::new())?;
    client.request::<Value>(deleted).await?;
    agents::seen(&client, &path("gone"), "the checkpoint to be gone", |stored| stored.is_none().then_some(())).await?;
    for name in ["kept", "foreign"] {
        agents::seen(&client, &path(name), "the checkpoint", |stored| stored.map(|_| ())).await?;
    }
    Ok(())
}
