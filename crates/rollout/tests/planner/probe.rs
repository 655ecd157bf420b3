//! The first pod is tried alone.

use jiff::SignedDuration;
use pillion_api::Reason;
use pillion_rollout::State;
use serde_json::json;

use crate::scene::{NOBODY, Scene};

#[test]
fn one_pod_is_tried_before_the_others_follow() {
    let mut scene = Scene::new(10, json!({"maxUnavailable": "50%"}));
    assert_eq!(scene.write(), [9]);
    scene.seconds_pass(5);
    let (plan, progress) = scene.plan();
    assert!(plan.is_empty());
    assert_eq!((progress.blocked[0].reason, progress.blocked[0].pods), (Reason::ProbeUnfinished, 9));
    scene.done(9);
    // A program that crashes has run for a moment, too.
    let (plan, progress) = scene.plan();
    assert!(plan.is_empty());
    assert_eq!((progress.blocked[0].reason, progress.blocked[0].pods), (Reason::ProbeUnfinished, 9));
    assert_eq!(progress.wake_at, Some(scene.now + SignedDuration::from_secs(3)));
    scene.seconds_pass(2);
    assert_eq!(scene.planned(), NOBODY);
    scene.seconds_pass(1);
    assert_eq!(scene.planned().len(), 5);
}

#[test]
fn how_long_the_first_pod_runs_is_settable_and_no_wrong_clock_of_a_node_holds_it_for_long() {
    let mut scene = Scene::new(4, json!({"maxUnavailable": 2, "settleSeconds": 0}));
    assert_eq!(scene.write(), [3]);
    scene.done(3);
    assert_eq!(scene.planned().len(), 2, "at once");
    scene.strategy("settleSeconds", json!(20));
    scene.seconds_pass(20);
    assert_eq!(scene.planned(), NOBODY);
    scene.seconds_pass(1);
    assert_eq!(scene.planned().len(), 2);
    // Its node lives in the future.
    let ahead = scene.now + SignedDuration::from_hours(1);
    scene.pods[3].containers[0].status.as_mut().unwrap().state = State::Running(Some(ahead));
    scene.strategy("settleSeconds", json!(2));
    scene.seconds_pass(10);
    assert_eq!(scene.planned(), NOBODY, "31 s after it was written");
    scene.seconds_pass(1);
    assert_eq!(scene.planned().len(), 2);
}

#[test]
fn the_pod_that_is_tried_is_a_ready_one() {
    let mut scene = Scene::new(10, json!({"maxUnavailable": 3}));
    scene.ready(0, false);
    scene.ready(1, false);
    assert_eq!(scene.planned(), [9]);
    // Where none may be taken, it is one that is not: nothing else could go on.
    scene.strategy("maxUnavailable", json!(2));
    assert_eq!(scene.planned(), [1]);
}

#[test]
fn a_pod_that_runs_but_is_not_ready_proves_nothing() {
    let mut scene = Scene::new(10, json!({"maxUnavailable": 5}));
    assert_eq!(scene.write(), [9]);
    scene.done(9);
    scene.ready(9, false);
    assert_eq!(scene.planned().len(), 1, "it is done, so another one is tried");
    scene.ready(9, true);
    scene.pods[9].containers[0].status.as_mut().unwrap().is_ready = false;
    assert_eq!(scene.planned(), NOBODY);
}

#[test]
fn a_new_pod_that_runs_well_is_proof_enough() {
    let mut scene = Scene::new(10, json!({"maxUnavailable": 4}));
    let new = scene.create();
    assert_eq!(scene.planned().len(), 4);
    scene.stuck(new, State::Waiting("ContainerCreating".into()));
    assert_eq!(scene.planned().len(), 1);
}

#[test]
fn a_startup_probe_takes_its_time() {
    let mut scene = Scene::new(3, json!({"maxUnavailable": 1, "settleSeconds": 5}));
    scene.pods.iter_mut().for_each(|pod| pod.containers[0].has_startup_probe = true);
    assert_eq!(scene.write(), [2]);
    scene.done(2);
    let (plan, progress) = scene.plan();
    assert!(plan.is_empty());
    assert_eq!(progress.wake_at, Some(scene.now + SignedDuration::from_secs(5)));
    scene.seconds_pass(4);
    assert_eq!(scene.planned(), NOBODY);
    // It becomes ready once more: that is when the time begins.
    scene.ready(2, true);
    scene.seconds_pass(4);
    assert_eq!(scene.planned(), NOBODY);
    scene.seconds_pass(1);
    assert_eq!(scene.planned(), [1]);
}
