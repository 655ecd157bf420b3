//! The stories of computed resources: the sets of `examples/sidecarset`, the pods of `examples/pods`, and exactly the
//! numbers that were promised.

use serde_json::{Value, json};

use crate::asking::{after, ask, joined, mark, pod, read, set, with};
use crate::scenarios::resources;

macro_rules! story {
    ($name:literal) => {
        (
            include_str!(concat!("../../../../examples/sidecarset/", $name, ".yaml")),
            include_str!(concat!("../../../../examples/pods/", $name, ".yaml")),
        )
    };
}

/// The pod of a story as it comes out, and what was computed: container, field, and the two amounts.
fn told((set, pod): (&str, &str)) -> (Value, Value, Value) {
    let sets = [read(&serde_saphyr::from_str(set).unwrap())];
    let pod: Value = serde_saphyr::from_str(pod).unwrap();
    let after = after(&ask(&pod, &sets));
    let record = &after["metadata"]["annotations"]["pillion.dev/decision"]["sets"][&sets[0].name];
    assert_eq!(record["code"], "PL201");
    assert_eq!(after["metadata"]["annotations"]["kruise.io/sidecarset-injected-list"], sets[0].name);
    (pod, after.clone(), record["sizes"].clone())
}

/// The pod is as it was, with this container in front.
fn in_front(list: &str, (pod, after, _): &(Value, Value, Value), container: &Value) {
    let mut spec = pod["spec"].clone();
    let mut containers = vec![container.clone()];
    containers.extend(spec[list].as_array().into_iter().flatten().cloned());
    spec[list] = json!(containers);
    assert_eq!(after["spec"], spec);
}

fn sidecar(resources: &Value) -> Value {
    json!({"name": "sidecar1", "image": "centos:6.7", "env": [mark()], "resources": resources})
}

// Scenario 28.
#[test]
fn story_1_follows_one_container() {
    let told = told(story!("story-1-one-container"));
    in_front("containers", &told, &sidecar(&resources(["100m", "200Mi"], ["50m", "100Mi"])));
    let sizes = json!({
        "limits.cpu": ["200m", "100m"], "limits.memory": ["200Mi", "200Mi"],
        "requests.cpu": ["50m", "50m"], "requests.memory": ["100Mi", "100Mi"],
    });
    assert_eq!(told.2, json!({"sidecar1": sizes}));
}

// Scenario 29.
#[test]
fn story_2_follows_the_sum() {
    let told = told(story!("story-2-sum"));
    in_front("containers", &told, &sidecar(&resources(["300m", "200Mi"], ["75m", "100Mi"])));
    let sizes = json!({
        "limits.cpu": ["600m", "300m"], "limits.memory": ["600Mi", "200Mi"],
        "requests.cpu": ["150m", "75m"], "requests.memory": ["300Mi", "100Mi"],
    });
    assert_eq!(told.2, json!({"sidecar1": sizes}));
}

// Scenario 30.
#[test]
fn story_3_follows_the_largest() {
    let told = told(story!("story-3-max"));
    in_front("containers", &told, &sidecar(&resources(["200m", "200Mi"], ["50m", "100Mi"])));
    let sizes = json!({
        "limits.cpu": ["400m", "200m"], "limits.memory": ["400Mi", "200Mi"],
        "requests.cpu": ["100m", "50m"], "requests.memory": ["200Mi", "100Mi"],
    });
    assert_eq!(told.2, json!({"sidecar1": sizes}));
}

// Scenario 31.
#[test]
fn story_4_has_no_cpu_limit_where_a_target_has_none() {
    let told = told(story!("story-4-unlimited"));
    in_front("containers", &told, &sidecar(&resources(["", "200Mi"], ["50m", "100Mi"])));
    let sizes = json!({
        "limits.cpu": ["unlimited", "unlimited"], "limits.memory": ["400Mi", "200Mi"],
        "requests.cpu": ["100m", "50m"], "requests.memory": ["200Mi", "100Mi"],
    });
    assert_eq!(told.2, json!({"sidecar1": sizes}));
}

// Scenario 32, with the curve of the story.
#[test]
fn story_5_follows_a_curve() {
    let told = told(story!("story-5-curve"));
    in_front("containers", &told, &sidecar(&resources(["2400m", "200Mi"], ["2", "100Mi"])));
    let sizes = json!({
        "limits.cpu": ["6", "2400m"], "limits.memory": ["2Gi", "200Mi"],
        "requests.cpu": ["4", "2"], "requests.memory": ["2Gi", "100Mi"],
    });
    assert_eq!(told.2, json!({"sidecar1": sizes}));
}

// Scenario 32, with the expressions and numbers of OpenKruise's own test.
#[test]
fn straight_lines_with_a_floor_give_the_numbers_of_the_upstream_test() {
    let expressions = json!({
        "limits": {"cpu": "cpu*50% + 100m", "memory": "max(memory*20% + 100Mi, 200Mi)"},
        "requests": {"cpu": "cpu*30% + 50m", "memory": "memory*15% + 50Mi"},
    });
    let policy =
        json!({"targetContainersMode": "sum", "targetContainersNameRegex": "^engine", "resourcesExpr": expressions});
    let sets = [set("lines", json!({"containers": [with("proxy", json!({"resourcesPolicy": policy}))]}))];
    let engines = [
        with("engine-a", json!({"resources": resources(["200m", "400Mi"], ["100m", "200Mi"])})),
        with("engine-b", json!({"resources": resources(["400m", "600Mi"], ["200m", "300Mi"])})),
        with("other", json!({"resources": resources(["9", "9Gi"], ["9", "9Gi"])})),
    ];
    let pod = pod(json!({"containers": engines}));
    let amounts = resources(["400m", "300Mi"], ["140m", "125Mi"]);
    let proxy = joined(with("proxy", json!({"env": [mark()]})), json!({"resources": amounts}));
    let spec = json!({"containers": [proxy, engines[0], engines[1], engines[2]]});
    assert_eq!(after(&ask(&pod, &sets))["spec"], spec);
}

// Scenario 33.
#[test]
fn story_6_sizes_a_native_sidecar() {
    let told = told(story!("story-6-native-sidecar"));
    let amounts = resources(["300m", "500Mi"], ["100m", "150Mi"]);
    let sidecar = json!({
        "name": "init-sidecar", "image": "busybox:latest", "restartPolicy": "Always", "env": [mark()],
        "resources": amounts,
    });
    in_front("initContainers", &told, &sidecar);
    let sizes = json!({
        "limits.cpu": ["1", "300m"], "limits.memory": ["2000Mi", "500Mi"],
        "requests.cpu": ["500m", "100m"], "requests.memory": ["1000Mi", "150Mi"],
    });
    assert_eq!(told.2, json!({"init-sidecar": sizes}));
}
