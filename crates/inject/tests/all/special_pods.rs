//! Pods that docs/how-injection-decides.md lists under "Special pods".

use pillion_api::{Meaning, Reason};
use pillion_inject::Outcome;
use serde_json::{Value, json};

use crate::asking::{after, ask, image, injected, joined, pod, refusal, set, with};
use crate::scenarios::resources;

/// A set whose sidecar gets half of the CPU of the app.
fn half(name: &str, sidecar: &str) -> Meaning {
    let policy = json!({
        "targetContainerMode": "sum", "targetContainersNameRegex": "^app$",
        "resourceExpr": {"limits": {"cpu": "cpu*50%"}, "requests": {"cpu": "cpu*50%"}},
    });
    set(name, json!({"containers": [with(sidecar, json!({"resourcesPolicy": policy}))]}))
}

fn fixed(name: &str, sidecar: &str, resources: &Value) -> Meaning {
    let spec = json!({"failurePolicy": "Ignore", "containers": [with(sidecar, json!({"resources": resources}))]});
    set(name, spec)
}

fn app(resources: &Value) -> Value {
    with("app", json!({"resources": resources}))
}

#[test]
fn a_container_with_the_variable_of_injected_ones_is_no_target_and_is_never_replaced() {
    let marked = injected("app", json!({"resources": resources(["1", ""], ["1", ""])}));
    let only = pod(json!({"containers": [marked.clone()]}));
    let message = "container proxy: no container matches \"^app$\" (there are: ): change the pattern; app is injected: it \
                   has IS_INJECTED=true";
    assert_eq!(refusal(&ask(&only, &[half("mesh", "proxy")])), (Reason::NoTarget, message.to_owned()));
    let message = "the pod has a container app that was injected, but not by this set".to_owned();
    let replacing = set("mesh", json!({"containers": [image("app")]}));
    assert_eq!(refusal(&ask(&only, &[replacing])), (Reason::ContainerClash, message));
    let other_value = json!({"env": [{"name": "IS_INJECTED", "value": "yes"}]});
    let target = pod(json!({"containers": [joined(marked, other_value)]}));
    let sized = after(&ask(&target, &[half("mesh", "proxy")]));
    assert_eq!(sized["spec"]["containers"][0]["resources"], resources(["500m", ""], ["500m", ""]));
}

#[test]
fn a_limit_of_zero_is_no_limit() {
    let zero = pod(json!({"containers": [app(&resources(["0", ""], ["0", ""]))]}));
    let sized = after(&ask(&zero, &[half("mesh", "proxy")]));
    assert_eq!(sized["spec"]["containers"][0]["resources"], json!({"requests": {"cpu": "0"}}));
}

#[test]
fn a_sidecar_keeps_its_size_when_another_webhook_resizes_the_app() {
    let first = pod(json!({"containers": [app(&resources(["1", ""], ["1", ""]))]}));
    let sets = [half("mesh", "proxy")];
    let mut resized = ask(&first, &sets).pod.unwrap();
    resized["spec"]["containers"][1]["resources"] = resources(["4", ""], ["4", ""]);
    let second = ask(&resized, &sets);
    assert_eq!(second.patch, []);
    assert_eq!((second.verdicts[0].outcome, second.verdicts[0].reason), (Outcome::Kept, Reason::AlreadyInjected));
}

#[test]
fn the_last_set_that_exceeds_the_resources_of_the_pod_is_left_out() {
    let own = resources(["", ""], ["500m", ""]);
    let bounded = |resources: Value| pod(json!({"resources": resources, "containers": [app(&own)]}));
    let sets = [
        fixed("a", "first", &resources(["", ""], ["300m", ""])),
        fixed("b", "second", &resources(["", ""], ["300m", ""])),
        fixed("c", "third", &resources(["", "1Gi"], ["", "1Gi"])),
    ];
    let outcomes = |pod: &Value| -> Vec<(Outcome, Reason, String)> {
        let decision = ask(pod, &sets);
        decision.verdicts.into_iter().map(|it| (it.outcome, it.reason, it.message)).collect()
    };
    let applied = || (Outcome::Applied, Reason::Injected, "the selectors match".to_owned());
    let exceeds = |message: &str| (Outcome::Ignored, Reason::PodResourcesExceeded, message.to_owned());
    let all = [applied(), applied(), applied()];
    assert_eq!(outcomes(&bounded(json!({"requests": {"cpu": "1100m"}}))), all);
    let message =
        "requests.cpu of all containers come to 1100m, more than spec.resources.requests.cpu of the pod with 1";
    assert_eq!(outcomes(&bounded(json!({"requests": {"cpu": "1"}}))), [applied(), exceeds(message), applied()]);
    let message = "container third: limits.memory is 1Gi, more than spec.resources.limits.memory of the pod with 512Mi";
    let limits = json!({"limits": {"cpu": "8", "memory": "512Mi"}});
    assert_eq!(outcomes(&bounded(limits)), [applied(), applied(), exceeds(message)]);
    let init =
        set("c", json!({"initContainers": [with("third", json!({"resources": resources(["", "1Gi"], ["", ""])}))]}));
    let unbounded = bounded(json!({"limits": {"memory": "512Mi"}}));
    assert_eq!(
        ask(&unbounded, &[init]).verdicts[0].outcome,
        Outcome::Applied,
        "limits of init containers are not compared"
    );
    // Without room for anybody.
    let both =
        "requests.cpu of all containers come to 800m, more than spec.resources.requests.cpu of the pod with 500m";
    let message =
        "requests.cpu of all containers come to 1100m, more than spec.resources.requests.cpu of the pod with 500m";
    let none = [exceeds(both), exceeds(message), applied()];
    assert_eq!(outcomes(&bounded(json!({"requests": {"cpu": "500m"}}))), none);
    // The pod exceeds its resources without any set: that is for the API server to say.
    assert_eq!(
        outcomes(&pod(json!({"resources": {"requests": {"memory": "1"}},
        "containers": [app(&resources(["", ""], ["", "2"]))]})))[..2],
        all[..2]
    );
}

#[test]
fn init_containers_count_as_the_api_server_counts_them() {
    let sidecar = |fields: Value| {
        let container = joined(with("side", json!({"resources": resources(["", ""], ["300m", ""])})), fields);
        set("a", json!({"initContainers": [container]}))
    };
    let bounded = |cpu: &str, init: &str| {
        pod(json!({"resources": {"requests": {"cpu": cpu}},
            "initContainers": [with("init", json!({"resources": resources(["", ""], [init, ""])}))],
            "containers": [app(&resources(["", ""], ["500m", ""]))]}))
    };
    let native = json!({"restartPolicy": "Always", "podInjectPolicy": "BeforeAppContainer"});
    for (set, cpu, init, sum) in [
        // A plain init container runs before the app.
        (sidecar(json!({})), "500m", "100m", None),
        // A native sidecar runs beside the app, and beside the init containers after it.
        (sidecar(native.clone()), "800m", "500m", None),
        (sidecar(native.clone()), "799m", "500m", Some("800m")),
        (sidecar(native), "800m", "501m", Some("801m")),
    ] {
        let pod = bounded(cpu, init);
        let decision = ask(&pod, std::slice::from_ref(&set));
        let message = sum.map(|sum| {
            format!("requests.cpu of all containers come to {sum}, more than spec.resources.requests.cpu of the pod with {cpu}")
        });
        let refused = decision.is_refused().then(|| refusal(&decision).1);
        assert_eq!(refused, message, "{cpu} {init}");
    }
}
