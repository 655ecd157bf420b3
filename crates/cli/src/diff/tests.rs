//! What an edit does to a cluster, as people see it.
#![expect(clippy::needless_pass_by_value, reason = "tests, in which JSON is written where it is used")]

use serde_json::{Value, json};

use super::change::changes;
use super::survey::Survey;
use super::{Output, shown};
use crate::installation::Facts;
use crate::live::World;
use crate::manifest;

fn set(name: &str, image: &str, more: Value) -> Value {
    let mut spec = json!({"selector": {"matchLabels": {"app": "web"}}, "containers": [{"name": "proxy", "image": image,
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}}}]});
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "SidecarSet", "metadata": {"name": name}, "spec": spec})
}

fn workload(kind: &str, name: &str, label: &str, containers: &[&str]) -> Value {
    let version = if kind == "Job" { "batch/v1" } else { "apps/v1" };
    let containers: Vec<Value> =
        containers.iter().map(|name| json!({"name": name, "image": "registry.example/app:1"})).collect();
    json!({"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": "shop", "uid": name},
        "spec": {"template": {"metadata": {"labels": {"app": label}}, "spec": {"containers": containers}}}})
}

fn owned(mut object: Value, owner: &str) -> Value {
    object["metadata"]["ownerReferences"] = json!([{"controller": true, "uid": owner}]);
    object
}

fn pod(name: &str, label: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "shop", "uid": name, "labels": {"app": label}},
        "spec": {"containers": [{"name": "app", "image": "registry.example/app:1"}]}, "status": {"phase": "Running"}})
}

/// Two Deployments, of which one has a container that clashes; a finished Job; and pods.
fn objects() -> Vec<Value> {
    let mut finished = workload("Job", "import", "web", &["app"]);
    finished["status"] = json!({"conditions": [{"type": "Complete", "status": "True"}]});
    let mut ended = pod("ended", "web");
    ended["status"]["phase"] = json!("Succeeded");
    let mut objects = vec![
        workload("Deployment", "web", "web", &["app"]),
        workload("Deployment", "legacy", "web", &["app", "agent"]),
        workload("Deployment", "other", "db", &["app"]),
        owned(workload("ReplicaSet", "web-1", "web", &["app"]), "web"),
        finished,
        ended,
        pod("alone", "web"),
        owned(pod("of-unknown", "web"), "nobody"),
    ];
    // What they look like does not matter: what their template says does.
    objects.extend((0..8).map(|at| owned(pod(&format!("web-1-{at}"), "none"), "web-1")));
    objects
}

fn surveyed(live: &[Value], files: &[Value], output: Output) -> (String, bool) {
    let world = World::read(live, &[json!({"metadata": {"name": "shop"}})], &[], Facts::default());
    let text = files.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n---\n");
    let manifests = manifest::parse("sets.yaml", text.as_bytes()).unwrap();
    let changes = changes(&manifests, &world).unwrap();
    let mut survey = Survey::new(&world, &changes, 3);
    for object in objects() {
        survey.take(&object);
    }
    (shown(&changes, &survey, output), survey.is_finding())
}

#[test]
fn an_image_that_changes_reaches_all_pods_of_the_set() {
    let live = [set("mesh", "registry.example/proxy:1", json!({}))];
    let edited = [set("mesh", "registry.example/proxy:2", json!({}))];
    let (text, is_finding) = surveyed(&live, &edited, Output::Text);
    assert!(!is_finding);
    insta::assert_snapshot!(text);
}

#[test]
fn a_pod_that_would_be_refused_is_a_finding_and_named_with_the_way_out() {
    let agent = json!({"containers": [{"name": "agent", "image": "registry.example/agent:1"}]});
    let (text, is_finding) = surveyed(&[], &[set("agent", "", agent.clone())], Output::Text);
    assert!(is_finding);
    insta::assert_snapshot!(text);
    let (json, _) = surveyed(&[], &[set("agent", "", agent.clone())], Output::Json);
    insta::assert_snapshot!(json);
    // It is refused already, and that is a finding still.
    let live = [set("agent", "", agent.clone())];
    let (text, is_finding) = surveyed(&live, &live, Output::Text);
    assert!(is_finding && text.starts_with("SidecarSet agent: as the cluster has it\n"), "{text}");
    assert!(text.contains("\n  are refused already          0          1\n"), "{text}");
}

#[test]
fn two_sets_are_told_one_after_the_other() {
    let files = [
        set("mesh", "registry.example/proxy:1", json!({"selector": {"matchLabels": {"app": "db"}}})),
        set("agent", "registry.example/a:1", json!({"mode": "Observe"})),
    ];
    let (text, _) = surveyed(&[], &files, Output::Text);
    insta::assert_snapshot!(text);
}

#[test]
fn what_is_wrong_with_the_files_is_told_with_its_place() {
    let world = World::default();
    let told = |files: &[Value]| {
        let text = files.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n---\n");
        changes(&manifest::parse("sets.yaml", text.as_bytes()).unwrap(), &world).map(|found| found.len())
    };
    let fine = set("mesh", "registry.example/proxy:1", json!({}));
    assert_eq!(
        told(&[fine.clone(), fine.clone()]),
        Err(vec!["sets.yaml: set mesh is given twice: keep one".to_owned()])
    );
    let errors = told(&[set("mesh", "x", json!({"selector": {}}))]).unwrap_err();
    assert!(errors[0].starts_with("sets.yaml:1:") && errors[0].contains("PL106"), "{errors:?}");
    assert_eq!(told(&[json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}})]), Ok(0));
}

#[test]
fn a_conflict_with_a_set_of_the_cluster_is_an_error_if_it_is_certain() {
    let world = World::read(&[set("mesh", "registry.example/proxy:1", json!({}))], &[], &[], Facts::default());
    let text = set("agent", "registry.example/agent:1", json!({})).to_string();
    let manifests = manifest::parse("agent.yaml", text.as_bytes()).unwrap();
    let errors = changes(&manifests, &world).map(|found| found.len()).unwrap_err();
    assert!(errors.len() == 1 && errors[0].contains("PL128"), "{errors:?}");
    let other = json!({"selector": {"matchLabels": {"tier": "front"}}});
    let text = set("agent", "registry.example/agent:1", other).to_string();
    let manifests = manifest::parse("agent.yaml", text.as_bytes()).unwrap();
    let warnings = changes(&manifests, &world).unwrap().remove(0).warnings;
    assert!(warnings.len() == 1 && warnings[0].contains("PL160"), "{warnings:?}");
    let text = set("idle", "registry.example/agent:1", json!({"mode": "Observe"})).to_string();
    let manifests = manifest::parse("idle.yaml", text.as_bytes()).unwrap();
    let warnings = changes(&manifests, &world).unwrap().remove(0).warnings;
    assert_eq!(warnings, ["set idle only observes: it gives no pod anything"]);
}
