//! The health gate.

use pillion_api::{PodRevision, Reason};
use pillion_plan::Action;
use pillion_rollout::State;
use serde_json::json;

use crate::scene::{NOBODY, Scene};

fn crash() -> State {
    State::Waiting("CrashLoopBackOff".into())
}

/// Ten pods, of which five are updated; the first so many crash.
fn scene(crashing: usize, gate: serde_json::Value) -> Scene {
    let mut scene = Scene::new(20, json!({"maxUnavailable": "100%", "healthGate": gate}));
    let old = scene.given(0).is.clone();
    for number in 0..5 {
        scene.updated_long_ago(number);
        let pod = &mut scene.pods[number];
        pod.revisions.0.get_mut("mesh").unwrap().from = Some(old.clone());
        pod.record = Some(pod.revisions.render().into());
    }
    (0..crashing).for_each(|number| scene.stuck(number, crash()));
    scene
}

#[test]
fn enough_pods_that_are_not_well_stop_the_update() {
    let gate = json!({"maxUnhealthy": "10%"});
    assert_eq!(scene(1, gate.clone()).planned().len(), 15);
    let scene = scene(2, gate);
    let (plan, progress) = scene.plan();
    assert!(plan.is_empty());
    let stalled = progress.stalled.unwrap();
    assert_eq!(stalled.reason, Reason::HealthGate);
    assert_eq!(
        stalled.message,
        format!(
            "2 of 20 pods are not well with {}, and 2 close the health gate, such as pod shop/web-00000, container proxy, image proxy:2: CrashLoopBackOff: correct the set, or go back with `pillion rollout undo`",
            scene.set.revision
        )
    );
    assert!(progress.gate.is_closed);
    assert_eq!((progress.gate.unhealthy, progress.gate.limit, progress.gate.restored), (2, 2, 0));
    assert_eq!((progress.blocked[0].reason, progress.blocked[0].pods), (Reason::HealthGate, 15));
}

#[test]
fn one_percent_of_few_pods_is_one_pod() {
    assert_eq!(scene(1, json!({})).planned(), NOBODY);
    assert_eq!(scene(1, json!({"maxUnhealthy": 0})).planned(), NOBODY);
}

#[test]
fn a_pod_has_a_minute_to_become_ready() {
    let mut scene = Scene::new(4, json!({"maxUnavailable": "100%", "probe": false, "partition": 2}));
    assert_eq!(scene.write(), [3, 2]);
    scene.done(2);
    scene.done(3);
    scene.pods[3].containers[0].status.as_mut().unwrap().is_ready = false;
    scene.strategy("partition", json!(0));
    scene.seconds_pass(59);
    assert_eq!(scene.planned(), [1, 0]);
    scene.seconds_pass(1);
    assert_eq!(scene.planned(), NOBODY);
    scene.pods[3].containers[0].status.as_mut().unwrap().is_ready = true;
    assert_eq!(scene.planned(), [1, 0], "it opens by itself");
}

#[test]
fn what_is_not_ours_and_what_was_not_updated_by_us_is_not_to_blame() {
    let mut scene = Scene::new(4, json!({"maxUnavailable": "100%", "probe": false}));
    scene.updated_long_ago(0);
    scene.ready(0, false);
    let new = scene.create();
    scene.stuck(new, crash());
    assert_eq!(scene.planned(), [3, 2, 1]);
}

#[test]
fn attack_a_pod_with_altered_containers_neither_closes_the_gate_nor_keeps_it_closed() {
    let mut scene = scene(2, json!({"maxUnhealthy": "10%"}));
    let newest = scene.set.revision.clone();
    let change = |scene: &mut Scene, number: usize, change: &dyn Fn(&mut PodRevision)| {
        let pod = &mut scene.pods[number];
        change(pod.revisions.0.get_mut("mesh").unwrap());
        pod.record = Some(pod.revisions.render().into());
    };
    assert_eq!(scene.planned(), NOBODY);
    change(&mut scene, 0, &|revision| revision.altered = true);
    assert_eq!((scene.planned().len(), scene.progress().gate.unhealthy), (15, 1));
    change(&mut scene, 9, &|revision| revision.failed = Some(newest.clone()));
    assert_eq!((scene.planned(), scene.progress().gate.restored), (NOBODY.to_vec(), 1));
    change(&mut scene, 9, &|revision| revision.altered = true);
    assert_eq!((scene.planned().len(), scene.progress().gate.restored), (15, 0));
    scene.write();
    assert!(scene.given(9).altered && !scene.given(10).altered, "an update in place changes only images");
}

#[test]
fn with_rollback_pods_that_are_not_well_get_their_revision_back_once() {
    let mut scene = scene(2, json!({"maxUnhealthy": 2, "rollback": true}));
    let (old, new) = (scene.given(9).is.clone(), scene.set.revision.clone());
    let (plan, _) = scene.plan();
    assert!(plan.actions.iter().all(|action| matches!(action, Action::Restore(_))), "{plan}");
    assert_eq!(
        plan.actions[0].to_string(),
        format!("restore pod shop/web-00000 of set mesh to {old}: image of proxy from proxy:2 to proxy:1")
    );
    assert_eq!(scene.write(), [0, 1]);
    let given = scene.given(0);
    assert_eq!((&given.is, given.failed.as_ref(), given.from.as_ref()), (&old, Some(&new), None));
    for number in [0, 1] {
        scene.done(number);
    }
    scene.seconds_pass(1000);
    let (plan, progress) = scene.plan();
    assert!(plan.is_empty(), "the gate stays closed while a pod remembers");
    let stalled = progress.stalled.unwrap();
    assert_eq!(stalled.reason, Reason::GateRollback);
    assert_eq!(
        stalled.message,
        format!(
            "2 of 20 pods were not well with {new} and got their old revision back: correct the set; {new} is not tried again while they remember it"
        )
    );
    assert_eq!(progress.blocked[0].reason, Reason::GateRollback);
    // Another pod that is not well follows them.
    scene.stuck(2, crash());
    assert_eq!(scene.write(), [2]);
    scene.done(2);
    // A correction opens it, and what failed is forgotten with it.
    scene.image("proxy:3");
    scene.seconds_pass(15);
    scene.run();
    assert!((0..20).all(|number| scene.given(number).is == scene.set.revision && scene.given(number).failed.is_none()));
}

#[test]
fn nothing_is_restored_unasked_or_while_the_set_is_held() {
    assert_eq!(scene(2, json!({"maxUnhealthy": 2})).planned(), NOBODY);
    let mut paused = scene(2, json!({"maxUnhealthy": 2, "rollback": true}));
    paused.strategy("paused", json!(true));
    assert_eq!(paused.planned(), NOBODY);
    let mut unknown = scene(2, json!({"maxUnhealthy": 2, "rollback": true}));
    let old = unknown.given(9).is.clone();
    unknown.templates.remove(&old);
    assert_eq!(unknown.planned(), NOBODY, "what it was is not known any more");
}
