//! The report of a small cluster, as people and programs see it.
#![expect(clippy::needless_pass_by_value, reason = "tests, in which JSON is written where it is used")]

use serde_json::json;

use super::*;

fn pod(namespace: &str, workload: &str, number: usize, spec: Value, annotations: Value) -> Value {
    let mut pod = json!({
        "metadata": {"namespace": namespace, "name": format!("{workload}-5d-{number}"), "annotations": annotations,
            "labels": {"pod-template-hash": "5d"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": format!("{workload}-5d"),
                "controller": true}]},
        "spec": spec, "status": {"phase": "Running"},
    });
    pod["spec"]["nodeName"] = json!("node-1");
    pod
}

fn container(name: &str, image: &str, cpu: &str, memory: &str) -> Value {
    json!({"name": name, "image": image, "resources": {"requests": {"cpu": cpu, "memory": memory}}})
}

/// Shops with a mesh of ours, a mesh of others, native sidecars, and a pod that nobody measured.
fn cluster() -> (Measured, Tax) {
    let mut pods = Vec::new();
    for number in 0..40 {
        let proxy = container("mesh-proxy", "registry.example/mesh/proxy:1.9.2", "250m", "256Mi");
        let app = container("app", "registry.example/shop/checkout:7", "500m", "1Gi");
        let annotations = json!({"pillion.dev/containers": "mesh-proxy", "kruise.io/sidecarset-injected-list": "mesh"});
        pods.push(pod("shop", "checkout", number, json!({"containers": [app, proxy]}), annotations));
    }
    for (namespace, workload) in [("search", "api"), ("search", "index"), ("payments", "ledger")] {
        for number in 0..3 {
            let app = container("app", "registry.example/app:1", "1", "2Gi");
            let proxy = container("istio-proxy", "docker.io/istio/proxyv2:1.29.0", "100m", "128Mi");
            let mut vault = container("vault-agent", "hashicorp/vault:1.20", "50m", "64Mi");
            vault["restartPolicy"] = json!("Always");
            let spec = json!({"containers": [app, proxy], "initContainers": [vault]});
            pods.push(pod(namespace, workload, number, spec, json!({})));
        }
    }
    let mut measured = Measured::default();
    for pod in pods.iter().skip(1) {
        let used = |name: &str| match name {
            "mesh-proxy" => ("9871234n", "41020Ki"),
            "istio-proxy" => ("21m", "97Mi"),
            "vault-agent" => ("800u", "80Mi"),
            _ => ("300m", "900Mi"),
        };
        let lists = ["initContainers", "containers"].map(|list| pod["spec"][list].as_array().cloned());
        let containers = lists.into_iter().flatten().flatten().map(|container| {
            let (cpu, memory) = used(container["name"].as_str().unwrap());
            json!({"name": container["name"], "usage": {"cpu": cpu, "memory": memory}})
        });
        let metadata = json!({"namespace": pod["metadata"]["namespace"], "name": pod["metadata"]["name"]});
        let containers: Vec<Value> = containers.collect();
        measured.take(&json!({"metadata": metadata, "timestamp": "2026-11-15T22:40:05Z", "containers": containers}));
    }
    let sets =
        containers_of(&[json!({"metadata": {"name": "mesh"}, "spec": {"containers": [{"name": "mesh-proxy"}]}})]);
    let mut survey = Survey::new(&measured, &sets);
    for pod in &pods {
        survey.take(pod);
    }
    let tax = survey.tax();
    (measured, tax)
}

#[test]
fn the_report_fits_eighty_columns() {
    let (measured, tax) = cluster();
    let text = view::text(&tax, measured.span.as_ref(), None, Detail::Columns(80));
    assert_eq!(text.lines().find(|line| line.chars().count() > 80), None);
    insta::assert_snapshot!(text);
}

#[test]
fn the_report_says_more_in_a_hundred_and_twenty_columns() {
    let (measured, tax) = cluster();
    let text = view::text(&tax, measured.span.as_ref(), None, Detail::Columns(120));
    assert_eq!(text.lines().find(|line| line.chars().count() > 120), None);
    insta::assert_snapshot!(text);
}

#[test]
fn one_table_alone() {
    let (measured, tax) = cluster();
    insta::assert_snapshot!(view::text(&tax, measured.span.as_ref(), Some(By::Namespace), Detail::Columns(80)));
}

#[test]
fn all_there_is() {
    let (measured, tax) = cluster();
    insta::assert_snapshot!(view::text(&tax, measured.span.as_ref(), None, Detail::Wide));
}

#[test]
fn programs_get_exact_numbers() {
    let (measured, tax) = cluster();
    insta::assert_snapshot!(format!("{:#}", view::json(&tax, measured.span.as_ref())));
    insta::assert_snapshot!(view::csv(&tax, None));
    insta::assert_snapshot!(view::csv(&tax, Some(By::Set)));
}

#[test]
fn a_cluster_without_sidecars_and_one_without_measurements_say_so() {
    let none = Tax { pods: 3, ..Tax::default() };
    assert_eq!(
        view::text(&none, None, None, Detail::Columns(80)).lines().next(),
        Some("no sidecar was found in 3 pods")
    );
    let (measured, sets) = (Measured::default(), BTreeMap::new());
    let mut survey = Survey::new(&measured, &sets);
    let mut vault = container("vault-agent", "hashicorp/vault:1.20", "50m", "64Mi");
    vault["restartPolicy"] = json!("Always");
    let spec = json!({"containers": [container("app", "app", "450m", "64Mi")], "initContainers": [vault]});
    survey.take(&pod("shop", "web", 0, spec, json!({})));
    insta::assert_snapshot!(view::text(&survey.tax(), None, Some(By::Container), Detail::Columns(80)));
}

#[test]
fn names_of_a_spreadsheet_are_quoted_where_they_must() {
    let (measured, sets) = (Measured::default(), BTreeMap::new());
    let mut survey = Survey::new(&measured, &sets);
    let mut odd = container("odd", "what,\"ever\"", "50m", "64Mi");
    odd["restartPolicy"] = json!("Always");
    survey.take(&pod("shop", "web", 0, json!({"containers": [], "initContainers": [odd]}), json!({})));
    let text = view::csv(&survey.tax(), None);
    assert_eq!(text.lines().nth(1), Some("native,,odd,\"what,\"\"ever\"\"\",shop,1,1,0,50,0,0,67108864,0,0"));
}
