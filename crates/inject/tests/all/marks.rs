//! What says on a pod that something is ours: on pods that are seen again, that were copied, and that lie.

use std::borrow::Cow;

use pillion_api::{Meaning, Reason};
use pillion_inject::PodHead;
use serde_json::{Value, json};

use crate::api_server;
use crate::asking::{
    after, applied, ask, image, injected, mark, metadata, one_app, patch, plain_set, pod, refusal, set, verdicts, with,
};

/// A pod with the sidecar of a set, as the API server stored it.
fn stored() -> Value {
    let (pod, sets) = (one_app(), [plain_set("mesh", "proxy")]);
    api_server::returned(&ask(&pod, &sets).pod.unwrap())
}

fn without(mut pod: Value, field: &str, key: &str) -> Value {
    pod["metadata"][field].as_object_mut().unwrap().remove(key);
    pod
}

/// The change to a pod whose sidecars nobody could check, because their set does not match.
fn unchecked(set: &Meaning) -> Value {
    let value = format!(r#"{{"mesh":{{"is":"{}","altered":true}}}}"#, set.revision);
    json!({"op": "replace", "path": "/metadata/annotations/pillion.dev~1revisions", "value": value})
}

#[test]
fn a_copy_keeps_the_sidecars_it_came_with() {
    let copy = stored();
    let sets = [plain_set("mesh", "proxy")];
    let decision = ask(&copy, &sets);
    assert_eq!(verdicts(&decision), [("mesh", "keep", Reason::AlreadyInjected)]);
    assert_eq!(decision.verdicts[0].message, "the pod has the sidecars of the set");
    assert_eq!(decision.patch, []);
    // Nothing stands behind it any more, and it is still ours; but nobody can tell which revision it has.
    let decision = ask(&copy, &[]);
    assert_eq!((verdicts(&decision), patch(&decision)), (vec![], json!([unchecked(&sets[0])])));
}

#[test]
fn a_copy_that_lost_a_mark_gets_it_back() {
    let sets = [plain_set("mesh", "proxy")];
    for (field, key, value) in [
        ("labels", "pillion.dev~1injected", json!("true")),
        ("annotations", "pillion.dev~1containers", json!("proxy")),
        // How it came about is not known any more.
        ("annotations", "pillion.dev~1decision", json!(r#"{"v":1,"sets":{"mesh":{"code":"PL208"}}}"#)),
    ] {
        let copy = without(stored(), field, &key.replace("~1", "/"));
        let decision = ask(&copy, &sets);
        let path = format!("/metadata/{field}/{key}");
        assert_eq!(patch(&decision), json!([{"op": "add", "path": path, "value": value}]));
        assert_eq!(verdicts(&decision), [("mesh", "keep", Reason::AlreadyInjected)]);
    }
    // The label comes back though no set is asked: the pod is watched by it.
    let copy = without(stored(), "labels", "pillion.dev/injected");
    let path = "/metadata/labels/pillion.dev~1injected";
    let label = json!({"op": "add", "path": path, "value": "true"});
    assert_eq!(patch(&ask(&copy, &[])), json!([unchecked(&sets[0]), label]));
}

#[test]
fn a_copy_that_does_not_say_by_which_set_is_not_guessed_at() {
    let copy = without(stored(), "annotations", "kruise.io/sidecarset-injected-list");
    let message = "the pod has a container proxy that was injected, but not by this set".to_owned();
    assert_eq!(refusal(&ask(&copy, &[plain_set("mesh", "proxy")])), (Reason::ContainerClash, message));
}

#[test]
fn what_openkruise_injected_is_taken_over() {
    let proxy = injected("proxy", json!({}));
    let mut taken = pod(json!({"containers": [proxy, image("app")]}));
    taken["metadata"]["annotations"] = json!({
        "kruise.io/sidecarset-injected-list": "logs,mesh",
        "kruise.io/sidecarset-hash": r#"{"mesh":{"hash":"x","sidecarList":["proxy"]}}"#,
    });
    let sets = [plain_set("mesh", "proxy")];
    let mut expected = applied("mesh", "proxy", taken["spec"].clone());
    let annotations = expected["metadata"]["annotations"].as_object_mut().unwrap();
    annotations["pillion.dev/decision"]["sets"]["mesh"] = json!({"code": "PL208"});
    annotations.insert(
        "kruise.io/sidecarset-hash".to_owned(),
        taken["metadata"]["annotations"]["kruise.io/sidecarset-hash"].clone(),
    );
    assert_eq!(after(&ask(&taken, &sets)), expected);
}

#[test]
fn a_set_that_has_grown_adds_only_what_is_missing() {
    let first = |name: &str| with(name, json!({"podInjectPolicy": "BeforeAppContainer"}));
    let last = |name: &str| with(name, json!({"podInjectPolicy": "AfterAppContainer"}));
    let volume = |size: &str| json!({"name": "spool", "emptyDir": {"sizeLimit": size}});
    let mounts = json!({"volumeMounts": [{"name": "spool", "mountPath": "/spool"}]});
    let spooling = |name: &str| with(name, mounts.clone());
    let before = [set(
        "mesh",
        json!({
            "containers": [first("a"), first("c"), last("x")], "initContainers": [spooling("i")], "volumes": [volume("1024Mi")],
        }),
    )];
    let pod = one_app();
    let stored = api_server::returned(&ask(&pod, &before).pod.unwrap());
    let grown = [set(
        "mesh",
        json!({
            "containers": [first("a"), first("b"), first("c"), last("w"), last("x"), last("y")],
            "initContainers": [spooling("i"), spooling("j")], "volumes": [volume("2Gi")],
        }),
    )];
    let decision = ask(&stored, &grown);
    assert_eq!(verdicts(&decision), [("mesh", "inject", Reason::Injected)]);
    let after = after(&decision);
    let names = |list: &str| -> Vec<String> {
        let containers = after["spec"][list].as_array().unwrap().iter();
        containers.map(|container| container["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names("containers"), ["a", "b", "c", "app", "x", "w", "y"]);
    assert_eq!(names("initContainers"), ["i", "j"]);
    // What is there stays: a volume cannot be changed under a container that has it.
    assert_eq!(after["spec"]["volumes"], stored["spec"]["volumes"]);
    assert_eq!(after["metadata"], metadata("mesh", "a,b,c,i,j,w,x,y", json!({"mesh": {"code": "PL201"}})));
}

#[test]
fn one_container_is_kept_for_one_set() {
    let (pod, sets) = (one_app(), [plain_set("a", "proxy")]);
    let mut copy = ask(&pod, &sets).pod.unwrap();
    copy["metadata"]["annotations"]["kruise.io/sidecarset-injected-list"] = json!("a,b");
    let sets = [plain_set("a", "proxy"), plain_set("b", "proxy")];
    let decision = ask(&copy, &sets);
    let expected = [("a", "keep", Reason::AlreadyInjected), ("b", "refuse", Reason::SetsClash)];
    assert_eq!(verdicts(&decision), expected);
}

/// Marks that nothing stands behind.
fn forged() -> Value {
    json!({
        "labels": {"app": "web", "pillion.dev/injected": "true"},
        "annotations": {
            "kruise.io/sidecarset-injected-list": "mesh", "pillion.dev/containers": "app,proxy",
            "pillion.dev/decision": r#"{"v":1,"sets":{"mesh":{"code":"PL205","why":"because I say so"}},"cut":2}"#,
        },
    })
}

#[test]
fn forged_marks_are_removed_from_a_pod_that_no_set_matches() {
    let pod = json!({"metadata": forged(), "spec": {"containers": [image("app")]}});
    let remove = |path: &str| json!({"op": "remove", "path": path});
    assert_eq!(
        patch(&ask(&pod, &[])),
        json!([
            remove("/metadata/annotations/pillion.dev~1containers"),
            remove("/metadata/labels/pillion.dev~1injected"),
            remove("/metadata/annotations/pillion.dev~1decision"),
        ])
    );
    // Each of them alone shows that there is something to judge.
    let is_marked = |metadata: Value| {
        let bytes = serde_json::to_vec(&json!({"metadata": metadata})).unwrap();
        PodHead::parse(&bytes).unwrap().is_marked()
    };
    assert!(is_marked(json!({"annotations": {"pillion.dev/containers": ""}})));
    assert!(is_marked(json!({"annotations": {"a": "b", "pillion.dev/decision": ""}})));
    assert!(is_marked(json!({"labels": {"pillion.dev/injected": ""}})));
    assert!(!is_marked(json!({"labels": {"app": "web"}, "annotations": {"pillion.dev/skip": "mesh"}})));
    assert!(!is_marked(json!({"labels": null, "annotations": null})));
}

#[test]
fn forged_marks_do_not_keep_a_sidecar_out() {
    let pod = json!({"metadata": forged(), "spec": {"containers": [image("app")]}});
    let sets = [plain_set("mesh", "proxy")];
    let spec = json!({"containers": [injected("proxy", json!({})), image("app")]});
    assert_eq!(after(&ask(&pod, &sets)), applied("mesh", "proxy", spec));
}

#[test]
fn a_forged_record_is_not_believed() {
    let pod = json!({"metadata": forged(), "spec": {"containers": [image("app"), image("proxy")]}});
    let mut sets = [plain_set("mesh", "proxy")];
    sets[0].failure_policy = pillion_api::FailurePolicy::Ignore;
    let decision = ask(&pod, &sets);
    let why = "the pod has a container proxy of its own";
    let record = json!({"v": 1, "sets": {"mesh": {"code": "PL306", "why": why}}});
    let mut expected = json!({"labels": {"app": "web"}, "annotations": {}});
    expected["annotations"]["pillion.dev/decision"] = record;
    expected["annotations"]["kruise.io/sidecarset-injected-list"] = json!("mesh");
    assert_eq!(after(&decision)["metadata"], expected);
}

#[test]
fn a_forged_list_does_not_slip_a_volume_under_a_sidecar() {
    let mounts = json!({"volumeMounts": [{"name": "certificates", "mountPath": "/certificates"}]});
    let volume = json!({"name": "certificates", "secret": {"secretName": "mesh"}});
    let sets = [set("mesh", json!({"containers": [with("proxy", mounts)], "volumes": [volume]}))];
    let own = json!([{"name": "certificates", "secret": {"secretName": "mine"}}]);
    let pod = json!({"metadata": forged(), "spec": {"containers": [image("app")], "volumes": own}});
    let message = "the pod has another volume certificates".to_owned();
    assert_eq!(refusal(&ask(&pod, &sets)), (Reason::VolumeClash, message));
}

#[test]
fn only_injected_containers_of_the_list_are_ours() {
    let (pod, sets) = (one_app(), [plain_set("mesh", "proxy")]);
    let mut copy = ask(&pod, &sets).pod.unwrap();
    copy["metadata"]["annotations"]["pillion.dev/containers"] = json!(" app, proxy,gone ,");
    let path = "/metadata/annotations/pillion.dev~1containers";
    let list = json!({"op": "replace", "path": path, "value": "proxy"});
    assert_eq!(patch(&ask(&copy, &sets)), json!([list]));
    assert_eq!(patch(&ask(&copy, &[])), json!([list, unchecked(&sets[0])]));
}

#[test]
fn the_mark_on_a_container_is_there_once_and_true_whatever_the_set_says() {
    for given in [
        json!([{"name": "A", "value": "1"}, {"name": "IS_INJECTED", "value": "false"}, {"name": "B", "value": "2"}]),
        json!([{"name": "A", "value": "1"}, mark(), {"name": "B", "value": "2"}, mark()]),
        json!([
            {"name": "A", "value": "1"}, {"name": "B", "value": "2"},
            {"name": "IS_INJECTED", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        ]),
    ] {
        let sets = [set("mesh", json!({"containers": [with("proxy", json!({"env": given}))]}))];
        let env = json!({"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}, mark()]});
        let spec = json!({"containers": [injected("proxy", env), image("app")]});
        assert_eq!(after(&ask(&one_app(), &sets)), applied("mesh", "proxy", spec));
    }
    // Nor is it copied from a container of the pod.
    let transfer = json!({"transferEnv": [{"sourceContainerName": "app", "envName": "IS_INJECTED"}]});
    let sets = [set("mesh", json!({"containers": [with("proxy", transfer)]}))];
    let app = with("app", json!({"env": [{"name": "IS_INJECTED", "value": "no"}]}));
    let spec = json!({"containers": [injected("proxy", json!({})), app]});
    assert_eq!(after(&ask(&pod(json!({"containers": [app]})), &sets)), applied("mesh", "proxy", spec));
}

#[test]
fn the_head_of_a_pod_is_read_without_the_rest() {
    let bytes =
        br#"{"spec":{"containers":[1,{"x":"\u0041"}]},"metadata":{"name":"n","labels":{"a":"1","b\/c":"\u0032"}}}"#;
    let head = PodHead::parse(bytes).unwrap();
    let labels: Vec<(&str, &str)> = head.labels().iter().map(|(key, value)| (key.as_ref(), value.as_ref())).collect();
    assert_eq!(labels, [("a", "1"), ("b/c", "2")]);
    assert!(matches!(head.labels()[0], (Cow::Borrowed(_), Cow::Borrowed(_))));
    assert_eq!(PodHead::parse(b"{}").unwrap().labels(), []);
    assert_eq!(PodHead::parse(br#"{"metadata":null}"#).unwrap().labels(), []);
    assert!(PodHead::parse(br#"{"metadata":{"labels":{"a":1}}}"#).is_err());
}
