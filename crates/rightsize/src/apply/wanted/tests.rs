use std::fmt::Write as _;

use serde_json::json;

use super::super::samples::{SIDECARS, app, autoscaler, container, limits, pod, sidecar, sizing};
use super::*;

/// What is wanted, a line for each container: `name requests limits (notes)`.
fn lines(wanted: &Wanted) -> String {
    let mut text = String::new();
    for own in &wanted.containers {
        let side = |amounts: Amounts| {
            let one = |resource| amounts.get(resource).map_or("-".to_owned(), |own| Amounts::write(resource, own));
            format!("{}/{}", one(Resource::Cpu), one(Resource::Memory))
        };
        let notes = if own.notes.is_empty() { String::new() } else { format!(" ({})", own.notes.join(", ")) };
        let _ = writeln!(text, "{} {} {}{notes}", own.name, side(own.to.requests), side(own.to.limits));
    }
    text.trim_end().to_owned()
}

fn one(spec: &Value, recommendations: &Value, limits: &LimitRanges, containers: &Value) -> String {
    of(spec, recommendations, limits, &pod(containers, &json!([])))
}

fn of(spec: &Value, recommendations: &Value, limits: &LimitRanges, pod: &Value) -> String {
    let autoscaler = autoscaler(spec, recommendations);
    lines(&wanted(pod, &sizing(&autoscaler, limits, SIDECARS)).unwrap())
}

fn policy(fields: &Value) -> Value {
    let mut own = fields.clone();
    own["containerName"] = "app".into();
    json!({"resourcePolicy": {"containerPolicies": [own]}})
}

const NONE: LimitRanges = {
    let none = Amounts { cpu: None, memory: None };
    let range = super::super::limit_range::LimitRange { min: none, max: none, default: none, ratio: none };
    LimitRanges { container: range, pod: range }
};

#[test]
fn limits_follow_requests_in_proportion() {
    let sized = |requests: &str, limits: &str| {
        one(&json!({}), &app("250m", "200Mi"), &NONE, &json!([container("app", requests, limits)]))
    };
    let plain = "cpu: limit NOT set since originalLimit is nil or 0";
    // Twice the request, half as much more, and equal.
    assert_eq!(sized("100m/100Mi", "200m/150Mi"), "app 250m/200Mi 500m/300Mi");
    assert_eq!(sized("100m/100Mi", "100m/100Mi"), "app 250m/200Mi 250m/200Mi");
    // Only a limit counts as a request of the same amount; no limit stays none.
    assert_eq!(sized("-/-", "100m/100Mi"), "app 250m/200Mi 250m/200Mi");
    assert_eq!(sized("100m/100Mi", "-/-"), "app 250m/200Mi -/-");
    assert_eq!(sized("100m/100Mi", "-/150Mi"), format!("app 250m/200Mi -/300Mi ({plain})"));
    assert_eq!(sized("-/-", "-/-"), "app 250m/200Mi -/-");
    // Rounded down, and never beyond what a number can hold.
    assert_eq!(sized("3m/100Mi", "7m/100Mi"), "app 250m/200Mi 583m/200Mi");
    let huge = one(&json!({}), &app("1P", "1"), &NONE, &json!([container("app", "1m/1", "1k/1")]));
    assert_eq!(
        huge,
        "app 1000000000000000/1 9223372036854775807m/1 (cpu: failed to keep limit to request ratio; capping limit to int64)"
    );
}

#[test]
fn the_policy_bounds_requests_and_zero_bounds_nothing() {
    let sized = |fields: Value| {
        one(&policy(&fields), &app("250m", "200Mi"), &NONE, &json!([container("app", "100m/100Mi", "200m/150Mi")]))
    };
    assert_eq!(
        sized(json!({"maxAllowed": {"cpu": "233m", "memory": "150Mi"}})),
        "app 233m/150Mi 466m/225Mi (cpu capped to maxAllowed, memory capped to maxAllowed)"
    );
    assert_eq!(
        sized(json!({"minAllowed": {"cpu": "90m", "memory": "300Mi"}})),
        "app 250m/300Mi 500m/450Mi (memory capped to minAllowed)"
    );
    assert_eq!(sized(json!({"minAllowed": {"cpu": "0"}, "maxAllowed": {"cpu": "0"}})), "app 250m/200Mi 500m/300Mi");
    // Where the two contradict each other, the maximum holds.
    assert_eq!(
        sized(json!({"minAllowed": {"cpu": "3"}, "maxAllowed": {"cpu": "2"}})),
        "app 2/200Mi 4/300Mi (cpu capped to minAllowed, cpu capped to maxAllowed)"
    );
    assert_eq!(sized(json!({"mode": "Off"})), "");
    assert_eq!(
        sized(json!({"controlledResources": ["cpu"]})),
        "app 250m/- 500m/- (memory: limit NOT set since recommendedRequest is nil or 0)"
    );
}

#[test]
fn requests_only_leaves_limits_and_stays_below_them() {
    let sized = |requests: &str, limits: &str, ranges: &LimitRanges| {
        let fields = json!({"controlledValues": "RequestsOnly"});
        one(&policy(&fields), &app("250m", "200Mi"), ranges, &json!([container("app", requests, limits)]))
    };
    assert_eq!(sized("100m/100Mi", "500m/500Mi", &NONE), "app 250m/200Mi -/-");
    assert_eq!(
        sized("100m/100Mi", "200m/150Mi", &NONE),
        "app 200m/150Mi -/- (cpu capped to container limit, memory capped to container limit)"
    );
    // Its limit is what the LimitRange is about, and stays: only the request itself is bounded.
    let max = limits("Container", &json!({"max": {"cpu": "220m"}}));
    assert_eq!(
        sized("100m/100Mi", "400m/500Mi", &max),
        "app 220m/200Mi -/- (cpu capped to fit Max in container LimitRange)"
    );
    // The API server refuses a pod whose limit is further from its request than the namespace allows.
    let ratio = limits("Container", &json!({"maxLimitRequestRatio": {"cpu": "2", "memory": "1.5"}}));
    assert_eq!(
        sized("1/1Gi", "1200m/1Gi", &ratio),
        "app 600m/715827883 -/- (cpu raised to fit maxLimitRequestRatio in container LimitRange, \
         memory raised to fit maxLimitRequestRatio in container LimitRange)"
    );
}

#[test]
fn the_limit_range_of_containers_bounds_through_the_ratio() {
    let sized = |bounds: Value, requests: &str, limit: &str| {
        let ranges = limits("Container", &bounds);
        one(&json!({}), &app("250m", "200Mi"), &ranges, &json!([container("app", requests, limit)]))
    };
    assert_eq!(
        sized(json!({"max": {"cpu": "300m", "memory": "1Ti"}}), "100m/100Mi", "150m/200Mi"),
        "app 200m/200Mi 300m/400Mi (cpu capped to fit Max in container LimitRange)"
    );
    assert_eq!(
        sized(json!({"min": {"cpu": "50m", "memory": "600Mi"}}), "100m/100Mi", "150m/200Mi"),
        "app 250m/600Mi 375m/1200Mi (memory capped to fit Min in container LimitRange)"
    );
    // Rounded up, so that the limit is not below the minimum by a part of a millicore.
    assert_eq!(
        sized(json!({"min": {"cpu": "1001m"}}), "300m/1Mi", "200m/1Mi"),
        "app 1502m/200Mi 1001m/200Mi (cpu capped to fit Min in container LimitRange)"
    );
    // A limit that the namespace gives.
    assert_eq!(
        sized(json!({"default": {"cpu": "200m"}}), "100m/100Mi", "-/-"),
        "app 250m/200Mi 500m/- (memory: limit NOT set since originalLimit is nil or 0)"
    );
    // The policy wins over the LimitRange.
    let ranges = limits("Container", &json!({"max": {"cpu": "300m"}}));
    let spec = policy(&json!({"minAllowed": {"cpu": "1"}}));
    assert_eq!(
        one(&spec, &app("250m", "200Mi"), &ranges, &json!([container("app", "100m/100Mi", "200m/150Mi")])),
        "app 1/200Mi 2/300Mi (cpu capped to fit Max in container LimitRange, cpu capped to minAllowed)"
    );
}

#[test]
fn the_limit_range_of_pods_bounds_the_sum_in_proportion() {
    let both = json!([
        {"name": "app", "target": {"cpu": "200m", "memory": "400Mi"}},
        {"name": "other", "target": {"cpu": "600m", "memory": "400Mi"}},
    ]);
    let containers =
        json!([container("app", "100m/100Mi", "100m/100Mi"), container("other", "100m/100Mi", "200m/100Mi")]);
    // Limits would be 200m and 1200m, of which a half is allowed.
    let max = limits("Pod", &json!({"max": {"cpu": "700m"}}));
    assert_eq!(one(&json!({}), &both, &max, &containers), "app 100m/400Mi 100m/400Mi\nother 300m/400Mi 600m/400Mi");
    let max = limits("Pod", &json!({"max": {"memory": "400Mi"}}));
    assert_eq!(one(&json!({}), &both, &max, &containers), "app 200m/200Mi 200m/200Mi\nother 600m/200Mi 1200m/200Mi");
    // Requests are 800m in sum.
    let min = limits("Pod", &json!({"min": {"cpu": "1600m"}}));
    assert_eq!(one(&json!({}), &both, &min, &containers), "app 400m/400Mi 400m/400Mi\nother 1200m/400Mi 2400m/400Mi");
    // One that has no limit: the sum of the requests is what the API server looks at.
    let min = limits("Pod", &json!({"min": {"memory": "1Gi"}}));
    let plain = json!([container("app", "1m/1Mi", "-/-"), container("other", "1m/1Mi", "-/-")]);
    assert_eq!(one(&json!({}), &both, &min, &plain), "app 200m/512Mi -/-\nother 600m/512Mi -/-");
}

#[test]
fn limits_that_are_rounded_down_before_they_are_added_up_do_not_exceed_the_limit_range() {
    // In proportion each gets 1000m with a limit of 1500m, which is one more than may be.
    let names = ["a", "b", "c"];
    let recommended = names.map(|name| json!({"name": name, "target": {"cpu": "1001m"}}));
    let containers = names.map(|name| container(name, "2m/-", "3m/-"));
    let max = limits("Pod", &json!({"max": {"cpu": "4499m"}}));
    let sized = one(&json!({}), &json!(recommended), &max, &json!(containers));
    let amounts: Vec<&str> = sized.lines().map(|line| line.split(" (").next().unwrap()).collect();
    assert_eq!(amounts, ["a 1/- 1500m/-", "b 1/- 1500m/-", "c 999m/- 1498m/-"]);
}

#[test]
fn a_container_without_a_recommendation_counts_with_what_it_has_and_stays() {
    // Upstream's library ends here with an error of the program.
    let max = limits("Pod", &json!({"max": {"cpu": "500m", "memory": "1Gi"}, "min": {"cpu": "10m"}}));
    let containers = json!([container("app", "100m/-", "100m/-"), container("new", "300m/-", "300m/-")]);
    assert_eq!(
        one(&json!({}), &app("400m", "1Mi"), &max, &containers),
        "app 200m/1Mi 200m/- (memory: limit NOT set since originalLimit is nil or 0)"
    );
    let without = json!([container("app", "100m/-", "100m/-"), {"name": "new", "image": "x"}]);
    assert_eq!(
        one(&json!({}), &app("400m", "1Mi"), &max, &without),
        "app 400m/1Mi 400m/- (memory: limit NOT set since originalLimit is nil or 0)"
    );
    // All that are not sized count for the minimum, too.
    let min = limits("Pod", &json!({"min": {"cpu": "1"}}));
    let three =
        json!([container("app", "1m/-", "-/-"), container("new", "300m/-", "-/-"), container("more", "200m/-", "-/-")]);
    assert_eq!(one(&json!({}), &app("100m", "1Mi"), &min, &three), "app 500m/1Mi -/-");
    // Where the others leave nothing, it keeps what it has.
    let full = json!([container("app", "100m/-", "100m/-"), container("new", "600m/-", "600m/-")]);
    assert_eq!(
        one(&json!({}), &app("400m", "1Mi"), &max, &full),
        "app 100m/1Mi 100m/- (memory: limit NOT set since originalLimit is nil or 0)"
    );
}

#[test]
fn nothing_is_wanted_without_a_recommendation_or_of_zero() {
    let none = one(&json!({}), &json!([]), &NONE, &json!([container("app", "1m/1Mi", "-/-")]));
    let foreign = one(
        &json!({}),
        &json!([{"name": "other", "target": {"cpu": "1"}}]),
        &NONE,
        &json!([container("app", "1m/1Mi", "-/-")]),
    );
    let zero = one(&json!({}), &app("0", "0"), &NONE, &json!([container("app", "1m/1Mi", "-/-")]));
    assert_eq!([none, foreign, zero], ["", "", ""]);
}

#[test]
fn ours_08_a_guaranteed_pod_stays_guaranteed() {
    let guaranteed = json!([container("app", "100m/100Mi", "100m/100Mi")]);
    let requests_only = policy(&json!({"controlledValues": "RequestsOnly"}));
    assert_eq!(one(&requests_only, &app("50m", "50Mi"), &NONE, &guaranteed), "");
    assert_eq!(one(&json!({}), &app("50m", "50Mi"), &NONE, &guaranteed), "app 50m/50Mi 50m/50Mi");
}

#[test]
fn ours_08_a_sidecar_without_requests_gets_them() {
    let recommended = json!([{"name": "proxy", "target": {"cpu": "20m", "memory": "30Mi"}}]);
    let with = pod(&json!([container("app", "1/1Gi", "-/-")]), &json!([sidecar("proxy", "-/-", "-/-")]));
    assert_eq!(of(&json!({}), &recommended, &NONE, &with), "proxy 20m/30Mi -/-");
}

#[test]
fn gap_08_a_policy_of_every_container_holds_for_sidecars_and_one_of_its_own_wins() {
    let recommended = json!([{"name": "proxy", "target": {"cpu": "2"}}]);
    let with = pod(&json!([]), &json!([sidecar("proxy", "1/-", "-/-")]));
    let every =
        json!({"resourcePolicy": {"containerPolicies": [{"containerName": "*", "maxAllowed": {"cpu": "1500m"}}]}});
    assert_eq!(of(&every, &recommended, &NONE, &with), "proxy 1500m/- -/- (cpu capped to maxAllowed)");
    let own = json!({"resourcePolicy": {"containerPolicies": [
        {"containerName": "*", "maxAllowed": {"cpu": "1500m"}}, {"containerName": "proxy", "mode": "Off"}]}});
    assert_eq!(of(&own, &recommended, &NONE, &with), "");
}

#[test]
fn sidecars_are_sized_by_the_gate_and_plain_init_containers_never() {
    let recommended = json!([
        {"name": "app", "target": {"cpu": "2"}}, {"name": "proxy", "target": {"cpu": "2"}}, {"name": "setup", "target": {"cpu": "2"}},
    ]);
    let with = pod(
        &json!([container("app", "1/-", "-/-")]),
        &json!([sidecar("proxy", "1/-", "-/-"), container("setup", "1/-", "-/-")]),
    );
    assert_eq!(of(&json!({}), &recommended, &NONE, &with), "proxy 2/- -/-\napp 2/- -/-");
    let own = autoscaler(&json!({}), &recommended);
    assert_eq!(lines(&wanted(&with, &sizing(&own, &NONE, Gates::default())).unwrap()), "app 2/- -/-");
}

#[test]
fn ours_07_two_sidecars_and_a_plain_init_container_between_them_fit_the_limit_range_at_every_moment() {
    let with = pod(
        &json!([container("app", "100m/-", "100m/-")]),
        &json!([
            sidecar("first", "100m/-", "100m/-"),
            container("setup", "700m/-", "700m/-"),
            sidecar("last", "100m/-", "100m/-")
        ]),
    );
    let recommended = json!([
        {"name": "app", "target": {"cpu": "200m"}}, {"name": "first", "target": {"cpu": "500m"}}, {"name": "last", "target": {"cpu": "200m"}},
    ]);
    let own = autoscaler(&json!({}), &recommended);
    let request = |ranges: &LimitRanges| {
        let sized = wanted(&with, &sizing(&own, ranges, SIDECARS)).unwrap();
        let running = Pod::read(serde_json::from_value(with.clone()).unwrap());
        (pod_request(&running, &Wanted::default()).cpu, pod_request(&running, &sized).cpu, lines(&sized))
    };
    // As it is: 300m together, but 800m while setup runs beside the first sidecar. As recommended: 900m together, 1200m then.
    let (before, after, _) = request(&NONE);
    assert_eq!((before, after), (Some(800), Some(1200)));
    // The sum fits; the moment of setup does not, and only the sidecar before it is cut.
    let (_, after, text) = request(&limits("Pod", &json!({"max": {"cpu": "1"}})));
    assert_eq!(after, Some(999));
    let memory = "memory: limit NOT set since originalLimit is nil or 0";
    assert_eq!(
        text,
        format!(
            "first 299m/- 299m/- (cpu capped to fit Max in pod LimitRange while init container setup runs, {memory})\n\
             last 200m/- 200m/- ({memory})\napp 200m/- 200m/- ({memory})"
        )
    );
    // A sidecar keeps what it has, even where setup is too large without it.
    let (_, after, _) = request(&limits("Pod", &json!({"max": {"cpu": "750m"}})));
    assert_eq!(after, Some(800));
}

#[test]
fn ours_14_a_pod_with_resources_of_its_own_is_left_alone_with_a_reason() {
    let mut with = pod(&json!([container("app", "1/-", "-/-")]), &json!([]));
    with["spec"]["resources"] = json!({"requests": {"cpu": "1"}});
    let own = autoscaler(&json!({}), &app("2", "1Gi"));
    let why = wanted(&with, &sizing(&own, &NONE, SIDECARS)).unwrap_err();
    assert_eq!(why, Unsized::PodLevelResources);
    assert_eq!(
        why.to_string(),
        "it has spec.resources, which sizing of containers would contradict: remove them from the template"
    );
    with["spec"]["resources"] = json!({});
    assert!(wanted(&with, &sizing(&own, &NONE, SIDECARS)).is_ok());
}
