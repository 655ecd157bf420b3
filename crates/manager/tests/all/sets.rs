use std::sync::Arc;

use pillion_manager::admission::Request;
use pillion_manager::admission::sets::{is_write, review};
use pillion_manager::view::Known;
use pillion_rollout::history::Revision;
use serde_json::{Value, json};

use crate::{body, known, set, told};

/// The answer to an update of a `SidecarSet` from one state to another.
fn updated(old: &Value, new: &Value, others: &[Value]) -> Value {
    let bytes = body("apps.kruise.io", "sidecarsets", "UPDATE", new);
    let mut body: Value = serde_json::from_slice(&bytes).expect("a review is JSON");
    body["request"]["oldObject"] = old.clone();
    answered(body.to_string().as_bytes(), others)
}

fn judged(set: &Value, others: &[Value]) -> Value {
    answered(&body("apps.kruise.io", "sidecarsets", "UPDATE", set), others)
}

fn answered(bytes: &[u8], others: &[Value]) -> Value {
    let request = Request::parse(bytes).expect("it is a review");
    assert!(is_write(&request));
    told(&review(&request, &known(others)).expect("it is a set"))
}

fn with_requests(name: &str) -> Value {
    let resources = json!({"requests": {"cpu": "10m", "memory": "10Mi"}});
    set(name, &json!({"containers": [{"name": "proxy", "image": "proxy:1", "resources": resources}]}))
}

#[test]
fn a_set_that_is_well_is_not_talked_about() {
    assert_eq!(judged(&with_requests("mesh"), &[]), json!({"uid": "u-1", "allowed": true}));
}

#[test]
fn all_errors_of_a_set_are_told_at_once() {
    let mut wrong = with_requests("mesh");
    wrong["spec"]["containers"][0]["resourcesPolicy"] =
        json!({"targetContainerMode": "sum", "resourceExpr": {"limits": {"cpu": "cpu*"}}});
    wrong["spec"]["containers"][0].as_object_mut().unwrap().remove("resources");
    wrong["spec"]["updateStrategy"] = json!({"maxUnavailable": "x%"});
    let told = judged(&wrong, &[]);
    assert_eq!((&told["allowed"], &told["status"]["code"]), (&json!(false), &json!(422)));
    let message = told["status"]["message"].as_str().unwrap();
    let codes: Vec<bool> = ["PL115", "PL118"].iter().map(|code| message.contains(code)).collect();
    assert_eq!(codes, [true, true], "{message}");
}

#[test]
fn advice_and_possible_conflicts_are_warnings() {
    let mut unwise = with_requests("mesh");
    unwise["spec"]["containers"][0].as_object_mut().unwrap().remove("resources");
    // Only some of the pods of `logs` have this label.
    unwise["spec"]["selector"]["matchLabels"] = json!({"tier": "front"});
    let told = judged(&unwise, &[with_requests("logs"), with_requests("mesh")]);
    assert_eq!(told["allowed"], true);
    let warnings: Vec<&str> = told["warnings"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let codes: Vec<&str> =
        warnings.iter().filter_map(|it| ["PL159", "PL160"].into_iter().find(|code| it.contains(code))).collect();
    assert_eq!(codes, ["PL159", "PL160"], "{warnings:?}");
}

#[test]
fn a_certain_conflict_rejects_the_set_that_is_written_and_not_a_stored_one() {
    let told = judged(&with_requests("mesh"), &[with_requests("logs")]);
    assert_eq!((&told["allowed"], &told["status"]["code"]), (&json!(false), &json!(422)));
    assert!(told["status"]["message"].as_str().unwrap().contains("PL128: a container proxy is in set logs too"));
    // Both were stored before the rule existed: an update of another field is accepted, with a warning.
    let mut paused = with_requests("mesh");
    paused["spec"]["updateStrategy"] = json!({"paused": true});
    let told = updated(&with_requests("mesh"), &paused, &[with_requests("logs"), with_requests("mesh")]);
    assert_eq!(told["allowed"], true);
    assert!(told["warnings"][0].as_str().unwrap().contains("PL128"), "{told}");
}

#[test]
fn each_template_that_the_api_server_rejects_in_pods_is_rejected() {
    for (container, volumes, code) in [
        (json!({"imagePullPolicy": "Foo"}), json!([]), "PL123"),
        (json!({"ports": [{"containerPort": 99999}]}), json!([]), "PL123"),
        (json!({"livenessProbe": {"periodSeconds": 5}}), json!([]), "PL123"),
        (json!({"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}}), json!([]), "PL123"),
        (json!({"env": [{"name": "A=B", "value": "c"}]}), json!([]), "PL123"),
        (json!({}), json!([{"name": "v", "emptyDir": {}, "hostPath": {"path": "/v"}}]), "PL123"),
        (json!({"volumeMounts": [{"name": "v"}]}), json!([{"name": "v", "emptyDir": {}}]), "PL123"),
        (json!({"livenesProbe": {"tcpSocket": {"port": 80}}}), json!([]), "PL102"),
    ] {
        let mut set = with_requests("mesh");
        set["spec"]["volumes"] = volumes;
        for (field, value) in container.as_object().unwrap() {
            set["spec"]["containers"][0][field] = value.clone();
        }
        let told = judged(&set, &[]);
        let message = told["status"]["message"].as_str().unwrap_or_default();
        assert!(told["allowed"] == false && message.contains(code), "{container}: {told}");
    }
}

#[test]
fn an_update_that_does_not_touch_the_invalid_part_is_accepted() {
    let mut old = with_requests("mesh");
    old["spec"]["containers"][0]["imagePullPolicy"] = "Foo".into();
    let mut paused = old.clone();
    paused["spec"]["updateStrategy"] = json!({"paused": true});
    let told = updated(&old, &paused, &[]);
    assert_eq!(told["allowed"], true);
    assert!(told["warnings"][0].as_str().unwrap().contains("imagePullPolicy: PL123"), "{told}");
    let mut touched = old.clone();
    touched["spec"]["containers"][0]["imagePullPolicy"] = "Bar".into();
    assert_eq!(updated(&old, &touched, &[])["allowed"], false);
    // The same set, written for the first time.
    assert_eq!(judged(&old, &[])["allowed"], false);
}

#[test]
fn a_set_that_is_going_may_go_whatever_it_holds() {
    let mut going = set("mesh", &json!({"containers": 1}));
    assert_eq!(judged(&going, &[])["allowed"], false);
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    assert_eq!(judged(&going, &[]), json!({"uid": "u-1", "allowed": true}));
}

#[test]
fn a_pin_must_be_a_revision_of_the_set() {
    let mut set = with_requests("mesh");
    set["metadata"]["uid"] = "u-1".into();
    let stored = |name: &str, uid: &str| {
        let object = json!({"metadata": {"name": name, "labels": {"pillion.dev/sidecarset-uid": uid}}, "revision": 1,
            "data": {"v": 1, "spec": {"containers": [{"name": "proxy", "image": "proxy:0"}]}}});
        (uid.to_owned(), vec![Arc::new(Revision::read(&object).unwrap())])
    };
    let revisions = [stored("mesh-old", "u-1"), stored("logs-old", "u-2")];
    let known = Known { revisions: revisions.into(), ..known(&[]) };
    let judged = |field: &str, strategy: Value| {
        let mut set = set.clone();
        set["spec"][field] = strategy;
        let bytes = body("apps.kruise.io", "sidecarsets", "UPDATE", &set);
        told(&review(&Request::parse(&bytes).unwrap(), &known).unwrap())
    };
    for name in ["mesh-old", &pillion_api::review(&set).meaning.unwrap().revision] {
        assert_eq!(judged("injectStrategy", json!({"revision": name}))["allowed"], true, "{name}");
    }
    let refused = judged("injectStrategy", json!({"controllerRevision": "logs-old"}));
    let expected = "spec.injectStrategy: PL315: logs-old is a revision of another set: Name one that `pillion rollout history` lists for this set.";
    assert_eq!((&refused["allowed"], &refused["status"]["message"]), (&json!(false), &json!(expected)));
    let refused = judged("injectionStrategy", json!({"revision": {"customVersion": "v1"}}));
    let expected = "spec.injectionStrategy: PL314: v1 is no revision of this set: Name one that `pillion rollout history` lists, or remove the pin.";
    assert_eq!((&refused["allowed"], &refused["status"]["message"]), (&json!(false), &json!(expected)));
}
