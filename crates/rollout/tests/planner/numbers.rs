//! How many pods are updated at a time: the numbers that the tests of `OpenKruise` expect, and ours.

use pillion_api::Reason;
use serde_json::json;

use crate::scene::Scene;

/// So many pods, of which some are updated, and some of those ready.
fn scene(pods: usize, updated: usize, ready: usize, strategy: serde_json::Value) -> Scene {
    let mut scene = Scene::new(pods, strategy);
    for number in 0..updated {
        scene.updated_long_ago(number);
        scene.ready(number, number < ready);
    }
    scene
}

#[test]
fn reference_numbers_of_max_unavailable() {
    let started =
        |pods, updated, ready, max| scene(pods, updated, ready, json!({"maxUnavailable": max})).planned().len();
    assert_eq!(started(100, 30, 26, json!(10)), 6);
    assert_eq!(started(1000, 300, 260, json!("10%")), 60);
    assert_eq!(started(1000, 300, 250, json!("5%")), 0);
    assert_eq!(started(5, 1, 1, json!("5%")), 1);
}

#[test]
fn reference_numbers_of_partition() {
    let started = |partition| {
        let strategy = json!({"maxUnavailable": 100, "partition": partition});
        scene(1000, 800, 760, strategy).planned().len()
    };
    assert_eq!((started(180), started(100), started(200)), (20, 60, 0));
    let of_five = |partition: &str| {
        Scene::new(5, json!({"maxUnavailable": "100%", "partition": partition, "probe": false})).planned().len()
    };
    assert_eq!((of_five("99%"), of_five("1%"), of_five("100%"), of_five("0%")), (1, 4, 0, 5));
}

#[test]
fn an_update_to_the_end_takes_the_numbers_at_every_step() {
    assert_eq!(Scene::new(10, json!({"maxUnavailable": 3})).run(), [1, 3, 3, 3]);
    assert_eq!(Scene::new(10, json!({"maxUnavailable": 3, "probe": false})).run(), [3, 3, 3, 1]);
    assert_eq!(Scene::new(7, json!({"partition": "50%", "maxUnavailable": 9})).run(), [1, 2]);
    assert_eq!(Scene::new(3, json!({"maxUnavailable": 0})).run(), Vec::<usize>::new());
}

#[test]
fn what_is_told_adds_up() {
    let scene = scene(100, 30, 26, json!({"maxUnavailable": "10%", "partition": 20}));
    let progress = scene.progress();
    let counts = progress.counts;
    assert_eq!((counts.pods, counts.ready, counts.unavailable), (100, 96, 4));
    assert_eq!((counts.updated, counts.updated_ready, counts.waiting, counts.needs_recreate), (30, 26, 70, 0));
    assert_eq!((counts.updating, counts.starting, progress.pinned, progress.max_unavailable), (0, 6, 20, 10));
    let by_revision: Vec<_> = progress.revisions.values().map(|count| (count.pods, count.ready)).collect();
    assert!(by_revision == [(30, 26), (70, 70)] || by_revision == [(70, 70), (30, 26)], "{by_revision:?}");
    let held: usize = progress.blocked.iter().map(|blocked| blocked.pods).sum();
    assert_eq!(held + counts.starting, counts.waiting);
    assert_eq!(progress.blocked[0].reason, Reason::BudgetSpent);
    assert_eq!(progress.stalled, None);
}
