use serde_json::json;

use super::super::limit_range::LimitRanges;
use super::super::samples::{BOOSTS, SIDECARS, app, autoscaler, container, limits, pod, sidecar, sizing};
use super::super::wanted::Gates;
use super::*;
use crate::policy::Autoscaler;

fn admitted(pod: &Value, own: &Autoscaler, gates: Gates) -> Admitted {
    admit(pod.clone(), &sizing(own, &LimitRanges::default(), gates), Which::All)
}

fn annotation<'a>(pod: &'a Value, key: &str) -> Option<&'a str> {
    pod.pointer("/metadata/annotations")?.get(key)?.as_str()
}

#[test]
fn the_patch_has_what_differs_and_the_annotations_of_upstream() {
    let before = pod(&json!([container("app", "100m/200Mi", "200m/200Mi")]), &json!([]));
    let own = autoscaler(&json!({}), &app("250m", "200Mi"));
    let Admitted { pod, patch, skipped } = admitted(&before, &own, SIDECARS);
    let sized = r#"{"by":"web","containers":{"app":{"gave":{"limits":{"cpu":"500m","memory":"200Mi"},"requests":{"cpu":"250m","memory":"200Mi"}},"notes":["cpu request","memory request","cpu limit","memory limit"]}}}"#;
    assert_eq!(
        serde_json::to_value(patch).unwrap(),
        json!([
            {"op": "replace", "path": "/spec/containers/0/resources/requests/cpu", "value": "250m"},
            {"op": "replace", "path": "/spec/containers/0/resources/limits/cpu", "value": "500m"},
            {"op": "add", "path": "/metadata/annotations", "value": {"vpaUpdates":
                "Pod resources updated by web: container 0: cpu request, memory request, cpu limit, memory limit"}},
            {"op": "add", "path": "/metadata/annotations/pillion.dev~1sized", "value": sized},
            {"op": "add", "path": "/metadata/annotations/vpaObservedContainers", "value": "app"},
        ])
    );
    assert_eq!(skipped, None);
    assert_eq!(pod["spec"]["containers"][0]["resources"]["limits"], json!({"cpu": "500m", "memory": "200Mi"}));
}

#[test]
fn a_container_without_resources_gets_them_in_one_operation_each() {
    let before = pod(&json!([{"name": "app", "image": "x"}]), &json!([]));
    let own = autoscaler(&json!({}), &app("250m", "200Mi"));
    let patch = serde_json::to_value(admitted(&before, &own, SIDECARS).patch).unwrap();
    assert_eq!(
        patch[0],
        json!({"op": "add", "path": "/spec/containers/0/resources", "value": {"requests": {"cpu": "250m", "memory": "200Mi"}}})
    );
    assert_eq!(patch.as_array().unwrap().len(), 4);
}

#[test]
fn an_amount_in_another_spelling_stays_as_it_is_written() {
    let mut before = pod(&json!([container("app", "0.25/0.1953125Gi", "-/-")]), &json!([]));
    before["spec"]["containers"][0]["resources"]["requests"]["example.com/gpu"] = "1".into();
    let after = admitted(&before, &autoscaler(&json!({}), &app("250m", "200Mi")), SIDECARS).pod;
    assert_eq!(after["spec"], before["spec"]);
    assert!(annotation(&after, SIZED).is_some());
}

fn with_sidecars() -> Value {
    pod(
        &json!([container("app", "1/-", "-/-")]),
        &json!([{"name": "setup", "image": "x"}, sidecar("proxy", "1/-", "-/-"), {"name": "late", "image": "x"}]),
    )
}

fn for_all() -> Value {
    let two = json!({"cpu": "2"});
    json!([{"name": "app", "target": two}, {"name": "late", "target": two}, {"name": "proxy", "target": two}, {"name": "setup", "target": two}])
}

#[test]
fn gap_01_the_observed_containers_cover_native_sidecars() {
    let after = admitted(&with_sidecars(), &autoscaler(&json!({}), &for_all()), SIDECARS).pod;
    assert_eq!(annotation(&after, OBSERVED), Some("app, proxy"));
    assert_eq!(
        annotation(&after, UPDATES),
        Some("Pod resources updated by web: container 0: cpu request; init-sidecar 1: cpu request")
    );
    assert_eq!(after["spec"]["initContainers"][1]["resources"]["requests"], json!({"cpu": "2"}));
}

#[test]
fn gap_06_plain_init_containers_get_no_patch_and_no_note() {
    let before = with_sidecars();
    let after = admitted(&before, &autoscaler(&json!({}), &for_all()), SIDECARS).pod;
    for plain in [0, 2] {
        assert_eq!(after["spec"]["initContainers"][plain], before["spec"]["initContainers"][plain]);
    }
    assert!(!annotation(&after, SIZED).unwrap().contains("setup"));
}

#[test]
fn with_the_gate_off_sidecars_are_neither_patched_nor_observed() {
    let before = with_sidecars();
    let after = admitted(&before, &autoscaler(&json!({}), &for_all()), Gates::default()).pod;
    assert_eq!(after["spec"]["initContainers"], before["spec"]["initContainers"]);
    assert_eq!(annotation(&after, OBSERVED), Some("app"));
    assert_eq!(annotation(&after, UPDATES), Some("Pod resources updated by web: container 0: cpu request"));
}

#[test]
fn without_a_recommendation_only_the_observed_containers_are_noted() {
    let before = pod(&json!([container("app", "1/-", "-/-")]), &json!([]));
    for recommended in [json!([]), json!([{"name": "other", "target": {"cpu": "2"}}])] {
        let patch = admitted(&before, &autoscaler(&json!({}), &recommended), SIDECARS).patch;
        let expected =
            json!([{"op": "add", "path": "/metadata/annotations", "value": {"vpaObservedContainers": "app"}}]);
        assert_eq!(serde_json::to_value(patch).unwrap(), expected);
    }
}

#[test]
fn ours_14_a_pod_that_cannot_be_sized_stays_as_it_is() {
    let own = autoscaler(&json!({}), &app("2", "1Gi"));
    let mut level = pod(&json!([container("app", "1/-", "-/-")]), &json!([]));
    level["spec"]["resources"] = json!({"limits": {"cpu": "3"}});
    let mut mirror = pod(&json!([container("app", "1/-", "-/-")]), &json!([]));
    mirror["metadata"]["annotations"] = json!({"kubernetes.io/config.mirror": "x"});
    let odd = json!({"spec": {"containers": 3}});
    for (before, why) in [
        (level, Unsized::PodLevelResources),
        (mirror, Unsized::StaticPod),
        (odd, Unsized::Unreadable("spec.containers is no list".to_owned())),
    ] {
        let after = admitted(&before, &own, SIDECARS);
        assert_eq!((after.pod, after.patch, after.skipped), (before, vec![], Some(why)));
    }
}

#[test]
fn ours_06_own_and_injected_containers_are_sized_in_two_calls_and_a_repeated_review_changes_nothing() {
    let injected = BTreeSet::from(["proxy".to_owned()]);
    let own = autoscaler(&json!({}), &for_all());
    let ranges = limits("Pod", &json!({"max": {"cpu": "3"}}));
    let sizing = sizing(&own, &ranges, SIDECARS);
    let review = |pod: Value| {
        let first = admit(pod, &sizing, Which::Own(&injected));
        let mut between = first.pod;
        let lists = between["spec"]["initContainers"].as_array().is_none_or(Vec::is_empty);
        if lists {
            // The injector puts its container before everything else.
            between["spec"]["initContainers"] = json!([sidecar("proxy", "1/-", "1/-")]);
            between["spec"]["containers"].as_array_mut().unwrap().insert(0, json!({"name": "agent", "image": "x"}));
        }
        admit(between, &sizing, Which::Injected(&injected)).pod
    };
    let once = review(pod(&json!([container("app", "1/-", "1/-")]), &json!([])));
    // The app is sized as if it were alone; the sidecar gets what is left.
    assert_eq!(once["spec"]["containers"][1]["resources"]["requests"], json!({"cpu": "2"}));
    assert_eq!(once["spec"]["initContainers"][0]["resources"]["requests"], json!({"cpu": "1"}));
    // The app is the second container by now.
    let memory = "memory: limit NOT set since originalLimit is nil or 0";
    assert_eq!(
        annotation(&once, UPDATES).unwrap(),
        format!(
            "Pod resources updated by web: container 1: {memory}, cpu request, cpu limit; \
             init-sidecar 0: {memory}, cpu request, cpu limit"
        )
    );
    assert_eq!(annotation(&once, OBSERVED), Some("agent, app, proxy"));
    assert_eq!(review(once.clone()), once);
}

#[test]
fn a_repeated_review_changes_nothing_even_when_something_else_is_recommended_by_then() {
    let before = pod(&json!([container("app", "3m/-", "7m/-")]), &json!([]));
    let once = admitted(&before, &autoscaler(&json!({}), &app("250m", "200Mi")), SIDECARS).pod;
    let again = admitted(&once, &autoscaler(&json!({}), &app("300m", "1Gi")), SIDECARS);
    assert_eq!((again.patch, again.pod), (vec![], once));
}

#[test]
fn ours_06_a_container_that_another_webhook_has_reset_is_sized_again() {
    let before = pod(&json!([container("app", "100m/-", "200m/-")]), &json!([]));
    let own = autoscaler(&json!({}), &app("250m", "200Mi"));
    let once = admitted(&before, &own, SIDECARS).pod;
    let mut reset = once.clone();
    reset["spec"]["containers"] = before["spec"]["containers"].clone();
    assert_eq!(admitted(&reset, &own, SIDECARS).pod, once);
}

#[test]
fn a_copy_of_a_pod_is_sized_anew() {
    let mut before = pod(&json!([container("app", "100m/-", "-/-")]), &json!([]));
    before["metadata"]["uid"] = "u-1".into();
    let mut copy = admitted(&before, &autoscaler(&json!({}), &app("250m", "200Mi")), SIDECARS).pod;
    copy["metadata"]["uid"] = "u-2".into();
    let after = admitted(&copy, &autoscaler(&json!({}), &app("300m", "200Mi")), SIDECARS).pod;
    assert_eq!(after["spec"]["containers"][0]["resources"]["requests"]["cpu"], "300m");
}

#[test]
fn gap_03_a_boost_is_for_sidecars_too_and_what_they_had_is_kept() {
    let spec = json!({"startupBoost": {"cpu": {"type": "Factor", "factor": 3}}, "resourcePolicy": {"containerPolicies": [
        {"containerName": "app", "startupBoost": {"cpu": {"type": "Quantity", "quantity": "1"}}},
        {"containerName": "off", "mode": "Off"}]}});
    let before = pod(
        &json!([container("app", "100m/1Gi", "200m/-"), container("off", "1/-", "-/-")]),
        &json!([sidecar("proxy", "50m/-", "-/-"), container("setup", "1/-", "-/-")]),
    );
    let own = autoscaler(&spec, &app("500m", "1Gi"));
    let after = admitted(&before, &own, BOOSTS).pod;
    // On top of what is recommended, else of what it has.
    assert_eq!(after["spec"]["containers"][0]["resources"]["requests"]["cpu"], "1500m");
    assert_eq!(after["spec"]["containers"][0]["resources"]["limits"]["cpu"], "3");
    assert_eq!(after["spec"]["initContainers"][0]["resources"]["requests"]["cpu"], "150m");
    assert_eq!(after["spec"]["containers"][1], before["spec"]["containers"][1]);
    assert_eq!(after["spec"]["initContainers"][1], before["spec"]["initContainers"][1]);
    assert_eq!(
        annotation(&after, "vpaCpuStartupBoost/app"),
        Some(r#"{"requests":{"cpu":"100m","memory":"1Gi"},"limits":{"cpu":"200m"}}"#)
    );
    assert_eq!(annotation(&after, "vpaCpuStartupBoost/proxy"), Some(r#"{"requests":{"cpu":"50m"},"limits":{}}"#));
    assert_eq!(admitted(&after, &own, BOOSTS).patch, vec![]);
    assert_eq!(annotation(&admitted(&before, &own, SIDECARS).pod, "vpaCpuStartupBoost/app"), None);
}

#[test]
fn in_mode_off_only_the_boost_is_applied() {
    let spec = json!({"updatePolicy": {"updateMode": "Off"}, "startupBoost": {"cpu": {"type": "Factor", "factor": 2}}});
    let off = admitted(
        &pod(&json!([container("app", "1/1Gi", "-/-")]), &json!([])),
        &autoscaler(&spec, &json!([])),
        SIDECARS,
    );
    assert_eq!((off.patch, off.skipped), (vec![], Some(Unsized::Off)));
    let before = pod(&json!([container("app", "100m/1Gi", "-/-")]), &json!([]));
    let after = admitted(&before, &autoscaler(&spec, &app("500m", "2Gi")), BOOSTS).pod;
    assert_eq!(after["spec"]["containers"][0]["resources"]["requests"], json!({"cpu": "200m", "memory": "1Gi"}));
}

#[test]
fn a_boost_stays_below_a_limit_that_stays_and_below_the_most_there_is() {
    let boost = |values: &str, requests: &str, limits: &str, max_boost: Option<i64>| {
        let spec = json!({"startupBoost": {"cpu": {"type": "Factor", "factor": 4}},
            "resourcePolicy": {"containerPolicies": [{"containerName": "*", "controlledValues": values}]}});
        let (own, none) = (autoscaler(&spec, &json!([])), LimitRanges::default());
        let sizing = Sizing { max_boost, ..sizing(&own, &none, BOOSTS) };
        let before = pod(&json!([container("app", requests, limits)]), &json!([]));
        let after = admit(before, &sizing, Which::All).pod;
        let resources = &after["spec"]["containers"][0]["resources"];
        format!("{} {}", resources["requests"]["cpu"], resources["limits"]["cpu"]).replace('"', "")
    };
    // One below: equal to the limit, the pod might come to be Guaranteed.
    assert_eq!(boost("RequestsOnly", "500m/1Gi", "1/1Gi", None), "999m 1");
    assert_eq!(boost("RequestsOnly", "500m/1Gi", "4/1Gi", None), "2 4");
    assert_eq!(boost("RequestsAndLimits", "500m/1Gi", "1/1Gi", None), "2 4");
    assert_eq!(boost("RequestsAndLimits", "500m/1Gi", "1/1Gi", Some(1500)), "1500m 3");
    // A Guaranteed pod keeps its class: limits follow, or nothing does.
    assert_eq!(boost("RequestsAndLimits", "1/1Gi", "1/1Gi", None), "4 4");
    assert_eq!(boost("RequestsOnly", "1/1Gi", "1/1Gi", None), "1 1");
}

#[test]
fn a_container_that_is_gone_is_gone_from_the_record() {
    let own = autoscaler(&json!({}), &for_all());
    let mut after = admitted(&with_sidecars(), &own, SIDECARS).pod;
    after["spec"]["initContainers"] = json!([]);
    let after = admitted(&after, &own, SIDECARS).pod;
    assert_eq!(annotation(&after, UPDATES), Some("Pod resources updated by web: container 0: cpu request"));
    assert!(!annotation(&after, SIZED).unwrap().contains("proxy"));
}
