//! What sidecars get of the pod's own containers: mounts, devices and variables, at their edges.

use pillion_api::Reason;
use serde_json::{Value, json};

use crate::asking::{after, ask, image, injected, mark, pod, set, with};

/// The sidecar that comes of these fields, beside an app with those, and the warnings.
fn shared(sidecar: Value, containers: &[Value]) -> (Value, Vec<String>) {
    let sets = [set("a", json!({"containers": [with("sidecar", sidecar)]}))];
    let pod = pod(json!({"containers": containers, "volumes": [{"name": "data", "emptyDir": {}}]}));
    let decision = ask(&pod, &sets);
    let warnings = &decision.verdicts[0].warnings;
    assert!(warnings.iter().all(|warning| warning.reason == Reason::EnvNotFound));
    let messages = warnings.iter().map(|warning| warning.message.clone()).collect();
    (after(&decision)["spec"]["containers"][0].clone(), messages)
}

fn enabled() -> Value {
    json!({"type": "enabled"})
}

#[test]
fn devices_are_shared_unless_their_path_is_taken() {
    let device = |path: &str| json!({"name": "data", "devicePath": path});
    let mount = |path: &str| json!({"name": "data", "mountPath": path});
    let own = json!({
        "shareVolumeDevicePolicy": enabled(), "volumeMounts": [mount("/a")], "volumeDevices": [device("/b")],
    });
    let apps = [
        with(
            "app",
            json!({"volumeDevices": [device("/a"), device("/b/"), device("/c")], "volumeMounts": [mount("/m")]}),
        ),
        with("helper", json!({"volumeDevices": [device("/c"), device("/d")]})),
    ];
    let devices = json!([device("/b"), device("/c"), device("/d")]);
    let expected = injected("sidecar", json!({"volumeMounts": [mount("/a")], "volumeDevices": devices}));
    assert_eq!(shared(own, &apps), (expected, vec![]));

    // Both at once: what is mounted first has the path.
    let both = json!({"shareVolumeDevicePolicy": enabled(), "shareVolumePolicy": enabled()});
    let apps = [with("app", json!({"volumeDevices": [device("/a"), device("/b")], "volumeMounts": [mount("/a")]}))];
    let expected = injected("sidecar", json!({"volumeMounts": [mount("/a")], "volumeDevices": [device("/b")]}));
    assert_eq!(shared(both, &apps), (expected, vec![]));
}

#[test]
fn nothing_is_shared_that_was_not_asked_for() {
    let fields = json!({
        "env": [{"name": "A", "value": "1"}], "volumeMounts": [{"name": "data", "mountPath": "/m"}],
        "volumeDevices": [{"name": "data", "devicePath": "/d"}],
    });
    let disabled = json!({"shareVolumePolicy": {"type": "disabled"}, "shareVolumeDevicePolicy": {"type": "disabled"}});
    for policy in [json!({}), disabled] {
        assert_eq!(shared(policy, &[with("app", fields.clone())]), (injected("sidecar", json!({})), vec![]));
    }
}

#[test]
fn the_last_variable_of_a_name_counts() {
    let transfer = json!({"transferEnv": [{"sourceContainerName": "app", "envName": "A"}]});
    let variable = |value: &str| json!({"name": "A", "value": value});
    let app = with("app", json!({"env": [variable("first"), {"name": "B", "value": "b"}, variable("last")]}));
    let expected = injected("sidecar", json!({"env": [mark(), variable("last")]}));
    assert_eq!(shared(transfer, &[app]), (expected, vec![]));
}

#[test]
fn variables_that_refer_to_each_other_are_copied_once_and_what_is_missing_is_named() {
    let variable = |name: &str, value: &str| json!({"name": name, "value": value});
    let mount = json!({"name": "data", "mountPath": "/data", "subPathExpr": "$(A)/$(OWN)/$(GONE)"});
    let env = [variable("A", "$(B)"), variable("B", "$(A)"), variable("OWN", "app's")];
    let app = with("app", json!({"env": env, "volumeMounts": [mount]}));
    let sidecar = json!({"shareVolumePolicy": enabled(), "env": [variable("OWN", "its own")]});
    let expected = json!([variable("OWN", "its own"), mark(), env[1], env[0]]);
    let expected = injected("sidecar", json!({"env": expected, "volumeMounts": [mount]}));
    let missing = "container sidecar: container app of the pod has no variable GONE".to_owned();
    assert_eq!(shared(sidecar, &[app, image("helper")]), (expected, vec![missing]));
}
