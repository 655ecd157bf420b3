//! Resources of running containers.

use pillion_api::Reason;
use pillion_rollout::{Pod, Sizer};
use serde_json::{Value, json};

use crate::scene::Scene;

fn resources(cpu: &str, memory: &str) -> Value {
    json!({"requests": {"cpu": cpu, "memory": memory}, "limits": {"memory": "1Gi"}})
}

/// A pod with resources, which the set then changes.
fn scene(strategy: Value, to: Value) -> Scene {
    let mut scene = Scene::settled(0, strategy);
    scene.edit(|spec| spec["containers"][0]["resources"] = resources("100m", "64Mi"));
    scene.create();
    scene.pods[0].containers[0].resources = Some(Box::new(resources("0.1", "64Mi")));
    scene.edit(|spec| spec["containers"][0]["resources"] = to);
    scene
}

#[test]
fn resources_are_changed_only_where_the_set_asks_for_it() {
    let mut scene = scene(json!({}), resources("200m", "64Mi"));
    let (plan, progress) = scene.plan();
    assert!(plan.is_empty());
    assert_eq!(progress.blocked[0].words, "resources of container proxy, such as pod shop/web-00000");
    scene.strategy("resize", json!(true));
    let (plan, _) = scene.plan();
    let update = plan.actions[0].update();
    assert_eq!(update.images, []);
    assert_eq!(
        update.resize(),
        Some(json!([
            {"op": "test", "path": "/metadata/uid", "value": "uid-00000"},
            {"op": "test", "path": "/metadata/annotations/pillion.dev~1revisions", "value": scene.pods[0].record},
            {"op": "test", "path": "/spec/containers/1/name", "value": "proxy"},
            {"op": "add", "path": "/spec/containers/1/resources", "value": resources("200m", "64Mi")},
        ]))
    );
    // Nothing restarts, so the pod is done at once.
    scene.write();
    let (plan, progress) = scene.plan();
    assert!(plan.is_empty());
    assert_eq!((progress.counts.updated_ready, progress.counts.updating), (1, 0));
}

#[test]
fn a_resize_that_was_made_before_the_record_is_not_made_again() {
    let mut scene = scene(json!({"resize": true}), resources("200m", "64Mi"));
    scene.pods[0].containers[0].resources = Some(Box::new(resources("0.2", "64Mi")));
    let (plan, _) = scene.plan();
    let update = plan.actions[0].update();
    assert_eq!((update.resize(), update.images.len(), update.patch().as_array().unwrap().len()), (None, 0, 3));
}

#[test]
fn a_resize_that_the_api_server_would_refuse_waits_for_a_new_pod() {
    let words = |to: Value| {
        let scene = scene(json!({"resize": true}), to);
        let (plan, progress) = scene.plan();
        assert!(plan.is_empty(), "{plan}");
        assert_eq!(progress.blocked[0].reason, Reason::NeedsRecreate);
        progress.blocked[0].words.clone()
    };
    let refused =
        |to: Value| words(to).replace(", such as pod shop/web-00000", "").replace("resources of container proxy: ", "");
    assert_eq!(refused(json!({})), "memory would be taken from limits");
    assert_eq!(
        refused(json!({"requests": {"memory": "64Mi"}, "limits": {"memory": "1Gi"}})),
        "cpu would be taken from requests"
    );
    assert_eq!(
        refused(json!({"limits": {"cpu": "1", "memory": "1Gi"}})),
        "the quality-of-service class of the pod may change"
    );
    let mut storage = resources("200m", "64Mi");
    storage["limits"]["ephemeral-storage"] = json!("1Gi");
    assert_eq!(refused(storage), "ephemeral-storage cannot be changed while it runs");
}

/// The autoscaler `web` sizes the pods, or only some containers of them.
fn sized(scene: &mut Scene, sizer: Sizer) {
    let workload = Pod::workload(&scene.pods[0]);
    let (namespace, kind, name) = (workload.namespace.to_owned(), workload.kind.to_owned(), workload.name.to_owned());
    scene.sizers.insert(&namespace, &kind, &name, Sizer { autoscaler: "web".into(), ..sizer });
}

#[test]
fn what_an_autoscaler_sizes_is_left_to_it_whether_the_set_resizes_or_not() {
    for resize in [true, false] {
        let mut scene = scene(json!({"resize": resize}), resources("200m", "64Mi"));
        sized(&mut scene, Sizer { sizes_others: true, ..Sizer::default() });
        let (plan, progress) = scene.plan();
        assert!(plan.is_empty(), "{resize}");
        assert_eq!(progress.blocked, [], "{resize}");
        // An image is changed, and nothing beside it.
        scene.image("proxy:2");
        let (plan, _) = scene.plan();
        let update = plan.actions[0].update();
        assert_eq!((update.images.len(), update.resize()), (1, None), "{resize}");
    }
}

#[test]
fn a_container_that_its_autoscaler_leaves_alone_is_still_resized() {
    for sizer in [
        Sizer { sizes_others: true, named: [("proxy".into(), false)].into(), ..Sizer::default() },
        Sizer { sizes_others: false, named: [("app".into(), true)].into(), ..Sizer::default() },
    ] {
        let mut scene = scene(json!({"resize": true}), resources("200m", "64Mi"));
        sized(&mut scene, sizer);
        let (plan, _) = scene.plan();
        assert_eq!(plan.actions[0].update().resources.len(), 1);
    }
}
