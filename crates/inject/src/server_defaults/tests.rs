use super::*;

fn limit_range(name: &str, items: &Value) -> LimitRange {
    LimitRange::read(&json!({"metadata": {"name": name, "namespace": "shop"}, "spec": {"limits": items}})).unwrap()
}

fn pod(containers: &Value) -> Value {
    json!({"metadata": {"namespace": "shop"}, "spec": {"serviceAccountName": "own", "serviceAccount": "own", "containers": containers}})
}

/// The fields that were filled in, each on a line.
fn told(filled: &[Filled]) -> Vec<String> {
    filled.iter().map(|filled| format!("{} = {} ({})", filled.path, filled.value, filled.by)).collect()
}

#[test]
fn requests_come_from_limits_where_they_are_missing() {
    let mut pod = pod(&json!([
        {"name": "both", "resources": {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}}},
        {"name": "none", "resources": {}},
        {"name": "only", "resources": {"requests": {"cpu": 1}}},
    ]));
    pod["spec"]["initContainers"] = json!([{"name": "init", "resources": {"limits": {"example.com/gpu": 1}}}]);
    let filled = fill_in(&mut pod, "shop", &[]);
    assert_eq!(
        told(&filled),
        [
            "spec.containers[both].resources.requests[memory] = 1Gi (copied from the limit)",
            "spec.initContainers[init].resources.requests[example.com/gpu] = 1 (copied from the limit)",
        ]
    );
    assert_eq!(
        pod["spec"]["containers"],
        json!([
            {"name": "both", "resources": {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1Gi"}}},
            {"name": "none", "resources": {}},
            {"name": "only", "resources": {"requests": {"cpu": 1}}},
        ])
    );
    assert_eq!(fill_in(&mut pod, "shop", &[]), [], "a second time there is nothing left to do");
}

#[test]
fn a_limit_range_fills_in_after_the_pods_own_defaults() {
    let range = limit_range(
        "sizes",
        &json!([{"type": "Container", "default": {"cpu": "500m"}, "defaultRequest": {"cpu": "100m", "memory": "64Mi"}}]),
    );
    let mut pod = pod(&json!([
        {"name": "limited", "resources": {"limits": {"cpu": "2"}}},
        {"name": "asking", "resources": {"requests": {"cpu": "200m"}}},
        {"name": "bare"},
    ]));
    let filled = fill_in(&mut pod, "shop", &[&range]);
    assert_eq!(
        told(&filled),
        [
            "spec.containers[limited].resources.requests[cpu] = 2 (copied from the limit)",
            "spec.containers[limited].resources.requests[memory] = 64Mi (LimitRange sizes)",
            "spec.containers[asking].resources.limits[cpu] = 500m (LimitRange sizes)",
            "spec.containers[asking].resources.requests[memory] = 64Mi (LimitRange sizes)",
            "spec.containers[bare].resources.limits[cpu] = 500m (LimitRange sizes)",
            "spec.containers[bare].resources.requests[cpu] = 100m (LimitRange sizes)",
            "spec.containers[bare].resources.requests[memory] = 64Mi (LimitRange sizes)",
        ]
    );
    assert_eq!(
        pod["spec"]["containers"][2]["resources"],
        json!({"limits": {"cpu": "500m"}, "requests": {"cpu": "100m", "memory": "64Mi"}})
    );
}

#[test]
fn a_limit_range_has_defaults_of_its_own() {
    let amounts = |item: Value| {
        let range = limit_range("sizes", &json!([item]));
        json!([range.limits, range.requests])
    };
    for (item, expected) in [
        (json!({"default": {"cpu": "1"}}), json!([{"cpu": "1"}, {"cpu": "1"}])),
        (json!({"max": {"cpu": "2"}}), json!([{"cpu": "2"}, {"cpu": "2"}])),
        (
            json!({"max": {"cpu": "2"}, "default": {"cpu": "1"}, "min": {"cpu": "10m"}}),
            json!([{"cpu": "1"}, {"cpu": "1"}]),
        ),
        (json!({"min": {"cpu": "10m"}}), json!([{}, {"cpu": "10m"}])),
        (json!({"defaultRequest": {"cpu": "5m"}, "max": {"cpu": "2"}}), json!([{"cpu": "2"}, {"cpu": "5m"}])),
    ] {
        let mut with_type = item.clone();
        with_type["type"] = json!("Container");
        assert_eq!(amounts(with_type), expected, "{item}");
        for other in ["Pod", "PersistentVolumeClaim"] {
            let mut of_others = item.clone();
            of_others["type"] = json!(other);
            assert_eq!(amounts(of_others), json!([{}, {}]), "{item}");
        }
    }
}

#[test]
fn the_first_of_two_limit_ranges_wins() {
    let item = |cpu: &str| json!({"type": "Container", "default": {"cpu": cpu}});
    let (first, second) = (limit_range("a", &json!([item("1")])), limit_range("b", &json!([item("2")])));
    let mut pod = pod(&json!([{"name": "app"}]));
    fill_in(&mut pod, "shop", &[&first, &second]);
    assert_eq!(pod["spec"]["containers"][0]["resources"], json!({"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}));
}

#[test]
fn the_account_and_the_namespace_are_filled_in() {
    let mut pod = json!({"spec": {"containers": []}});
    let filled = fill_in(&mut pod, "shop", &[]);
    assert_eq!(
        told(&filled),
        [
            "metadata.namespace = shop (the namespace it is created in)",
            "spec.serviceAccountName = default (no account is named)",
        ]
    );
    assert_eq!(
        pod,
        json!({"metadata": {"namespace": "shop"}, "spec": {"containers": [], "serviceAccountName": "default", "serviceAccount": "default"}})
    );
    for (given, account) in [
        (json!({"serviceAccountName": "a"}), "a"),
        (json!({"serviceAccount": "b"}), "b"),
        (json!({"serviceAccountName": "a", "serviceAccount": "b"}), "a"),
        (json!({"serviceAccountName": "", "serviceAccount": "b"}), "b"),
    ] {
        let mut pod = json!({"metadata": {"namespace": "own"}, "spec": given});
        assert_eq!(fill_in(&mut pod, "shop", &[]), [], "{given}");
        assert_eq!(pod["spec"], json!({"serviceAccountName": account, "serviceAccount": account}), "{given}");
        assert_eq!(pod["metadata"]["namespace"], "own");
    }
}

#[test]
fn what_is_not_as_kubernetes_has_it_stays() {
    let range = limit_range("sizes", &json!([{"type": "Container", "default": {"cpu": "1"}}]));
    for mut pod in [
        json!(1),
        json!({"metadata": 1, "spec": 2}),
        json!({"metadata": {"namespace": "a"}, "spec": {"containers": 3}}),
    ] {
        let before = pod.clone();
        fill_in(&mut pod, "shop", &[&range]);
        assert_eq!(pod["spec"]["containers"], before["spec"]["containers"]);
        assert_eq!(pod["metadata"], before["metadata"]);
    }
    let mut pod = pod(&json!([1, {"name": "a", "resources": 2}, {"name": "b", "resources": {"limits": 3}}]));
    fill_in(&mut pod, "shop", &[&range]);
    assert_eq!(
        pod["spec"]["containers"],
        json!([1, {"name": "a", "resources": 2}, {"name": "b", "resources": {"limits": 3, "requests": {"cpu": "1"}}}])
    );
    let unreadable = |limits: Value| LimitRange::read(&json!({"spec": {"limits": limits}})).unwrap_err().to_string();
    assert_eq!(unreadable(json!(1)), "spec.limits is no list");
    assert_eq!(unreadable(json!([1])), "spec.limits[0] is no object");
    assert_eq!(unreadable(json!([{"type": "Container", "max": 1}])), "spec.limits[0].max is no object");
}
