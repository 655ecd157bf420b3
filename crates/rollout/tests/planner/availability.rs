//! Never more pods unavailable than may be: of the set, of a workload, of a disruption budget; and not all unready ones at once.

use pillion_api::{LabelSelector, Reason, Selector};
use pillion_rollout::{DisruptionBudget, Owner, State};
use serde_json::json;

use crate::scene::{NOBODY, Scene};

fn no_probe(max: serde_json::Value) -> serde_json::Value {
    json!({"maxUnavailable": max, "probe": false})
}

/// The pod belongs to another Deployment, or another owner.
fn owned_by(scene: &mut Scene, number: usize, kind: &str, name: &str) {
    scene.pods[number].owner = Some(Owner {
        api_version: "apps/v1".into(),
        kind: kind.into(),
        name: name.into(),
        uid: format!("uid-of-{name}").into(),
    });
}

#[test]
fn a_pod_that_was_given_something_is_unavailable_until_it_runs_it_though_it_is_ready() {
    let mut scene = Scene::new(6, no_probe(json!(2)));
    assert_eq!(scene.write(), [5, 4], "the newest first");
    // Both are ready and run, with the old image: their containers ignore the signal to end.
    assert!(scene.pods[5].is_ready && scene.pods[4].is_ready);
    scene.seconds_pass(40);
    let (plan, progress) = scene.plan();
    assert!(plan.is_empty());
    assert_eq!((progress.counts.updating, progress.counts.unavailable, progress.counts.updated), (2, 2, 2));
    scene.done(4);
    assert_eq!(scene.planned().len(), 1);
}

#[test]
fn pods_that_are_unready_without_us_count() {
    let mut scene = Scene::new(10, no_probe(json!(3)));
    scene.ready(0, false);
    scene.ready(1, false);
    // The unready ones become no worse by an update, and of the ready ones one more may be unavailable.
    assert_eq!(scene.planned(), [1, 0, 9]);
    scene.ready(2, false);
    assert_eq!(scene.planned(), [2, 1, 0]);
}

#[test]
fn unready_pods_are_not_all_updated_at_once() {
    let mut scene = Scene::new(10, no_probe(json!(3)));
    (0..10).for_each(|number| scene.ready(number, false));
    assert_eq!(scene.write().len(), 3);
    assert_eq!(scene.planned(), NOBODY);
}

#[test]
fn a_workload_keeps_a_pod_whatever_the_set_can_bear() {
    let mut scene = Scene::new(9, no_probe(json!(5)));
    for number in 0..9 {
        owned_by(&mut scene, number, "StatefulSet", ["a", "b", "c"][number / 3]);
    }
    // Two of three in each: the sixth would be the last of its workload but there is room for five only.
    assert_eq!(scene.planned(), [8, 7, 5, 4, 2]);
    scene.strategy("maxUnavailable", json!("100%"));
    assert_eq!(scene.planned().len(), 9);
    scene.strategy("maxUnavailable", json!("34%"));
    assert_eq!(scene.planned(), [8, 7, 5, 4]);
    scene.strategy("maxUnavailable", json!("20%"));
    assert_eq!(scene.planned(), [8, 5]);
}

#[test]
fn a_workload_of_one_pod_is_updated_all_the_same() {
    let mut scene = Scene::new(2, no_probe(json!(2)));
    owned_by(&mut scene, 0, "StatefulSet", "a");
    owned_by(&mut scene, 1, "StatefulSet", "b");
    assert_eq!(scene.planned(), [1, 0]);
}

#[test]
fn replica_sets_of_one_deployment_are_one_workload() {
    let mut scene = Scene::new(4, no_probe(json!(4)));
    for number in 0..2 {
        owned_by(&mut scene, number, "ReplicaSet", "web-7f");
        scene.pods[number].labels = [("app".into(), "web".into()), ("pod-template-hash".into(), "7f".into())].into();
    }
    assert_eq!(scene.planned(), [3, 2, 1]);
    let progress = scene.progress();
    assert_eq!(progress.blocked.len(), 1);
    assert_eq!(progress.blocked[0].reason, Reason::BudgetSpent);
    assert_eq!(
        progress.blocked[0].words,
        "3 of 4 pods of Deployment shop/web may be unavailable at a time, such as pod shop/web-00000"
    );
}

fn budget(name: &str, namespace: &str, labels: serde_json::Value, allowed: usize) -> DisruptionBudget {
    let selector: LabelSelector = serde_json::from_value(json!({"matchLabels": labels})).unwrap();
    DisruptionBudget { namespace: namespace.into(), name: name.into(), selector: Selector::compile(&selector), allowed }
}

#[test]
fn a_disruption_budget_is_never_spent_beyond_what_it_allows() {
    let mut scene = Scene::new(10, no_probe(json!(8)));
    scene.budgets = vec![
        budget("narrow", "shop", json!({"app": "web"}), 2),
        budget("other", "elsewhere", json!({"app": "web"}), 0),
        budget("none", "shop", json!({"app": "other"}), 0),
    ];
    assert_eq!(scene.write().len(), 2);
    let progress = scene.progress();
    assert_eq!(scene.planned(), NOBODY);
    assert_eq!(progress.blocked[0].reason, Reason::DisruptionBudget);
    assert_eq!(
        progress.blocked[0].words,
        "PodDisruptionBudget shop/narrow allows 2 disruptions now, such as pod shop/web-00007"
    );
    // An unready pod is no disruption more.
    scene.ready(0, false);
    assert_eq!(scene.planned(), [0]);
    // One without requirements selects the whole namespace.
    scene.budgets = vec![budget("all", "shop", json!({}), 3)];
    assert_eq!(scene.planned(), [0]);
}

#[test]
fn a_pod_is_left_alone_for_some_seconds_unless_what_it_was_given_fails() {
    let mut scene = Scene::new(1, no_probe(json!(1)));
    assert_eq!(scene.write(), [0]);
    scene.done(0);
    scene.image("proxy:3");
    scene.seconds_pass(9);
    let (plan, progress) = scene.plan();
    assert!(plan.is_empty());
    assert_eq!(progress.blocked[0].reason, Reason::JustUpdated);
    assert_eq!(progress.wake_at, Some(scene.now + jiff::SignedDuration::from_secs(1)));
    scene.seconds_pass(1);
    assert_eq!(scene.planned(), [0]);
    scene.seconds_pass(-9);
    assert_eq!(scene.planned(), NOBODY);
    scene.pods[0].containers[0].status.as_mut().unwrap().state = State::Waiting("ImagePullBackOff".into());
    assert_eq!(scene.planned(), [0], "nothing is lost with a container that cannot run");
}

#[test]
fn what_is_stuck_on_the_way_elsewhere_does_not_keep_out_what_mends_it() {
    // Five crash with proxy:2; three may be unavailable.
    let mut scene = Scene::new(8, no_probe(json!(3)));
    for number in 0..5 {
        scene.updated_long_ago(number);
        scene.stuck(number, State::Waiting("CrashLoopBackOff".into()));
    }
    assert_eq!(scene.planned(), NOBODY);
    scene.image("proxy:3");
    assert_eq!(scene.planned().len(), 3, "three on the way to the new one, whatever is stuck");
    assert_eq!(scene.write(), [4, 3, 2]);
    assert_eq!(scene.planned(), NOBODY, "that they crash is still of the one before, and closes no gate");
    scene.seconds_pass(1);
    scene.done(4);
    assert_eq!(scene.planned(), [1]);
}

#[test]
fn a_namespace_that_is_left_alone_is_never_written() {
    let mut scene = Scene::new(2, no_probe(json!(2)));
    scene.pods[1].namespace = "kube-system".into();
    assert_eq!(scene.planned(), [0]);
    assert_eq!(scene.progress().blocked[0].reason, Reason::NamespaceExcluded);
}
