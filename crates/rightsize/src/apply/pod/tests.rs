use serde_json::json;

use super::*;
use crate::amounts::Amounts;

fn read(pod: Value) -> Pod {
    Pod::read(serde_json::from_value(pod).unwrap())
}

fn pod() -> Value {
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "web-5d8c-a", "namespace": "shop", "uid": "u-1", "creationTimestamp": "2026-01-02T03:04:05Z",
            "labels": {"app": "web"},
            "annotations": {
                "vpaObservedContainers": "app, proxy",
                "vpaCpuStartupBoost/app": r#"{"requests":{"cpu":"1"},"limits":{"cpu":"2"}}"#,
                "pillion.dev/resized-at": "2026-01-02T03:10:00Z",
                "pillion.dev/sized": r#"{"by":"web","uid":"u-1","containers":{"proxy":{"gave":{"requests":{"cpu":"100m"}}}}}"#},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Other", "name": "o", "uid": "u-0"},
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5d8c", "uid": "u-2", "controller": true}]},
        "spec": {"nodeName": "n",
            "containers": [{"name": "app", "resources": {"requests": {"cpu": 1, "ephemeral-storage": "1Gi"}}}],
            "initContainers": [{"name": "setup"},
                {"name": "proxy", "restartPolicy": "Always", "resources": {"limits": {"memory": "64Mi"}},
                 "resizePolicy": [{"resourceName": "memory", "restartPolicy": "RestartContainer"},
                    {"resourceName": "cpu", "restartPolicy": "NotRequired"}]}]},
        "status": {"phase": "Running", "startTime": "2026-01-02T03:04:06Z", "qosClass": "Burstable",
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-02T03:05:00Z"},
                {"type": "PodResizePending", "status": "True", "reason": "Deferred", "lastTransitionTime": "2026-01-02T03:06:00Z"}],
            "containerStatuses": [{"name": "app", "started": true, "resources": {"requests": {"cpu": "1"}},
                "state": {"running": {"startedAt": "2026-01-02T03:04:40Z"}}}],
            "initContainerStatuses": [{"name": "proxy", "restartCount": 3, "started": false, "resources": {"limits": {"memory": "32Mi"}},
                "state": {"terminated": {"reason": "OOMKilled", "exitCode": 137, "startedAt": "2026-01-02T03:04:30Z", "finishedAt": "2026-01-02T03:04:50Z"}}}]}})
}

#[test]
fn of_a_pod_is_kept_what_sizing_looks_at() {
    let pod = read(pod());
    assert_eq!((&*pod.namespace, &*pod.name, &*pod.uid), ("shop", "web-5d8c-a", "u-1"));
    assert_eq!(pod.owner.as_ref().map(|owner| (&*owner.kind, &*owner.uid)), Some(("ReplicaSet", "u-2")));
    assert_eq!(pod.qos, Some(QosClass::Burstable));
    assert_eq!(pod.ready_since, Some("2026-01-02T03:05:00Z".parse().unwrap()));
    assert_eq!(
        (&pod.resize, pod.resize_since),
        (&ResizeState::Deferred, Some("2026-01-02T03:06:00Z".parse().unwrap()))
    );
    assert_eq!(pod.resized, Some("2026-01-02T03:10:00Z".parse().unwrap()));
    assert!(pod.is_observed("proxy") && !pod.is_observed("setup"));
    let cpu = |amount| Amounts { cpu: Some(amount), memory: None };
    assert_eq!(pod.before_boost("app"), Some(ContainerResources { requests: cpu(1000), limits: cpu(2000) }));
    assert_eq!(pod.sized("proxy"), Some(ContainerResources { requests: cpu(100), limits: Amounts::default() }));

    let kinds: Vec<(&str, ContainerKind, u16)> =
        pod.containers.iter().map(|container| (&*container.name, container.kind, container.index)).collect();
    assert_eq!(
        kinds,
        [
            ("setup", ContainerKind::PlainInit, 0),
            ("proxy", ContainerKind::NativeSidecar, 1),
            ("app", ContainerKind::App, 0)
        ]
    );
    let (proxy, app) = (&pod.containers[1], &pod.containers[2]);
    assert_eq!((proxy.asked.limits.memory, proxy.has().limits.memory), (Some(64 << 20), Some(32 << 20)));
    assert_eq!((proxy.restarts_for_cpu, proxy.restarts_for_memory, proxy.restarts), (false, true, 3));
    assert_eq!((proxy.has_requests, proxy.has_limits, app.has_requests, app.has_limits), (false, true, true, false));
    assert_eq!((app.asked.requests, app.given.as_deref(), app.is_started), (cpu(1000), None, true));
    let (started, ended) = ("2026-01-02T03:04:30Z".parse().unwrap(), "2026-01-02T03:04:50Z".parse().unwrap());
    assert_eq!(proxy.oom, Some(ContainerOom { started, ended }));
    assert_eq!(app.running_since, Some("2026-01-02T03:04:40Z".parse().unwrap()));
}

#[test]
fn an_owner_that_does_not_say_that_it_is_the_controller_is_not() {
    let mut pod = pod();
    pod["metadata"]["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "Other", "name": "o", "uid": "u-0"}]);
    assert_eq!(read(pod).owner, None);
}

#[test]
fn what_was_given_to_another_pod_is_none_of_this_one() {
    let mut pod = pod();
    pod["metadata"]["uid"] = "u-9".into();
    assert_eq!(read(pod).sized("proxy"), None);
}

#[test]
fn a_container_and_a_pod_stay_small() {
    // There are very many of them: two containers and a sidecar come to less than a kilobyte.
    assert!(size_of::<Container>() <= 200, "{}", size_of::<Container>());
    assert!(size_of::<Pod>() <= 400, "{}", size_of::<Pod>());
}
