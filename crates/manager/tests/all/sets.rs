use std::sync::Arc;

use pillion_manager::admission::Request;
use pillion_manager::admission::sets::{is_write, review};
use pillion_manager::view::Known;
use pillion_rollout::history::Revision;
use serde_json::{Value, json};

use crate::{body, known, set, told};

fn judged(set: &Value, others: &[Value]) -> Value {
    let bytes = body("apps.kruise.io", "sidecarsets", "UPDATE", set);
    let request = Request::parse(&bytes).expect("it is a review");
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
fn advice_and_clashes_are_warnings() {
    let mut unwise = with_requests("mesh");
    unwise["spec"]["containers"][0].as_object_mut().unwrap().remove("resources");
    let told = judged(&unwise, &[with_requests("logs"), with_requests("mesh")]);
    assert_eq!(told["allowed"], true);
    let warnings: Vec<&str> = told["warnings"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let codes: Vec<&str> =
        warnings.iter().filter_map(|it| ["PL159", "PL160"].into_iter().find(|code| it.contains(code))).collect();
    assert_eq!(codes, ["PL159", "PL160"], "{warnings:?}");
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
