//! Scenarios of `OpenKruise`'s own tests, by their number in our list of them, as far as a planner decides them.

use pillion_api::Reason;
use pillion_rollout::State;
use serde_json::json;

use crate::scene::{NOBODY, Scene};

const NOT_ASKED: [Box<str>; 0] = [];

fn pull_error() -> State {
    State::Waiting("ErrImagePull".into())
}

#[test]
fn scenario_12_a_failing_image_stops_at_one_pod_and_a_good_one_recovers_all() {
    let mut scene = Scene::new(4, json!({"maxUnavailable": 2}));
    assert_eq!(scene.write(), [3]);
    scene.stuck(3, pull_error());
    scene.seconds_pass(20);
    let (plan, progress) = scene.plan();
    assert!(plan.is_empty());
    assert_eq!((progress.counts.updated, progress.counts.updated_ready, progress.counts.ready), (1, 0, 3));
    let stalled = progress.stalled.unwrap();
    assert_eq!(stalled.reason, Reason::ImageUnavailable);
    assert_eq!(
        stalled.message,
        "1 pod does not run what it was given: pod shop/web-00003, container proxy, image proxy:2: ErrImagePull: correct the image in the set, or mend the registry or the pull secret"
    );
    scene.image("proxy:3");
    scene.run();
    assert!((0..4).all(|number| scene.given(number).is == scene.set.revision));
    assert_eq!(scene.given(3).from, scene.given(0).from, "it comes from the revision it was last well with");
    assert_eq!(scene.progress().stalled, None);
}

#[test]
fn scenario_13_another_change_waits_for_new_pods_and_an_image_then_updates_only_those() {
    let mut scene = Scene::settled(2, json!({"maxUnavailable": 2, "probe": false}));
    scene.edit(|spec| spec["containers"][0]["env"] = json!([{"name": "A", "value": "1"}]));
    let (plan, progress) = scene.plan();
    assert!(plan.is_empty());
    assert_eq!((progress.counts.needs_recreate, progress.counts.updated), (2, 0));
    assert_eq!((progress.blocked[0].reason, progress.blocked[0].pods), (Reason::NeedsRecreate, 2));
    assert_eq!(progress.blocked[0].words, "env of container proxy, such as pod shop/web-00000");
    let new = scene.create();
    scene.image("proxy:2");
    assert_eq!(scene.planned(), [new]);
}

#[test]
fn scenario_15_pause_holds_and_unpause_finishes() {
    let mut scene = Scene::new(4, json!({"maxUnavailable": 2, "probe": false}));
    for number in scene.write() {
        scene.done(number);
    }
    scene.strategy("paused", json!(true));
    scene.seconds_pass(100);
    let (plan, progress) = scene.plan();
    assert!(plan.is_empty());
    assert_eq!((progress.blocked[0].reason, progress.blocked[0].pods), (Reason::UpdatePaused, 2));
    scene.strategy("paused", json!(false));
    assert_eq!(scene.run(), [2]);
}

#[test]
fn scenario_16_a_selector_updates_only_what_it_selects() {
    let mut scene = Scene::new(3, json!({"selector": {"matchLabels": {"canary": "true"}}}));
    scene.label(1, "canary", "true");
    assert_eq!(scene.run(), [1]);
    let progress = scene.progress();
    assert_eq!((progress.blocked[0].reason, progress.blocked[0].pods), (Reason::OutsideUpdateSelector, 2));
    scene.strategy("selector", json!(null));
    assert_eq!(scene.run(), [1, 1]);
}

#[test]
fn scenario_17_a_partition_of_half_of_two_keeps_one() {
    let mut scene = Scene::new(2, json!({"partition": "50%", "maxUnavailable": 2}));
    assert_eq!(scene.run(), [1]);
    let progress = scene.progress();
    assert_eq!((progress.blocked[0].reason, progress.blocked[0].pods), (Reason::PartitionKeeps, 1));
    assert_eq!(progress.blocked[0].words, "1 of 2 pods stay as they are, such as pod shop/web-00000");
    scene.strategy("partition", json!(null));
    assert_eq!(scene.run(), [1]);
}

#[test]
fn scenario_18_without_a_probe_a_failing_image_stops_at_max_unavailable() {
    let mut scene =
        Scene::new(4, json!({"maxUnavailable": "50%", "probe": false, "healthGate": {"maxUnhealthy": "100%"}}));
    assert_eq!(scene.write(), [3, 2]);
    scene.stuck(3, pull_error());
    scene.stuck(2, pull_error());
    scene.seconds_pass(300);
    let (plan, progress) = scene.plan();
    assert!(plan.is_empty());
    assert_eq!((progress.counts.updated, progress.counts.ready), (2, 2));
    scene.image("proxy:3");
    scene.run();
    assert_eq!(scene.progress().counts.updated_ready, 4);
}

#[test]
fn a_native_sidecar_that_cannot_be_pulled_is_told_by_its_events() {
    let mut scene = Scene::new(4, json!({"maxUnavailable": 2}));
    assert_eq!(scene.write(), [3]);
    scene.stuck(3, State::Terminated("Completed".into()));
    scene.seconds_pass(29);
    assert_eq!(scene.progress().ask_events, NOT_ASKED);
    scene.seconds_pass(1);
    let progress = scene.progress();
    assert_eq!(progress.ask_events, ["uid-00003".into()]);
    assert_eq!(progress.stalled, None);
    scene.troubles.insert("uid-00003".into(), "Failed to pull image \"proxy:2\": not found".to_owned());
    let progress = scene.progress();
    assert_eq!(progress.ask_events, NOT_ASKED);
    assert_eq!(progress.stalled.unwrap().reason, Reason::ImageUnavailable);
}

#[test]
fn a_change_that_running_pods_never_see_writes_nothing() {
    let mut scene = Scene::settled(3, json!({}));
    scene.edit(|spec| spec["initContainers"] = json!([{"name": "once", "image": "once:1"}]));
    let (plan, progress) = scene.plan();
    assert!(plan.is_empty());
    assert_eq!((progress.counts.updated, progress.counts.needs_recreate, progress.blocked.len()), (3, 0, 0));
}

#[test]
fn nothing_is_written_while_all_is_off_or_only_observed() {
    let mut scene = Scene::new(3, json!({}));
    scene.is_off = true;
    assert_eq!(scene.planned(), NOBODY);
    assert_eq!(scene.progress().blocked[0].reason, Reason::SwitchedOff);
    scene.is_off = false;
    scene.edit(|spec| spec["mode"] = json!("Observe"));
    assert_eq!(scene.planned(), NOBODY);
    assert_eq!(scene.progress().blocked[0].reason, Reason::Observed);
}
