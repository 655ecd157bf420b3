//! Rolling updates as `OpenKruise`'s own suite tries them, numbered as there, over simulated pods.

use anyhow::Result;
use k8s_openapi::api::apps::v1::ControllerRevision;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams};
use pillion_e2e::manager::NAMESPACE;
use pillion_e2e::pods;
use pillion_e2e::rollouts::{Rollout, condition, images, message, proxy, revision};
use pillion_testbed::{Bed, Cluster, Config, Fleet, Look, apply};
use serde_json::json;

async fn bed() -> Result<(Bed, Cluster)> {
    let bed = Bed::start(Config::control_plane("rollout").with_fleet(Fleet::of(3))).await?;
    let cluster = bed.cluster().clone();
    Ok((bed, cluster))
}

/// An image that no pod of the fleet ever runs.
const V3: &str = "registry.local/pillion/testapp:v3";

// Scenarios 15, 16, 17.
#[tokio::test]
async fn ci_an_image_change_reaches_running_pods_as_the_strategy_says() -> Result<()> {
    let (_bed, cluster) = bed().await?;
    let rollout = Rollout::prepare(&cluster).await?;
    let _manager = rollout.manager(&[]).await?;

    rollout.set("plain", json!({})).await?;
    rollout.fleet("plain", 4).await?;
    let status = rollout.until_done("plain", 4).await?;
    let first = status.latest_revision.clone();
    rollout.edit("plain", json!({"initContainers": [proxy(pods::V2)]})).await?;
    let status = rollout.until_done("plain", 4).await?;
    assert_ne!(status.latest_revision, first);
    assert_eq!(images(&rollout.listed("plain").await?, "proxy"), [(pods::V2.to_owned(), 4)].into());

    // 15: paused, nothing moves; then it ends.
    rollout.edit("plain", json!({"initContainers": [proxy(V3)], "updateStrategy": {"paused": true}})).await?;
    let status = rollout
        .status_until("plain", "to say that it is paused", |it| {
            condition(it, "Progressing") == Some(("False", "UpdatePaused"))
        })
        .await?;
    assert_eq!((status.updated_pods, status.ready_pods), (Some(0), Some(4)));
    assert_eq!(images(&rollout.listed("plain").await?, "proxy"), [(pods::V2.to_owned(), 4)].into());
    rollout.edit("plain", json!({"updateStrategy": {"paused": false}})).await?;
    rollout.until_done("plain", 4).await?;

    // 17: of two pods half stays, until the partition goes.
    rollout.set("half", json!({"updateStrategy": {"partition": "50%"}})).await?;
    rollout.fleet("half", 2).await?;
    rollout.edit("half", json!({"initContainers": [proxy(pods::V2)]})).await?;
    let status = rollout
        .status_until("half", "one pod to stay", |it| condition(it, "Progressing") == Some(("False", "PartitionKeeps")))
        .await?;
    assert_eq!((status.updated_pods, status.updated_ready_pods, status.ready_pods), (Some(1), Some(1), Some(2)));
    let partition = status.effective.and_then(|it| it.partition).map(|it| (it.of, it.is));
    assert_eq!(partition, Some((2, 1)));
    rollout.edit("half", json!({"updateStrategy": {"partition": null}})).await?;
    rollout.until_done("half", 2).await?;

    // 16: only the pod with the label, then the rest.
    rollout.set("picked", json!({"updateStrategy": {"selector": {"matchLabels": {"canary": "yes"}}}})).await?;
    rollout.fleet("picked", 3).await?;
    rollout.create("picked", &["picked-canary".to_owned()], &json!({"canary": "yes"})).await?;
    rollout.edit("picked", json!({"initContainers": [proxy(pods::V2)]})).await?;
    let held = |it: &_| condition(it, "Progressing") == Some(("False", "OutsideUpdateSelector"));
    let status = rollout.status_until("picked", "the others to be left", held).await?;
    assert_eq!((status.updated_pods, status.matched_pods), (Some(1), Some(4)));
    let updated: Vec<String> = rollout
        .listed("picked")
        .await?
        .iter()
        .filter(|it| revision(it, "picked") == status.latest_revision)
        .map(ResourceExt::name_any)
        .collect();
    assert_eq!(updated, ["picked-canary"]);
    rollout.edit("picked", json!({"updateStrategy": {"selector": null}})).await?;
    rollout.until_done("picked", 4).await?;
    Ok(())
}

// Scenarios 13, 14, 19, and 10 as far as running pods are concerned.
/// In ci: `ci_an_image_change_reaches_running_pods_as_the_strategy_says` for the writes; scenarios of the planner
/// in `crates/rollout`.
#[tokio::test]
async fn nightly_what_cannot_be_changed_in_place_waits_for_a_new_pod() -> Result<()> {
    let (_bed, cluster) = bed().await?;
    let rollout = Rollout::prepare(&cluster).await?;
    let _manager = rollout.manager(&[]).await?;
    rollout.set("env", json!({})).await?;
    rollout.fleet("env", 2).await?;
    rollout.until_done("env", 2).await?;
    let with_env = |image: &str| {
        let mut proxy = proxy(image);
        proxy["env"] = json!([{"name": "LEVEL", "value": "debug"}]);
        proxy
    };
    rollout.edit("env", json!({"initContainers": [with_env(pods::V1)]})).await?;
    let needs = |count: i32| move |it: &pillion_api::SidecarSetStatus| it.needs_recreate_pods == Some(count);
    let status = rollout.status_until("env", "both pods to need to be created again", needs(2)).await?;
    assert_eq!(condition(&status, "Progressing"), Some(("False", "NeedsRecreate")));
    assert!(message(&status, "Progressing").contains("env of container proxy"), "{}", message(&status, "Progressing"));
    assert_eq!(status.updated_pods, Some(0));
    // A new pod has it, and follows the next image; the others still do not.
    rollout.create("env", &["env-new".to_owned()], &json!({})).await?;
    rollout.edit("env", json!({"initContainers": [with_env(pods::V2)]})).await?;
    let status = rollout
        .status_until("env", "the new pod to be updated", |it| {
            it.updated_ready_pods == Some(1) && it.needs_recreate_pods == Some(2)
        })
        .await?;
    let pods = rollout.listed("env").await?;
    let updated: Vec<String> =
        pods.iter().filter(|it| revision(it, "env") == status.latest_revision).map(ResourceExt::name_any).collect();
    assert_eq!(updated, ["env-new"]);
    assert_eq!(images(&pods, "proxy"), [(pods::V1.to_owned(), 2), (pods::V2.to_owned(), 1)].into());

    // 14: another set on the same pods is updated all the same.
    let other = json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "SidecarSet", "metadata": {"name": "other"}, "spec": {
        "selector": {"matchLabels": {"both": "yes"}}, "containers": [{"name": "log", "image": pods::V1}]}});
    apply(&rollout.client, "e2e", &other).await?;
    rollout.status_until("other", "to be seen", |it| it.matched_pods == Some(0)).await?;
    rollout.create("env", &["env-both".to_owned()], &json!({"both": "yes"})).await?;
    rollout.until_done("other", 1).await?;
    rollout.edit("other", json!({"containers": [{"name": "log", "image": pods::V2}]})).await?;
    rollout.until_done("other", 1).await?;
    assert_eq!(images(&rollout.listed("env").await?, "log"), [(pods::V2.to_owned(), 1)].into());

    // 19: a plain init container has run; nothing is done to running pods, and nothing is asked of people.
    rollout.set("init", json!({"initContainers": [{"name": "prepare", "image": pods::V1}, proxy(pods::V1)]})).await?;
    rollout.fleet("init", 2).await?;
    let before = rollout.until_done("init", 2).await?;
    rollout.edit("init", json!({"initContainers": [{"name": "prepare", "image": pods::V2}, proxy(pods::V1)]})).await?;
    let status = rollout.until_done("init", 2).await?;
    assert_ne!(status.latest_revision, before.latest_revision);
    assert_eq!(images(&rollout.listed("init").await?, "prepare"), [(pods::V1.to_owned(), 2)].into());
    Ok(())
}

// Scenarios 20, 21 and 22.
#[tokio::test]
async fn ci_revisions_are_kept_renumbered_and_pinned() -> Result<()> {
    let (_bed, cluster) = bed().await?;
    let rollout = Rollout::prepare(&cluster).await?;
    let _manager = rollout.manager(&[]).await?;
    let revisions = Api::<ControllerRevision>::namespaced(rollout.client.clone(), NAMESPACE);
    let numbered = |numbers: Vec<i64>| {
        let revisions = revisions.clone();
        async move {
            let what = format!("revisions {numbers:?}");
            let waited = pillion_testbed::until(&what, std::time::Duration::from_mins(2), || async {
                let listed = match revisions.list(&ListParams::default()).await {
                    Ok(listed) => listed.items,
                    Err(error) => return Ok(Look::NotYet(error.to_string())),
                };
                let mut seen: Vec<i64> = listed.iter().map(|it| it.revision).collect();
                seen.sort_unstable();
                Ok(if seen == numbers { Look::Done(listed) } else { Look::NotYet(format!("{seen:?}")) })
            });
            waited.await
        }
    };
    let versioned = |at: i64| {
        let annotations = json!([{"annotations": {"version": at.to_string()}, "patchPolicy": "Overwrite"}]);
        json!({"initContainers": [proxy(&format!("registry.local/pillion/testapp:r{at}"))], "patchPodMetadata": annotations})
    };
    let mut first = versioned(1);
    first["updateStrategy"] = json!({"paused": true});
    rollout.set("kept", first).await?;
    numbered(vec![1]).await?;
    for at in 2..=15_i64 {
        let label = json!({"metadata": {"labels": {"apps.kruise.io/sidecarset-custom-version": format!("v{at}")}}});
        let mut patch = label;
        patch["spec"] = versioned(at);
        rollout.sets().patch("kept", &kube::api::PatchParams::default(), &kube::api::Patch::Merge(patch)).await?;
        let oldest = (at - 9).max(1);
        numbered((oldest..=at).collect()).await?;
    }
    // 21: each remembers its own annotations; every field is named.
    for revision in numbered((6..=15).collect()).await? {
        let data = &revision.data.as_ref().expect("a revision has data").0["spec"];
        assert_eq!(data["patchPodMetadata"][0]["annotations"]["version"], revision.revision.to_string());
        assert_eq!(data.as_object().map(serde_json::Map::len), Some(9));
    }
    // 22: pinned by its version while the update is paused: a new pod gets it; afterwards it is updated like any other.
    let pin = json!({"injectionStrategy": {"revision": {"customVersion": "v8", "policy": "Always"}}});
    rollout.edit("kept", pin).await?;
    let eighth =
        numbered((6..=15).collect()).await?.into_iter().find(|it| it.revision == 8).expect("it is kept").name_any();
    rollout.status_until("kept", "to be seen", |it| it.matched_pods == Some(0)).await?;
    rollout.create("kept", &["kept-0".to_owned()], &json!({})).await?;
    let pod = rollout.pods().get("kept-0").await?;
    assert_eq!(revision(&pod, "kept"), Some(eighth.clone()));
    assert_eq!(pod.annotations().get("version").map(String::as_str), Some("8"));
    // K-09: neither what is nowhere nor what belongs to another set can be pinned.
    for (name, code) in [("kept-none", "PL314"), ("foreign", "PL315")] {
        let name = if name == "foreign" {
            rollout.set("foreign", json!({})).await?;
            rollout
                .status_until("foreign", "to be seen", |it| it.latest_revision.is_some())
                .await?
                .latest_revision
                .expect("it has one")
        } else {
            name.to_owned()
        };
        numbered(if code == "PL315" { vec![1, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15] } else { (6..=15).collect() })
            .await?;
        let error = rollout
            .edit("kept", json!({"injectionStrategy": {"revision": {"revisionName": name, "customVersion": null}}}))
            .await
            .expect_err("it is refused")
            .to_string();
        assert!(error.contains(code), "{error}");
    }
    // Going back to an old spec renumbers it; the pinned one is above the limit then, and stays.
    rollout.edit("kept", versioned(10)).await?;
    numbered(vec![1, 6, 7, 8, 9, 11, 12, 13, 14, 15, 16]).await?;
    // The patched annotations differ as well, so the pod cannot follow in place: it is created again.
    rollout.edit("kept", json!({"injectionStrategy": null, "updateStrategy": {"paused": false}})).await?;
    rollout.status_until("kept", "the pod to need to be created again", |it| it.needs_recreate_pods == Some(1)).await?;
    rollout.pods().delete("kept-0", &DeleteParams::default()).await?;
    // A set that goes takes its revisions with it, and leaves its pods.
    rollout.create("foreign", &["foreign-0".to_owned()], &json!({})).await?;
    let before = rollout.pods().get("foreign-0").await?.metadata.resource_version;
    rollout.sets().delete("foreign", &DeleteParams::default()).await?;
    rollout.sets().delete("kept", &DeleteParams::default()).await?;
    numbered(Vec::new()).await?;
    assert_eq!(rollout.pods().get("foreign-0").await?.metadata.resource_version, before);
    Ok(())
}

// The proposal's Way 1: a pinned new pod is later updated by the strategy.
/// In ci: `ci_revisions_are_kept_renumbered_and_pinned`.
#[tokio::test]
async fn nightly_a_pinned_new_pod_is_updated_by_the_strategy() -> Result<()> {
    let (_bed, cluster) = bed().await?;
    let rollout = Rollout::prepare(&cluster).await?;
    let _manager = rollout.manager(&[]).await?;
    rollout.set("pinned", json!({})).await?;
    let status = rollout.status_until("pinned", "a revision", |it| it.latest_revision.is_some()).await?;
    let old = status.latest_revision.expect("it has one");
    rollout
        .edit(
            "pinned",
            json!({"initContainers": [proxy(pods::V2)], "updateStrategy": {"paused": true}, "injectStrategy": {"controllerRevision": old}}),
        )
        .await?;
    rollout.status_until("pinned", "to be seen", |it| it.latest_revision.as_deref() != Some(&old)).await?;
    rollout.create("pinned", &["pinned-0".to_owned()], &json!({})).await?;
    let pod = rollout.pods().get("pinned-0").await?;
    assert_eq!((revision(&pod, "pinned"), images(&[pod], "proxy")), (Some(old), [(pods::V1.to_owned(), 1)].into()));
    rollout.edit("pinned", json!({"updateStrategy": {"paused": false}})).await?;
    rollout.until_done("pinned", 1).await?;
    assert_eq!(images(&rollout.listed("pinned").await?, "proxy"), [(pods::V2.to_owned(), 1)].into());
    Ok(())
}

// Scenario 11.
/// In ci: Scenarios of the planner in `crates/rollout`.
#[tokio::test]
async fn nightly_pods_of_a_namespace_that_is_selected_later_follow_when_they_are_created_again() -> Result<()> {
    let (_bed, cluster) = bed().await?;
    let rollout = Rollout::prepare(&cluster).await?;
    let _manager = rollout.manager(&[]).await?;
    let mut set = pillion_e2e::rollouts::set("spaced");
    set["spec"]["namespaceSelector"] = json!({"matchLabels": {"mesh": "yes"}});
    apply(&rollout.client, "e2e", &set).await?;
    rollout.status_until("spaced", "to be seen", |it| it.matched_pods == Some(0)).await?;
    rollout.fleet("spaced", 2).await?;
    assert_eq!(images(&rollout.listed("spaced").await?, "proxy"), [].into());
    rollout.kubectl(&["label", "namespace", "default", "mesh=yes"])?;
    rollout.until_injecting("spaced").await?;
    for at in 0..2 {
        rollout.pods().delete(&format!("spaced-{at}"), &DeleteParams::default().grace_period(0)).await?;
    }
    rollout.create("spaced", &["spaced-2".to_owned(), "spaced-3".to_owned()], &json!({})).await?;
    rollout.until_done("spaced", 2).await?;
    rollout.edit("spaced", json!({"initContainers": [proxy(pods::V2)]})).await?;
    rollout.until_done("spaced", 2).await?;
    assert_eq!(images(&rollout.listed("spaced").await?, "proxy"), [(pods::V2.to_owned(), 2)].into());
    Ok(())
}

// Scenario 23.
/// In ci: `canary_exact_own_bed`, without a selector.
#[tokio::test]
async fn nightly_in_proportion_with_a_selector_the_stable_pods_are_pinned_and_the_canaries_get_the_newest() -> Result<()>
{
    let (_bed, cluster) = bed().await?;
    let rollout = Rollout::prepare(&cluster).await?;
    let _manager = rollout.manager(&[]).await?;
    rollout.set("split", json!({})).await?;
    let status = rollout.status_until("split", "a revision", |it| it.latest_revision.is_some()).await?;
    let old = status.latest_revision.expect("it has one");
    let selector = json!({"matchLabels": {"canary": "yes"}});
    rollout
        .edit(
            "split",
            json!({"initContainers": [proxy(pods::V2)], "injectStrategy": {"revision": old}, "updateStrategy": {"selector": selector}}),
        )
        .await?;
    rollout.status_until("split", "to be seen", |it| it.latest_revision.as_deref() != Some(&old)).await?;
    rollout.create("split", &["split-stable".to_owned()], &json!({"canary": "no"})).await?;
    rollout.create("split", &["split-canary".to_owned()], &json!({"canary": "yes"})).await?;
    let revision_of = async |name: &str| Ok::<_, anyhow::Error>(revision(&rollout.pods().get(name).await?, "split"));
    assert_eq!(revision_of("split-stable").await?, Some(old.clone()));
    let newest = rollout.status_until("split", "both pods", |it| it.matched_pods == Some(2)).await?.latest_revision;
    assert_eq!(revision_of("split-canary").await?, newest);
    // The strategy leaves the stable one alone.
    let held = |it: &_| condition(it, "Progressing") == Some(("False", "OutsideUpdateSelector"));
    rollout.status_until("split", "the stable pod to be left", held).await?;
    assert_eq!(revision_of("split-stable").await?, Some(old));
    Ok(())
}
