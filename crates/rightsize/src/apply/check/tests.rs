use serde_json::json;

use super::super::budget::DisruptionBudget;
use super::super::held::ContainerResources;
use super::super::samples::{Scene, app, container, replicas, running, sidecar};
use super::super::wanted::Gates;
use super::super::writes::PodEviction;
use super::*;
use crate::amounts::Amounts;

fn broken(scene: &Scene, plan: &UpdatePlan, pods: &[Pod]) -> Vec<SizeRule> {
    let mut rules: Vec<SizeRule> = match scene.ground(|ground| check(plan, pods, ground)) {
        Ok(()) => Vec::new(),
        Err(violations) => violations.iter().map(|violation| violation.rule).collect(),
    };
    rules.dedup();
    rules
}

fn evict(pod: &Pod) -> SizeAction {
    SizeAction::Evict(PodEviction {
        namespace: pod.namespace.clone(),
        name: pod.name.clone(),
        uid: pod.uid.clone(),
        owner: None,
        why: String::new(),
        had: vec![],
    })
}

fn evictions(pods: &[Pod]) -> UpdatePlan {
    UpdatePlan { actions: pods.iter().map(evict).collect(), ..UpdatePlan::default() }
}

#[test]
fn evictions_beyond_what_is_allowed_are_found() {
    let pods = replicas(4, "1/1Gi", "-/-");
    let scene = Scene::new("Recreate", 4, &app("2", "1Gi"));
    assert_eq!(broken(&scene, &evictions(&pods[..2]), &pods), []);
    assert_eq!(broken(&scene, &evictions(&pods[..3]), &pods), [SizeRule::Budget]);
    assert_eq!(broken(&scene, &evictions(&pods[..1]), &pods[..1]), [SizeRule::MinReplicas, SizeRule::Budget]);
    assert_eq!(broken(&scene, &evictions(&[pods[0].clone(), pods[0].clone()]), &pods), [SizeRule::OneWrite]);
    assert_eq!(broken(&scene, &evictions(&replicas(1, "1/1Gi", "-/-")), &[]), [SizeRule::OneWrite]);

    let mut scene = Scene::new("Recreate", 4, &app("2", "1Gi"));
    scene.budgets = vec![DisruptionBudget { name: "b".into(), allowed: 0, pods: [pods[1].uid.clone()].into() }];
    assert_eq!(broken(&scene, &evictions(&pods[..2]), &pods), [SizeRule::DisruptionBudget]);
    scene.budgets.clear();
    scene.can_evict = Err("the webhook is down");
    assert_eq!(broken(&scene, &evictions(&pods[..1]), &pods), [SizeRule::Eviction]);
    assert_eq!(
        broken(&Scene::new("InPlace", 4, &app("2", "1Gi")), &evictions(&pods[..1]), &pods),
        [SizeRule::Eviction]
    );
}

#[test]
fn resizes_of_what_is_not_ours_are_found() {
    let recommended = json!([{"name": "app", "target": {"cpu": "2"}}, {"name": "proxy", "target": {"cpu": "2"}}]);
    let init = json!([sidecar("proxy", "1/-", "-/-"), container("setup", "1/-", "-/-")]);
    let pods = [running("web-0", &json!([container("app", "1/-", "-/-")]), &init, &json!({}))];
    let scene = Scene::new("InPlace", 1, &recommended);
    let planned = scene.plan(&pods);
    let with = |edit: &dyn Fn(&mut PodResize)| {
        let mut plan = planned.clone();
        if let Some(SizeAction::Resize(resize)) = plan.actions.first_mut() {
            edit(resize);
        }
        plan
    };
    assert_eq!(broken(&scene, &planned, &pods), []);
    assert_eq!(broken(&Scene::new("Recreate", 1, &recommended), &planned, &pods), [SizeRule::InPlace]);
    assert_eq!(broken(&scene, &with(&|resize| resize.changes.clear()), &pods), [SizeRule::OneWrite]);
    let plain = with(&|resize| (resize.changes[0].index, resize.changes[0].name) = (1, "setup".into()));
    assert_eq!(broken(&scene, &plain, &pods), [SizeRule::OwnContainers]);
    assert_eq!(broken(&scene, &with(&|resize| resize.changes[0].index = 7), &pods), [SizeRule::OwnContainers]);
    let mut off = Scene::new("InPlace", 1, &recommended);
    off.gates = Gates::default();
    assert_eq!(broken(&off, &planned, &pods), [SizeRule::OwnContainers]);
    let less = with(&|resize| resize.changes.iter_mut().for_each(|change| change.to = ContainerResources::default()));
    assert_eq!(broken(&scene, &less, &pods), [SizeRule::QosClass]);
    let class = with(&|resize| {
        for change in &mut resize.changes {
            let all = Amounts { cpu: Some(1), memory: Some(1) };
            change.to = ContainerResources { requests: all, limits: all };
        }
    });
    let guaranteed = [running(
        "web-0",
        &json!([container("app", "1/-", "-/-")]),
        &json!([sidecar("proxy", "1/-", "-/-")]),
        &json!({}),
    )];
    assert_eq!(broken(&scene, &class, &guaranteed), [SizeRule::QosClass]);
}

mod laws {
    use proptest::prelude::*;

    use super::*;

    fn fleets() -> impl Strategy<Value = Vec<Pod>> {
        let one = (0..4_u8, 1..4_i64, 1..4_i64, 0..16_u8, 0..6_u8, 0..3_u8);
        proptest::collection::vec(one, 0..12).prop_map(|all| {
            let pod = |(at, (kind, cpu, proxy, flags, resize, owner)): (usize, (u8, i64, i64, u8, u8, u8))| {
                let (cpu, proxy) = (format!("{cpu}/1Gi"), format!("{proxy}/1Gi"));
                let limit = |own: &str| if flags & 1 == 1 { own.to_owned() } else { "-/-".to_owned() };
                let mut sidecar = sidecar("proxy", &proxy, &limit(&proxy));
                if flags & 2 == 2 {
                    sidecar["resizePolicy"] = json!([{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]);
                }
                let (condition, reason) = [("", ""), ("PodResizePending", "Deferred"), ("PodResizePending", "Infeasible"),
                    ("PodResizeInProgress", ""), ("PodResizeInProgress", "Error"), ("", "")][usize::from(resize)];
                let fields = json!({"status": {"phase": if flags & 4 == 4 { "Pending" } else { "Running" }, "conditions": [
                    {"type": condition, "status": "True", "reason": reason, "lastTransitionTime": "2026-03-01T11:00:00Z"}]}});
                let init = match kind {
                    0 => json!([]),
                    1 => json!([sidecar]),
                    _ => json!([container("setup", "2/1Gi", "-/-"), sidecar]),
                };
                let mut pod = running(&format!("web-{at}"), &json!([container("app", &cpu, &limit(&cpu))]), &init, &fields);
                pod.is_deleting = flags & 8 == 8;
                match (owner, &mut pod.owner) {
                    (0, owner) => *owner = None,
                    (1, Some(owner)) => (owner.kind, owner.uid) = ("Job".into(), "job-1".into()),
                    _ => {}
                }
                pod
            };
            all.into_iter().enumerate().map(pod).collect()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

        /// The planner and the check are written apart; `Scene::plan` asserts that they agree.
        #[test]
        fn a_plan_keeps_every_rule(pods in fleets(), mode in 0..5_usize, configured in 1..12_u32, least in 1..4_u32, allowed in 0..3_u32, flags in 0..8_u8) {
            let mode = ["Off", "Initial", "Recreate", "InPlaceOrRecreate", "InPlace"][mode];
            let mut scene = Scene::new(mode, configured, &json!([
                {"name": "app", "target": {"cpu": "2", "memory": "1Gi"}}, {"name": "proxy", "target": {"cpu": "2", "memory": "2Gi"}},
                {"name": "setup", "target": {"cpu": "1"}}]));
            scene.settings.min_replicas = least;
            scene.settings.in_place_skip_disruption_budget = flags & 1 == 1;
            scene.gates.native_sidecar = flags & 2 == 2;
            if flags & 4 == 4 {
                scene.can_evict = Err("the webhook is down");
            }
            scene.budgets = vec![DisruptionBudget { name: "b".into(), allowed, pods: pods.iter().map(|pod| pod.uid.clone()).collect() }];
            scene.tries.observe(&pods, scene.now);
            scene.plan(&pods);
        }
    }
}
