use pillion_api::Reason;
use pillion_inject::{Finishing, Installation, Namespace, Outcome};
use pillion_manager::admission::Request;
use pillion_manager::admission::pods::{Owner, begin, is_creation};
use serde_json::{Value, json};

use crate::{answered, asked, body, known, question, set, told};

fn pod() -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "web-", "labels": {"app": "web"},
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": "1"},
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "2", "controller": true}]},
        "spec": {"containers": [{"name": "app", "image": "app:1"}]}})
}

fn adding(name: &str, container: &str) -> Value {
    set(name, &json!({"containers": [{"name": container, "image": "sidecar:1"}]}))
}

#[test]
fn a_pod_that_no_set_means_gets_an_empty_answer() {
    let mut other = pod();
    other["metadata"]["labels"] = json!({"app": "other"});
    let (answer, told) = asked(&other, &[adding("mesh", "proxy")]);
    assert_eq!(told, json!({"uid": "u-1", "allowed": true}));
    assert_eq!(answer.outcomes, []);
}

#[test]
fn a_pod_that_no_set_means_is_finished_where_that_is_on() {
    let told_with = |pod: &Value, finish: Option<Finishing<'_>>| {
        let bytes = body("", "pods", "CREATE", pod);
        let request = Request::parse(&bytes).unwrap();
        let (known, namespace) = (known(&[]), Namespace::named("shop"));
        let installation = Installation { finish, ..Installation::default() };
        let answer = answered(begin(&request, question(&known, &namespace, installation)).unwrap());
        (told(&answer.response), answer.refusal)
    };
    let mut named = pod();
    named["metadata"]["annotations"] = json!({"pillion.dev/sidecars": "logs"});
    named["spec"]["containers"] = json!([{"name": "app", "image": "app:1"}, {"name": "logs", "image": "logs:1"}]);
    let mut variable = pod();
    let env = json!([{"name": "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT_WITH_IMAGE", "value": "exit:1"}]);
    variable["spec"]["containers"] = json!([{"name": "app", "image": "app:1"}, {"name": "logs", "env": env}]);
    let empty = json!({"uid": "u-1", "allowed": true});
    for marked in [&named, &variable] {
        assert_eq!(told_with(marked, None), (empty.clone(), None));
        assert_eq!(told_with(marked, Some(Finishing::default())).0["patchType"], "JSONPatch");
    }
    assert_eq!(told_with(&pod(), Some(Finishing::default())), (empty, None));
    let warnings = &told_with(&variable, Some(Finishing::default())).0["warnings"];
    let ignored = "the image in KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT_WITH_IMAGE is not used";
    assert_eq!(*warnings, json!([format!("container logs: PL355: {ignored}")]));

    named["metadata"]["annotations"] = json!({"pillion.dev/sidecars": "proxy"});
    let (told, refusal) = told_with(&named, Some(Finishing::default()));
    let cure = Reason::UnknownSidecar.cure();
    let message = format!("PL318: annotation pillion.dev/sidecars names proxy (there are: app, logs): {cure}");
    assert_eq!(told["status"]["message"], message);
    let refusal = refusal.unwrap();
    assert_eq!((refusal.set, refusal.reason), (None, Reason::UnknownSidecar));
    assert_eq!(refusal.owner.unwrap().name, "web");
}

#[test]
fn an_injected_pod_is_audited_by_set() {
    let (answer, told) = asked(&pod(), &[adding("mesh", "proxy"), adding("logs", "shipper")]);
    assert_eq!(answer.outcomes, [(Outcome::Applied, Reason::Injected); 2]);
    assert_eq!(told["auditAnnotations"], json!({"sets": "logs=inject:PL201 mesh=inject:PL201"}));
    assert_eq!((&told["allowed"], &told["patchType"]), (&json!(true), &json!("JSONPatch")));
}

#[test]
fn a_refusal_names_every_set_with_its_cure_and_who_wanted_the_pod() {
    let (answer, told) = asked(&pod(), &[adding("mesh", "app"), adding("logs", "app"), adding("fine", "proxy")]);
    let cure = Reason::ContainerClash.cure();
    let message = format!(
        "SidecarSet logs: PL306: the pod has a container app of its own: {cure}\n\
         SidecarSet mesh: PL306: the pod has a container app of its own: {cure}"
    );
    assert_eq!(told["status"], json!({"code": 403, "reason": "Forbidden", "message": message}));
    assert_eq!(told.get("patch"), None);
    let refusal = answer.refusal.unwrap();
    assert_eq!((refusal.set.as_deref(), refusal.reason), (Some("logs"), Reason::ContainerClash));
    let owner = Owner {
        api_version: "apps/v1".to_owned(),
        kind: "ReplicaSet".to_owned(),
        name: "web".to_owned(),
        uid: "2".to_owned(),
    };
    assert_eq!(refusal.owner, Some(owner));
}

#[test]
fn a_set_that_is_left_out_warns_whoever_made_the_pod() {
    let mut ignoring = adding("mesh", "app");
    ignoring["spec"]["failurePolicy"] = "Ignore".into();
    let (answer, told) = asked(&pod(), &[ignoring]);
    assert_eq!(answer.outcomes, [(Outcome::Ignored, Reason::ContainerClash)]);
    let warning = told["warnings"][0].as_str().unwrap();
    assert!(warning.starts_with("SidecarSet mesh: PL306: the pod has a container app of its own: "), "{warning}");
    assert_eq!(told["allowed"], true);
}

#[test]
fn a_pinned_revision_that_is_nowhere_is_not_replaced_by_the_latest() {
    let mut pinned = adding("mesh", "proxy");
    pinned["spec"]["injectStrategy"] = json!({"controllerRevision": "mesh-1"});
    let (answer, _) = asked(&pod(), &[pinned]);
    assert_eq!(answer.outcomes, [(Outcome::Refused, Reason::RevisionMissing)]);
}

#[test]
fn only_creations_of_pods_are_looked_at() {
    for (group, resource, operation, looked_at) in [
        ("", "pods", "CREATE", true),
        ("", "pods", "UPDATE", false),
        ("", "services", "CREATE", false),
        ("example.com", "pods", "CREATE", false),
    ] {
        let bytes = body(group, resource, operation, &pod());
        assert_eq!(is_creation(&Request::parse(&bytes).unwrap()), looked_at, "{group}/{resource} {operation}");
    }
}
