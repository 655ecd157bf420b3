//! Pods that arrive with the container, the variable and the annotations of an injected pod: by their author, by another admission
//! plugin, or as a copy.

use pillion_api::{Meaning, REVISIONS, Reason};
use serde_json::{Value, json};

use crate::api_server;
use crate::asking::{ask, image, injected, joined, one_app, plain_set, set, verdicts, with};

/// A pod with these containers that says it has the newest revision of a set, and that this revision has failed.
fn claiming(set: &Meaning, containers: Value) -> Value {
    let newest = &set.revision;
    let revisions =
        json!({&set.name: {"is": newest, "since": 5, "from": "x", "was": {"proxy": "0 ab"}, "failed": newest}});
    json!({
        "metadata": {"labels": {"app": "web", "pillion.dev/injected": "true"}, "annotations": {
            "kruise.io/sidecarset-injected-list": set.name, "pillion.dev/containers": "proxy",
            REVISIONS: revisions.to_string(),
        }},
        "spec": {"containers": containers},
    })
}

fn revisions(pod: &Value) -> Value {
    serde_json::from_str(pod["metadata"]["annotations"][REVISIONS].as_str().unwrap_or("null")).unwrap()
}

/// The containers of the pod that comes of it, and its revisions.
fn decided(pod: &Value, set: &Meaning) -> (Value, Value) {
    let decision = ask(pod, std::slice::from_ref(set));
    let pod = decision.pod.as_ref().unwrap_or(pod);
    (pod["spec"]["containers"].clone(), revisions(pod))
}

#[test]
fn attack_a_forged_container_is_replaced() {
    let mesh = plain_set("mesh", "proxy");
    let genuine = injected("proxy", json!({}));
    for forged in [
        json!({"image": "evil.example/miner:1"}),
        json!({"image": "registry.example/proxy:2"}),
        json!({"command": ["/bin/sleep"]}),
        json!({"args": ["--no-checks"]}),
        json!({"livenessProbe": {"exec": {"command": ["false"]}}}),
        json!({"ports": [{"containerPort": 80}]}),
        json!({"restartPolicy": "Always"}),
    ] {
        let pod = claiming(&mesh, json!([joined(genuine.clone(), forged.clone()), image("app")]));
        let decision = ask(&pod, std::slice::from_ref(&mesh));
        assert_eq!(verdicts(&decision), [("mesh", "inject", Reason::Injected)], "{forged}");
        let warning = &decision.verdicts[0].warnings[0];
        let message = format!("container proxy is not what revision {} gives, and is replaced", mesh.revision);
        assert_eq!((warning.reason, &warning.message), (Reason::ContainerReplaced, &message));
        let expected = (json!([genuine, image("app")]), json!({"mesh": {"is": mesh.revision}}));
        assert_eq!(decided(&pod, &mesh), expected, "{forged}");
    }
}

#[test]
fn attack_nothing_but_the_name_of_its_revision_is_believed() {
    let mesh = plain_set("mesh", "proxy");
    let containers = json!([injected("proxy", json!({})), image("app")]);
    let pod = claiming(&mesh, containers.clone());
    assert_eq!(verdicts(&ask(&pod, std::slice::from_ref(&mesh))), [("mesh", "keep", Reason::AlreadyInjected)]);
    assert_eq!(decided(&pod, &mesh), (containers.clone(), json!({"mesh": {"is": mesh.revision}})));
    // Of a set that does not match nobody can tell.
    let decision = ask(&pod, &[]);
    let expected = json!({"mesh": {"is": mesh.revision, "altered": true}});
    assert_eq!(revisions(decision.pod.as_ref().unwrap()), expected);
}

#[test]
fn what_other_plugins_change_is_kept_and_does_not_count() {
    let probe = json!({"readinessProbe": {"httpGet": {"port": 80}}, "securityContext": {"runAsNonRoot": true}});
    let mesh = set("mesh", json!({"containers": [with("proxy", probe.clone())]}));
    let genuine = injected("proxy", probe);
    let mark = genuine["env"][0].clone();
    for altered in [
        json!({"image": "mirror.local/hub/proxy:1"}),
        json!({"image": "registry.example/proxy:1@sha256:ab"}),
        json!({"env": [mark, {"name": "TRACING", "value": "on"}]}),
        json!({"volumeMounts": [{"name": "certificates", "mountPath": "/certificates"}]}),
        json!({"securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}}}),
    ] {
        let containers = json!([joined(genuine.clone(), altered.clone()), image("app")]);
        let pod = claiming(&mesh, containers.clone());
        let decision = ask(&pod, std::slice::from_ref(&mesh));
        assert_eq!(decision.verdicts[0].message, "the pod has the sidecars of the set, with changes of others");
        let expected = (containers, json!({"mesh": {"is": mesh.revision, "altered": true}}));
        assert_eq!(decided(&pod, &mesh), expected, "{altered}");
    }
    // These change nothing.
    for same in [
        json!({"imagePullPolicy": "Always"}),
        json!({"resources": {"limits": {"cpu": "1"}}}),
        json!({"terminationMessagePolicy": "File"}),
    ] {
        let containers = json!([joined(genuine.clone(), same), image("app")]);
        let expected = (containers.clone(), json!({"mesh": {"is": mesh.revision}}));
        assert_eq!(decided(&claiming(&mesh, containers), &mesh), expected);
    }
    // A field of the security context that the set gives is no one else's to change.
    let weaker = joined(genuine.clone(), json!({"securityContext": {"runAsNonRoot": false}}));
    let (containers, _) = decided(&claiming(&mesh, json!([weaker, image("app")])), &mesh);
    assert_eq!(containers, json!([genuine, image("app")]));
}

#[test]
fn attack_another_volume_under_a_sidecar_does_not_count() {
    let mounts = json!({"volumeMounts": [{"name": "certificates", "mountPath": "/certificates"}]});
    let volume = |secret: &str| json!([{"name": "certificates", "secret": {"secretName": secret}}]);
    let spec = json!({"containers": [with("proxy", mounts.clone())], "volumes": volume("mesh")});
    let mesh = set("mesh", spec);
    for (secret, is_altered) in [("mesh", false), ("mine", true)] {
        let mut pod = claiming(&mesh, json!([injected("proxy", mounts.clone()), image("app")]));
        pod["spec"]["volumes"] = volume(secret);
        let (_, revisions) = decided(&pod, &mesh);
        assert_eq!(revisions["mesh"].get("altered").is_some(), is_altered, "{secret}");
    }
}

#[test]
fn attack_a_set_that_is_paused_does_not_own_a_forged_container() {
    let paused = set("mesh", json!({"containers": [image("proxy")], "injectionStrategy": {"paused": true}}));
    let forged = injected("proxy", json!({"command": ["/bin/sleep"]}));
    let pod = claiming(&paused, json!([forged, image("app")]));
    let decision = ask(&pod, std::slice::from_ref(&paused));
    let after = decision.pod.as_ref().unwrap();
    assert_eq!((&after["spec"], revisions(after)), (&pod["spec"], Value::Null));
    let annotations = after["metadata"]["annotations"].as_object().unwrap();
    assert!(
        !annotations.contains_key("pillion.dev/containers") && after["metadata"]["labels"] == json!({"app": "web"})
    );
}

#[test]
fn a_copy_and_a_pod_from_a_backup_keep_their_sidecars() {
    let mesh = plain_set("mesh", "proxy");
    let pod = one_app();
    let stored = api_server::returned(&ask(&pod, std::slice::from_ref(&mesh)).pod.unwrap());
    assert_eq!(ask(&stored, std::slice::from_ref(&mesh)).patch, []);
    // From another cluster, with a revision that is not known here: a new pod gets what a new pod gets.
    let newer = set("mesh", json!({"containers": [with("proxy", json!({"image": "registry.example/proxy:2"}))]}));
    let (containers, revisions) = decided(&stored, &newer);
    assert_eq!(
        (&containers[0]["image"], revisions),
        (&json!("registry.example/proxy:2"), json!({"mesh": {"is": newer.revision}}))
    );
}
