//! The version of a file that was asked for a workload is on its new pods that get an agent, and on no others.

use pillion_api::{HotUpdateSpec, Meaning};
use pillion_inject::hot_update::HotUpdates;
use pillion_inject::{Decision, Installation, Namespace};
use serde_json::{Value, json};

use crate::asking::{after, ask_in, image, set};

const KEY: &str = "pillion.dev/hot-update";

fn agent() -> Meaning {
    set("game", json!({"containers": [image("pillion-agent")], "serviceAccountName": "pillion-agent-sidecar-config"}))
}

fn record(api_version: &str, kind: &str, name: &str, version: &str) -> HotUpdateSpec {
    serde_json::from_value(json!({"workload": {"apiVersion": api_version, "kind": kind, "name": name},
        "version": version, "url": "https://files.example/rules", "sha256": "0".repeat(64)}))
    .unwrap()
}

fn wanted(version: &str) -> Value {
    let digest = "0".repeat(64);
    json!(format!(r#"{{"sha256":"{digest}","url":"https://files.example/rules","version":"{version}"}}"#))
}

/// A pod of this owner, of the Deployment `web` or whatever else it may be.
fn pod(api_version: &str, kind: &str, owner: &str) -> Value {
    json!({"metadata": {"labels": {"app": "web", "pod-template-hash": "5d"}, "ownerReferences": [
            {"apiVersion": "v1", "kind": "Other", "name": "web", "uid": "u-0"},
            {"apiVersion": api_version, "kind": kind, "name": owner, "uid": "u-1", "controller": true}]},
        "spec": {"containers": [image("app")]}})
}

fn review<'a>(pod: &'a Value, sets: &'a [Meaning], asked: Option<&HotUpdates>) -> Decision<'a> {
    let installation = Installation { hot_updates: asked, ..Installation::default() };
    ask_in(&Namespace::named("shop"), pod, sets, installation)
}

fn annotation(pod: &Value, asked: &HotUpdates) -> Value {
    let sets = [agent()];
    let decision = review(pod, &sets, Some(asked));
    after(&decision)["metadata"]["annotations"][KEY].clone()
}

#[test]
fn pods_of_every_kind_of_workload_are_told() {
    let mut asked = HotUpdates::default();
    for (at, (api_version, kind)) in [
        ("apps/v1", "Deployment"),
        ("apps/v1", "StatefulSet"),
        ("apps/v1", "DaemonSet"),
        ("batch/v1", "Job"),
        ("apps.kruise.io/v1alpha1", "CloneSet"),
        ("game.kruise.io/v1alpha1", "GameServerSet"),
    ]
    .into_iter()
    .enumerate()
    {
        asked.insert("shop", kind, 1, &record(api_version, kind, "web", &format!("v{at}")));
    }
    asked.insert("shop", "bare", 1, &record("apps/v1", "ReplicaSet", "bare-5d", "v9"));
    for (api_version, kind, owner, version) in [
        ("apps/v1", "ReplicaSet", "web-5d", "v0"),
        ("apps/v1", "StatefulSet", "web", "v1"),
        ("apps/v1", "DaemonSet", "web", "v2"),
        ("batch/v1", "Job", "web", "v3"),
        // Of another version of the group.
        ("apps.kruise.io/v1beta1", "CloneSet", "web", "v4"),
        ("game.kruise.io/v1alpha1", "GameServerSet", "web", "v5"),
        ("apps/v1", "ReplicaSet", "bare-5d", "v9"),
    ] {
        assert_eq!(annotation(&pod(api_version, kind, owner), &asked), wanted(version), "{kind} {owner}");
    }
    let mut game = pod("apps.kruise.io/v1beta1", "StatefulSet", "web");
    assert_eq!(annotation(&game, &asked), Value::Null, "another group");
    game["metadata"]["labels"]["game.kruise.io/owner-gss"] = json!("web");
    assert_eq!(annotation(&game, &asked), wanted("v5"));
    for (kind, owner) in
        [("ReplicaSet", "web-6e"), ("ReplicaSet", "web"), ("ReplicaSet", "other-5d"), ("StatefulSet", "db")]
    {
        assert_eq!(annotation(&pod("apps/v1", kind, owner), &asked), Value::Null, "{kind} {owner}");
    }
}

#[test]
fn pods_without_an_agent_and_of_other_namespaces_are_not_told() {
    let mut asked = HotUpdates::default();
    asked.insert("elsewhere", "web", 1, &record("apps/v1", "Deployment", "web", "v1"));
    let pod = pod("apps/v1", "ReplicaSet", "web-5d");
    assert_eq!(annotation(&pod, &asked), Value::Null);
    asked.insert("shop", "web", 1, &record("apps/v1", "Deployment", "web", "v1"));
    assert_eq!(annotation(&pod, &asked), wanted("v1"));
    for account in [None, Some("mesh"), Some("pillion-agent")] {
        let sets = [set("mesh", json!({"containers": [image("proxy")], "serviceAccountName": account}))];
        assert_eq!(after(&review(&pod, &sets, Some(&asked)))["metadata"]["annotations"][KEY], Value::Null);
    }
    let sets = [agent()];
    assert_eq!(after(&review(&pod, &sets, None))["metadata"]["annotations"][KEY], Value::Null, "switched off");
}

#[test]
fn the_record_wins_over_the_author_and_without_one_his_word_stays() {
    let mut asked = HotUpdates::default();
    let mut own = pod("apps/v1", "ReplicaSet", "web-5d");
    own["metadata"]["annotations"] = json!({KEY: "his"});
    assert_eq!(annotation(&own, &asked), "his");
    asked.insert("shop", "web", 1, &record("apps/v1", "Deployment", "web", "v1"));
    assert_eq!(annotation(&own, &asked), wanted("v1"));
}

#[test]
fn of_two_records_the_one_created_last_holds() {
    for order in [[0, 1], [1, 0]] {
        let records = [("b", 10, "v1"), ("a", 11, "v2")];
        let mut asked = HotUpdates::default();
        for at in order {
            let (name, created, version) = records[at];
            asked.insert("shop", name, created, &record("apps/v1", "Deployment", "web", version));
        }
        assert_eq!(annotation(&pod("apps/v1", "ReplicaSet", "web-5d"), &asked), wanted("v2"));
        let spec = record("apps/v1", "Deployment", "web", "v1");
        assert_eq!((asked.holds("shop", "a", &spec), asked.holds("shop", "b", &spec)), (true, false));
    }
}

#[test]
fn reviewed_again_nothing_changes() {
    let mut asked = HotUpdates::default();
    asked.insert("shop", "web", 1, &record("apps/v1", "Deployment", "web", "v1"));
    let sets = [agent()];
    let pod = pod("apps/v1", "ReplicaSet", "web-5d");
    let once = review(&pod, &sets, Some(&asked)).pod.unwrap();
    assert_eq!(review(&once, &sets, Some(&asked)).patch, []);
    // What was asked meanwhile reaches a pod that is not created yet.
    asked.insert("shop", "web", 2, &record("apps/v1", "Deployment", "web", "v2"));
    assert_eq!(after(&review(&once, &sets, Some(&asked)))["metadata"]["annotations"][KEY], wanted("v2"));
}
