//! Pods that an autoscaler sizes, with and without sets that follow their size.

use std::collections::BTreeSet;

use pillion_api::{SetMode, VerticalPodAutoscaler};
use pillion_inject::{Installation, Namespace};
use pillion_manager::admission::pods::{Question, begin};
use pillion_manager::admission::{Autoscalers, Request, Rightsizing};
use pillion_quantity::Quantity;
use pillion_rightsize::{Autoscaler, Gates, LimitRanges};
use serde_json::{Value, json};

use crate::{answered, body, known, question, set, told};

/// Everything that decides besides the pod.
struct Cluster {
    sets: Vec<Value>,
    autoscalers: Vec<Value>,
    limits: LimitRanges,
    gates: Gates,
    max_boost: Option<i64>,
    is_beside_upstream: bool,
    installation: Installation<'static>,
}

impl Default for Cluster {
    fn default() -> Self {
        Self {
            sets: Vec::new(),
            autoscalers: vec![autoscaler("Recreate")],
            limits: LimitRanges::default(),
            gates: Gates { native_sidecar: true, startup_boost: false },
            max_boost: None,
            is_beside_upstream: false,
            installation: Installation::default(),
        }
    }
}

impl Cluster {
    /// The answer to a review of a pod.
    fn told(&self, pod: &Value) -> Value {
        let bytes = body("", "pods", "CREATE", pod);
        let request = Request::parse(&bytes).expect("it is a review");
        let namespace = Namespace::named("shop");
        let known = known(&self.sets);
        let read = self.autoscalers.iter().map(|object| {
            let object: VerticalPodAutoscaler = serde_json::from_value(object.clone()).expect("it is an autoscaler");
            Autoscaler::read(&object).expect("it is in order")
        });
        let autoscalers: Autoscalers = read.collect();
        let rightsizing = Rightsizing {
            autoscalers: &autoscalers,
            limits: &self.limits,
            gates: self.gates,
            max_boost: self.max_boost,
            is_beside_upstream: self.is_beside_upstream,
        };
        let question = Question { rightsizing: Some(rightsizing), ..question(&known, &namespace, self.installation) };
        told(&answered(begin(&request, question).expect("it is a pod")).response)
    }

    /// The pod after a review, and what the review changed.
    fn reviewed(&self, pod: &Value) -> (Value, Vec<Value>) {
        let told = self.told(pod);
        assert_eq!(told["allowed"], true, "{told}");
        let Some(patch) = told["patch"].as_str() else { return (pod.clone(), Vec::new()) };
        let bytes: k8s_openapi::ByteString = serde_json::from_value(json!(patch)).expect("it is in base64");
        let operations: Vec<Value> = serde_json::from_slice(&bytes.0).expect("it is JSON");
        let mut after = pod.clone();
        let patch: json_patch::Patch = serde_json::from_value(json!(operations)).expect("it is a patch");
        json_patch::patch(&mut after, &patch).expect("it can be applied");
        (after, operations)
    }
}

/// Sizes all containers of the Deployment.
fn autoscaler(mode: &str) -> Value {
    let recommended = |name: &str, cpu: &str, memory: &str| {
        let list = json!({"cpu": cpu, "memory": memory});
        json!({"containerName": name, "target": list, "lowerBound": list, "upperBound": list, "uncappedTarget": list})
    };
    json!({
        "metadata": {"name": "sizes", "namespace": "shop", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "updatePolicy": {"updateMode": mode}},
        "status": {
            "conditions": [{"type": "RecommendationProvided", "status": "True"}],
            "recommendation": {"containerRecommendations": [
                recommended("app", "400m", "512Mi"),
                recommended("native", "30m", "40Mi"),
                recommended("proxy", "60m", "80Mi"),
                recommended("setup", "1", "1Gi"),
            ]},
        },
    })
}

fn pod() -> Value {
    let resources = |cpu: &str, memory: &str| json!({"requests": {"cpu": cpu, "memory": memory}});
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"generateName": "web-5d-", "labels": {"app": "web", "pod-template-hash": "5d"}, "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5d", "uid": "2", "controller": true}]},
        "spec": {
            "initContainers": [
                {"name": "setup", "image": "setup:1", "resources": resources("2", "1Gi")},
                {"name": "native", "image": "native:1", "restartPolicy": "Always", "resources": resources("10m", "20Mi")},
            ],
            "containers": [{"name": "app", "image": "app:1", "resources": resources("100m", "256Mi")}],
        },
    })
}

/// A set whose container has half of what the app has.
fn half() -> Value {
    let policy = json!({"targetContainersMode": "sum", "targetContainersNameRegex": ".*",
        "resourcesExpr": {"requests": {"cpu": "cpu*50%", "memory": "memory*50%"}}});
    set("mesh", &json!({"containers": [{"name": "other", "image": "sidecar:1", "resourcesPolicy": policy}]}))
}

fn requests(pod: &Value, list: &str, name: &str) -> Value {
    let mut containers = pod["spec"][list].as_array().into_iter().flatten();
    containers.find(|it| it["name"] == name).map_or(Value::Null, |it| it["resources"]["requests"].clone())
}

#[test]
fn containers_and_native_sidecars_get_their_size_and_plain_init_containers_keep_theirs() {
    let (after, patch) = Cluster::default().reviewed(&pod());
    assert_eq!(requests(&after, "containers", "app"), json!({"cpu": "400m", "memory": "512Mi"}));
    assert_eq!(requests(&after, "initContainers", "native"), json!({"cpu": "30m", "memory": "40Mi"}));
    assert_eq!(requests(&after, "initContainers", "setup"), json!({"cpu": "2", "memory": "1Gi"}));
    assert_eq!(after["metadata"]["annotations"]["vpaObservedContainers"], "app, native");
    let places: BTreeSet<&str> =
        patch.iter().filter_map(|it| it["path"].as_str()?.split("/resources").next()).collect();
    assert!(places.contains("/spec/initContainers/1"), "{places:?}");
    assert!(!places.contains("/spec/initContainers/0"), "{places:?}");
    assert_eq!(Cluster::default().told(&pod())["auditAnnotations"], json!({"autoscaler": "sizes"}));
}

#[test]
fn without_the_gate_native_sidecars_are_neither_sized_nor_observed() {
    let cluster = Cluster { gates: Gates::default(), ..Cluster::default() };
    let (after, _) = cluster.reviewed(&pod());
    assert_eq!(after["spec"]["initContainers"], pod()["spec"]["initContainers"]);
    assert_eq!(after["metadata"]["annotations"]["vpaObservedContainers"], "app");
}

#[test]
fn an_expression_sees_the_sized_app_and_a_review_again_changes_nothing() {
    let cluster = Cluster { sets: vec![half()], ..Cluster::default() };
    let (once, _) = cluster.reviewed(&pod());
    assert_eq!(requests(&once, "containers", "app"), json!({"cpu": "400m", "memory": "512Mi"}));
    // Half of 400m and 30m: native sidecars count as containers do.
    assert_eq!(requests(&once, "containers", "other"), json!({"cpu": "215m", "memory": "276Mi"}));
    assert_eq!(once["metadata"]["annotations"]["vpaObservedContainers"], "other, app, native");
    let (twice, patch) = cluster.reviewed(&once);
    assert_eq!((twice, patch), (once, Vec::new()));
}

#[test]
fn a_container_of_a_set_that_the_autoscaler_knows_gets_its_size_from_there_and_the_record_says_so() {
    let sidecars = set(
        "mesh",
        &json!({
            "initContainers": [{"name": "native", "image": "native:1", "restartPolicy": "Always"}],
            "containers": [{"name": "proxy", "image": "proxy:1", "resources": {"requests": {"cpu": "1"}}}],
        }),
    );
    let mut bare = pod();
    bare["spec"]["initContainers"] = json!([]);
    let cluster = Cluster { sets: vec![sidecars], ..Cluster::default() };
    let (once, _) = cluster.reviewed(&bare);
    assert_eq!(requests(&once, "containers", "proxy"), json!({"cpu": "60m", "memory": "80Mi"}));
    assert_eq!(requests(&once, "initContainers", "native"), json!({"cpu": "30m", "memory": "40Mi"}));
    let record = |pod: &Value| -> Value {
        serde_json::from_str(pod["metadata"]["annotations"]["pillion.dev/decision"].as_str().unwrap()).unwrap()
    };
    assert_eq!(record(&once)["sizedBy"], json!({"native": "sizes", "proxy": "sizes"}));
    let (twice, patch) = cluster.reviewed(&once);
    assert_eq!((twice, patch), (once.clone(), Vec::new()));
    // Also where nobody sizes any more by then.
    let later = Cluster { sets: cluster.sets.clone(), autoscalers: Vec::new(), ..Cluster::default() };
    assert_eq!(later.reviewed(&once).1, Vec::<Value>::new());

    let without = Cluster { sets: cluster.sets, gates: Gates::default(), ..Cluster::default() };
    let (once, _) = without.reviewed(&bare);
    assert_eq!(record(&once)["sizedBy"], json!({"proxy": "sizes"}));
    assert_eq!(once["spec"]["initContainers"][0]["resources"], Value::Null);
}

#[test]
fn a_recommendation_that_moves_between_two_reviews_changes_nothing() {
    let cluster = Cluster { sets: vec![half()], ..Cluster::default() };
    let (once, _) = cluster.reviewed(&pod());
    let mut moved = autoscaler("Recreate");
    moved["status"]["recommendation"]["containerRecommendations"][0]["target"] =
        json!({"cpu": "900m", "memory": "1Gi"});
    let later = Cluster { sets: vec![half()], autoscalers: vec![moved], ..Cluster::default() };
    assert_eq!(later.reviewed(&once).1, Vec::<Value>::new());
}

#[test]
fn the_limit_range_of_the_namespace_holds() {
    let range =
        json!({"metadata": {"name": "small"}, "spec": {"limits": [{"type": "Container", "max": {"cpu": "200m"}}]}});
    let mut limited = pod();
    limited["spec"]["containers"][0]["resources"]["limits"] = json!({"cpu": "100m"});
    let cluster = Cluster { limits: LimitRanges::read([&range]), ..Cluster::default() };
    let (after, _) = cluster.reviewed(&limited);
    assert_eq!(after["spec"]["containers"][0]["resources"]["limits"]["cpu"], "200m");
    assert_eq!(requests(&after, "containers", "app"), json!({"cpu": "200m", "memory": "512Mi"}));
}

#[test]
fn what_no_set_and_no_autoscaler_means_gets_an_empty_answer() {
    let empty = json!({"uid": "u-1", "allowed": true});
    let mut other = pod();
    other["metadata"]["ownerReferences"][0]["name"] = json!("db-5d");
    assert_eq!(Cluster::default().told(&other), empty);
    let off = |installation| Cluster { installation, ..Cluster::default() };
    assert_eq!(off(Installation { is_off: true, ..Installation::default() }).told(&pod()), empty);
    assert_eq!(off(Installation { mode: SetMode::Observe, ..Installation::default() }).told(&pod()), empty);
    assert_eq!(off(Installation { own_namespace: Some("shop"), ..Installation::default() }).told(&pod()), empty);
    assert_eq!(Cluster { is_beside_upstream: true, ..Cluster::default() }.told(&pod()), empty);
    let switched = Cluster { autoscalers: vec![autoscaler("Off")], ..Cluster::default() };
    assert_eq!(switched.told(&pod()), empty);
}

#[test]
fn beside_upstream_an_object_that_upstream_takes_for_off_is_applied() {
    let mut own = autoscaler("Off");
    own["metadata"]["annotations"] = json!({"pillion.dev/update-mode": "Initial"});
    let cluster = Cluster { autoscalers: vec![own], is_beside_upstream: true, ..Cluster::default() };
    assert_eq!(requests(&cluster.reviewed(&pod()).0, "containers", "app"), json!({"cpu": "400m", "memory": "512Mi"}));
}

#[test]
fn sizing_refuses_no_pod() {
    let mut level = pod();
    level["spec"]["resources"] = json!({"requests": {"cpu": "1"}});
    let told = Cluster::default().told(&level);
    assert_eq!((&told["allowed"], &told["patch"]), (&json!(true), &Value::Null));
    assert_eq!(
        told["warnings"],
        json!([
            "VerticalPodAutoscaler sizes: the pod is not sized: it has spec.resources, which sizing of containers \
                would contradict: remove them from the template"
        ])
    );
    let mut odd = pod();
    odd["spec"]["containers"] = json!({"name": "app"});
    assert_eq!(Cluster::default().told(&odd)["allowed"], true);
}

#[test]
fn a_start_gets_more_cpu_and_never_more_than_the_installation_allows() {
    let mut sizes = autoscaler("Initial");
    sizes["spec"]["startupBoost"] = json!({"cpu": {"type": "Factor", "factor": 3}});
    let gates = Gates { native_sidecar: true, startup_boost: true };
    let cpu = |max_boost| {
        let cluster = Cluster { autoscalers: vec![sizes.clone()], gates, max_boost, ..Cluster::default() };
        let (after, _) = cluster.reviewed(&pod());
        let of = |list, name| requests(&after, list, name)["cpu"].clone();
        (of("containers", "app"), of("initContainers", "native"))
    };
    assert_eq!(cpu(None), (json!("1200m"), json!("90m")));
    assert_eq!(cpu(Some(1000)), (json!("1"), json!("90m")));
}

#[test]
fn where_sidecars_would_not_fit_beside_the_sized_app_all_share_what_a_pod_may_have() {
    let mut pod = pod();
    for (list, at) in [("initContainers", 0), ("initContainers", 1), ("containers", 0)] {
        let requests = pod["spec"][list][at]["resources"]["requests"].clone();
        pod["spec"][list][at]["resources"]["limits"] = requests;
    }
    let size = json!({"cpu": "10m", "memory": "100Mi"});
    let other = json!({"name": "other", "image": "sidecar:1", "resources": {"requests": size, "limits": size}});
    let sets = vec![set("mesh", &json!({"containers": [other]}))];
    let range =
        json!({"metadata": {"name": "pods"}, "spec": {"limits": [{"type": "Pod", "max": {"memory": "600Mi"}}]}});
    let limits = LimitRanges::read([&range]);
    let cluster = Cluster { sets, limits, ..Cluster::default() };
    let (after, _) = cluster.reviewed(&pod);
    let memory = |list: &str, name: &str| {
        let text = requests(&after, list, name)["memory"].as_str().unwrap_or_default().to_owned();
        text.parse::<Quantity>().expect("a quantity").value()
    };
    let (app, native, other) =
        (memory("containers", "app"), memory("initContainers", "native"), memory("containers", "other"));
    assert_eq!(other, 100 << 20, "nothing is recommended for it");
    // 500Mi are left for what would be 512Mi and 40Mi.
    assert!(app + native <= 500 << 20 && app + native > 499 << 20, "{app} {native}");
    assert!(app > 12 * native && native > 30 << 20, "{app} {native}");
    let (_, again) = cluster.reviewed(&after);
    assert_eq!(again, Vec::<Value>::new(), "a second review changes nothing");
}
