//! Pods that `OpenKruise` injected, and pods of which nothing is known but their images.

use pillion_api::{PodRevisions, Reason};
use serde_json::json;

use crate::scene::{NOBODY, Scene};

/// A pod as `OpenKruise` leaves it: no record of ours, no list.
fn foreign(scene: &mut Scene, number: usize) {
    let pod = &mut scene.pods[number];
    (pod.record, pod.revisions, pod.is_listed) = (None, PodRevisions::default(), false);
}

#[test]
fn a_pod_of_openkruise_gets_our_marks_with_its_first_update() {
    let mut scene = Scene::new(1, json!({}));
    foreign(&mut scene, 0);
    let (plan, progress) = scene.plan();
    assert_eq!((progress.counts.waiting, progress.revisions.len()), (1, 0));
    let update = plan.actions[0].update();
    let record =
        format!(r#"{{"mesh":{{"is":"{}","since":1800000000,"was":{{"proxy":"0 id-0-0"}}}}}}"#, scene.set.revision);
    assert_eq!(
        update.patch(),
        json!([
            {"op": "test", "path": "/metadata/uid", "value": "uid-00000"},
            {"op": "test", "path": "/spec/containers/1/name", "value": "proxy"},
            {"op": "test", "path": "/spec/containers/1/image", "value": "proxy:1"},
            {"op": "replace", "path": "/spec/containers/1/image", "value": "proxy:2"},
            {"op": "add", "path": "/metadata/annotations/pillion.dev~1revisions", "value": record},
            {"op": "add", "path": "/metadata/annotations/pillion.dev~1containers", "value": "proxy"},
            {"op": "add", "path": "/metadata/labels/pillion.dev~1injected", "value": "true"},
        ])
    );
    assert_eq!(scene.run(), [1]);
}

#[test]
fn a_pod_of_openkruise_with_the_newest_images_is_left_as_it_is() {
    let mut scene = Scene::settled(2, json!({}));
    foreign(&mut scene, 0);
    foreign(&mut scene, 1);
    let (plan, progress) = scene.plan();
    assert!(plan.is_empty());
    assert_eq!(progress.counts.updated, 2);
}

#[test]
fn a_pod_whose_revision_is_gone_is_compared_by_its_images() {
    let mut scene = Scene::new(2, json!({"maxUnavailable": 2, "probe": false}));
    let old = scene.given(0).is.clone();
    scene.templates.remove(&old);
    scene.pods[1].containers[0].image = "proxy:2".into();
    assert_eq!(scene.planned(), [0]);
    assert_eq!(scene.progress().counts.updated, 1);
}

#[test]
fn a_pod_without_a_container_of_the_set_must_be_created_again() {
    let mut scene = Scene::new(2, json!({"maxUnavailable": 2, "probe": false}));
    scene.pods[0].containers[0].name = "other".into();
    scene.pods[1].containers[0].list = pillion_plan::List::Init;
    let (plan, progress) = scene.plan();
    assert!(plan.is_empty());
    assert_eq!((progress.blocked[0].reason, progress.blocked[0].pods), (Reason::NeedsRecreate, 2));
    assert_eq!(progress.blocked[0].words, "container proxy is missing, such as pod shop/web-00000");
}

#[test]
fn a_container_that_ends_with_the_others_is_updated_where_it_was_moved_to() {
    let variable = json!([{"name": "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT", "value": "true"}]);
    for (field, mark) in [("sidecar", json!(true)), ("env", variable)] {
        let mut scene = Scene::settled(0, json!({}));
        scene.edit(|spec| spec["containers"][0][field] = mark);
        scene.create();
        let container = &mut scene.pods[0].containers[0];
        (container.list, container.index) = (pillion_plan::List::Init, 2);
        assert!(scene.plan().0.is_empty());
        scene.image("proxy:2");
        let (plan, progress) = scene.plan();
        assert_eq!(progress.blocked, [], "{field}");
        let patch = plan.actions[0].update().patch();
        let change = json!({"op": "replace", "path": "/spec/initContainers/2/image", "value": "proxy:2"});
        assert!(patch.as_array().unwrap().contains(&change), "{patch}");
    }
}

#[test]
fn what_other_sets_have_recorded_stays() {
    let mut scene = Scene::new(1, json!({}));
    let pod = &mut scene.pods[0];
    pod.revisions.0.insert("logs".to_owned(), pillion_api::PodRevision::new("logs-1"));
    pod.record = Some(pod.revisions.render().into());
    assert_eq!(scene.write(), [0]);
    assert_eq!(scene.pods[0].revisions.of("logs"), Some(&pillion_api::PodRevision::new("logs-1")));
}

#[test]
fn an_image_that_someone_else_rewrote_is_replaced_only_where_the_set_changed_it() {
    let mut scene = Scene::settled(1, json!({}));
    scene.pods[0].containers[0].image = "mirror/proxy:1".into();
    assert_eq!(scene.planned(), NOBODY);
    scene.image("proxy:2");
    let (plan, _) = scene.plan();
    let change = &plan.actions[0].update().images[0];
    assert_eq!((&*change.from, &*change.to), ("mirror/proxy:1", "proxy:2"));
}
