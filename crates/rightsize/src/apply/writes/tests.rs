use serde_json::json;

use super::super::sized::SizedContainer;
use super::*;

fn resources(requests: &[(Resource, i64)], limits: &[(Resource, i64)]) -> ContainerResources {
    let side = |all: &[(Resource, i64)]| {
        let mut amounts = Amounts::default();
        for (resource, amount) in all {
            amounts.set(*resource, Some(*amount));
        }
        amounts
    };
    ContainerResources { requests: side(requests), limits: side(limits) }
}

fn resize() -> PodResize {
    let to = resources(&[(Resource::Cpu, 250), (Resource::Memory, 1 << 30)], &[(Resource::Memory, 2 << 30)]);
    let change = SizeChange {
        list: List::Init,
        index: 3,
        name: "proxy".into(),
        kind: ContainerKind::NativeSidecar,
        from: resources(&[(Resource::Cpu, 100), (Resource::Memory, 1 << 30)], &[]),
        to,
        has_requests: true,
        has_limits: false,
    };
    let sized = SizedContainer { gave: to, notes: vec![] };
    PodResize {
        namespace: "shop".into(),
        name: "web-0".into(),
        uid: "u-1".into(),
        owner: None,
        autoscaler: "web".into(),
        changes: vec![change],
        is_disruptive: false,
        unboosted: vec!["app".into()],
        at: "2026-03-01T12:00:00Z".parse().unwrap(),
        sized: SizedPod { by: "web".into(), uid: Some("u-1".into()), containers: [("proxy".into(), sized)].into() },
    }
}

#[test]
fn gap_10_a_resize_tests_the_pod_and_the_name_at_the_place_it_writes() {
    assert_eq!(
        resize().patch(),
        json!([
            {"op": "test", "path": "/metadata/uid", "value": "u-1"},
            {"op": "test", "path": "/spec/initContainers/3/name", "value": "proxy"},
            {"op": "add", "path": "/spec/initContainers/3/resources/requests/cpu", "value": "250m"},
            {"op": "add", "path": "/spec/initContainers/3/resources/limits", "value": {"memory": "2Gi"}},
        ])
    );
    assert_eq!(
        SizeAction::Resize(resize()).to_string(),
        "resize pod shop/web-0: cpu request of proxy to 250m, memory limit of proxy to 2Gi"
    );
}

#[test]
fn the_marks_say_that_and_when_the_pod_was_resized() {
    let sized = r#"{"by":"web","uid":"u-1","containers":{"proxy":{"gave":{"limits":{"memory":"2Gi"},"requests":{"cpu":"250m","memory":"1Gi"}}}}}"#;
    assert_eq!(
        resize().marks(),
        json!({"metadata": {"uid": "u-1", "annotations": {
            "vpaInPlaceUpdated": "true",
            "pillion.dev/resized-at": "2026-03-01T12:00:00Z",
            "pillion.dev/sized": sized,
            "vpaCpuStartupBoost/app": null,
        }}})
    );
    assert_eq!(SizedPod::parse(sized), Some(resize().sized));
}

#[test]
fn an_eviction_is_of_this_pod_and_no_other_of_its_name() {
    let eviction = PodEviction {
        namespace: "shop".into(),
        name: "web-0".into(),
        uid: "u-1".into(),
        owner: None,
        why: "its requests are not as recommended".into(),
        had: vec![],
    };
    assert_eq!(
        eviction.object(),
        json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"namespace": "shop", "name": "web-0"},
            "deleteOptions": {"preconditions": {"uid": "u-1"}}})
    );
    assert_eq!(SizeAction::Evict(eviction).to_string(), "evict pod shop/web-0: its requests are not as recommended");
}
