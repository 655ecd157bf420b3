//! What `OpenKruise` 1.9 gets wrong and we get right, numbered for reference.

use std::collections::BTreeMap;

use pillion_api::{Reason, review};
use pillion_inject::{Installation, Namespace, mismatch};
use serde_json::{Value, json};

use crate::asking::{
    after, applied, ask, ask_in, image, injected, joined, mark, one_app, pod, read, refusal, set, verdicts, with,
};
use crate::scenarios::resources;

/// A set whose sidecar has this limit, as it is written.
fn limited(resource: &str, expression: &str) -> Value {
    let mut limits = json!({});
    limits[resource] = json!(expression);
    let policy = json!({"targetContainerMode": "sum", "resourceExpr": {"limits": limits}});
    json!({
        "apiVersion": "apps.kruise.io/v1alpha1", "kind": "SidecarSet", "metadata": {"name": "proxies"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "containers": [with("proxy", json!({"resourcesPolicy": policy}))],
        },
    })
}

/// Codes and messages of what is said about a set, and whether it can be used.
fn said(object: &Value) -> (Vec<(Reason, String)>, bool) {
    let review = review(object);
    let problems = review.problems.iter().map(|problem| (problem.reason, problem.message.clone())).collect();
    (problems, review.meaning.is_some())
}

// K-01. OpenKruise tries an expression with the number 1, takes the set, and then refuses every pod of it.
#[test]
fn an_expression_of_the_wrong_type_is_refused_with_the_set_and_not_with_every_pod() {
    for (expression, message) in
        [("cpu*cpu", "`cpu*cpu` multiplies two amounts of cpu"), ("2/cpu", "`cpu` divides by an amount of cpu")]
    {
        let (problems, usable) = said(&limited("cpu", expression));
        assert_eq!((problems, usable), (vec![(Reason::InvalidExpression, message.to_owned())], false), "{expression}");
    }
}

// K-01b. OpenKruise reads every one of these as 0, and gives the sidecar a limit of 0 or a floor of none.
#[test]
fn a_number_that_is_none_is_refused_and_never_zero() {
    for text in ["100MB", "1GB", "200mb", "1e", "1e+", "100u", "100n", "2cpu", "0.5cpu", "50%cpu", "5%5"] {
        for expression in [text.to_owned(), format!("max(memory*50%, {text})")] {
            let (problems, usable) = said(&limited("memory", &expression));
            let reasons: Vec<Reason> = problems.iter().map(|(reason, _)| *reason).collect();
            assert_eq!((reasons, usable), (vec![Reason::InvalidExpression], false), "{expression}");
        }
    }
    // The one of them that means something means it: five exabytes.
    assert_eq!(said(&limited("memory", "min(memory, 5E)")), (vec![], true));
}

// K-02. OpenKruise refuses these sets, because one core less two, or one byte less 100Mi, is negative.
#[test]
fn an_expression_that_is_negative_only_for_small_pods_is_taken_and_computed() {
    let app = with("app", json!({"resources": resources(["3", "300Mi"], ["", ""])}));
    let pod = pod(json!({"containers": [app]}));
    for (resource, expression, interval, amount) in
        [("cpu", "cpu-2", "cpu in [0, 2)", "1"), ("memory", "memory-100Mi", "memory in [0, 100Mi)", "200Mi")]
    {
        let object = limited(resource, expression);
        let message = format!("the result is negative for {interval}: such pods are refused");
        assert_eq!(said(&object), (vec![(Reason::PossiblyNegative, message)], true));
        let sets = [read(&object)];
        let after = after(&ask(&pod, &sets));
        assert_eq!(after["spec"]["containers"][0]["resources"]["limits"], json!({resource: amount}));
    }
    // A pod for which it is negative is refused with the arithmetic.
    let sets = [read(&limited("cpu", "cpu-2"))];
    let small = pod_with_cpu("500m");
    let message = "container proxy, limits.cpu = cpu-2: the result is negative: -1500m where cpu is 500m".to_owned();
    assert_eq!(refusal(&ask(&small, &sets)), (Reason::NegativeResult, message));
}

fn pod_with_cpu(limit: &str) -> Value {
    pod(json!({"containers": [with("app", json!({"resources": {"limits": {"cpu": limit}}}))]}))
}

// K-03. OpenKruise takes the set, but looks for the lower-case word when a pod comes, and refuses the pod.
#[test]
fn a_variable_may_be_written_in_capitals() {
    let sets = [read(&limited("memory", "MEMORY*50%"))];
    let app = with("app", json!({"resources": resources(["", "300Mi"], ["", ""])}));
    let after = after(&ask(&pod(json!({"containers": [app]})), &sets));
    assert_eq!(
        after["spec"]["containers"][0]["resources"],
        json!({
            "limits": {"memory": "150Mi"}, "requests": {"memory": "0"},
        })
    );
}

// K-05. OpenKruise asks its cache for the namespace, and where that does not have it yet the pod gets nothing.
#[test]
fn a_namespace_whose_labels_are_not_known_is_found_by_its_name() {
    let selector = |spec: Value| set("proxies", joined(spec, json!({"containers": [image("proxy")]})));
    let name = "kubernetes.io/metadata.name";
    let by_label = selector(json!({"namespaceSelector": {"matchLabels": {name: "shop"}}}));
    let by_list = selector(json!({"namespaceSelector": {"matchExpressions": [
        {"key": name, "operator": "In", "values": ["shop", "bank"]}]}}));
    let by_absence = selector(json!({"namespaceSelector": {"matchExpressions": [
        {"key": name, "operator": "NotIn", "values": ["bank", "barn"]}, {"key": "off", "operator": "DoesNotExist"}]}}));
    let by_field = selector(json!({"namespace": "shop"}));
    let spec = json!({"containers": [injected("proxy", json!({})), image("app")]});
    for set in [by_label, by_list, by_absence, by_field] {
        let sets = [set];
        let (shop, barn) = (Namespace::named("shop"), Namespace::named("barn"));
        let pod = one_app();
        let decision = ask_in(&shop, &pod, &sets, Installation::default());
        assert_eq!(after(&decision), applied("proxies", "proxy", spec.clone()));
        assert_eq!(verdicts(&ask_in(&barn, &pod, &sets, Installation::default())), []);
        let why = mismatch(&sets[0], |_| Some("web"), &barn).unwrap();
        assert_eq!(why.reason, Reason::NamespaceMismatch);
    }
    // What somebody wrote into the labels of a namespace does not give it another name.
    let labels = BTreeMap::from([(name.to_owned(), "shop".to_owned())]);
    let disguised = Namespace { name: "barn".to_owned(), labels };
    let sets = [selector(json!({"namespaceSelector": {"matchLabels": {name: "shop"}}}))];
    assert_eq!(verdicts(&ask_in(&disguised, &one_app(), &sets, Installation::default())), []);
}

// K-07. OpenKruise puts the sidecar in the place of the app's container, without a word.
#[test]
fn a_container_of_the_app_is_never_overwritten() {
    let sets = [set("proxies", json!({"containers": [image("proxy")], "initContainers": [image("app-init")]}))];
    let clash = |name: &str| (Reason::ContainerClash, format!("the pod has a container {name} of its own"));
    let pods = [
        (json!({"containers": [image("app"), image("proxy")]}), "proxy"),
        (json!({"containers": [image("app")], "initContainers": [image("proxy")]}), "proxy"),
        (json!({"containers": [image("app-init")]}), "app-init"),
        (
            json!({"containers": [image("app")], "initContainers": [with("app-init", json!({"restartPolicy": "Always"}))]}),
            "app-init",
        ),
    ];
    for (spec, name) in pods {
        assert_eq!(refusal(&ask(&pod(spec), &sets)), clash(name));
    }
}

// K-08. OpenKruise takes sets in the order in which its cache happens to give them, those of a namespace first.
#[test]
fn sets_apply_in_the_order_of_their_names_wherever_they_come_from() {
    let behind = |name: &str, container: &str, namespace: Value| {
        let container = with(container, json!({"podInjectPolicy": "AfterAppContainer"}));
        let spec = json!({"containers": [container], "initContainers": [image(&format!("init-{name}"))]});
        set(name, joined(spec, namespace))
    };
    let mut sets = vec![
        behind("c", "first", json!({"namespace": "shop"})),
        behind("a", "last", json!({})),
        behind("b", "middle", json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "shop"}}})),
    ];
    let plain = |name: &str| injected(name, json!({}));
    let expected = json!({
        "initContainers": [plain("init-a"), plain("init-b"), plain("init-c")],
        "containers": [image("app"), plain("last"), plain("middle"), plain("first")],
    });
    let pod = one_app();
    for _ in 0..3 {
        let decision = ask(&pod, &sets);
        assert_eq!(after(&decision)["spec"], expected);
        let codes = ["a", "b", "c"].map(|name| (name, "inject", Reason::Injected));
        assert_eq!(verdicts(&decision), codes);
        drop(decision);
        sets.rotate_left(1);
    }
}

// K-11. OpenKruise writes the computed resources over the whole field, claims included.
#[test]
fn claims_stay_beside_computed_resources() {
    let policy = json!({"targetContainerMode": "sum", "resourceExpr": {"limits": {"cpu": "cpu*50%"}}});
    let claims = json!([{"name": "gpu", "request": "one"}]);
    let proxy = with("proxy", json!({"resourcesPolicy": policy, "resources": {"claims": claims}}));
    let sets = [set("proxies", json!({"containers": [proxy]}))];
    let after = after(&ask(&pod_with_cpu("1"), &sets));
    let resources = json!({"claims": claims, "limits": {"cpu": "500m"}, "requests": {"cpu": "0"}});
    assert_eq!(after["spec"]["containers"][0], injected("proxy", json!({"resources": resources})));
}

// K-12. OpenKruise forgets the defaults of startup probes, and then refuses the set for what it did not fill in.
#[test]
fn a_startup_probe_is_written_as_in_any_pod() {
    let probe = json!({"restartPolicy": "Always", "startupProbe": {"httpGet": {"path": "/ready", "port": 15021}}});
    let sets = [set("proxies", json!({"initContainers": [with("proxy", probe.clone())]}))];
    let spec = json!({"initContainers": [injected("proxy", probe)], "containers": [image("app")]});
    assert_eq!(after(&ask(&one_app(), &sets)), applied("proxies", "proxy", spec));
}

// K-13. OpenKruise's webhook panics.
#[test]
fn a_source_of_variables_that_names_no_field_is_refused() {
    let transfer = json!({"sourceContainerNameFrom": {}, "envName": "LEVEL"});
    let mut object = limited("cpu", "cpu");
    object["spec"]["containers"] = json!([with("proxy", json!({"transferEnv": [transfer]}))]);
    let review = review(&object);
    let problems: Vec<_> = review.problems.iter().map(|problem| (problem.reason, problem.path.to_string())).collect();
    let place = "spec.containers[0].transferEnv[0].sourceContainerNameFrom.fieldRef";
    assert_eq!(problems, [(Reason::SchemaViolation, place.to_owned())]);
    assert_eq!(review.meaning, None);
}

// K-14. OpenKruise's own comments offer metadata.name, and its webhook refuses it.
#[test]
fn variables_are_transferred_from_the_container_that_has_the_name_of_the_pod() {
    let source = json!({"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}});
    let transfer = json!({"transferEnv": [{"sourceContainerNameFrom": source, "envName": "LEVEL"}]});
    let sets = [set("proxies", json!({"containers": [with("proxy", transfer)]}))];
    let level = json!({"name": "LEVEL", "value": "info"});
    let mut pod = pod(json!({"containers": [image("app"), with("worker-0", json!({"env": [level]}))]}));
    pod["metadata"]["name"] = json!("worker-0");
    let after = after(&ask(&pod, &sets));
    assert_eq!(after["spec"]["containers"][0], injected("proxy", json!({"env": [mark(), level]})));

    // A pod that gets its name later has none yet.
    let mut unnamed = pod.clone();
    unnamed["metadata"] = json!({"generateName": "worker-", "labels": {"app": "web"}});
    let decision = ask(&unnamed, &sets);
    let why = "container proxy: the pod has no container of the name in metadata.name to copy variables from";
    let warnings: Vec<_> = decision.verdicts[0].warnings.iter().map(|it| (it.reason, it.message.as_str())).collect();
    assert_eq!(warnings, [(Reason::EnvNotFound, why)]);
}
