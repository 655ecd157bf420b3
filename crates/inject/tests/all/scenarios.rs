//! Injection as users of `OpenKruise` know it: the scenarios of its own end-to-end tests, numbered for reference, each with the
//! whole pod that comes of it.

use pillion_api::{Meaning, Reason};
use pillion_inject::{Namespace, mismatch};
use serde_json::{Value, json};

use crate::asking::{after, applied, ask, image, injected, joined, mark, metadata, patch, pod, set, verdicts, with};

/// One init container, one container in front, one behind; the one in front shares volumes.
fn three_sidecars() -> Meaning {
    set(
        "sidecars",
        json!({
            "initContainers": [image("prepare")],
            "containers": [
                with("nginx", json!({
                    "podInjectPolicy": "BeforeAppContainer", "shareVolumePolicy": {"type": "enabled"},
                    "volumeMounts": [{"name": "nginx-cache", "mountPath": "/cache"}],
                })),
                with("busybox", json!({"podInjectPolicy": "AfterAppContainer"})),
            ],
            "volumes": [{"name": "nginx-cache", "emptyDir": {}}],
        }),
    )
}

// Scenario 1.
#[test]
fn a_pod_that_the_selector_does_not_match_stays_as_it_is() {
    let sets = [three_sidecars()];
    let pod = json!({"metadata": {"labels": {"app": "other"}}, "spec": {"containers": [image("app")]}});
    let decision = ask(&pod, &sets);
    assert_eq!(verdicts(&decision), []);
    assert_eq!(decision.patch, []);
    let why = mismatch(&sets[0], |key| (key == "app").then_some("other"), &Namespace::named("shop")).unwrap();
    assert_eq!(why.reason, Reason::SelectorMismatch);
    assert_eq!(why.message, "selector wants app=web, the pod has app=other");
}

// Scenario 2.
#[test]
fn a_downward_api_volume_of_the_set_is_added() {
    let field = |path: &str, name: &str| json!({"path": name, "fieldRef": {"fieldPath": path}});
    let items = [field("metadata.labels", "labels"), field("metadata.annotations", "annotations")];
    let volume = json!({"name": "pod-info", "downwardAPI": {"items": items}});
    let mounts = json!({"volumeMounts": [{"name": "pod-info", "mountPath": "/etc/pod"}]});
    let sets = [set("info", json!({"containers": [with("reader", mounts.clone())], "volumes": [volume]}))];
    let spec = json!({"containers": [injected("reader", mounts), image("app")], "volumes": [volume]});
    assert_eq!(after(&ask(&pod(json!({"containers": [image("app")]})), &sets)), applied("info", "reader", spec));
}

// Scenario 3.
#[test]
fn containers_go_before_and_after_those_of_the_pod_and_init_containers_are_added() {
    let sets = [three_sidecars()];
    let pod = pod(json!({"containers": [image("app"), image("helper")]}));
    let decision = ask(&pod, &sets);
    let cache = json!({"volumeMounts": [{"name": "nginx-cache", "mountPath": "/cache"}]});
    let (front, behind) = (injected("nginx", cache), injected("busybox", json!({})));
    let spec = json!({
        "initContainers": [injected("prepare", json!({}))],
        "containers": [front, image("app"), image("helper"), behind],
        "volumes": [{"name": "nginx-cache", "emptyDir": {}}],
    });
    assert_eq!(after(&decision), applied("sidecars", "busybox,nginx,prepare", spec));
    // The bytes: what is the pod's own is not written again.
    let record = r#"{"v":1,"sets":{"sidecars":{"code":"PL201"}}}"#;
    let revisions = r#"{"sidecars":{"is":"sidecars-rw84dmn5tm"}}"#;
    let annotations = "/metadata/annotations";
    assert_eq!(
        patch(&decision),
        json!([
            {"op": "add", "path": "/spec/initContainers", "value": [injected("prepare", json!({}))]},
            {"op": "add", "path": "/spec/containers/0", "value": front},
            {"op": "add", "path": "/spec/containers/3", "value": behind},
            {"op": "add", "path": "/spec/volumes", "value": [{"name": "nginx-cache", "emptyDir": {}}]},
            {"op": "add", "path": annotations, "value": {"pillion.dev/containers": "busybox,nginx,prepare"}},
            {"op": "add", "path": "/metadata/annotations/kruise.io~1sidecarset-injected-list", "value": "sidecars"},
            {"op": "add", "path": "/metadata/annotations/pillion.dev~1revisions", "value": revisions},
            {"op": "add", "path": "/metadata/labels/pillion.dev~1injected", "value": "true"},
            {"op": "add", "path": "/metadata/annotations/pillion.dev~1decision", "value": record},
        ])
    );
}

// Scenario 4.
#[test]
fn a_sidecar_that_shares_volumes_has_its_own_mount_and_those_of_the_app() {
    let sets = [three_sidecars()];
    let data = json!({"name": "data", "mountPath": "/data", "mountPropagation": "HostToContainer"});
    let app = with("app", json!({"volumeMounts": [data, {"name": "data", "mountPath": "/cache/"}]}));
    // Not shared: mounts of init containers, and paths the sidecar has.
    let init = with("migrate", json!({"volumeMounts": [{"name": "data", "mountPath": "/migrate"}]}));
    let own = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]);
    let pod = pod(json!({"initContainers": [init], "containers": [app], "volumes": own}));
    let mounts = json!({"volumeMounts": [{"name": "nginx-cache", "mountPath": "/cache"}, data]});
    let spec = json!({
        "initContainers": [init, injected("prepare", json!({}))],
        "containers": [injected("nginx", mounts), app, injected("busybox", json!({}))],
        "volumes": [own[0], {"name": "nginx-cache", "emptyDir": {}}],
    });
    assert_eq!(after(&ask(&pod, &sets)), applied("sidecars", "busybox,nginx,prepare", spec));
}

// Scenario 5.
#[test]
fn variables_that_shared_mounts_refer_to_come_with_them() {
    let sets =
        [set("logs", json!({"containers": [with("shipper", json!({"shareVolumePolicy": {"type": "enabled"}}))]}))];
    let name = json!({"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}});
    let folder = json!({"name": "FOLDER", "value": "logs/$(POD_NAME)"});
    let mount = json!({"name": "logs", "mountPath": "/logs", "subPathExpr": "$(FOLDER)/$$(NOT)/$(POD_NAME)"});
    let other = json!({"name": "OTHER", "value": "1"});
    let app = with("app", json!({"env": [name, other, folder], "volumeMounts": [mount]}));
    let volumes = json!([{"name": "logs", "emptyDir": {}}]);
    // What a variable refers to stands before it, as Kubernetes wants it.
    let shipper = injected("shipper", json!({"env": [mark(), name, folder], "volumeMounts": [mount]}));
    let spec = json!({"containers": [shipper, app], "volumes": volumes});
    let pod = pod(json!({"containers": [app], "volumes": volumes}));
    assert_eq!(after(&ask(&pod, &sets)), applied("logs", "shipper", spec));
}

/// An app with variables, and what a sidecar gets of them by this transfer.
fn transferred(metadata: Value, transfer: Value) -> (Value, Vec<(String, String)>, Vec<Value>) {
    let own = json!({"name": "REGION", "value": "own"});
    let sidecar = with("agent", json!({"env": [own], "transferEnv": [transfer]}));
    let sets = [set("agents", json!({"containers": [sidecar]}))];
    let secret = json!({"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}});
    let env = json!([{"name": "REGION", "value": "app's"}, secret, {"name": "LEVEL", "value": "info"}]);
    let other = with("other", json!({"env": [{"name": "LEVEL", "value": "debug"}]}));
    let pod = json!({"metadata": metadata, "spec": {"containers": [with("app", json!({"env": env})), other]}});
    let decision = ask(&pod, &sets);
    let warnings = decision.verdicts[0].warnings.iter();
    let warnings = warnings.map(|warning| (warning.reason.code().to_owned(), warning.message.clone())).collect();
    let after = after(&decision);
    assert_eq!(after["spec"]["containers"].as_array().unwrap()[1..], pod["spec"]["containers"].as_array().unwrap()[..]);
    let mut rest = after["spec"]["containers"][0].clone();
    let env = rest.as_object_mut().unwrap().remove("env").unwrap();
    assert_eq!(rest, image("agent"));
    (after["metadata"].clone(), warnings, env.as_array().unwrap().clone())
}

fn of_agents() -> Value {
    metadata("agents", "agent", json!({"agents": {"code": "PL201"}}))
}

// Scenario 6.
#[test]
fn variables_are_transferred_by_the_name_of_a_container_and_the_sidecars_own_win() {
    let transfer = json!({"sourceContainerName": "app", "envName": "TOKEN", "envNames": ["REGION", "LEVEL"]});
    let (metadata, warnings, env) = transferred(json!({"labels": {"app": "web"}}), transfer);
    let secret = json!({"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}});
    let own = json!({"name": "REGION", "value": "own"});
    assert_eq!(env, [own, mark(), json!({"name": "LEVEL", "value": "info"}), secret]);
    assert_eq!(warnings, []);
    assert_eq!(metadata, of_agents());
}

// Scenario 7.
#[test]
fn variables_are_transferred_from_the_container_that_a_label_names() {
    let field = json!({"fieldRef": {"fieldPath": "metadata.labels['main']"}});
    let transfer = json!({"sourceContainerNameFrom": field, "envName": "LEVEL"});
    let (metadata, _, env) = transferred(json!({"labels": {"app": "web", "main": "other"}}), transfer.clone());
    assert_eq!(env[1..], [mark(), json!({"name": "LEVEL", "value": "debug"})]);
    let labels = json!({"app": "web", "main": "other", "pillion.dev/injected": "true"});
    assert_eq!(metadata, joined(of_agents(), json!({"labels": labels})));

    // A pod without the label gets the sidecar all the same, and somebody is told.
    let (_, warnings, env) = transferred(json!({"labels": {"app": "web"}}), transfer);
    assert_eq!(env[1..], [mark()]);
    let why = "container agent: the pod has no container of the name in metadata.labels['main'] to copy variables from";
    assert_eq!(warnings, [("PL352".to_owned(), why.to_owned())]);
}

// Scenario 8.
#[test]
fn variables_are_transferred_from_the_container_that_an_annotation_names() {
    let field = json!({"fieldRef": {"fieldPath": "metadata.annotations['example.com/main']"}});
    let transfer = json!({"sourceContainerNameFrom": field, "envNames": ["LEVEL", "REGION", "NONE"]});
    let annotations = json!({"example.com/main": "other"});
    let (metadata, warnings, env) =
        transferred(json!({"labels": {"app": "web"}, "annotations": annotations}), transfer);
    assert_eq!(env[1..], [mark(), json!({"name": "LEVEL", "value": "debug"})]);
    let why = "container agent: container other of the pod has no variable NONE".to_owned();
    assert_eq!(warnings, [("PL352".to_owned(), why)]);
    let record = json!({"v": 1, "sets": {"agents": {"code": "PL201", "warnings": ["PL352"]}}});
    let expected = joined(of_agents()["annotations"].clone(), annotations);
    assert_eq!(metadata["annotations"], joined(expected, json!({"pillion.dev/decision": record})));
}

// Scenario 10, as far as new pods are concerned.
#[test]
fn an_annotation_is_merged_as_json_when_the_pod_is_created() {
    let patch = json!({"annotations": {"oom-score": r#"{"log-agent": 1}"#}, "patchPolicy": "MergePatchJson"});
    let sets = [set("oom", json!({"containers": [image("log-agent")], "patchPodMetadata": [patch]}))];
    let annotated = |text: &str| {
        let mut pod = pod(json!({"containers": [image("app")]}));
        pod["metadata"]["annotations"] = json!({"oom-score": text});
        let mut after = after(&ask(&pod, &sets));
        let text = after["metadata"]["annotations"].as_object_mut().unwrap().remove("oom-score").unwrap();
        let spec = json!({"containers": [injected("log-agent", json!({})), image("app")]});
        assert_eq!(after, applied("oom", "log-agent", spec));
        text
    };
    assert_eq!(annotated(r#"{"app": 5, "log-agent": 3}"#), r#"{"app":5,"log-agent":1}"#);
    assert_eq!(annotated(""), r#"{"log-agent": 1}"#);
    let without = pod(json!({"containers": [image("app")]}));
    let decision = ask(&without, &sets);
    assert_eq!(after(&decision)["metadata"]["annotations"]["oom-score"], r#"{"log-agent": 1}"#);
}

// Scenario 19, as far as injection is concerned.
#[test]
fn by_default_init_containers_go_behind_and_containers_in_front() {
    let init = [image("late"), with("early", json!({"podInjectPolicy": "BeforeAppContainer"}))];
    let native = with("proxy", json!({"restartPolicy": "Always"}));
    let sets = [set("defaults", json!({"initContainers": [init[0], init[1], native], "containers": [image("logs")]}))];
    let pod = pod(json!({"initContainers": [image("own")], "containers": [image("app")]}));
    let late = [injected("late", json!({})), injected("proxy", json!({"restartPolicy": "Always"}))];
    let spec = json!({
        "initContainers": [injected("early", json!({})), image("own"), late[0], late[1]],
        "containers": [injected("logs", json!({})), image("app")],
    });
    assert_eq!(after(&ask(&pod, &sets)), applied("defaults", "early,late,logs,proxy", spec));
}

/// Resources with these limits and requests of cpu and memory; an empty text is none.
pub(crate) fn resources(limits: [&str; 2], requests: [&str; 2]) -> Value {
    let side = |[cpu, memory]: [&str; 2]| {
        let given = [("cpu", cpu), ("memory", memory)].into_iter().filter(|(_, amount)| !amount.is_empty());
        Value::Object(given.map(|(name, amount)| (name.to_owned(), json!(amount))).collect())
    };
    json!({"limits": side(limits), "requests": side(requests)})
}

/// A sidecar that follows every container of the pod.
fn followed(name: &str, expressions: Value) -> Value {
    with(name, json!({"resourcesPolicy": {"targetContainerMode": "sum", "resourceExpr": expressions}}))
}

// Scenario 34.
#[test]
fn plain_init_containers_are_no_targets() {
    let half = json!({"limits": {"cpu": "cpu*50%"}, "requests": {"cpu": "cpu*50%"}});
    let sets = [set("half", json!({"containers": [followed("proxy", half)]}))];
    let large = json!({"resources": resources(["8", ""], ["8", ""])});
    let native = with("own", json!({"restartPolicy": "Always", "resources": resources(["400m", ""], ["200m", ""])}));
    let app = with("app", json!({"resources": resources(["600m", ""], ["200m", ""])}));
    let pod = pod(json!({"initContainers": [with("migrate", large), native], "containers": [app]}));
    let sizes = json!({"limits.cpu": ["1", "500m"], "requests.cpu": ["400m", "200m"]});
    let record = json!({"half": {"code": "PL201", "sizes": {"proxy": sizes}}});
    let proxy = injected("proxy", json!({"resources": resources(["500m", ""], ["200m", ""])}));
    let spec = joined(pod["spec"].clone(), json!({"containers": [proxy, app]}));
    assert_eq!(after(&ask(&pod, &sets)), json!({"metadata": metadata("half", "proxy", record), "spec": spec}));
}

// Scenario 35.
#[test]
fn sidecars_of_other_sets_are_no_targets_whenever_they_came() {
    let fixed = json!({"resources": resources(["4", ""], ["4", ""])});
    let native = with("native", joined(fixed.clone(), json!({"restartPolicy": "Always"})));
    let first = set("a-fixed", json!({"initContainers": [native], "containers": [with("fixed", fixed.clone())]}));
    let share = json!({"limits": {"cpu": "cpu*50%"}, "requests": {"cpu": "cpu*25%"}});
    let second = set("b-share", json!({"containers": [followed("proxy", share)]}));
    let app = with("app", json!({"resources": resources(["1", ""], ["400m", ""])}));
    let own = pod(json!({"containers": [app]}));

    let proxy = injected("proxy", json!({"resources": resources(["500m", ""], ["100m", ""])}));
    let sizes = json!({"limits.cpu": ["1", "500m"], "requests.cpu": ["400m", "100m"]});
    let share = json!({"code": "PL201", "sizes": {"proxy": sizes}});
    let native = injected("native", joined(fixed.clone(), json!({"restartPolicy": "Always"})));
    let expected = |containers: Value| {
        let record = json!({"a-fixed": {"code": "PL201"}, "b-share": share});
        let metadata = metadata("a-fixed,b-share", "fixed,native,proxy", record);
        json!({"metadata": metadata, "spec": {"initContainers": [native], "containers": containers}})
    };
    let sets = [first, second];
    let together = after(&ask(&own, &sets));
    assert_eq!(together, expected(json!([injected("fixed", fixed.clone()), proxy, app])));

    // The second set comes when the pod has the sidecars of the first, as in a copy.
    let alone = ask(&own, &sets[..1]).pod.unwrap();
    assert_eq!(after(&ask(&alone, &sets)), expected(json!([proxy, injected("fixed", fixed), app])));
}
