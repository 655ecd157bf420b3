use serde_json::{Value, json};

use super::super::samples::{Scene, app, autoscaler, container, replicas, running, sidecar};
use super::super::writes::SizeAction;
use super::*;

/// Two pods, the first of them with a condition of the kubelet.
fn with_condition(kind: &str, reason: &str, since: &str, requests: &str) -> Vec<Pod> {
    let fields = json!({"status": {"conditions": [{"type": kind, "status": "True", "reason": reason, "lastTransitionTime": since}],
        "containerStatuses": [{"name": "app", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]}});
    let mut pods = replicas(2, "2/1Gi", "-/-");
    pods[0] = running("web-0", &json!([container("app", requests, "-/-")]), &json!([]), &fields);
    pods
}

#[test]
fn a_resize_that_is_not_done_is_waited_for_and_then_the_pod_is_evicted_if_the_mode_says_so() {
    let (long, short) = ("2026-03-01T11:54:00Z", "2026-03-01T11:56:00Z");
    for (kind, reason, since, in_place, or_recreate) in [
        ("PodResizePending", "Deferred", short, "web-0 waits: its node has no room now", None),
        (
            "PodResizePending",
            "Deferred",
            long,
            "web-0 waits: its node has no room now",
            Some("its node has no room now"),
        ),
        (
            "PodResizePending",
            "Infeasible",
            short,
            "web-0 waits: its node has no such room at all",
            Some("its node has no such room at all"),
        ),
        ("PodResizeInProgress", "", long, "web-0 waits: its node is still at the last resize", None),
        (
            "PodResizeInProgress",
            "",
            "2026-03-01T10:59:00Z",
            "web-0 waits: its node is still at the last resize",
            Some("its node is still at the last resize"),
        ),
        // A memory limit below what is used: upstream evicts at once, but the kubelet tries again.
        (
            "PodResizeInProgress",
            "Error",
            short,
            "web-0 waits: its node fails to do the last resize and tries again",
            None,
        ),
        (
            "PodResizeInProgress",
            "Error",
            long,
            "web-0 waits: its node fails to do the last resize and tries again",
            Some("its node fails to do the last resize and tries again"),
        ),
        ("PodResizeInProgress", "Other", long, "web-0 waits: its node is still at the last resize", None),
    ] {
        let pods = with_condition(kind, reason, since, "2/1Gi");
        let words = |mode: &str| {
            let mut scene = Scene::new(mode, 2, &app("2", "1Gi"));
            scene.tries.observe(&pods, scene.now);
            scene.words(&pods)
        };
        assert_eq!(words("InPlace"), [in_place], "{kind} {reason}");
        let expected = or_recreate.map_or(in_place.to_owned(), |why| format!("evict pod shop/web-0: {why}"));
        assert_eq!(words("InPlaceOrRecreate"), [expected], "{kind} {reason}");
    }
}

#[test]
fn less_than_what_the_node_had_no_room_for_is_tried_at_once() {
    for reason in ["Deferred", "Infeasible"] {
        let pods = with_condition("PodResizePending", reason, "2026-03-01T11:00:00Z", "4/1Gi");
        let mut scene = Scene::new("InPlace", 2, &app("2", "1Gi"));
        scene.tries.observe(&pods, scene.now);
        assert_eq!(scene.words(&pods), ["resize pod shop/web-0: cpu request of app to 2"]);
    }
}

#[test]
fn the_time_to_wait_starts_anew_with_another_try() {
    let pods = with_condition("PodResizePending", "Deferred", "2026-03-01T11:00:00Z", "4/1Gi");
    let mut scene = Scene::new("InPlaceOrRecreate", 2, &app("2", "1Gi"));
    let SizeAction::Resize(resize) = scene.plan(&pods).actions.remove(0) else { panic!("no resize") };
    scene.tries.resized(&resize);
    // The kubelet's condition stays, and says since when.
    let pods = with_condition("PodResizePending", "Deferred", "2026-03-01T11:00:00Z", "2/1Gi");
    scene.tries.observe(&pods, scene.now);
    scene.now = "2026-03-01T12:05:00Z".parse().unwrap();
    assert_eq!(scene.words(&pods), ["web-0 waits: its node has no room now"]);
    scene.now = "2026-03-01T12:05:01Z".parse().unwrap();
    assert_eq!(scene.words(&pods), ["evict pod shop/web-0: its node has no room now"]);
}

#[test]
fn a_resize_that_does_not_say_since_when_it_waits_does_from_when_it_was_first_seen() {
    let mut pods = with_condition("PodResizePending", "Deferred", "2026-03-01T11:00:00Z", "2/1Gi");
    pods[0].resize_since = None;
    let mut scene = Scene::new("InPlaceOrRecreate", 2, &app("2", "1Gi"));
    for (time, expected) in [
        ("2026-03-01T12:00:00Z", "web-0 waits: its node has no room now"),
        ("2026-03-01T12:05:01Z", "evict pod shop/web-0: its node has no room now"),
    ] {
        scene.now = time.parse().unwrap();
        scene.tries.observe(&pods, scene.now);
        assert_eq!(scene.words(&pods), [expected]);
    }
}

#[test]
fn a_resize_that_the_api_server_refused_for_want_of_room_is_tried_again_only_with_less() {
    let pods = replicas(2, "1/1Gi", "-/-");
    let mut scene = Scene::new("InPlace", 2, &app("100", "1Gi"));
    let SizeAction::Resize(resize) = scene.plan(&pods).actions.remove(0) else { panic!("no resize") };
    scene.tries.refused(&resize);
    assert_eq!(scene.words(&pods)[1], "web-0 waits: its node has no such room at all");
    scene.autoscaler = autoscaler(&json!({"updatePolicy": {"updateMode": "InPlace"}}), &app("200", "1Gi"));
    assert_eq!(scene.words(&pods)[1], "web-0 waits: its node has no such room at all");
    scene.autoscaler = autoscaler(&json!({"updatePolicy": {"updateMode": "InPlace"}}), &app("50", "1Gi"));
    assert_eq!(scene.words(&pods)[0], "resize pod shop/web-0: cpu request of app to 50");
    scene.autoscaler = autoscaler(&json!({"updatePolicy": {"updateMode": "InPlaceOrRecreate"}}), &app("100", "1Gi"));
    scene.settings.in_place_skip_disruption_budget = true;
    assert_eq!(
        scene.words(&pods),
        ["evict pod shop/web-0: its node has no such room at all", "resize pod shop/web-1: cpu request of app to 100"]
    );
}

fn two_containers(app_has: &str, proxy_has: &str) -> Vec<Pod> {
    vec![running(
        "web-0",
        &json!([container("app", app_has, app_has)]),
        &json!([sidecar("proxy", proxy_has, proxy_has)]),
        &json!({}),
    )]
}

#[test]
fn only_the_containers_that_differ_are_resized() {
    let recommended = json!([{"name": "app", "target": {"cpu": "1", "memory": "1Gi"}}, {"name": "proxy", "target": {"cpu": "100m", "memory": "64Mi"}}]);
    let pods = two_containers("1/1Gi", "50m/64Mi");
    let planned = Scene::new("InPlace", 1, &recommended).plan(&pods);
    assert_eq!(
        planned.actions[0].resize().unwrap().patch(),
        json!([
            {"op": "test", "path": "/metadata/uid", "value": "uid-web-0"},
            {"op": "test", "path": "/spec/initContainers/0/name", "value": "proxy"},
            {"op": "add", "path": "/spec/initContainers/0/resources/requests/cpu", "value": "100m"},
            {"op": "add", "path": "/spec/initContainers/0/resources/limits/cpu", "value": "100m"},
        ])
    );
}

#[test]
fn a_memory_limit_below_what_is_used_is_not_sent() {
    let recommended = json!([{"name": "app", "target": {"cpu": "2", "memory": "512Mi"}}, {"name": "proxy", "target": {"memory": "32Mi"}}]);
    let pods = two_containers("1/1Gi", "50m/64Mi");
    let mut scene = Scene::new("InPlace", 1, &recommended);
    scene.used.insert("app", 600 << 20);
    scene.used.insert("proxy", 20 << 20);
    assert_eq!(
        scene.words(&pods),
        [
            "resize pod shop/web-0: memory request of proxy to 32Mi, memory limit of proxy to 32Mi, cpu request of app to 2, cpu limit of app to 2"
        ]
    );
    scene.autoscaler = autoscaler(&json!({"updatePolicy": {"updateMode": "InPlace"}}), &app("1", "512Mi"));
    assert_eq!(scene.words(&pods), ["web-0 waits: container app uses more memory than its limit would be"]);
    // More is never held back, however much is used.
    scene.used.insert("app", 3 << 30);
    scene.autoscaler = autoscaler(&json!({"updatePolicy": {"updateMode": "InPlace"}}), &app("1", "2Gi"));
    assert_eq!(scene.words(&pods), ["resize pod shop/web-0: memory request of app to 2Gi, memory limit of app to 2Gi"]);
    scene.autoscaler = autoscaler(&json!({"updatePolicy": {"updateMode": "InPlace"}}), &app("1", "512Mi"));
    // A request without a limit is a promise to others, and may be below.
    let pods = [running("web-0", &json!([container("app", "1/1Gi", "-/-")]), &json!([]), &json!({}))];
    assert_eq!(scene.words(&pods), ["resize pod shop/web-0: memory request of app to 512Mi"]);
}

#[test]
fn ours_08_the_class_of_a_pod_stays() {
    let words = |mode: &str, spec: &Value, pod: Value, recommended: &Value| {
        let mut scene = Scene::new(mode, 2, &json!([]));
        let mut spec = spec.clone();
        spec["updatePolicy"] = json!({"updateMode": mode});
        scene.autoscaler = autoscaler(&spec, recommended);
        let pods = ["web-0", "web-1"].map(|name| running(name, &json!([pod.clone()]), &json!([]), &json!({})));
        scene.words(&pods)[0].clone()
    };
    let class = "a resize would change its quality-of-service class";
    // BestEffort: a request makes it another class, so that only a new pod gets it.
    let best_effort = json!({"name": "app", "image": "x", "resources": {}});
    assert_eq!(words("InPlace", &json!({}), best_effort.clone(), &app("1", "1Gi")), format!("web-0 waits: {class}"));
    assert_eq!(
        words("InPlaceOrRecreate", &json!({}), best_effort, &app("1", "1Gi")),
        format!("evict pod shop/web-0: {class}")
    );
    // Guaranteed: both sides move together.
    let guaranteed = container("app", "1/1Gi", "1/1Gi");
    assert_eq!(
        words("InPlace", &json!({}), guaranteed, &app("2", "1Gi")),
        "resize pod shop/web-0: cpu request of app to 2, cpu limit of app to 2"
    );
    // Burstable: requests that come to equal all limits stay one step below.
    let requests_only =
        json!({"resourcePolicy": {"containerPolicies": [{"containerName": "*", "controlledValues": "RequestsOnly"}]}});
    let burstable = container("app", "1/1Gi", "2/1Gi");
    assert_eq!(
        words("InPlace", &requests_only, burstable, &app("3", "1Gi")),
        "resize pod shop/web-0: cpu request of app to 1999m"
    );
}

#[test]
fn ours_08_a_sidecar_without_requests_gets_them_in_place_and_its_pod_stays_burstable() {
    let recommended = json!([{"name": "proxy", "target": {"cpu": "100m", "memory": "64Mi"}}]);
    let proxy = json!({"name": "proxy", "image": "x", "restartPolicy": "Always", "resources": {}});
    let pods = [running("web-0", &json!([container("app", "1/1Gi", "-/-")]), &json!([proxy]), &json!({}))];
    let planned = Scene::new("InPlace", 1, &recommended).plan(&pods);
    assert_eq!(
        planned.actions[0].resize().unwrap().patch()[2],
        json!({"op": "add", "path": "/spec/initContainers/0/resources/requests", "value": {"cpu": "100m", "memory": "64Mi"}})
    );
}

#[test]
fn a_pod_that_cannot_be_resized_is_evicted_if_the_mode_says_so() {
    let fields = json!({"spec": {"os": {"name": "windows"}}});
    let pods =
        ["web-0", "web-1"].map(|name| running(name, &json!([container("app", "1/1Gi", "-/-")]), &json!([]), &fields));
    let why = "it is a static pod or runs on Windows, which cannot be resized";
    assert_eq!(Scene::new("InPlace", 2, &app("2", "1Gi")).words(&pods)[0], format!("web-0 waits: {why}"));
    assert_eq!(
        Scene::new("InPlaceOrRecreate", 2, &app("2", "1Gi")).words(&pods)[0],
        format!("evict pod shop/web-0: {why}")
    );
}
