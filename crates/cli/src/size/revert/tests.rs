//! Plans as people see them, and the autoscalers that stand in the way.
#![expect(clippy::needless_pass_by_value, reason = "tests, in which JSON is written where it is used")]

use serde_json::json;

use super::*;
use crate::live::kinds::DEPLOYMENT;

fn pod(name: &str, cpu: &str) -> Value {
    json!({
        "metadata": {"name": name, "namespace": "shop", "uid": "u-1", "labels": {"pod-template-hash": "5d"},
            "annotations": {"pillion.dev/containers": "proxy"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5d", "controller": true}]},
        "spec": {"containers": [
            {"name": "app", "resources": {"requests": {"cpu": cpu}}},
            {"name": "proxy", "resources": {"requests": {"cpu": "40m"}}},
        ]},
        "status": {"phase": "Running"},
    })
}

fn autoscaler(name: &str, kind: &str, mode: &str, annotations: Value) -> Value {
    json!({"apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscaler",
        "metadata": {"namespace": "shop", "name": name, "annotations": annotations},
        "spec": {"targetRef": {"kind": kind, "name": "web"}, "updatePolicy": {"updateMode": mode}}})
}

#[test]
fn the_plan_is_shown_pod_by_pod() {
    let template = json!({"spec": {"containers": [{"name": "app", "resources": {"requests": {"cpu": "100m"}}}]}});
    let pods = [pod("web-5d-1", "250m"), pod("web-5d-2", "100m")];
    let plans: Vec<PodPlan> = pods.iter().filter_map(|pod| plan::plan(pod, &template)).collect();
    insta::assert_snapshot!(text("shop", &plans));
    insta::assert_snapshot!(format!("{:#}", document("shop", &plans)));
    assert_eq!(text("shop", &[]), "no pod of it is running\n");
}

#[test]
fn an_autoscaler_that_acts_stands_in_the_way_and_its_switch_is_named() {
    let pod = pod("web-5d-1", "250m");
    assert!(belongs(&pod, DEPLOYMENT, "web"));
    assert!(!belongs(&pod, DEPLOYMENT, "web-5d"));
    let found = |autoscaler: Value| acting(&[autoscaler], DEPLOYMENT, "web", &[&pod], "");
    assert_eq!(found(autoscaler("web", "Deployment", "Off", json!({}))), Vec::<String>::new());
    assert_eq!(found(autoscaler("web", "StatefulSet", "Recreate", json!({}))), Vec::<String>::new());
    assert_eq!(
        found(autoscaler("sizes", "Deployment", "Initial", json!({}))),
        ["VerticalPodAutoscaler shop/sizes would size the pods again: switch it off first, or use --force\n  \
          kubectl -n shop patch vpa sizes --type merge -p '{\"spec\":{\"updatePolicy\":{\"updateMode\":\"Off\"}}}'"]
    );
    assert_eq!(
        found(autoscaler("sizes", "Deployment", "Off", json!({UPDATE_MODE: "InPlace"}))),
        ["VerticalPodAutoscaler shop/sizes would size the pods again: switch it off first, or use --force\n  \
          kubectl -n shop annotate vpa sizes pillion.dev/update-mode-"]
    );
}
