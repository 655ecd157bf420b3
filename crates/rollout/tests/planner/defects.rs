//! Defects of `OpenKruise` that must not be ours, by the number or issue we know them by.

use pillion_api::Reason;
use serde_json::json;

use crate::scene::{NOBODY, Scene};

#[test]
fn k06_a_set_that_never_updates_is_counted_like_any_other() {
    let mut scene = Scene::new(3, json!({"type": "NotUpdate"}));
    let new = scene.create();
    scene.ready(0, false);
    let (plan, progress) = scene.plan();
    assert!(plan.is_empty());
    let counts = progress.counts;
    assert_eq!((counts.pods, counts.ready, counts.updated, counts.updated_ready), (4, 3, 1, 1));
    assert_eq!((progress.blocked[0].reason, progress.blocked[0].pods), (Reason::UpdateSwitchedOff, 3));
    scene.pods[new].is_deleting = true;
    scene.ready(0, true);
    assert_eq!((scene.progress().counts.pods, scene.progress().counts.ready), (3, 3));
}

#[test]
fn k20_pods_that_must_be_created_again_count_as_kept() {
    let mut scene = Scene::settled(5, json!({"maxUnavailable": "100%", "probe": false, "partition": 5}));
    scene.edit(|spec| spec["containers"][0]["env"] = json!([{"name": "A", "value": "1"}]));
    (0..5).for_each(|_| _ = scene.create());
    scene.image("proxy:2");
    let (plan, progress) = scene.plan();
    assert_eq!((progress.counts.needs_recreate, progress.pinned), (5, 5));
    assert_eq!(plan.actions.len(), 5, "five are kept as they are, so the other five follow");
}

#[test]
fn k25_a_write_the_watch_never_shows_is_read_and_then_forgotten() {
    let mut scene = Scene::new(2, json!({}));
    let (plan, _) = scene.plan();
    scene.own_writes.wrote(plan.actions[0].update(), scene.now);
    // The watch still has both pods as they were.
    scene.seconds_pass(9);
    let (plan, progress) = scene.plan();
    assert!(plan.is_empty());
    assert!(progress.read_again.is_empty());
    assert_eq!(progress.counts.updating, 1);
    assert_eq!(progress.wake_at, Some(scene.now + jiff::SignedDuration::from_secs(1)));
    scene.seconds_pass(1);
    assert_eq!(scene.progress().read_again, ["uid-00001".into()]);
    scene.seconds_pass(49);
    assert_eq!(scene.planned(), NOBODY);
    scene.seconds_pass(1);
    assert_eq!(scene.planned(), [1]);
}

/// `OpenKruise` waits for ever for a pod that was deleted while it was being updated.
#[test]
fn openkruise_2253_a_pod_that_is_deleted_while_it_is_updated_holds_nothing() {
    let mut scene = Scene::new(3, json!({}));
    let (plan, _) = scene.plan();
    scene.own_writes.wrote(plan.actions[0].update(), scene.now);
    scene.seconds_pass(1);
    assert_eq!(scene.planned(), NOBODY, "one pod may be unavailable, and one is under way");
    // It goes before the watch has shown our write, and no event of ours comes of it.
    let gone = scene.pods.pop().unwrap();
    assert_eq!(scene.planned(), [1]);
    scene.own_writes.retain(|uid| *uid != *gone.uid);
    assert!(scene.own_writes.is_empty());
    assert_eq!(scene.run(), [1, 1]);
}

#[test]
fn openkruise_2253_a_pod_of_the_same_name_is_another_one() {
    let mut scene = Scene::new(3, json!({}));
    let (plan, _) = scene.plan();
    scene.own_writes.wrote(plan.actions[0].update(), scene.now);
    scene.pods[2].uid = "uid-00002-again".into();
    assert_eq!(scene.planned(), [2]);
}

#[test]
fn openkruise_1812_a_small_percentage_never_comes_to_nothing() {
    assert_eq!(Scene::new(3, json!({"maxUnavailable": "1%", "probe": false})).run(), [1, 1, 1]);
}

#[test]
fn openkruise_844_what_was_written_a_moment_ago_counts_though_the_watch_is_behind() {
    let mut scene = Scene::new(10, json!({"maxUnavailable": 3, "probe": false}));
    let (plan, _) = scene.plan();
    for action in &plan.actions {
        scene.own_writes.wrote(action.update(), scene.now);
    }
    assert_eq!(scene.planned(), NOBODY);
    for action in &plan.actions {
        let number = scene.carry_out(action);
        scene.own_writes.saw(&scene.pods[number]);
    }
    assert!(scene.own_writes.is_empty());
    assert_eq!(scene.planned(), NOBODY);
}
