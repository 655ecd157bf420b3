//! What the API server makes of a pod between two reviews: it reads the patched JSON into its types, fills in defaults,
//! writes quantities in their own way, leaves out what is empty, and runs its own plugins again.

use pillion_api::{Meaning, Reason};
use pillion_quantity::Quantity;
use serde_json::{Map, Value, json};

use crate::asking::{ask, set, verdicts};

const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// The pod as a webhook that is asked again gets it.
pub(crate) fn returned(pod: &Value) -> Value {
    let mut pod = pod.clone();
    if let Some(spec) = pod["spec"].as_object_mut() {
        service_account(spec);
        for list in ["initContainers", "containers"] {
            each(spec, list, container);
        }
        each(spec, "volumes", volume);
        let defaults = json!({
            "restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler",
            "terminationGracePeriodSeconds": 30, "securityContext": {}, "enableServiceLinks": true, "priority": 0,
            "preemptionPolicy": "PreemptLowerPriority",
        });
        fill(spec, &defaults);
    }
    pod["status"] = json!({});
    without_nothing(&mut pod);
    pod
}

/// The plugin that names the account, and gives every container its token.
fn service_account(spec: &mut Map<String, Value>) {
    let own = |spec: &Map<String, Value>, field: &str| spec.get(field).and_then(Value::as_str).map(str::to_owned);
    let name = own(spec, "serviceAccountName").or_else(|| own(spec, "serviceAccount"));
    let name = json!(name.unwrap_or_else(|| "default".to_owned()));
    spec.insert("serviceAccountName".to_owned(), name.clone());
    spec.insert("serviceAccount".to_owned(), name);
    if spec.get("automountServiceAccountToken") == Some(&json!(false)) {
        return;
    }
    let volumes = spec.entry("volumes").or_insert_with(|| json!([])).as_array_mut().unwrap();
    let is_token = |volume: &&Value| volume["name"].as_str().is_some_and(|name| name.starts_with("kube-api-access-"));
    let token = volumes.iter().find(is_token).map(|volume| volume["name"].clone());
    let token = token.unwrap_or_else(|| {
        volumes.push(json!({"name": "kube-api-access-x7k2p", "projected": {"sources": [
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]}},
        ]}}));
        json!("kube-api-access-x7k2p")
    });
    for list in ["initContainers", "containers"] {
        each(spec, list, |container| {
            let mounts = container.entry("volumeMounts").or_insert_with(|| json!([])).as_array_mut().unwrap();
            if mounts.iter().all(|mount| mount["mountPath"] != TOKEN_PATH) {
                mounts.push(json!({"name": token, "mountPath": TOKEN_PATH, "readOnly": true}));
            }
        });
    }
}

fn container(container: &mut Map<String, Value>) {
    let image = container.get("image").and_then(Value::as_str).unwrap_or_default();
    let is_latest = image.rsplit('/').next().is_none_or(|it| !it.contains(':') || it.ends_with(":latest"));
    let pull = if is_latest { "Always" } else { "IfNotPresent" };
    let defaults = json!({
        "imagePullPolicy": pull, "resources": {}, "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    });
    fill(container, &defaults);
    each(container, "ports", |port| fill(port, &json!({"protocol": "TCP"})));
    each(container, "env", |variable| {
        if let Some(from) = variable.get_mut("valueFrom").and_then(Value::as_object_mut) {
            reference(from);
        }
    });
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = container.get_mut(probe).and_then(Value::as_object_mut) {
            let defaults =
                json!({"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3});
            fill(probe, &defaults);
            if let Some(get) = probe.get_mut("httpGet").and_then(Value::as_object_mut) {
                fill(get, &json!({"path": "/", "scheme": "HTTP"}));
            }
        }
    }
    let resources = container["resources"].as_object_mut().unwrap();
    for side in ["limits", "requests"] {
        for (_, amount) in resources.get_mut(side).and_then(Value::as_object_mut).into_iter().flatten() {
            canonical(amount);
        }
    }
    // A resource with a limit and without a request is requested whole.
    if let Some(limits) = resources.get("limits").cloned() {
        let requests = resources.entry("requests").or_insert_with(|| json!({}));
        fill(requests.as_object_mut().unwrap(), &limits);
    }
}

fn volume(volume: &mut Map<String, Value>) {
    if volume.keys().all(|key| key == "name") {
        volume.insert("emptyDir".to_owned(), json!({}));
    }
    for kind in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = volume.get_mut(kind).and_then(Value::as_object_mut) {
            fill(source, &json!({"defaultMode": 420}));
            each(source, "items", reference);
            each(source, "sources", |source| {
                if let Some(token) = source.get_mut("serviceAccountToken").and_then(Value::as_object_mut) {
                    fill(token, &json!({"expirationSeconds": 3600}));
                }
                if let Some(down) = source.get_mut("downwardAPI").and_then(Value::as_object_mut) {
                    each(down, "items", reference);
                }
            });
        }
    }
    if let Some(path) = volume.get_mut("hostPath").and_then(Value::as_object_mut) {
        // A pointer, so that the empty text stays.
        fill(path, &json!({"type": ""}));
    }
    if let Some(limit) = volume.get_mut("emptyDir").and_then(|it| it.get_mut("sizeLimit")) {
        canonical(limit);
    }
}

/// A field or resource that a value is taken from.
fn reference(value: &mut Map<String, Value>) {
    if let Some(field) = value.get_mut("fieldRef").and_then(Value::as_object_mut) {
        fill(field, &json!({"apiVersion": "v1"}));
    }
    if let Some(resource) = value.get_mut("resourceFieldRef").and_then(Value::as_object_mut) {
        fill(resource, &json!({"divisor": "0"}));
        canonical(resource.get_mut("divisor").unwrap());
    }
}

/// A quantity as Kubernetes writes it. What is none never comes this far.
fn canonical(amount: &mut Value) {
    let text = amount.as_str().map_or_else(|| amount.to_string(), str::to_owned);
    if let Ok(quantity) = text.parse::<Quantity>() {
        *amount = json!(quantity.to_string());
    }
}

fn each(fields: &mut Map<String, Value>, list: &str, mut change: impl FnMut(&mut Map<String, Value>)) {
    for item in fields.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
        change(item.as_object_mut().unwrap());
    }
}

fn fill(fields: &mut Map<String, Value>, defaults: &Value) {
    for (key, value) in defaults.as_object().unwrap() {
        fields.entry(key.clone()).or_insert_with(|| value.clone());
    }
}

/// Leaves out what the API's types leave out: null, and lists without items. Empty objects, texts and `false` are left
/// out in some places and stay in others; here they stay where a pointer or map holds them.
fn without_nothing(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.values_mut().for_each(without_nothing);
            fields.retain(|key, value| {
                let is_dropped = matches!(key.as_str(), "readOnly" | "hostPID" | "hostNetwork" | "hostIPC" | "tty");
                let is_path = matches!(key.as_str(), "subPath" | "subPathExpr" | "medium");
                !(value.is_null()
                    || value.as_array().is_some_and(Vec::is_empty)
                    || (is_dropped && *value == json!(false))
                    || (is_path && *value == json!("")))
            });
        }
        Value::Array(items) => items.iter_mut().for_each(without_nothing),
        _ => {}
    }
}

/// Sets, and pods as a real API server sent them before and after our patch, recorded by the e2e test `inject_again`.
const RECORDED: &str = include_str!("../../../../e2e/fixtures/pods-reviewed-again.json");

#[test]
fn it_is_what_a_real_api_server_sends() {
    let recorded: Value = serde_json::from_str(RECORDED).unwrap();
    let read = |recorded: &Value| set(recorded["name"].as_str().unwrap(), recorded["spec"].clone());
    let sets: Vec<Meaning> = recorded["sets"].as_array().unwrap().iter().map(read).collect();
    for (pods, applied) in recorded["pods"].as_array().unwrap().iter().zip([&["logs", "mesh"][..], &["logs"]]) {
        let decision = ask(&pods["first"], &sets);
        let expected: Vec<_> = applied.iter().map(|name| (*name, "inject", Reason::Injected)).collect();
        assert_eq!(verdicts(&decision), expected);
        let mut again = returned(&decision.pod.unwrap());
        // The webhook that made the API server ask again left its trace.
        again["metadata"]["annotations"]["another"] = json!("seen");
        assert_eq!(again, pods["second"]);
        assert_eq!(ask(&pods["second"], &sets).patch, []);
    }
}

#[test]
fn defaults_are_filled_in_everywhere() {
    let pod = json!({"spec": {
        "automountServiceAccountToken": false,
        "containers": [{
            "name": "app", "image": "registry.example:5000/app", "command": [], "tty": false,
            "resources": {"limits": {"cpu": 0.5, "memory": "1024Mi"}, "requests": {"cpu": "0.1"}},
            "env": [{"name": "ME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            "ports": [{"containerPort": 80}], "startupProbe": {"httpGet": {"port": 80}},
        }],
        "volumes": [{"name": "a"}, {"name": "b", "emptyDir": {"sizeLimit": "1024Mi", "medium": ""}},
            {"name": "c", "configMap": {"name": "c"}}, {"name": "d", "hostPath": {"path": "/d"}}],
    }});
    let expected = json!({
        "spec": {
            "automountServiceAccountToken": false,
            "containers": [{
                "name": "app", "image": "registry.example:5000/app", "imagePullPolicy": "Always",
                "resources": {
                    "limits": {"cpu": "500m", "memory": "1Gi"}, "requests": {"cpu": "100m", "memory": "1Gi"},
                },
                "env": [{"name": "ME", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}}],
                "ports": [{"containerPort": 80, "protocol": "TCP"}],
                "startupProbe": {
                    "httpGet": {"path": "/", "port": 80, "scheme": "HTTP"}, "timeoutSeconds": 1, "periodSeconds": 10,
                    "successThreshold": 1, "failureThreshold": 3,
                },
                "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
            }],
            "volumes": [{"name": "a", "emptyDir": {}}, {"name": "b", "emptyDir": {"sizeLimit": "1Gi"}},
                {"name": "c", "configMap": {"name": "c", "defaultMode": 420}},
                {"name": "d", "hostPath": {"path": "/d", "type": ""}}],
            "restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler",
            "terminationGracePeriodSeconds": 30, "securityContext": {}, "enableServiceLinks": true, "priority": 0,
            "preemptionPolicy": "PreemptLowerPriority", "serviceAccount": "default", "serviceAccountName": "default",
        },
        "status": {},
    });
    assert_eq!(returned(&pod), expected);
    assert_eq!(returned(&expected), expected);
}

#[test]
fn every_container_gets_the_token_of_the_account() {
    let pod = json!({"spec": {"containers": [{"name": "app", "image": "a:1"}], "initContainers": [{"name": "i"}]}});
    let after = returned(&pod);
    let mount = json!([{"name": "kube-api-access-x7k2p", "mountPath": TOKEN_PATH, "readOnly": true}]);
    assert_eq!(after["spec"]["containers"][0]["volumeMounts"], mount);
    assert_eq!(after["spec"]["initContainers"][0]["volumeMounts"], mount);
    assert_eq!(after["spec"]["volumes"][0]["name"], "kube-api-access-x7k2p");
    assert_eq!(returned(&after), after);
}
