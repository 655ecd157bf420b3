//! What is told of an update that does not move.

use pillion_api::Reason;
use pillion_rollout::State;
use serde_json::json;

use crate::scene::Scene;

fn stalled(state: State, seconds: i64) -> Option<(Reason, String)> {
    let mut scene = Scene::new(2, json!({"healthGate": {"maxUnhealthy": "100%"}}));
    scene.write();
    scene.stuck(1, state);
    scene.seconds_pass(seconds);
    scene.progress().stalled.map(|stalled| (stalled.reason, stalled.message))
}

#[test]
fn what_does_not_end_by_itself_is_told_at_once() {
    for (waits_for, reason) in [
        ("ErrImagePull", Reason::ImageUnavailable),
        ("ImagePullBackOff", Reason::ImageUnavailable),
        ("ErrImageNeverPull", Reason::ImageUnavailable),
        ("InvalidImageName", Reason::ImageUnavailable),
        ("CreateContainerConfigError", Reason::ContainerFails),
        ("CreateContainerError", Reason::ContainerFails),
    ] {
        assert_eq!(stalled(State::Waiting(waits_for.into()), 0).map(|it| it.0), Some(reason), "{waits_for}");
    }
    assert_eq!(stalled(State::Waiting("ContainerCreating".into()), 59), None);
    // Of a crash the container must be another one than before: the old one may have crashed as well.
    assert_eq!(stalled(State::Waiting("CrashLoopBackOff".into()), 59), None);
    let mut scene = Scene::new(2, json!({"healthGate": {"maxUnhealthy": "100%"}}));
    scene.write();
    scene.done(1);
    scene.stuck(1, State::Waiting("CrashLoopBackOff".into()));
    assert_eq!(scene.progress().stalled.unwrap().reason, Reason::ContainerFails);
    assert_eq!(stalled(State::Terminated("Completed".into()), 59), None);
}

#[test]
fn what_says_nothing_is_told_after_a_minute() {
    let (reason, message) = stalled(State::Terminated("Completed".into()), 60).unwrap();
    assert_eq!(reason, Reason::UpdateUnready);
    assert_eq!(
        message,
        "1 pod does not run what it was given: pod shop/web-00001, container proxy, image proxy:2: does not start: look at the container; its probe may not fit the new image"
    );
    // The container is the old one, by its id and its restarts.
    let (_, message) = stalled(State::Running(None), 60).unwrap();
    assert!(message.contains("proxy:2: still runs its old image: "), "{message}");
}

#[test]
fn several_pods_are_counted_and_the_first_by_name_is_shown() {
    let mut scene = Scene::new(4, json!({"maxUnavailable": 3, "probe": false}));
    for number in scene.write() {
        scene.stuck(number, State::Waiting("ErrImagePull".into()));
    }
    let message = scene.progress().stalled.unwrap().message;
    assert!(message.starts_with("3 pods do not run what they were given: pod shop/web-00001, "), "{message}");
}

#[test]
fn a_set_whose_pods_are_all_done_says_nothing() {
    let mut scene = Scene::new(4, json!({"maxUnavailable": 3}));
    scene.run();
    scene.seconds_pass(3600);
    let progress = scene.progress();
    assert_eq!((progress.blocked.len(), &progress.stalled, progress.wake_at), (0, &None, None));
    assert_eq!((progress.counts.updated_ready, progress.counts.unavailable), (4, 0));
}

#[test]
fn only_a_few_pods_are_asked_for_their_events() {
    let mut scene = Scene::new(10, json!({"maxUnavailable": "100%", "probe": false}));
    for number in scene.write() {
        scene.stuck(number, State::Terminated("Completed".into()));
    }
    scene.seconds_pass(30);
    assert_eq!(scene.progress().ask_events.len(), 3);
}
