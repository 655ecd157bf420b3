//! The requests, and how each must end.

use http::Method;
use pillion_e2e::manager::NAMESPACE;
use pillion_e2e::pods::{V1, V2, container, pod, sidecar};
use serde_json::{Value, json};

use super::{Case, Request, SHOP, Who};

/// All of them.
pub(super) fn cases() -> Vec<Case> {
    let all = [to_the_controller(), to_everybody_else(), to_the_list_of_openkruise(), to_the_webhook()];
    all.into_iter().flatten().collect()
}

fn images(containers: &[(&str, &str)]) -> Value {
    let containers: Vec<_> = containers.iter().map(|(name, image)| json!({"name": name, "image": image})).collect();
    json!({"containers": containers})
}

fn resources(list: &str, name: &str) -> Value {
    json!({"spec": {list: [{"name": name, "resources": {"requests": {"cpu": "20m"}}}]}})
}

fn with_requests(mut container: Value) -> Value {
    container["resources"] = json!({"requests": {"cpu": "10m"}});
    container
}

fn injected(mut container: Value) -> Value {
    container["env"] = json!([{"name": "IS_INJECTED", "value": "true"}]);
    container
}

/// A pod of ours nearly as large as the API server takes one: comparing it may not cost more than a policy is allowed.
fn large_pod() -> Value {
    let env: Vec<_> = (0..100).map(|index| json!({"name": format!("V{index}"), "value": "x".repeat(20)})).collect();
    let names: Vec<_> = (0..100).map(|index| format!("c{index}")).collect();
    let containers = names.iter().map(|name| json!({"name": name, "image": V1, "env": env}));
    let mut large = pod("large", &[], &containers.collect::<Vec<_>>());
    large["metadata"]["annotations"] = json!({"pillion.dev/containers": names.join(",")});
    large
}

/// A pod of ours, one that `OpenKruise` injected, one that nobody touched, and a large one.
pub(super) fn existing_pods() -> [Value; 4] {
    let app = || with_requests(container("app", &[]));
    let mut setup = container("setup", &[]);
    setup["args"] = json!(["exit"]);
    let mut listed = pod(
        "listed",
        &[setup, injected(with_requests(sidecar("log", &[])))],
        &[app(), injected(with_requests(container("proxy", &[])))],
    );
    listed["metadata"]["annotations"] =
        json!({"pillion.dev/containers": "log,proxy", "pillion.dev/decision": "{}", "team": "a"});
    listed["metadata"]["labels"] = json!({"pillion.dev/injected": "true", "app": "shop"});
    listed["metadata"]["finalizers"] = json!(["example.com/keep"]);
    let mut left_alone = app();
    left_alone["env"] = json!([{"name": "IS_INJECTED", "value": "false"}]);
    let legacy = pod("legacy", &[], &[left_alone, injected(container("proxy", &[])), injected(container("mesh", &[]))]);
    let mut plain = pod("plain", &[], &[app()]);
    // No scheduler runs, so the pod waits to be bound by a test.
    plain["metadata"]["labels"] = json!({"app": "shop"});
    [listed, legacy, plain, large_pod()]
}

fn to_the_controller() -> Vec<Case> {
    let case = |what, request, refusal| Case { what, who: Who::Controller, request, refusal };
    let marks = |list: &str| json!({"annotations": {"pillion.dev/containers": list}, "labels": {"pillion.dev/injected": "true"}});
    vec![
        case("image in a large pod", Request::patch("large", json!({"spec": images(&[("c0", V2)])})), None),
        case("image of a listed container", Request::patch("listed", json!({"spec": images(&[("proxy", V2)])})), None),
        case(
            "image of a listed native sidecar, with our record and OpenKruise's list",
            Request::patch(
                "listed",
                json!({"spec": {"initContainers": [{"name": "log", "image": V2}]}, "metadata": {"annotations": {
                    "pillion.dev/decision": "{\"v\":2}", "pillion.dev/revision": "a", "kruise.io/sidecarset-injected-list": "a"}}}),
            ),
            None,
        ),
        case(
            "image of a container that is not listed",
            Request::patch("listed", json!({"spec": images(&[("app", V2), ("proxy", V2)])})),
            Some(
                "pod shop/listed: image of container app may not be changed by the controller of Pillion: pillion.dev/containers lists log,proxy",
            ),
        ),
        case(
            "image of an init container that is not listed",
            Request::patch("listed", json!({"spec": {"initContainers": [{"name": "setup", "image": V2}]}})),
            Some(
                "pod shop/listed: image of container setup may not be changed by the controller of Pillion: pillion.dev/containers lists log,proxy",
            ),
        ),
        case(
            "a field of the spec",
            Request::patch("listed", json!({"spec": {"activeDeadlineSeconds": 60}})),
            Some(
                "pod shop/listed: spec.activeDeadlineSeconds may not be changed by the controller of Pillion, which changes images of its own containers and annotations pillion.dev/*",
            ),
        ),
        case(
            "a field of the spec that is there",
            Request::patch("listed", json!({"spec": {"tolerations": [{"key": "a", "operator": "Exists"}]}})),
            Some(
                "pod shop/listed: spec.tolerations may not be changed by the controller of Pillion, which changes images of its own containers and annotations pillion.dev/*",
            ),
        ),
        case(
            "a label",
            Request::patch("listed", json!({"metadata": {"labels": {"app": "other"}}})),
            Some(
                "pod shop/listed: label app may not be changed by the controller of Pillion, which changes images of its own containers and annotations pillion.dev/*",
            ),
        ),
        case(
            "our label taken away",
            Request::patch("listed", json!({"metadata": {"labels": {"pillion.dev/injected": null}}})),
            Some(
                "pod shop/listed: label pillion.dev/injected may not be changed by the controller of Pillion, which changes images of its own containers and annotations pillion.dev/*",
            ),
        ),
        case(
            "an annotation of a user",
            Request::patch("listed", json!({"metadata": {"annotations": {"team": null}}})),
            Some(
                "pod shop/listed: annotation team may not be changed by the controller of Pillion, which changes images of its own containers and annotations pillion.dev/*",
            ),
        ),
        case(
            "a new annotation, empty",
            Request::patch("plain", json!({"metadata": {"annotations": {"example.com/a": ""}}})),
            Some(
                "pod shop/plain: annotation example.com/a may not be changed by the controller of Pillion, which changes images of its own containers and annotations pillion.dev/*",
            ),
        ),
        case(
            "finalizers taken away",
            Request::patch(
                "listed",
                json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/keep"]}}),
            ),
            Some(
                "pod shop/listed: metadata.finalizers may not be changed by the controller of Pillion, which changes images of its own containers and annotations pillion.dev/*",
            ),
        ),
        case(
            "an owner",
            Request::patch(
                "plain",
                json!({"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "b"}]}}),
            ),
            Some(
                "pod shop/plain: metadata.ownerReferences may not be changed by the controller of Pillion, which changes images of its own containers and annotations pillion.dev/*",
            ),
        ),
        case(
            "the list made longer, to change more in the next write",
            Request::patch("listed", json!({"metadata": marks("app,log,proxy")})),
            Some("pod shop/listed: pillion.dev/containers may not be changed once it is there"),
        ),
        case(
            "the list taken away",
            Request::patch("listed", json!({"metadata": {"annotations": {"pillion.dev/containers": null}}})),
            Some("pod shop/listed: pillion.dev/containers may not be changed once it is there"),
        ),
        case(
            "a pod of OpenKruise taken over",
            Request::patch("legacy", json!({"metadata": marks("mesh,proxy"), "spec": images(&[("proxy", V2)])})),
            None,
        ),
        case(
            "another annotation of ours on it",
            Request::patch("legacy", json!({"metadata": {"annotations": {"pillion.dev/revision": "a"}}})),
            None,
        ),
        case(
            "its image without the list",
            Request::patch("legacy", json!({"spec": images(&[("proxy", V2)])})),
            Some(
                "pod shop/legacy: has no pillion.dev/containers: the write that changes an image must add it, with label pillion.dev/injected=true",
            ),
        ),
        case(
            "its list without the label",
            Request::patch(
                "legacy",
                json!({"metadata": {"annotations": {"pillion.dev/containers": "mesh,proxy"}}, "spec": images(&[("proxy", V2)])}),
            ),
            Some(
                "pod shop/legacy: a pod is taken over by writing label pillion.dev/injected=true and in pillion.dev/containers the containers with IS_INJECTED=true, here proxy,mesh",
            ),
        ),
        case(
            "a list that names more than was injected",
            Request::patch("legacy", json!({"metadata": marks("app,mesh,proxy")})),
            Some(
                "pod shop/legacy: a pod is taken over by writing label pillion.dev/injected=true and in pillion.dev/containers the containers with IS_INJECTED=true, here proxy,mesh",
            ),
        ),
        case(
            "a list that names less",
            Request::patch("legacy", json!({"metadata": marks("proxy")})),
            Some(
                "pod shop/legacy: a pod is taken over by writing label pillion.dev/injected=true and in pillion.dev/containers the containers with IS_INJECTED=true, here proxy,mesh",
            ),
        ),
        case(
            "a list that names another",
            Request::patch("legacy", json!({"metadata": marks("app,proxy")})),
            Some(
                "pod shop/legacy: a pod is taken over by writing label pillion.dev/injected=true and in pillion.dev/containers the containers with IS_INJECTED=true, here proxy,mesh",
            ),
        ),
        case(
            "a list that names one twice",
            Request::patch("legacy", json!({"metadata": marks("mesh,proxy,proxy")})),
            Some(
                "pod shop/legacy: a pod is taken over by writing label pillion.dev/injected=true and in pillion.dev/containers the containers with IS_INJECTED=true, here proxy,mesh",
            ),
        ),
        case(
            "the app's image while taking over",
            Request::patch("legacy", json!({"metadata": marks("mesh,proxy"), "spec": images(&[("app", V2)])})),
            Some(
                "pod shop/legacy: image of container app may not be changed by the controller of Pillion: the pod has no pillion.dev/containers",
            ),
        ),
        case(
            "a list on a pod nobody injected",
            Request::patch("plain", json!({"metadata": marks("app")})),
            Some(
                "pod shop/plain: a pod is taken over by writing label pillion.dev/injected=true and in pillion.dev/containers the containers with IS_INJECTED=true, here none",
            ),
        ),
        case(
            "our label alone",
            Request::patch("plain", json!({"metadata": {"labels": {"pillion.dev/injected": "true"}}})),
            Some(
                "pod shop/plain: label pillion.dev/injected may not be changed by the controller of Pillion, which changes images of its own containers and annotations pillion.dev/*",
            ),
        ),
        case(
            "resources of a listed container",
            Request::patch("listed/resize", resources("containers", "proxy")),
            None,
        ),
        case(
            "resources of a listed sidecar",
            Request::patch("listed/resize", resources("initContainers", "log")),
            None,
        ),
        case(
            "resources of a container that is not listed",
            Request::patch("listed/resize", resources("containers", "app")),
            Some(
                "pod shop/listed: resources of container app may not be changed by the controller of Pillion: pillion.dev/containers lists log,proxy",
            ),
        ),
        case(
            "resources of a pod that is not taken over yet",
            Request::patch("legacy/resize", resources("containers", "proxy")),
            Some(
                "pod shop/legacy: resources of container proxy may not be changed by the controller of Pillion: the pod has no pillion.dev/containers",
            ),
        ),
        case(
            "the status",
            Request::patch("listed/status", json!({"status": {"reason": "mine"}})),
            Some("the controller of Pillion may not UPDATE pods/status shop/listed"),
        ),
        case(
            "a container to look around in",
            Request::patch(
                "listed/ephemeralcontainers",
                json!({"spec": {"ephemeralContainers": [{"name": "a", "image": V1}]}}),
            ),
            Some("the controller of Pillion may not UPDATE pods/ephemeralcontainers"),
        ),
        case(
            "a pod",
            Request::to_pods(Method::POST, "/pods", false, pod("new", &[], &[container("app", &[])])),
            Some("the controller of Pillion may create pods only as a dry run"),
        ),
        case(
            "a pod as a dry run",
            Request::to_pods(Method::POST, "/pods", true, pod("new", &[], &[container("app", &[])])),
            None,
        ),
        case(
            "a pod as a dry run, under a name to be drawn",
            {
                let mut drawn = pod("", &[], &[container("app", &[])]);
                drawn["metadata"] = json!({"generateName": "new-"});
                Request::to_pods(Method::POST, "/pods", true, drawn)
            },
            None,
        ),
        case(
            "an eviction",
            Request::to_pods(
                Method::POST,
                "/pods/plain/eviction",
                true,
                json!({"apiVersion": "policy/v1", "kind": "Eviction",
                "metadata": {"name": "plain", "namespace": SHOP}, "deleteOptions": {"dryRun": ["All"]}}),
            ),
            None,
        ),
        case(
            "a deletion",
            Request::to_pods(Method::DELETE, "/pods/plain", true, json!({})),
            Some("the controller of Pillion may not DELETE pods"),
        ),
        case(
            "a node for a pod",
            Request::to_pods(Method::POST, "/pods/plain/binding", true, binding(&json!({}))),
            Some("the controller of Pillion may not CREATE pods/binding"),
        ),
    ]
}

fn binding(metadata: &Value) -> Value {
    let mut metadata = metadata.clone();
    metadata["name"] = "plain".into();
    json!({"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": {"apiVersion": "v1", "kind": "Node", "name": "a"}})
}

fn to_everybody_else() -> Vec<Case> {
    let case = |what, request, refusal| Case { what, who: Who::Admin, request, refusal };
    let annotation = |key: &str, value: Value| json!({"metadata": {"annotations": {key: value}}});
    let label = |value: Value| json!({"metadata": {"labels": {"pillion.dev/injected": value}}});
    let list = Some(
        "pod shop/listed: annotation pillion.dev/containers may be changed only by Pillion: leave it as it is, or delete the pod so that it is injected again",
    );
    vec![
        case("the list", Request::patch("listed", annotation("pillion.dev/containers", json!("app"))), list),
        case("the list, taken away", Request::patch("listed", annotation("pillion.dev/containers", Value::Null)), list),
        case(
            "the list, by a write of the status",
            Request::patch("listed/status", annotation("pillion.dev/containers", json!("app"))),
            list,
        ),
        case(
            "the record",
            Request::patch("listed", annotation("pillion.dev/decision", json!(""))),
            Some(
                "pod shop/listed: annotation pillion.dev/decision may be changed only by Pillion: leave it as it is, or delete the pod so that it is injected again",
            ),
        ),
        case(
            "the revisions",
            Request::patch("listed", annotation("pillion.dev/revisions", json!("{}"))),
            Some(
                "pod shop/listed: annotation pillion.dev/revisions may be changed only by Pillion: leave it as it is, or delete the pod so that it is injected again",
            ),
        ),
        case(
            "the record, forged on a pod without one",
            Request::patch("plain", annotation("pillion.dev/decision", json!("{}"))),
            Some(
                "pod shop/plain: annotation pillion.dev/decision may be changed only by Pillion: leave it as it is, or delete the pod so that it is injected again",
            ),
        ),
        case(
            "the label",
            Request::patch("plain", label(json!("true"))),
            Some(
                "pod shop/plain: label pillion.dev/injected may be changed only by Pillion: leave it as it is, or delete the pod so that it is injected again",
            ),
        ),
        case(
            "the label, by a write of the status",
            Request::patch("plain/status", label(json!("true"))),
            Some(
                "pod shop/plain: label pillion.dev/injected may be changed only by Pillion: leave it as it is, or delete the pod so that it is injected again",
            ),
        ),
        // Without the label, which only Pillion writes, it has no effect.
        case(
            "the list of a pod without the label, by a write of the status",
            Request::patch("plain/status", annotation("pillion.dev/containers", json!("app"))),
            None,
        ),
        case(
            "the label, taken away by a write of the status",
            Request::patch("listed/status", label(Value::Null)),
            Some(
                "pod shop/listed: label pillion.dev/injected may be changed only by Pillion: leave it as it is, or delete the pod so that it is injected again",
            ),
        ),
        case(
            "annotations of a binding, which become the pod's",
            Request::to_pods(
                Method::POST,
                "/pods/plain/binding",
                true,
                binding(&json!({"annotations": {"pillion.dev/containers": "app"}})),
            ),
            Some(
                "pod shop/plain: annotation pillion.dev/containers may be changed only by Pillion: leave it as it is, or delete the pod so that it is injected again",
            ),
        ),
        case(
            "labels of a binding by its old path",
            Request::to_pods(
                Method::POST,
                "/bindings",
                true,
                binding(&json!({"labels": {"pillion.dev/injected": "true"}})),
            ),
            Some(
                "pod shop/plain: label pillion.dev/injected may be changed only by Pillion: leave it as it is, or delete the pod so that it is injected again",
            ),
        ),
        case("a binding", Request::to_pods(Method::POST, "/pods/plain/binding", true, binding(&json!({}))), None),
        case(
            "everything else of a pod of ours",
            Request::patch(
                "listed",
                json!({"metadata": {"labels": {"app": "other"}, "annotations": {"team": "b", "pillion.dev/skip": "a"}},
                       "spec": {"activeDeadlineSeconds": 60, "containers": [{"name": "app", "image": V2}]}}),
            ),
            None,
        ),
        case("its status", Request::patch("listed/status", json!({"status": {"reason": "mine"}})), None),
        case("a resize", Request::patch("listed/resize", resources("containers", "app")), None),
        case("a deletion", Request::to_pods(Method::DELETE, "/pods/listed", true, json!({})), None),
    ]
}

/// The list that `OpenKruise` keeps, too.
fn to_the_list_of_openkruise() -> Vec<Case> {
    let case = |what, path: &str, refusal| {
        let body = json!({"metadata": {"annotations": {"kruise.io/sidecarset-injected-list": "other"}}});
        Case { what, who: Who::Admin, request: Request::patch(path, body), refusal }
    };
    let ours = Some(
        "pod shop/listed: annotation kruise.io/sidecarset-injected-list may be changed only by Pillion: leave it as it is, or delete the pod so that it is injected again",
    );
    vec![
        case("OpenKruise's list, which Pillion wrote", "listed", ours),
        case("OpenKruise's list, which Pillion wrote, by a write of the status", "listed/status", ours),
        case("OpenKruise's list of a pod that it injected", "legacy", None),
    ]
}

fn to_the_webhook() -> Vec<Case> {
    let case = |what, request, refusal| Case { what, who: Who::Webhook, request, refusal };
    let ours = || {
        json!({"name": "pods.pillion.dev", "admissionReviewVersions": ["v1"], "sideEffects": "NoneOnDryRun", "failurePolicy": "Ignore",
               "clientConfig": {"service": {"namespace": NAMESPACE, "name": "pillion-webhook", "path": "/pods"}},
               "namespaceSelector": {"matchExpressions": [
                   {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", NAMESPACE]},
                   {"key": "pillion.dev/injection", "operator": "NotIn", "values": ["required"]}]},
               "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]})
    };
    let with = |edit: &dyn Fn(&mut Value)| {
        let mut webhook = ours();
        edit(&mut webhook);
        Request::register("MutatingWebhookConfiguration", "pillion", &webhook)
    };
    let mut of_sets = ours();
    of_sets["rules"] = json!([{"apiGroups": ["apps.kruise.io"], "apiVersions": ["v1alpha1"], "operations": ["CREATE", "UPDATE"], "resources": ["sidecarsets"]}]);
    of_sets["failurePolicy"] = "Fail".into();
    let mut of_secrets = of_sets.clone();
    of_secrets["rules"][0]["resources"] = json!(["sidecarsets", "secrets"]);
    let only_pods =
        Some("mutatingwebhookconfigurations pillion: the webhook of Pillion may ask only for CREATE of pods");
    vec![
        case("our registration", with(&|_| {}), None),
        case(
            "our registration of sets",
            Request::register("ValidatingWebhookConfiguration", "pillion", &of_sets),
            None,
        ),
        case(
            "fail closed where the label asks for it",
            with(&|webhook| {
                webhook["failurePolicy"] = "Fail".into();
                webhook["namespaceSelector"]["matchExpressions"][1]["operator"] = "In".into();
            }),
            None,
        ),
        case(
            "fail closed everywhere",
            with(&|webhook| webhook["failurePolicy"] = "Fail".into()),
            Some(
                "mutatingwebhookconfigurations pillion: the webhook of Pillion may fail closed only in namespaces labelled pillion.dev/injection=required",
            ),
        ),
        case("Secrets too", with(&|webhook| webhook["rules"][0]["resources"] = json!(["pods", "secrets"])), only_pods),
        case("updates too", with(&|webhook| webhook["rules"][0]["operations"] = json!(["*"])), only_pods),
        case(
            "Secrets beside sets",
            Request::register("ValidatingWebhookConfiguration", "pillion", &of_secrets),
            Some(
                "validatingwebhookconfigurations pillion: the webhook of Pillion may ask only for CREATE and UPDATE of sidecarsets.apps.kruise.io",
            ),
        ),
        case(
            "somebody else's server",
            with(&|webhook| webhook["clientConfig"] = json!({"url": "https://example.com/pods"})),
            Some(
                "mutatingwebhookconfigurations pillion: the webhook of Pillion may register only the service pillion-system/pillion-webhook",
            ),
        ),
        case(
            "another service beside it",
            with(&|webhook| webhook["clientConfig"]["service"]["name"] = "other".into()),
            Some(
                "mutatingwebhookconfigurations pillion: the webhook of Pillion may register only the service pillion-system/pillion-webhook",
            ),
        ),
        case(
            "the namespace the cluster starts in",
            with(&|webhook| webhook["namespaceSelector"]["matchExpressions"][0]["values"] = json!([NAMESPACE])),
            Some(
                "mutatingwebhookconfigurations pillion: the webhook of Pillion must leave out the namespaces kube-system and pillion-system",
            ),
        ),
        case(
            "another registration",
            Request::register("MutatingWebhookConfiguration", "other", &ours()),
            Some("the webhook of Pillion may not CREATE mutatingwebhookconfigurations other"),
        ),
    ]
}
