//! The account of a set: it takes the place of `default` only, and its token goes to nobody who had none of it.

use pillion_api::{Meaning, Reason};
use serde_json::{Value, json};

use crate::api_server;
use crate::asking::{after, ask, image, injected, one_app, patch, pod, refusal, set, with};

const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

fn mesh() -> Meaning {
    set("mesh", json!({"containers": [image("proxy")], "serviceAccountName": "mesh"}))
}

fn token_mount() -> Value {
    json!({"name": "kube-api-access-x7k2p", "mountPath": TOKEN_PATH, "readOnly": true})
}

/// The fields of the spec that are about accounts.
fn account(spec: &Value) -> [&Value; 3] {
    ["serviceAccountName", "serviceAccount", "automountServiceAccountToken"].map(|field| &spec[field])
}

#[test]
fn the_default_account_is_replaced_and_its_token_taken_away() {
    let data = json!({"name": "data", "mountPath": "/data"});
    let native = with("native", json!({"restartPolicy": "Always", "volumeMounts": [token_mount()]}));
    let own = pod(json!({
        "initContainers": [native],
        "containers": [with("app", json!({"volumeMounts": [data]})), image("helper")],
        "volumes": [{"name": "data", "emptyDir": {}}],
    }));
    // As it comes: with the account, the volume and its mounts.
    let pod = api_server::returned(&own);
    assert_eq!(pod["spec"]["containers"][0]["volumeMounts"], json!([data, token_mount()]));
    assert_eq!(pod["spec"]["volumes"][1]["name"], "kube-api-access-x7k2p");

    let sets = [mesh()];
    let decision = ask(&pod, &sets);
    let mut expected = pod["spec"].clone();
    expected["serviceAccountName"] = json!("mesh");
    expected["serviceAccount"] = json!("mesh");
    expected["automountServiceAccountToken"] = json!(false);
    expected["volumes"] = json!([{"name": "data", "emptyDir": {}}]);
    expected["initContainers"][0]["volumeMounts"] = json!([]);
    expected["containers"][0]["volumeMounts"] = json!([data]);
    expected["containers"][1]["volumeMounts"] = json!([]);
    let containers = expected["containers"].as_array_mut().unwrap();
    containers.insert(0, injected("proxy", json!({})));
    assert_eq!(after(&decision)["spec"], expected);
    let operations = patch(&decision);
    assert_eq!(
        operations.as_array().unwrap()[1..8],
        [
            json!({"op": "replace", "path": "/spec/serviceAccountName", "value": "mesh"}),
            json!({"op": "replace", "path": "/spec/serviceAccount", "value": "mesh"}),
            json!({"op": "add", "path": "/spec/automountServiceAccountToken", "value": false}),
            json!({"op": "remove", "path": "/spec/volumes/1"}),
            json!({"op": "remove", "path": "/spec/initContainers/0/volumeMounts/0"}),
            json!({"op": "remove", "path": "/spec/containers/1/volumeMounts/1"}),
            json!({"op": "remove", "path": "/spec/containers/2/volumeMounts/0"}),
        ]
    );
}

#[test]
fn every_token_is_taken_away_and_nothing_else() {
    let token = |name: &str| json!({"name": format!("kube-api-access-{name}"), "emptyDir": {}});
    let mount = |name: &str, path: &str| json!({"name": name, "mountPath": path});
    let mounts = [mount("kube-api-access-a", "/a"), mount("data", "/d"), mount("kube-api-access-b", "/b")];
    let app = with("app", json!({"volumeMounts": mounts}));
    let data = [json!({"name": "data", "emptyDir": {}}), json!({"name": "my-kube-api-access-c", "emptyDir": {}})];
    let pod = pod(json!({"containers": [app], "volumes": [token("a"), data[0], token("b"), data[1]]}));
    let sets = [mesh()];
    let after = after(&ask(&pod, &sets));
    assert_eq!(after["spec"]["volumes"], json!(data));
    assert_eq!(after["spec"]["containers"][1]["volumeMounts"], json!([mount("data", "/d")]));
}

#[test]
fn a_sidecar_that_shares_volumes_does_not_keep_the_token_either() {
    let proxy = with("proxy", json!({"shareVolumePolicy": {"type": "enabled"}}));
    let sets = [set("mesh", json!({"containers": [proxy], "serviceAccountName": "mesh"}))];
    let pod = api_server::returned(&one_app());
    let after = after(&ask(&pod, &sets));
    assert_eq!(after["spec"]["containers"][0], injected("proxy", json!({"volumeMounts": []})));
    // Without an account it shares the token, like every other mount.
    let proxy = with("proxy", json!({"shareVolumePolicy": {"type": "enabled"}}));
    let sets = [set("plain", json!({"containers": [proxy]}))];
    let after = crate::asking::after(&ask(&pod, &sets));
    assert_eq!(after["spec"]["containers"][0], injected("proxy", json!({"volumeMounts": [token_mount()]})));
}

#[test]
fn a_pod_that_names_no_account_has_the_default_one() {
    let (pod, sets) = (one_app(), [mesh()]);
    let after = after(&ask(&pod, &sets));
    assert_eq!(account(&after["spec"]), [&json!("mesh"), &Value::Null, &json!(false)]);
    let (pod, sets) = (named("", ""), [mesh()]);
    let after = crate::asking::after(&ask(&pod, &sets));
    assert_eq!(account(&after["spec"]), [&json!("mesh"), &json!("mesh"), &json!(false)]);
}

/// A pod with these two fields.
fn named(name: &str, deprecated: &str) -> Value {
    pod(json!({"containers": [image("app")], "serviceAccountName": name, "serviceAccount": deprecated}))
}

#[test]
fn another_account_is_a_clash() {
    let clash = (Reason::ServiceAccountClash, "the pod runs as shop, the set wants mesh".to_owned());
    let sets = [mesh()];
    for pod in [named("shop", "shop"), named("shop", "default"), named("", "shop")] {
        assert_eq!(refusal(&ask(&pod, &sets)), clash);
    }
    let only_deprecated = pod(json!({"containers": [image("app")], "serviceAccount": "shop"}));
    assert_eq!(refusal(&ask(&only_deprecated, &sets)), clash);
}

#[test]
fn the_deprecated_field_follows_where_it_is_there() {
    let pod = pod(json!({"containers": [image("app")], "serviceAccount": "default"}));
    let sets = [mesh()];
    let after = after(&ask(&pod, &sets));
    assert_eq!(account(&after["spec"]), [&json!("mesh"), &json!("mesh"), &json!(false)]);
}

#[test]
fn a_pod_that_has_the_account_keeps_its_token() {
    let pod = api_server::returned(&named("mesh", "mesh"));
    let sets = [mesh()];
    // Mounted as the API server would: it then has nothing to change after us, and does not ask a second time.
    let proxy = injected("proxy", json!({"volumeMounts": [token_mount()]}));
    let mut expected = pod["spec"].clone();
    expected["containers"].as_array_mut().unwrap().insert(0, proxy);
    assert_eq!(after(&ask(&pod, &sets))["spec"], expected);
}

#[test]
fn a_sidecar_that_mounts_something_else_there_keeps_it() {
    let own = json!({"name": "own", "mountPath": TOKEN_PATH});
    let proxy = with("proxy", json!({"volumeMounts": [own]}));
    let sets = [set("mesh", json!({"containers": [proxy], "volumes": [{"name": "own", "emptyDir": {}}]}))];
    let pod = api_server::returned(&named("web", "default"));
    assert_eq!(after(&ask(&pod, &sets))["spec"]["containers"][0]["volumeMounts"], json!([own]));
}

#[test]
fn a_token_that_the_set_brings_is_mounted_where_the_set_says_and_nowhere_else() {
    let token = json!({"name": "pillion-agent-token", "projected": {"sources": [
        {"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}}]}});
    let mount =
        json!({"name": "pillion-agent-token", "mountPath": "/var/run/secrets/pillion.dev/agent", "readOnly": true});
    let agent = with("pillion-agent", json!({"volumeMounts": [mount]}));
    let sets = [set(
        "game",
        json!({"initContainers": [agent], "volumes": [token], "serviceAccountName": "pillion-agent-sidecar-config"}),
    )];
    let mut own = api_server::returned(&one_app());
    let after_it = after(&ask(&own, &sets));
    assert_eq!(after_it["spec"]["volumes"], json!([token]));
    assert_eq!(after_it["spec"]["initContainers"][0]["volumeMounts"], json!([mount]));
    assert_eq!(after_it["spec"]["containers"][0]["volumeMounts"], json!([]));
    let name = "pillion-agent-sidecar-config";
    assert_eq!(account(&after_it["spec"]), [&json!(name), &json!(name), &json!(false)]);
    // The API server, which looks at the pod again, mounts nothing either.
    let returned = api_server::returned(&after_it);
    assert_eq!(returned["spec"]["volumes"].as_array().map(Vec::len), Some(1));
    assert_eq!(returned["spec"]["containers"][0]["volumeMounts"], Value::Null);
    // A pod that says itself that it runs as the agent is no clash; one that runs as another is.
    own["spec"]["serviceAccountName"] = json!(name);
    assert!(!ask(&own, &sets).is_refused());
    own["spec"]["serviceAccountName"] = json!("shop");
    assert_eq!(refusal(&ask(&own, &sets)).0, Reason::ServiceAccountClash);
}
