//! What a cluster may want of a set besides.

use pillion_api::{advice, review};
use serde_json::{Value, json};

use crate::sets::good;

fn told(spec: &Value) -> Vec<String> {
    let mut object = good("good");
    json_patch::merge(&mut object, &json!({"spec": spec}));
    advice(&review(&object).meaning.unwrap()).iter().map(ToString::to_string).collect()
}

fn of_container(more: &Value) -> Vec<String> {
    let mut container = json!({"name": "proxy", "image": "proxy:1"});
    json_patch::merge(&mut container, more);
    told(&json!({"containers": [container]}))
}

#[test]
fn a_container_without_requests_is_told_once() {
    let start = "spec.containers[0].resources: PL159: container proxy has no request for";
    let end = "an autoscaler on utilisation, or a ResourceQuota of the namespace, needs it: \
               give it resources.requests, or a resourcesPolicy";
    let policy = |expr: Value| json!({"resourcesPolicy": {"targetContainerMode": "sum", "resourceExpr": expr}});
    for (more, missing) in [
        (json!({}), Some("cpu and memory")),
        (json!({"resources": {"requests": {"cpu": "1"}}}), Some("memory")),
        (json!({"resources": {"limits": {"memory": "1Gi"}}}), Some("cpu")),
        (json!({"resources": {"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}}}), None),
        (policy(json!({"requests": {"cpu": "cpu"}})), Some("memory")),
        (policy(json!({"requests": {"cpu": "cpu", "memory": ""}})), Some("memory")),
        (policy(json!({"requests": {"cpu": "cpu"}, "limits": {"memory": "memory"}})), None),
    ] {
        let expected: Vec<_> = missing.map(|missing| format!("{start} {missing}: {end}")).into_iter().collect();
        assert_eq!(of_container(&more), expected, "{more}");
    }
}

#[test]
fn an_init_container_is_told_what_concerns_it() {
    let init = |more: Value| {
        let mut container = json!({"name": "i", "image": "i:1"});
        json_patch::merge(&mut container, &more);
        told(&json!({"containers": null, "initContainers": [container]}))
    };
    assert_eq!(
        init(json!({})),
        ["spec.initContainers[0].resources: PL159: container i has no request for cpu and memory: \
          a ResourceQuota of the namespace may need it: give it resources.requests"]
    );
    assert_eq!(
        init(json!({"restartPolicy": "Always", "resources": {"requests": {"memory": "1Gi"}}})),
        ["spec.initContainers[0].resources: PL159: container i has no request for cpu: \
          an autoscaler on utilisation, or a ResourceQuota of the namespace, needs it: \
          give it resources.requests, or a resourcesPolicy"]
    );
}
