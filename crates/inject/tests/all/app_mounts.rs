//! Volumes of a set in the pod's own containers.

use pillion_api::{FailurePolicy, Meaning, Reason};
use serde_json::{Value, json};

use crate::asking::{after, applied, ask, image, injected, one_app, pod, refusal, set, verdicts, with};

/// A set with one volume, mounted into containers of the pod.
fn agent(name: &str, mounts: Value) -> Meaning {
    let volume = json!({"name": "agent", "emptyDir": {}});
    set(name, json!({"containers": [image(name)], "volumes": [volume], "appVolumeMounts": mounts}))
}

fn with_mounts(name: &str, mounts: Value) -> Value {
    with(name, json!({"volumeMounts": mounts}))
}

#[test]
fn a_volume_is_mounted_into_the_containers_whose_names_match() {
    let mounts = json!([{"targetContainersNameRegex": "^(app|own|init)", "volume": "agent", "path": "/agent", "readOnly": true}]);
    let sets = [agent("files", mounts)];
    let native = |mounts: Value| with("own-native", json!({"restartPolicy": "Always", "volumeMounts": mounts}));
    let data = json!({"name": "data", "mountPath": "/data"});
    let volumes = json!([{"name": "data", "emptyDir": {}}]);
    let pod = pod(json!({
        "initContainers": [image("init"), with("own-native", json!({"restartPolicy": "Always"}))],
        "containers": [image("other"), with_mounts("app-1", json!([data])), image("app-2")],
        "volumes": volumes,
    }));
    let mount = json!({"name": "agent", "mountPath": "/agent", "readOnly": true});
    let spec = json!({
        // A plain init container is left alone: it has ended when the sidecar starts.
        "initContainers": [image("init"), native(json!([mount]))],
        "containers": [
            injected("files", json!({})), image("other"), with_mounts("app-1", json!([data, mount])),
            with_mounts("app-2", json!([mount])),
        ],
        "volumes": [volumes[0], {"name": "agent", "emptyDir": {}}],
    });
    assert_eq!(after(&ask(&pod, &sets)), applied("files", "files", spec));
}

#[test]
fn every_container_is_meant_where_no_pattern_is_given_and_none_must_match() {
    let sets = [agent("files", json!([{"volume": "agent", "path": "/agent"}]))];
    let pod = pod(json!({"containers": [image("app"), image("helper")]}));
    let mounts = json!([{"name": "agent", "mountPath": "/agent"}]);
    let containers =
        json!([injected("files", json!({})), with_mounts("app", mounts.clone()), with_mounts("helper", mounts),]);
    assert_eq!(after(&ask(&pod, &sets))["spec"]["containers"], containers);

    let sets = [agent("files", json!([{"targetContainersNameRegex": "^web", "volume": "agent", "path": "/agent"}]))];
    let message = r#"appVolumeMounts: no container matches "^web" (there are: app, helper)"#.to_owned();
    assert_eq!(refusal(&ask(&pod, &sets)), (Reason::NoTarget, message));
}

#[test]
fn what_is_mounted_there_is_a_clash_unless_it_is_the_same() {
    let wanted = json!([{"volume": "agent", "path": "/agent/", "readOnly": true}]);
    let sets = [agent("files", wanted)];
    let volumes = json!([{"name": "agent", "emptyDir": {}}, {"name": "data", "emptyDir": {}}]);
    let mounted = |mount: &Value| pod(json!({"containers": [with_mounts("app", json!([mount]))], "volumes": volumes}));
    let clash = (Reason::MountClash, "container app has something mounted at /agent/".to_owned());
    for other in [
        json!({"name": "data", "mountPath": "/agent", "readOnly": true}),
        json!({"name": "agent", "mountPath": "/agent"}),
        json!({"name": "agent", "mountPath": "//agent/.", "readOnly": false}),
        json!({"name": "agent", "mountPath": "/agent", "readOnly": true, "subPath": "part"}),
        json!({"name": "agent", "mountPath": "/agent", "readOnly": true, "subPathExpr": "$(POD)"}),
    ] {
        assert_eq!(refusal(&ask(&mounted(&other), &sets)), clash, "{other}");
    }
    let device = pod(json!({"volumes": volumes,
        "containers": [with("app", json!({"volumeDevices": [{"name": "data", "devicePath": "/agent"}]}))]}));
    assert_eq!(refusal(&ask(&device, &sets)), clash);

    let same = json!({"name": "agent", "mountPath": "/agent", "readOnly": true, "subPath": ""});
    let pod = mounted(&same);
    let spec = json!({
        "containers": [injected("files", json!({})), with_mounts("app", json!([same]))], "volumes": volumes,
    });
    assert_eq!(after(&ask(&pod, &sets)), applied("files", "files", spec));
}

#[test]
fn one_place_takes_one_mount_of_a_set() {
    let twice = json!([
        {"volume": "agent", "path": "/agent"}, {"targetContainersNameRegex": "app", "volume": "agent", "path": "/agent/"},
    ]);
    let (pod, sets) = (one_app(), [agent("files", twice)]);
    let expected = with_mounts("app", json!([{"name": "agent", "mountPath": "/agent"}]));
    assert_eq!(after(&ask(&pod, &sets))["spec"]["containers"][1], expected);

    let differing = json!([
        {"volume": "agent", "path": "/agent"}, {"volume": "agent", "path": "/agent", "readOnly": true},
    ]);
    let sets = [agent("files", differing)];
    let message = "container app has something mounted at /agent".to_owned();
    assert_eq!(refusal(&ask(&pod, &sets)), (Reason::MountClash, message));
}

#[test]
fn one_place_takes_one_mount_of_all_sets() {
    let mount = |read_only: bool| json!([{"volume": "agent", "path": "/agent", "readOnly": read_only}]);
    let (pod, sets) = (one_app(), [agent("a", mount(true)), agent("b", mount(true))]);
    let decision = ask(&pod, &sets);
    let expected = [("a", "inject", Reason::Injected), ("b", "inject", Reason::Injected)];
    assert_eq!(verdicts(&decision), expected);
    let app = with_mounts("app", json!([{"name": "agent", "mountPath": "/agent", "readOnly": true}]));
    let containers = json!([injected("a", json!({})), injected("b", json!({})), app]);
    assert_eq!(after(&decision)["spec"]["containers"], containers);

    let mut second = agent("b", mount(false));
    second.failure_policy = FailurePolicy::Ignore;
    let sets = [agent("a", mount(true)), second];
    let decision = ask(&pod, &sets);
    let expected = [("a", "inject", Reason::Injected), ("b", "ignore", Reason::SetsClash)];
    assert_eq!(verdicts(&decision), expected);
    assert_eq!(decision.verdicts[1].message, "set a adds another mount at /agent of container app");
    // The pod that comes of it gives the same reason.
    let after = decision.pod.unwrap();
    let again = ask(&after, &sets);
    assert_eq!(verdicts(&again), [("a", "keep", Reason::AlreadyInjected), ("b", "ignore", Reason::SetsClash)]);
}

#[test]
fn injected_containers_are_never_mounted_into() {
    let first = set("a", json!({"containers": [image("proxy")]}));
    let sets = [first, agent("b", json!([{"volume": "agent", "path": "/agent"}]))];
    let app = with_mounts("app", json!([{"name": "agent", "mountPath": "/agent"}]));
    let plain = |name: &str| injected(name, json!({}));
    let pod = one_app();
    let decision = ask(&pod, &sets);
    assert_eq!(after(&decision)["spec"]["containers"], json!([plain("proxy"), plain("b"), app]));
    // Nor if they came earlier.
    let earlier = ask(&pod, &sets[..1]).pod.unwrap();
    assert_eq!(after(&ask(&earlier, &sets))["spec"]["containers"], json!([plain("b"), plain("proxy"), app]));
}
