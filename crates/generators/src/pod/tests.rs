use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::{draw, is_whole};
use crate::random::Random;
use crate::shape::{Form, Shape};

fn pods(form: Form) -> impl Iterator<Item = Value> {
    let mut random = Random::new(11);
    (0..1000).map(move |_| draw(&mut random, Shape { form, ..Shape::default() }, "shop"))
}

#[test]
fn every_pod_is_whole_and_one_the_types_of_kubernetes_can_hold() {
    for form in [Form::Written, Form::Served, Form::Either] {
        for pod in pods(form) {
            assert!(is_whole(&pod), "{pod:#}");
            let read: Result<Pod, _> = serde_json::from_value(pod.clone());
            assert!(read.is_ok(), "{} {pod:#}", read.unwrap_err());
        }
    }
}

#[test]
fn a_served_pod_has_what_the_api_server_fills_in() {
    for pod in pods(Form::Served) {
        assert_eq!(pod["metadata"]["namespace"], "shop");
        let spec = &pod["spec"];
        assert_eq!(spec["serviceAccount"], spec["serviceAccountName"]);
        assert!(spec["serviceAccountName"].is_string() && spec["restartPolicy"].is_string());
        let is_token = |name: &Value| name.as_str().is_some_and(|name| name.starts_with("kube-api-access-"));
        let volumes = spec["volumes"].as_array().into_iter().flatten().filter(|it| is_token(&it["name"])).count();
        let wanted = spec["automountServiceAccountToken"] != json!(false);
        assert_eq!(volumes, usize::from(wanted));
        for container in ["containers", "initContainers"].iter().filter_map(|list| spec[list].as_array()).flatten() {
            let mounts = container["volumeMounts"].as_array().into_iter().flatten();
            let token = mounts.filter(|it| is_token(&it["name"])).collect::<Vec<_>>();
            assert_eq!(token.len(), usize::from(wanted));
            assert!(token.iter().all(|it| it["mountPath"] == "/var/run/secrets/kubernetes.io/serviceaccount"));
            assert!(container["resources"].is_object());
            assert!(container.get("env") != Some(&Value::Null) && container.get("env") != Some(&json!([])));
        }
    }
}

#[test]
fn the_shape_bounds_the_pod() {
    let plain = Shape { containers: 1, init_containers: 0, native_sidecars: 0, unknown_percent: 0, ..Shape::default() };
    let mut random = Random::new(1);
    for _ in 0..300 {
        let pod = draw(&mut random, plain, "shop");
        assert_eq!(pod["spec"]["containers"].as_array().map(Vec::len), Some(1));
        assert_eq!(pod["spec"]["initContainers"].as_array().map_or(0, Vec::len), 0);
        for unknown in ["fieldOfTomorrow", "x-extra", "odd/name", "odd~name", "~1", "ünknown field"] {
            assert!(!pod.to_string().contains(&format!("{unknown:?}:")), "{pod:#}");
        }
    }
}

#[test]
fn a_pod_that_names_what_is_not_there_is_not_whole() {
    let pod = json!({"metadata": {}, "spec": {
        "containers": [{"name": "a", "image": "i", "env": [{"name": "E"}], "volumeMounts": [{"name": "v", "mountPath": "/"}]}],
        "initContainers": [{"name": "b", "image": "i", "volumeDevices": [{"name": "v", "devicePath": "/d"}]}],
        "volumes": [{"name": "v"}],
    }});
    assert!(is_whole(&pod));
    for broken in [
        "/metadata",
        "/spec",
        "/spec/containers",
        "/spec/containers/0",
        "/spec/containers/0/name",
        "/spec/containers/0/image",
        "/spec/containers/0/env/0/name",
        "/spec/containers/0/volumeMounts/0/name",
        "/spec/containers/0/volumeMounts/0/mountPath",
        "/spec/initContainers/0/volumeDevices/0/devicePath",
        "/spec/volumes/0",
        "/spec/volumes/0/name",
    ] {
        let mut less = pod.clone();
        let (above, last) = broken.rsplit_once('/').unwrap();
        match less.pointer_mut(above).unwrap() {
            Value::Object(fields) => drop(fields.remove(last)),
            Value::Array(items) => drop(items.remove(last.parse().unwrap())),
            other => panic!("{other}"),
        }
        assert!(!is_whole(&less), "without {broken}");
    }
    let mut twice = pod;
    twice["spec"]["initContainers"][0]["name"] = json!("a");
    assert!(!is_whole(&twice));
}
