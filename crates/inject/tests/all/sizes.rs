//! Computed resources where they are not as the stories tell them: missing, odd, and impossible amounts.

use pillion_api::{Meaning, Reason};
use serde_json::{Value, json};

use crate::asking::{after, ask, image, pod, refusal, set, with};
use crate::scenarios::resources;

/// A sidecar with these expressions.
fn computed(mode: &str, pattern: &str, limits: Value, requests: Value) -> Meaning {
    let policy = json!({
        "targetContainerMode": mode, "targetContainersNameRegex": pattern,
        "resourceExpr": {"limits": limits, "requests": requests},
    });
    set("mesh", json!({"containers": [with("proxy", json!({"resourcesPolicy": policy}))]}))
}

fn app(limits: [&str; 2], requests: [&str; 2]) -> Value {
    pod(json!({"containers": [with("app", json!({"resources": resources(limits, requests)}))]}))
}

/// The resources that the sidecar gets.
fn given(pod: &Value, set: Meaning) -> Value {
    after(&ask(pod, &[set]))["spec"]["containers"][0]["resources"].clone()
}

fn refused(pod: &Value, set: Meaning) -> (Reason, String) {
    refusal(&ask(pod, &[set]))
}

#[test]
fn no_request_beside_a_limit_is_a_request_of_nothing() {
    let pod = app(["1", "1Gi"], ["1", "1Gi"]);
    let limits = json!({"cpu": "cpu", "memory": "memory"});
    let nothing = json!({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "0", "memory": "0"}});
    assert_eq!(given(&pod, computed("sum", ".*", limits.clone(), json!({}))), nothing);
    assert_eq!(given(&pod, computed("sum", ".*", limits, json!({"cpu": "", "memory": " "}))), nothing);
    // Without a limit the API server copies nothing, so nothing is written.
    let requests = json!({"requests": {"cpu": "500m"}});
    assert_eq!(given(&pod, computed("sum", ".*", json!({}), json!({"cpu": "cpu*50%"}))), requests);
    let memory = json!({"limits": {"memory": "1Gi"}, "requests": {"memory": "0"}});
    assert_eq!(given(&pod, computed("sum", ".*", json!({"memory": "memory"}), json!({}))), memory);
}

#[test]
fn one_target_without_a_limit_is_enough_to_have_none() {
    let two = pod(json!({"containers": [
        with("a", json!({"resources": resources(["1", "1Gi"], ["", ""])})),
        with("b", json!({"resources": resources(["", "1Gi"], ["200m", ""])})),
    ]}));
    let set =
        |limit: &str| computed("max", ".*", json!({"cpu": limit, "memory": "memory*50%"}), json!({"cpu": "cpu*50%"}));
    let memory = json!({"limits": {"memory": "512Mi"}, "requests": {"cpu": "100m", "memory": "0"}});
    assert_eq!(given(&two, set("cpu*50%")), memory);
    // What does not grow with it stays.
    let both = json!({"limits": {"cpu": "2", "memory": "512Mi"}, "requests": {"cpu": "100m", "memory": "0"}});
    assert_eq!(given(&two, set("min(cpu*50%, 2)")), both);
    assert_eq!(given(&two, set("2")), both);
}

#[test]
fn amounts_are_rounded_up_and_written_as_a_person_would() {
    let set = || computed("sum", ".*", json!({"cpu": "cpu*29%", "memory": "memory*10%"}), json!({}));
    let amounts = |cpu: &str, memory: &str| json!({"limits": {"cpu": cpu, "memory": memory}, "requests": {"cpu": "0", "memory": "0"}});
    assert_eq!(given(&app(["100m", "128Mi"], ["", ""]), set()), amounts("29m", "13421773"));
    assert_eq!(given(&app(["101m", "100Mi"], ["", ""]), set()), amounts("30m", "10Mi"));
}

#[test]
fn amounts_are_read_as_kubernetes_reads_them() {
    let set = || computed("sum", ".*", json!({"cpu": "cpu", "memory": "memory"}), json!({}));
    let limits = |cpu: Value, memory: Value| {
        pod(json!({"containers": [with("app", json!({"resources": {"limits": {"cpu": cpu, "memory": memory}}}))]}))
    };
    let amounts = json!({"limits": {"cpu": "1500m", "memory": "1Gi"}, "requests": {"cpu": "0", "memory": "0"}});
    assert_eq!(given(&limits(json!(1.5), json!(1_073_741_824)), set()), amounts);
    assert_eq!(given(&limits(json!("1500e-3"), json!("1Gi")), set()), amounts);

    let malformed = "many".parse::<pillion_quantity::Quantity>().unwrap_err();
    let message = format!(r#"limits.cpu of container app is "many": {malformed}"#);
    assert_eq!(refused(&limits(json!("many"), json!("1Gi")), set()), (Reason::UnreadablePod, message));
    let message = r#"limits.memory of container app is "-1Gi": an amount cannot be negative"#.to_owned();
    assert_eq!(refused(&limits(json!(1), json!("-1Gi")), set()), (Reason::UnreadablePod, message));
}

#[test]
fn only_targets_must_be_readable() {
    let odd = with("odd", json!({"resources": {"limits": {"cpu": "many"}}}));
    let good = with("app", json!({"resources": {"limits": {"cpu": "1"}}}));
    let pod = pod(json!({"containers": [odd, good]}));
    let set = computed("sum", "^app$", json!({"cpu": "cpu"}), json!({}));
    assert_eq!(given(&pod, set), json!({"limits": {"cpu": "1"}, "requests": {"cpu": "0"}}));
}

#[test]
fn a_pattern_is_searched_and_somebody_must_match_it() {
    let pod = pod(json!({"initContainers": [image("my-app-init")], "containers": [
        with("my-app-1", json!({"resources": resources(["1", ""], ["", ""])})), image("other"),
    ]}));
    let set = |pattern: &str| computed("sum", pattern, json!({"cpu": "cpu"}), json!({}));
    assert_eq!(given(&pod, set("app")), json!({"limits": {"cpu": "1"}, "requests": {"cpu": "0"}}));
    let message = r#"container proxy: no container matches "^app" (there are: my-app-1, other): change the pattern"#;
    assert_eq!(refused(&pod, set("^app")), (Reason::NoTarget, message.to_owned()));
}

#[test]
fn what_cannot_be_is_refused_with_the_arithmetic() {
    let pod = app(["500m", "100Mi"], ["400m", "100Mi"]);
    let limits = |cpu: &str| computed("sum", ".*", json!({"cpu": cpu}), json!({}));
    let message = "container proxy: limits.cpu comes to 0, which a node reads as no limit".to_owned();
    assert_eq!(refused(&pod, limits("max(0, cpu-1)")), (Reason::ZeroLimit, message));
    let message = "container proxy, limits.cpu = cpu-1: the result is negative: -500m where cpu is 500m".to_owned();
    assert_eq!(refused(&pod, limits("cpu-1")), (Reason::NegativeResult, message));
    let crossing = computed("sum", ".*", json!({"cpu": "cpu*50%"}), json!({"cpu": "cpu*75%"}));
    let message = "container proxy: requests.cpu comes to 300m, more than limits.cpu with 250m".to_owned();
    assert_eq!(refused(&pod, crossing), (Reason::RequestAboveLimit, message));
    let equal = computed("sum", ".*", json!({"cpu": "200m"}), json!({"cpu": "cpu*50%"}));
    assert_eq!(given(&pod, equal), resources(["200m", ""], ["200m", ""]));
    let doubled = computed("sum", ".*", json!({"memory": "memory*2"}), json!({}));
    let message = "container proxy, limits.memory = memory*2: more than 9223372036854775807 memory is out of range, \
                   where memory is 5Ei";
    assert_eq!(refused(&app(["", "5Ei"], ["", ""]), doubled), (Reason::AmountOutOfRange, message.to_owned()));
}

#[test]
fn a_verdict_shows_what_went_in_and_what_came_out() {
    let two = pod(json!({"containers": [
        with("a", json!({"resources": resources(["1", ""], ["", ""])})), image("b"),
        with("c", json!({"resources": resources(["2", ""], ["", ""])})),
    ]}));
    let sets = [computed("max", "a|c", json!({"cpu": "cpu*50%"}), json!({"memory": "10Mi"}))];
    let decision = ask(&two, &sets);
    let shown: Vec<String> = decision.verdicts[0]
        .sizes
        .iter()
        .map(|size| {
            let targets: Vec<String> = size
                .targets
                .iter()
                .map(|(name, amount)| {
                    let amount = amount.map_or("none".to_owned(), |amount| amount.to_string());
                    format!("{name} {amount}")
                })
                .collect();
            let resource = size.field.resource;
            let (input, result) = (size.input.human(resource), size.result.human(resource));
            format!(
                "{} {} {}({}) {input} -> {} = {result}",
                size.container,
                size.field,
                size.mode,
                targets.join(", "),
                size.program.source()
            )
        })
        .collect();
    let expected = [
        "proxy limits.cpu max(a 1, c 2) 2 -> cpu*50% = 1",
        "proxy requests.memory max(a none, c none) 0 -> 10Mi = 10Mi",
    ];
    let mut shown: Vec<&str> = shown.iter().map(String::as_str).collect();
    shown.sort_unstable();
    assert_eq!(shown, expected);
}
