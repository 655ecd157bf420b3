use serde_json::{Value, json};

use super::super::budget::DisruptionBudget;
use super::super::samples::{BOOSTS, Scene, app, at, autoscaler, container, limits, replicas, running, sidecar};
use super::super::wanted::Gates;
use super::*;

/// Wide bounds around a target, so that only time and difference make a pod due.
fn within(cpu: &str) -> Value {
    json!([{"name": "app", "target": {"cpu": cpu}, "lowerBound": {"cpu": "1m"}, "upperBound": {"cpu": "100"}}])
}

fn evictions(words: &[String]) -> usize {
    words.iter().filter(|line| line.starts_with("evict")).count()
}

#[test]
fn in_modes_off_and_initial_nothing_is_written() {
    for mode in ["Off", "Initial"] {
        assert_eq!(Scene::new(mode, 4, &app("2", "1Gi")).plan(&replicas(4, "1/1Gi", "-/-")), UpdatePlan::default());
    }
}

#[test]
fn half_of_a_group_is_evicted_at_once_and_one_of_a_small_one() {
    for (replicas_wanted, pods, expected) in
        [(4, 4, 2), (4, 3, 1), (4, 2, 0), (2, 2, 1), (3, 3, 1), (10, 10, 5), (2, 3, 2)]
    {
        let scene = Scene::new("Recreate", replicas_wanted, &app("2", "1Gi"));
        let words = scene.words(&replicas(pods, "1/1Gi", "-/-"));
        assert_eq!(evictions(&words), expected, "{replicas_wanted} configured, {pods} there: {words:?}");
    }
    // Where a part of the group is less than a pod, one may go while none is missing.
    let mut scene = Scene::new("Recreate", 3, &app("2", "1Gi"));
    scene.settings.eviction_tolerance = 0.1;
    assert_eq!(evictions(&scene.words(&replicas(3, "1/1Gi", "-/-"))), 1);
    assert_eq!(evictions(&scene.words(&replicas(2, "1/1Gi", "-/-"))), 0);
}

#[test]
fn a_group_that_is_too_small_is_not_evicted_unless_it_says_so() {
    let mut scene = Scene::new("Recreate", 1, &app("2", "1Gi"));
    let pods = replicas(1, "1/1Gi", "-/-");
    let few = "web-0 waits: so few of its kind (1) are not disturbed: set spec.updatePolicy.minReplicas to allow it";
    assert_eq!(scene.words(&pods), [few]);
    scene.autoscaler.min_replicas = Some(1);
    assert_eq!(scene.words(&pods), ["evict pod shop/web-0: its requests are not as recommended"]);
}

#[test]
fn a_single_replica_is_resized_in_place_where_nothing_restarts() {
    let scene = Scene::new("InPlaceOrRecreate", 1, &app("2", "1Gi"));
    assert_eq!(scene.words(&replicas(1, "1/1Gi", "-/-")), ["resize pod shop/web-0: cpu request of app to 2"]);
    let policy = json!([{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]);
    let mut own = container("app", "1/1Gi", "-/-");
    own["resizePolicy"] = policy;
    let restarting = [running("web-0", &json!([own]), &json!([]), &json!({}))];
    assert_eq!(
        scene.words(&restarting),
        ["web-0 waits: so few of its kind (1) are not disturbed: set spec.updatePolicy.minReplicas to allow it"]
    );
}

#[test]
fn pods_are_evicted_only_where_one_in_their_place_would_be_sized() {
    let mut scene = Scene::new("Recreate", 2, &app("2", "1Gi"));
    scene.can_evict = Err("namespace kube-system is not intercepted by the webhook");
    let planned = scene.plan(&replicas(2, "1/1Gi", "-/-"));
    assert_eq!(planned.actions, []);
    let why = "namespace kube-system is not intercepted by the webhook";
    assert_eq!(
        planned.waiting.iter().map(|own| own.why.to_string()).collect::<Vec<_>>(),
        vec![format!("it is not evicted: {why}"); 2]
    );
    assert_eq!(planned.hindrance(), None, "whoever asked knows why");
    // In place it goes on.
    let mut scene = Scene::new("InPlaceOrRecreate", 2, &app("2", "1Gi"));
    scene.can_evict = Err(why);
    assert_eq!(scene.words(&replicas(2, "1/1Gi", "-/-"))[0], "resize pod shop/web-0: cpu request of app to 2");
}

#[test]
fn a_disruption_budget_is_not_spent_beyond_what_it_allows() {
    let mut scene = Scene::new("Recreate", 4, &app("2", "1Gi"));
    let pods = replicas(4, "1/1Gi", "-/-");
    scene.budgets = vec![DisruptionBudget {
        name: "web".into(),
        allowed: 1,
        pods: pods.iter().map(|pod| pod.uid.clone()).collect(),
    }];
    let words = scene.words(&pods);
    assert_eq!(evictions(&words), 1);
    assert_eq!(words[1], "web-1 waits: PodDisruptionBudget web allows no more");
}

#[test]
fn a_pending_pod_is_evicted_without_a_budget_and_never_resized() {
    let mut pods = replicas(4, "1/1Gi", "-/-");
    for pod in &mut pods[..3] {
        pod.is_pending = true;
    }
    assert_eq!(evictions(&Scene::new("Recreate", 4, &app("2", "1Gi")).words(&pods)), 3);
    // It leaves as many others to be evicted as without it.
    let mut pods = replicas(5, "1/1Gi", "-/-");
    pods[0].is_pending = true;
    assert_eq!(evictions(&Scene::new("Recreate", 4, &app("2", "1Gi")).words(&pods)), 3);
    let words = Scene::new("InPlaceOrRecreate", 4, &app("2", "1Gi")).words(&pods);
    assert_eq!((&*words[2], evictions(&words)), ("web-0 waits: it has not started", 0));
}

#[test]
fn a_request_that_is_missing_is_outside_any_bounds() {
    let recommended = json!([{"name": "app", "target": {"cpu": "1"}, "lowerBound": {}, "upperBound": {}}]);
    let pods = [running("web-0", &json!([container("app", "-/1Gi", "-/-")]), &json!([]), &json!({}))];
    assert_eq!(Scene::new("InPlace", 1, &recommended).words(&pods), ["resize pod shop/web-0: cpu request of app to 1"]);
}

#[test]
fn a_pod_within_the_bounds_is_changed_after_half_a_day_and_if_it_is_worth_it() {
    let mut scene = Scene::new("Recreate", 2, &within("1200m"));
    let pods = replicas(2, "1/-", "-/-");
    assert_eq!(scene.words(&pods), Vec::<String>::new());
    scene.now = at("2026-03-01T23:00:00Z");
    assert_eq!(evictions(&scene.words(&pods)), 1);
    scene.autoscaler = autoscaler(&json!({}), &within("1099m"));
    assert_eq!(scene.words(&pods), Vec::<String>::new());
    // Outside the bounds it is due at once.
    scene.now = at("2026-03-01T12:00:00Z");
    scene.autoscaler = autoscaler(&json!({}), &app("2", "1Gi"));
    assert_eq!(evictions(&scene.words(&pods)), 1);
}

#[test]
fn a_resize_starts_the_time_anew() {
    let mut scene = Scene::new("InPlace", 1, &within("2"));
    scene.now = at("2026-03-02T12:00:00Z");
    let mut pods = replicas(1, "1/-", "-/-");
    assert_eq!(scene.words(&pods).len(), 1);
    pods[0].resized = Some(at("2026-03-02T01:00:00Z"));
    assert_eq!(scene.words(&pods), Vec::<String>::new());
    // The annotation may not be there yet: what we remember counts as much.
    pods[0].resized = None;
    let SizeAction::Resize(resize) = scene.plan(&pods).actions.remove(0) else { panic!("no resize") };
    scene.tries.resized(&resize);
    assert_eq!(scene.words(&pods), Vec::<String>::new());
}

#[test]
fn pods_that_are_to_grow_come_first_then_the_larger_difference() {
    let pods: Vec<Pod> = [("a", "4"), ("b", "1"), ("c", "500m"), ("d", "8")]
        .map(|(name, cpu)| {
            running(name, &json!([container("app", &format!("{cpu}/-"), "-/-")]), &json!([]), &json!({}))
        })
        .into();
    let mut scene = Scene::new("InPlace", 4, &json!([{"name": "app", "target": {"cpu": "2"}}]));
    scene.settings.in_place_skip_disruption_budget = true;
    let names: Vec<String> = scene.words(&pods).iter().map(|line| line[16..17].to_owned()).collect();
    assert_eq!(names, ["c", "b", "d", "a"]);
}

#[test]
fn eviction_requirements_hold_for_evictions_and_not_in_place() {
    let spec = |mode: &str| {
        json!({"updatePolicy": {"updateMode": mode, "evictionRequirements": [
            {"resources": ["cpu", "memory"], "changeRequirement": "TargetHigherThanRequests"}]}})
    };
    let mut scene = Scene::new("Recreate", 2, &json!([]));
    scene.autoscaler = autoscaler(&spec("Recreate"), &app("500m", "500Mi"));
    let down = replicas(2, "1/1Gi", "-/-");
    assert_eq!(scene.words(&down)[0], "web-0 waits: spec.updatePolicy.evictionRequirements do not hold");
    scene.autoscaler = autoscaler(&spec("Recreate"), &app("500m", "2Gi"));
    assert_eq!(evictions(&scene.words(&down)), 1);
    // A container without a request passes.
    let lower = json!([{"resources": ["cpu", "memory"], "changeRequirement": "TargetLowerThanRequests"}]);
    let lower = json!({"updatePolicy": {"updateMode": "Recreate", "evictionRequirements": lower}});
    scene.autoscaler = autoscaler(&lower, &app("2", "500Mi"));
    assert_eq!(evictions(&scene.words(&replicas(2, "1/-", "-/-"))), 1);
    assert_eq!(evictions(&scene.words(&replicas(2, "1/100Mi", "-/-"))), 0);
    scene.autoscaler = autoscaler(&spec("InPlaceOrRecreate"), &app("500m", "500Mi"));
    assert_eq!(
        scene.words(&down)[0],
        "resize pod shop/web-0: cpu request of app to 500m, memory request of app to 500Mi"
    );
}

fn proxied(fields: &Value, proxy: &Value) -> Pod {
    running("web-0", &json!([container("app", "1/-", "-/-")]), &json!([proxy]), fields)
}

fn for_proxy(mode: &str, replicas: u32) -> Scene {
    let recommended = json!([{"name": "app", "target": {"cpu": "1"}}, {"name": "proxy", "target": {"cpu": "300m", "memory": "64Mi"}}]);
    Scene::new(mode, replicas, &recommended)
}

#[test]
fn ours_01_gap_01_an_admitted_pod_whose_sidecar_alone_has_drifted_is_changed() {
    let observed = json!({"metadata": {"annotations": {"vpaObservedContainers": "app, proxy"}}});
    let pods = [proxied(&observed, &sidecar("proxy", "100m/64Mi", "-/-"))];
    let mut scene = for_proxy("InPlace", 1);
    assert_eq!(scene.words(&pods), ["resize pod shop/web-0: cpu request of proxy to 300m"]);
    scene.gates = Gates::default();
    assert_eq!(scene.words(&pods), Vec::<String>::new());
}

#[test]
fn a_container_that_was_not_there_at_admission_is_left_alone() {
    let observed = json!({"metadata": {"annotations": {"vpaObservedContainers": "app"}}});
    let pods = [proxied(&observed, &sidecar("proxy", "100m/64Mi", "-/-"))];
    let mut scene = for_proxy("InPlace", 1);
    assert_eq!(scene.words(&pods), Vec::<String>::new());
    // Also where the others change.
    scene.autoscaler = autoscaler(
        &json!({"updatePolicy": {"updateMode": "InPlace"}}),
        &json!([{"name": "app", "target": {"cpu": "2"}}, {"name": "proxy", "target": {"cpu": "300m"}}]),
    );
    assert_eq!(scene.words(&pods), ["resize pod shop/web-0: cpu request of app to 2"]);
}

fn oom(list: &str, name: &str, started: &str, ended: &str) -> Value {
    json!({"status": {list: [{"name": name, "restartCount": 1, "state": {"running": {"startedAt": ended}},
        "lastState": {"terminated": {"reason": "OOMKilled", "exitCode": 137, "startedAt": started, "finishedAt": ended}}}]}})
}

#[test]
fn ours_02_gap_02_a_sidecar_that_was_ended_for_want_of_memory_soon_after_its_start_makes_its_pod_due() {
    let recommended = json!([{"name": "proxy", "target": {"memory": "65Mi"}, "lowerBound": {"memory": "1Mi"}, "upperBound": {"memory": "1Gi"}}]);
    let mut scene = Scene::new("InPlace", 1, &recommended);
    let pod = |started: &str, ended: &str| {
        [proxied(&oom("initContainerStatuses", "proxy", started, ended), &sidecar("proxy", "100m/64Mi", "-/-"))]
    };
    let quick = pod("2026-03-01T11:50:00Z", "2026-03-01T11:55:00Z");
    assert_eq!(scene.words(&quick), ["resize pod shop/web-0: memory request of proxy to 65Mi"]);
    // Not soon after its start, not lately, or not with the gate off.
    assert_eq!(scene.words(&pod("2026-03-01T11:00:00Z", "2026-03-01T11:55:00Z")), Vec::<String>::new());
    assert_eq!(scene.words(&pod("2026-03-01T11:40:00Z", "2026-03-01T11:45:00Z")), Vec::<String>::new());
    scene.gates = Gates::default();
    assert_eq!(scene.words(&quick), Vec::<String>::new());
    // Nor does it then hurry a change of the app.
    scene.autoscaler = autoscaler(&json!({"updatePolicy": {"updateMode": "InPlace"}}), &within("1200m"));
    assert_eq!(scene.words(&quick), Vec::<String>::new());
    scene.gates.native_sidecar = true;
    assert_eq!(scene.words(&quick), ["resize pod shop/web-0: cpu request of app to 1200m"]);
}

#[test]
fn a_quick_end_for_want_of_memory_changes_nothing_where_nothing_would_change() {
    let recommended = json!([{"name": "app", "target": {"cpu": "1"}}]);
    let status = oom("containerStatuses", "app", "2026-03-01T11:50:00Z", "2026-03-01T11:55:00Z");
    let pods = [running("web-0", &json!([container("app", "1/1Gi", "-/-")]), &json!([]), &status)];
    assert_eq!(Scene::new("InPlace", 1, &recommended).words(&pods), Vec::<String>::new());
}

#[test]
fn ours_03_gap_04_a_sidecar_that_restarts_for_a_resize_needs_the_budget() {
    let mut proxy = sidecar("proxy", "100m/64Mi", "-/-");
    proxy["resizePolicy"] = json!([{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]);
    let pods: Vec<Pod> = (0..4)
        .map(|at| running(&format!("web-{at}"), &json!([container("app", "1/-", "-/-")]), &json!([proxy]), &json!({})))
        .collect();
    let mut scene = for_proxy("InPlaceOrRecreate", 4);
    scene.settings.in_place_skip_disruption_budget = true;
    let words = scene.words(&pods);
    assert_eq!(words.iter().filter(|line| line.starts_with("resize")).count(), 2);
    assert_eq!(words[3], "web-3 waits: enough of its kind are missing or being changed");
    // A policy of a resource that does not change restarts nothing.
    let mut other = proxy.clone();
    other["resizePolicy"] = json!([{"resourceName": "memory", "restartPolicy": "RestartContainer"}]);
    let pods: Vec<Pod> = (0..4)
        .map(|at| running(&format!("web-{at}"), &json!([container("app", "1/-", "-/-")]), &json!([other]), &json!({})))
        .collect();
    assert_eq!(scene.words(&pods).iter().filter(|line| line.starts_with("resize")).count(), 4);
}

#[test]
fn in_place_keeps_the_budget_too_where_it_is_not_switched_off() {
    // Upstream goes on here: it takes the answer to wait for one to resize.
    let scene = Scene::new("InPlace", 4, &app("2", "1Gi"));
    let words = scene.words(&replicas(4, "1/1Gi", "-/-"));
    assert_eq!(words.iter().filter(|line| line.starts_with("resize")).count(), 2);
    assert_eq!(words[2], "web-2 waits: enough of its kind are missing or being changed");
}

fn reset(name: &str, gave: &str, has: &str) -> Pod {
    let sized = json!({"by": "web", "uid": format!("uid-{name}"), "containers": {"proxy": {"gave": {"requests": {"cpu": gave, "memory": "64Mi"}}}}});
    let fields = json!({"metadata": {"annotations": {"pillion.dev/sized": sized.to_string()}}});
    running(
        name,
        &json!([container("app", "1/-", "-/-")]),
        &json!([sidecar("proxy", &format!("{has}/64Mi"), "-/-")]),
        &fields,
    )
}

#[test]
fn gap_09_ours_06_an_injector_that_takes_back_what_we_gave_is_not_fought_for_ever() {
    let mut scene = for_proxy("Recreate", 2);
    for (round, names) in [["a", "b"], ["c", "d"]].into_iter().enumerate() {
        let pods = names.map(|name| reset(name, "300m", "100m"));
        scene.tries.observe(&pods, scene.now);
        // Seeing the same pods again counts nothing.
        scene.tries.observe(&pods, scene.now);
        let planned = scene.plan(&pods);
        if round == 0 {
            assert_eq!((scene.tries.resets("rs-1", "proxy"), planned.actions.len()), (2, 1));
            continue;
        }
        assert_eq!(planned.actions, []);
        let remark = Remark::OthersReset { container: "proxy".into(), times: 4 };
        assert_eq!(
            remark.to_string(),
            "others took back what container proxy got, 4 times: set its policy to mode Off, or take the resources out of \
             whatever injects it"
        );
        assert_eq!(planned.remarks, [remark]);
        assert_eq!(planned.waiting[0].why.to_string(), "others take back what container proxy gets");
    }
    // The app goes on being sized.
    scene.autoscaler = autoscaler(
        &json!({}),
        &json!([{"name": "app", "target": {"cpu": "2"}}, {"name": "proxy", "target": {"cpu": "300m"}}]),
    );
    assert_eq!(evictions(&scene.words(&["c", "d"].map(|name| reset(name, "300m", "100m")))), 1);
}

#[test]
fn gap_09_a_pod_that_comes_after_an_eviction_as_it_was_counts_as_reset() {
    let mut scene = Scene::new("Recreate", 2, &app("2", "1Gi"));
    let mut pods = replicas(2, "1/1Gi", "-/-");
    for round in 1..=3 {
        let SizeAction::Evict(eviction) = scene.plan(&pods).actions.remove(0) else { panic!("no eviction") };
        scene.tries.evicted(&eviction, scene.now);
        pods[0] = running(
            &format!("new-{round}"),
            &json!([container("app", "1/1Gi", "-/-")]),
            &json!([]),
            &json!({"metadata": {"creationTimestamp": "2026-03-01T12:00:01Z"}}),
        );
        scene.tries.observe(&pods, scene.now);
        assert_eq!(scene.tries.resets("rs-1", "app"), round);
    }
    assert_eq!(scene.plan(&pods).actions, []);
}

#[test]
fn ours_11_a_pod_that_comes_back_under_its_name_while_a_resize_was_deferred_is_not_evicted_early() {
    let mut scene = Scene::new("InPlaceOrRecreate", 2, &app("2", "1Gi"));
    let deferred = |uid: &str, since: &str| {
        let fields = json!({"metadata": {"uid": uid}, "status": {"conditions": [
            {"type": "PodResizePending", "status": "True", "reason": "Deferred", "lastTransitionTime": since}]}});
        let own = running("web-0", &json!([container("app", "2/1Gi", "-/-")]), &json!([]), &fields);
        let mut other = own.clone();
        (other.name, other.uid, other.resize) = ("web-1".into(), "uid-1".into(), ResizeState::None);
        let mut own = own;
        own.containers[0].given = Some(Box::new(ContainerResources::default()));
        [own, other]
    };
    let first = deferred("old", "2026-03-01T11:50:00Z");
    scene.tries.observe(&first, scene.now);
    assert_eq!(scene.words(&first), ["evict pod shop/web-0: its node has no room now"]);
    let second = deferred("new", "2026-03-01T11:58:00Z");
    scene.tries.observe(&second, scene.now);
    assert_eq!(scene.words(&second), ["web-0 waits: its node has no room now"]);
}

#[test]
fn ours_13_a_jobs_pod_whose_work_is_done_is_left_alone_although_its_sidecar_runs() {
    let owner = json!([{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "job-1", "controller": true}]);
    let pod = |code: i32| {
        let ended = json!({"terminated": {"reason": "Completed", "exitCode": code}});
        let fields = json!({"metadata": {"ownerReferences": owner}, "status": {"containerStatuses": [{"name": "app", "state": ended}]}});
        [proxied(&fields, &sidecar("proxy", "100m/64Mi", "-/-"))]
    };
    let scene = for_proxy("InPlace", 1);
    assert_eq!(scene.words(&pod(0)), Vec::<String>::new());
    // One that failed is tried again; how many pods a Job has, its pods say.
    assert_eq!(scene.words(&pod(1)), ["resize pod shop/web-0: cpu request of proxy to 300m"]);
}

#[test]
fn ours_14_pods_with_resources_of_their_own_are_left_alone_with_a_remark() {
    let fields = json!({"spec": {"resources": {"requests": {"cpu": "1"}}}});
    let pods = [running("web-0", &json!([container("app", "1/-", "-/-")]), &json!([]), &fields)];
    let planned = Scene::new("InPlaceOrRecreate", 1, &app("2", "1Gi")).plan(&pods);
    assert_eq!((planned.actions, planned.remarks), (vec![], vec![Remark::PodLevelResources(1)]));
}

#[test]
fn pods_without_a_controller_or_of_an_unknown_number_are_not_disturbed() {
    let mut pods = replicas(6, "1/1Gi", "-/-");
    for pod in &mut pods[..3] {
        pod.owner = None;
    }
    for owner in pods.iter_mut().filter_map(|pod| pod.owner.as_mut()) {
        owner.uid = "unknown".into();
    }
    for mode in ["Recreate", "InPlace"] {
        let why = "it has no controller that says how many pods there are to be";
        let expected: Vec<String> = (0..6).map(|at| format!("web-{at} waits: {why}")).collect();
        assert_eq!(Scene::new(mode, 6, &app("2", "1Gi")).words(&pods), expected);
    }
}

#[test]
fn ours_09_nothing_is_done_without_a_recommendation() {
    for recommended in [json!([]), app("0", "0")] {
        assert_eq!(Scene::new("Recreate", 2, &recommended).plan(&replicas(2, "1/1Gi", "-/-")), UpdatePlan::default());
    }
}

#[test]
fn a_pod_at_its_limit_range_is_not_evicted_again_and_again() {
    let mut scene = Scene::new("Recreate", 2, &app("2", "1Gi"));
    scene.limits = limits("Container", &json!({"max": {"cpu": "1", "memory": "1Gi"}}));
    assert_eq!(scene.words(&replicas(2, "1/1Gi", "1/1Gi")), Vec::<String>::new());
}

#[test]
fn gap_03_a_boost_ends_with_the_start_and_for_a_sidecar_with_its_own() {
    let spec = json!({"updatePolicy": {"updateMode": "Initial"}, "startupBoost": {"cpu": {"type": "Factor", "factor": 2, "durationSeconds": 120}}});
    let boosted = |ready: &str, is_started: bool| {
        let before = |cpu: &str| json!({"requests": {"cpu": cpu}, "limits": {}}).to_string();
        let fields = json!({
            "metadata": {"annotations": {"vpaCpuStartupBoost/app": before("1"), "vpaCpuStartupBoost/proxy": before("100m")}},
            "status": {"conditions": [{"type": "Ready", "status": ready, "lastTransitionTime": "2026-03-01T11:58:00Z"}],
                "initContainerStatuses": [{"name": "proxy", "started": is_started, "state": {"running": {"startedAt": "2026-03-01T11:57:00Z"}}}]}});
        [running(
            "web-0",
            &json!([container("app", "2/-", "-/-")]),
            &json!([sidecar("proxy", "200m/-", "-/-")]),
            &fields,
        )]
    };
    let mut scene = Scene::new("Initial", 1, &json!([]));
    scene.autoscaler = autoscaler(&spec, &json!([]));
    scene.gates = BOOSTS;
    assert_eq!(scene.words(&boosted("False", false)), Vec::<String>::new());
    assert_eq!(scene.words(&boosted("False", true)), ["end the boost of pod shop/web-0: cpu request of proxy to 100m"]);
    assert_eq!(scene.words(&boosted("True", false)), ["end the boost of pod shop/web-0: cpu request of app to 1"]);
    // To what is recommended, where that is applied.
    scene.autoscaler = autoscaler(&spec, &json!([{"name": "app", "target": {"cpu": "1500m"}}]));
    assert_eq!(scene.words(&boosted("True", false)), ["end the boost of pod shop/web-0: cpu request of app to 1500m"]);
    let marks = scene.plan(&boosted("True", false)).actions[0].resize().unwrap().marks();
    assert_eq!(marks.pointer("/metadata/annotations/vpaCpuStartupBoost~1app"), Some(&Value::Null));
    assert_eq!(marks.pointer("/metadata/annotations/vpaCpuStartupBoost~1proxy"), None);
    scene.now = at("2026-03-01T11:59:59Z");
    assert_eq!(scene.words(&boosted("True", false)), Vec::<String>::new());
    scene.gates = Gates { native_sidecar: true, startup_boost: false };
    assert_eq!(scene.words(&boosted("True", true)), Vec::<String>::new());
}

/// A pod whose app had 3m of 7m and has 4m of 9m for its start, which is over.
fn boosted(fields: &Value, policy: &Value) -> [Pod; 1] {
    let before = json!({"requests": {"cpu": "3m"}, "limits": {"cpu": "7m"}}).to_string();
    let mut own = container("app", "4m/-", "9m/-");
    own["resizePolicy"] = policy.clone();
    let mut pod = running("web-0", &json!([own]), &json!([]), fields);
    pod.boosts = Box::new([("app".into(), ContainerResources::read(serde_json::from_str(&before).ok().as_ref()))]);
    [pod]
}

#[test]
fn the_limit_after_a_boost_is_in_proportion_to_what_was_before_it() {
    let mut scene = Scene::new("Initial", 1, &json!([{"name": "app", "target": {"cpu": "300m"}}]));
    scene.gates = BOOSTS;
    assert_eq!(
        scene.words(&boosted(&json!({}), &json!([]))),
        ["end the boost of pod shop/web-0: cpu request of app to 300m, cpu limit of app to 700m"]
    );
}

#[test]
fn a_boost_does_not_end_during_a_resize_nor_with_a_restart_that_is_too_much() {
    let mut scene = Scene::new("Initial", 1, &json!([]));
    scene.gates = BOOSTS;
    let resizing = json!({"status": {"conditions": [
        {"type": "Ready", "status": "True", "lastTransitionTime": "2026-03-01T11:00:00Z"},
        {"type": "PodResizeInProgress", "status": "True", "lastTransitionTime": "2026-03-01T11:59:00Z"}]}});
    assert_eq!(scene.words(&boosted(&resizing, &json!([]))), Vec::<String>::new());
    let restarts = json!([{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]);
    assert_eq!(
        scene.words(&boosted(&json!({}), &restarts)),
        ["web-0 waits: so few of its kind (1) are not disturbed: set spec.updatePolicy.minReplicas to allow it"]
    );
}

#[test]
fn pods_that_do_not_run_are_left_alone() {
    let edits: [fn(&mut Pod); 3] =
        [|pod| pod.is_assigned = false, |pod| pod.is_deleting = true, |pod| pod.is_ended = true];
    for edit in edits {
        let mut pods = replicas(1, "1/1Gi", "-/-");
        edit(&mut pods[0]);
        assert_eq!(Scene::new("InPlace", 1, &app("2", "1Gi")).words(&pods), Vec::<String>::new());
    }
}

#[test]
fn what_will_not_move_by_itself_is_told_once_nothing_else_moves() {
    let mut scene = Scene::new("Recreate", 1, &app("2", "1Gi"));
    let alone = replicas(1, "1/1Gi", "-/-");
    let few =
        "pod web-0 waits: so few of its kind (1) are not disturbed: set spec.updatePolicy.minReplicas to allow it";
    assert_eq!(scene.plan(&alone).hindrance(), Some(("TooFewReplicas", few.to_owned())));
    scene.autoscaler.min_replicas = Some(1);
    assert_eq!(scene.plan(&alone).hindrance(), None);

    // Two of four are evicted; the others have to wait until those are back, which is nothing to tell.
    let mut scene = Scene::new("Recreate", 4, &app("2", "1Gi"));
    let pods = replicas(4, "1/1Gi", "-/-");
    assert_eq!((scene.plan(&pods).actions.len(), scene.plan(&pods).hindrance()), (2, None));
    let all = pods.iter().map(|pod| pod.uid.clone()).collect();
    scene.budgets = vec![DisruptionBudget { name: "web".into(), allowed: 1, pods: all }];
    let planned = scene.plan(&pods);
    assert_eq!((planned.actions.len(), planned.hindrance()), (1, None), "one moves");
    scene.budgets[0].allowed = 0;
    let full = "pod web-0 waits: PodDisruptionBudget web allows no more";
    assert_eq!(scene.plan(&pods).hindrance(), Some(("DisruptionBudget", full.to_owned())));
}
