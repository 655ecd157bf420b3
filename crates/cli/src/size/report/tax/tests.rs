//! What sidecars come to, by example.

use serde_json::json;

use super::*;

const MILLI: i128 = 1_000_000;
const MEBI: i128 = 1 << 20;

fn container(name: &str, image: &str, cpu: &str, memory: &str) -> Value {
    json!({"name": name, "image": image, "resources": {"requests": {"cpu": cpu, "memory": memory}}})
}

/// A pod of a Deployment.
fn pod(namespace: &str, workload: &str, number: u8, containers: &[Value]) -> Value {
    json!({
        "metadata": {"namespace": namespace, "name": format!("{workload}-5d-{number}"), "annotations": {},
            "labels": {"pod-template-hash": "5d"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": format!("{workload}-5d"),
                "controller": true}]},
        "spec": {"nodeName": "node", "containers": containers},
        "status": {"phase": "Running"},
    })
}

fn metrics(pod: &Value, used: &[(&str, &str, &str)]) -> Value {
    let containers =
        used.iter().map(|(name, cpu, memory)| json!({"name": name, "usage": {"cpu": cpu, "memory": memory}}));
    json!({"metadata": {"namespace": pod["metadata"]["namespace"], "name": pod["metadata"]["name"]},
        "timestamp": "2026-11-15T22:40:05Z", "containers": containers.collect::<Vec<_>>()})
}

fn tax(pods: &[Value], used: &[Value]) -> Tax {
    let mut measured = Measured::default();
    for metrics in used {
        measured.take(metrics);
    }
    let sets = BTreeMap::from([("mesh".to_owned(), BTreeSet::from(["proxy".to_owned()]))]);
    let mut survey = Survey::new(&measured, &sets);
    for pod in pods {
        survey.take(pod);
    }
    survey.tax()
}

fn names(tax: &Tax) -> Vec<(Kin, &str, &str)> {
    tax.groups.keys().map(|group| (group.kin.clone(), &*group.container, &*group.namespace)).collect()
}

/// The app, and a container beside it that nobody marked.
fn meshed(namespace: &str, workload: &str, number: u8) -> Value {
    let proxy = container("istio-proxy", "registry.example:5000/istio/proxyv2:1.29.0", "100m", "128Mi");
    pod(namespace, workload, number, &[container("app", "shop/app:1", "1", "1Gi"), proxy])
}

#[test]
fn a_container_of_two_workloads_is_a_sidecar_and_one_of_two_pods_is_not() {
    let same = tax(&[meshed("shop", "web", 0), meshed("shop", "web", 1)], &[]);
    assert_eq!(names(&same), []);
    assert_eq!(same.all, Pair { cpu: 2200 * MILLI, memory: 2 * 1152 * MEBI });
    let other = tax(&[meshed("shop", "web", 0), meshed("pay", "web", 0)], &[]);
    assert_eq!(names(&other), [(Kin::Shared, "istio-proxy", "pay"), (Kin::Shared, "istio-proxy", "shop")]);
    assert_eq!(other.groups.keys().next().map(|group| &*group.repository), Some("registry.example:5000/istio/proxyv2"));
    assert_eq!((other.sidecars.containers, other.sidecars.workloads.len()), (2, 2));
}

#[test]
fn the_main_container_is_no_sidecar_however_often_it_is_found() {
    let mut first = meshed("shop", "blue", 0);
    let green = meshed("shop", "green", 0);
    assert_eq!(names(&tax(&[first.clone(), green.clone()], &[])), [(Kin::Shared, "istio-proxy", "shop")]);
    // A proxy that starts before the app stands in front of it, and the pod says which of both is meant.
    first["spec"]["containers"].as_array_mut().unwrap().reverse();
    first["metadata"]["annotations"][DEFAULT_CONTAINER] = json!("app");
    assert_eq!(names(&tax(&[first, green], &[])), [(Kin::Shared, "istio-proxy", "shop")]);
}

#[test]
fn what_sets_injected_and_what_is_always_restarted_counts_in_a_single_pod() {
    let mut one = pod(
        "shop",
        "web",
        0,
        &[container("proxy", "mesh/proxy@sha256:00", "100m", "64Mi"), container("app", "a", "1", "1Gi")],
    );
    one["metadata"]["annotations"] =
        json!({"pillion.dev/containers": "proxy,gone", "kruise.io/sidecarset-injected-list": "logs,mesh"});
    one["spec"]["initContainers"] = json!([
        {"name": "setup", "image": "setup", "resources": {"requests": {"cpu": "4"}}},
        {"name": "vault", "image": "vault:2", "restartPolicy": "Always", "resources": {"requests": {"cpu": "50m"}}},
    ]);
    let found = tax(&[one.clone()], &[]);
    assert_eq!(names(&found), [(Kin::Set(Some("mesh".into())), "proxy", "shop"), (Kin::Native, "vault", "shop")]);
    // An init container that ends asks for nothing any more.
    assert_eq!(found.all, Pair { cpu: 1150 * MILLI, memory: 1088 * MEBI });
    assert_eq!(found.lines(By::Set).iter().map(|line| line.name.as_str()).collect::<Vec<_>>(), ["mesh"]);
    // Two sets, and neither has the container any more.
    one["metadata"]["annotations"]["pillion.dev/containers"] = json!("vault");
    let found = tax(&[one], &[]);
    assert_eq!(names(&found), [(Kin::Set(None), "vault", "shop")]);
}

#[test]
fn pods_of_others_injectors_are_known_by_the_variable() {
    let mut one = meshed("shop", "web", 0);
    one["spec"]["containers"][1]["env"] = json!([{"name": "IS_INJECTED", "value": "true"}]);
    one["metadata"]["annotations"]["kruise.io/sidecarset-injected-list"] = json!("istio");
    assert_eq!(names(&tax(&[one], &[])), [(Kin::Set(Some("istio".into())), "istio-proxy", "shop")]);
}

#[test]
fn what_was_not_measured_is_compared_with_nothing() {
    let (first, second) = (meshed("shop", "web", 0), meshed("pay", "api", 0));
    let used = metrics(&first, &[("app", "900m", "1Gi"), ("istio-proxy", "4600123n", "40Mi")]);
    let found = tax(&[first, second], &[used]);
    let expected = Sums {
        containers: 2,
        measured: 1,
        requested: Pair { cpu: 200 * MILLI, memory: 256 * MEBI },
        compared: Pair { cpu: 100 * MILLI, memory: 128 * MEBI },
        used: Pair { cpu: 4_600_123, memory: 40 * MEBI },
        workloads: BTreeSet::from([0, 1]),
    };
    assert_eq!(found.sidecars, expected);
}

#[test]
fn pods_without_a_place_and_pods_that_ended_ask_for_nothing() {
    let mut waiting = meshed("shop", "web", 0);
    waiting["spec"]["nodeName"] = json!("");
    let mut ended = meshed("pay", "api", 0);
    ended["status"]["phase"] = json!("Succeeded");
    let found = tax(&[waiting, ended], &[]);
    assert_eq!((found.pods, found.all, found.groups.len()), (0, Pair::default(), 0));
}

#[test]
fn the_line_with_the_most_unused_cpu_is_first() {
    let (first, second) = (meshed("shop", "web", 0), meshed("pay", "api", 0));
    let used =
        [metrics(&first, &[("istio-proxy", "90m", "40Mi")]), metrics(&second, &[("istio-proxy", "10m", "40Mi")])];
    let found = tax(&[first, second], &used);
    let lines = found.lines(By::Namespace);
    assert_eq!(lines.iter().map(|line| line.name.as_str()).collect::<Vec<_>>(), ["pay", "shop"]);
    let lines = found.lines(By::Container);
    assert_eq!((lines.len(), lines[0].namespaces, lines[0].sums.containers), (1, 2, 2));
    assert_eq!(lines[0].kin, Some(Kin::Shared));
}

#[test]
fn the_measurement_has_a_first_and_a_last_moment() {
    let mut measured = Measured::default();
    let mut one = metrics(&meshed("shop", "web", 0), &[]);
    measured.take(&one);
    one["timestamp"] = json!("2026-11-15T22:39:58Z");
    measured.take(&one);
    let expected = ("2026-11-15T22:39:58Z".to_owned(), "2026-11-15T22:40:05Z".to_owned());
    assert_eq!(measured.span, Some(expected));
}

#[test]
fn a_tag_and_a_digest_are_no_part_of_the_repository() {
    for (image, expected) in [
        ("proxy", "proxy"),
        ("proxy:1", "proxy"),
        ("host:5000/proxy", "host:5000/proxy"),
        ("host:5000/proxy:1@sha256:00", "host:5000/proxy"),
    ] {
        assert_eq!(repository(image), expected);
    }
}
