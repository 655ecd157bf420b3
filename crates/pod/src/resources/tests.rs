use serde_json::json;

use super::*;

fn requests(pod: &Value) -> Vec<(String, String)> {
    let found = effective_requests(pod).unwrap();
    found.into_iter().map(|(resource, amount)| (resource, amount.to_string())).collect()
}

fn requests_of(spec: &Value) -> Vec<(String, String)> {
    requests(&json!({"spec": spec}))
}

fn asking(cpu: &str) -> Value {
    json!({"name": "c", "resources": {"requests": {"cpu": cpu}}})
}

fn native(cpu: &str) -> Value {
    json!({"name": "n", "restartPolicy": "Always", "resources": {"requests": {"cpu": cpu}}})
}

fn cpu(amount: &str) -> Vec<(String, String)> {
    vec![("cpu".to_owned(), amount.to_owned())]
}

#[test]
fn containers_and_native_sidecars_add_up() {
    assert_eq!(requests_of(&json!({"containers": [asking("100m"), asking("200m")]})), cpu("300m"));
    assert_eq!(requests_of(&json!({"initContainers": [native("50m")], "containers": [asking("100m")]})), cpu("150m"));
    let both = json!({"containers": [
        {"name": "a", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}},
        {"name": "b", "resources": {"requests": {"memory": "512Mi", "example.com/gpu": 1}}},
        {"name": "c"},
    ]});
    assert_eq!(
        requests_of(&both),
        [("cpu", "1"), ("example.com/gpu", "1"), ("memory", "1536Mi")].map(|(a, b)| (a.to_owned(), b.to_owned()))
    );
}

#[test]
fn the_largest_moment_of_starting_counts() {
    for (starting, running, expected) in [
        (json!([asking("400m"), asking("500m")]), "100m", "500m"),
        (json!([asking("400m"), asking("500m")]), "600m", "600m"),
        // A native sidecar is there for the init containers after it, not for those before it.
        (json!([native("100m"), asking("500m")]), "200m", "600m"),
        (json!([asking("500m"), native("100m")]), "200m", "500m"),
        (json!([native("100m"), asking("250m"), native("100m"), asking("300m")]), "200m", "500m"),
        (json!([native("300m"), native("400m")]), "0", "700m"),
    ] {
        let spec = json!({"initContainers": starting, "containers": [asking(running)]});
        assert_eq!(requests_of(&spec), cpu(expected), "{spec}");
    }
}

#[test]
fn pod_level_requests_replace_the_sum_and_overhead_comes_on_top() {
    let spec = json!({
        "containers": [{"name": "a", "resources": {"requests": {"cpu": "1", "memory": "1Gi", "example.com/gpu": "1"}}}],
        "resources": {"requests": {"cpu": "3", "example.com/gpu": "9"}},
        "overhead": {"cpu": "250m", "memory": "120Mi"},
    });
    assert_eq!(
        requests_of(&spec),
        [("cpu", "3250m"), ("example.com/gpu", "1"), ("memory", "1144Mi")].map(|(a, b)| (a.to_owned(), b.to_owned()))
    );
}

#[test]
fn the_class_is_the_one_of_kubernetes() {
    use QosClass::{BestEffort, Burstable, Guaranteed};
    let both = |cpu: &str, memory: &str| json!({"cpu": cpu, "memory": memory});
    let container =
        |limits: &Value, requests: &Value| json!({"name": "c", "resources": {"limits": limits, "requests": requests}});
    let (full, none) = (both("1", "1Gi"), json!({}));
    for (spec, class) in [
        (json!({"containers": [{"name": "c"}]}), BestEffort),
        (json!({"containers": [container(&none, &both("0", "0"))]}), BestEffort),
        (json!({"containers": [container(&none, &json!({"ephemeral-storage": "1Gi"}))]}), BestEffort),
        (json!({"containers": [container(&full, &full)]}), Guaranteed),
        (json!({"containers": [container(&full, &both("1000m", "1024Mi"))]}), Guaranteed),
        (json!({"containers": [container(&full, &both("1", "1023Mi"))]}), Burstable),
        (json!({"containers": [container(&full, &json!({"cpu": "1"}))]}), Burstable),
        (json!({"containers": [container(&json!({"cpu": "1"}), &json!({"cpu": "1"}))]}), Burstable),
        (json!({"containers": [container(&full, &full), {"name": "bare"}]}), Burstable),
        (json!({"containers": [container(&full, &full)], "initContainers": [{"name": "bare"}]}), Burstable),
        (json!({"containers": [container(&none, &json!({"cpu": "1m"}))]}), Burstable),
        // The pod's own resources decide alone.
        (json!({"containers": [{"name": "c"}], "resources": {"limits": full, "requests": full}}), Guaranteed),
        (json!({"containers": [container(&full, &full)], "resources": {"requests": full}}), Burstable),
        (json!({"containers": [container(&full, &full)], "resources": {}}), BestEffort),
        (json!({"containers": [container(&full, &full)], "resources": null}), Guaranteed),
    ] {
        assert_eq!(qos_class(&json!({"spec": spec})), Ok(class), "{spec}");
    }
}

#[test]
fn an_amount_that_is_none_is_named() {
    let pod =
        |amount: Value| json!({"spec": {"containers": [{"name": "a", "resources": {"requests": {"cpu": amount}}}]}});
    let unreadable = effective_requests(&pod(json!("much"))).unwrap_err().to_string();
    assert!(unreadable.starts_with("spec.containers[a].resources.requests[cpu] is \"much\": "), "{unreadable}");
    assert_eq!(qos_class(&pod(json!("much"))).unwrap_err().to_string(), unreadable);
    assert_eq!(requests(&pod(json!(2))), cpu("2"));
}
