//! Which pods come first.

use serde_json::json;

use crate::scene::Scene;

/// The order in which all pods are updated.
fn order(scene: &Scene) -> Vec<usize> {
    scene.planned()
}

fn all_at_once(more: serde_json::Value) -> serde_json::Value {
    let mut strategy = json!({"maxUnavailable": "100%", "probe": false});
    strategy.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    strategy
}

#[test]
fn what_is_least_of_use_comes_first() {
    let mut scene = Scene::new(8, all_at_once(json!({})));
    let created = scene.pods[0].created;
    for pod in &mut scene.pods {
        (pod.created, pod.ready_since) = (created, Some(created));
    }
    scene.pods[7].is_assigned = false;
    scene.pods[6].is_pending = true;
    scene.ready(5, false);
    scene.pods[4].ready_since = Some(scene.now);
    scene.pods[3].containers[0].status.as_mut().unwrap().restarts = 2;
    scene.pods[2].created = scene.now;
    assert_eq!(order(&scene), [7, 6, 5, 4, 3, 2, 0, 1], "alike ones by their names");
}

#[test]
fn a_larger_sum_of_weights_comes_first() {
    let weight = |weight: i32, key: &str| json!({"weight": weight, "matchSelector": {"matchLabels": {key: "yes"}}});
    let mut scene = Scene::new(
        4,
        all_at_once(json!({
            "priorityStrategy": {"weightPriority": [weight(30, "a"), weight(20, "b"), weight(40, "c")]},
        })),
    );
    scene.label(0, "a", "yes");
    scene.label(0, "b", "yes");
    scene.label(1, "c", "yes");
    scene.label(2, "b", "yes");
    scene.ready(3, false);
    assert_eq!(order(&scene), [0, 1, 2, 3], "whatever use they are of");
}

#[test]
fn the_first_key_decides_then_the_larger_number_and_pods_without_a_key_come_last() {
    let keys = json!({"priorityStrategy": {"orderPriority": [{"orderedKey": "first"}, {"orderedKey": "second"}]}});
    let mut scene = Scene::new(6, all_at_once(keys));
    scene.label(1, "second", "x-3");
    scene.label(2, "first", "a-9");
    scene.label(3, "first", "b-10");
    scene.label(4, "first", "none");
    scene.label(5, "first", "zero-0");
    assert_eq!(order(&scene), [3, 2, 5, 4, 1, 0]);
}

#[test]
fn scattered_pods_are_spread_with_the_last_of_them_at_the_end() {
    let mut scene = Scene::new(9, all_at_once(json!({"scatterStrategy": [{"key": "zone", "value": "a"}]})));
    for number in [6, 7, 8] {
        scene.label(number, "zone", "a");
    }
    // Without: 8, 7, 6 come first.
    assert_eq!(order(&scene), [8, 5, 4, 3, 7, 2, 1, 0, 6]);
    scene.strategy("scatterStrategy", json!([{"key": "zone", "value": "*"}]));
    assert_eq!(order(&scene), [8, 5, 4, 3, 7, 2, 1, 0, 6]);
    scene.strategy("scatterStrategy", json!([{"key": "zone", "value": "none"}]));
    assert_eq!(order(&scene), [8, 7, 6, 5, 4, 3, 2, 1, 0]);
}
