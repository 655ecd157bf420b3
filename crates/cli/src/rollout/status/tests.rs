//! How rollouts are told, at every turn they can take.

use jiff::SignedDuration;
use pillion_api::Reason;
use serde_json::{Value, json as object};

use super::text::{Detail, line, text};
use super::*;
use crate::rollout::fixture::{
    V1, V2, V3, ago, canary, now, pod, rollout, rollout_with_budgets, set, stored, updated, with_status,
    without_revisions,
};
use crate::rollout::gather::Rollout;
use crate::rollout::picture::State;

fn shown(rollout: &Rollout) -> String {
    let picture = Picture::of(rollout, now());
    let text = text(&picture, None, Detail::Full);
    let widest = text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
    assert!(widest <= 80, "{widest} columns:\n{text}");
    assert!(!text.contains('\u{1b}'), "{text}");
    text
}

/// Pods of one Deployment on the way from one image to the next; the first so many are there.
fn on_the_way(more: Value, pods: usize, done: usize) -> (Value, Vec<Value>, Vec<Value>) {
    let (old, new) = (set(V1, object!({})), set(V2, more));
    let running = object!({"running": {"startedAt": ago(9).to_string()}});
    let pods = (0..pods).map(|at| {
        let pod = pod(&old, "shop", "web", at);
        if at < done { with_status(updated(&old, &new, pod, ago(10)), true, running.clone(), 1) } else { pod }
    });
    let pods = pods.collect();
    (new.clone(), vec![stored(&old, 1, &[], ago(900)), stored(&new, 2, &[], ago(12))], pods)
}

/// A pod that was updated so many seconds ago, with its sidecar in a state.
fn stuck(pod: &Value, to: &Value, seconds: i64, state: &str) -> Value {
    let since = now() - SignedDuration::from_secs(seconds);
    let state = object!({"waiting": {"reason": state}});
    with_status(updated(&set(V1, object!({})), to, pod.clone(), since), false, state, 0)
}

#[test]
fn a_canary_moves_up_to_its_partition() {
    let canary = canary();
    insta::assert_snapshot!("canary", shown(&canary));
    let picture = Picture::of(&canary, now());
    insta::assert_snapshot!("canary_json", format!("{:#}", json::json(&picture)));
    insta::assert_snapshot!("canary_line", line(&picture));
}

#[test]
fn a_canary_rests_at_its_partition() {
    let (set, revisions, pods) = on_the_way(object!({"updateStrategy": {"partition": "90%"}}), 6, 1);
    let rollout = rollout(&set, &revisions, &pods);
    insta::assert_snapshot!("resting", shown(&rollout));
    let picture = Picture::of(&rollout, now());
    assert!(picture.state.is_final() && !picture.state.is_stalled());
    insta::assert_snapshot!("resting_line", line(&picture));
}

#[test]
fn a_rollout_that_moves_says_what_comes_next() {
    let (set, revisions, mut pods) = on_the_way(object!({"updateStrategy": {"maxUnavailable": 2}}), 8, 3);
    pods[3] = stuck(&pods[3], &set, 3, "PodInitializing");
    let rollout = rollout(&set, &revisions, &pods);
    let picture = Picture::of(&rollout, now());
    assert_eq!(picture.state, State::Moving);
    assert_eq!(picture.under_way, ["shop/web-6d4b75cb6d-00003"]);
    assert_eq!(picture.next.len(), 1, "{:?}", picture.next);
    insta::assert_snapshot!("moving", shown(&rollout));
}

#[test]
fn the_first_pod_is_tried_alone() {
    let (set, revisions, mut pods) = on_the_way(object!({"updateStrategy": {"maxUnavailable": "50%"}}), 4, 0);
    pods[0] = stuck(&pods[0], &set, 3, "PodInitializing");
    insta::assert_snapshot!("probing", shown(&rollout(&set, &revisions, &pods)));
}

#[test]
fn an_image_that_cannot_be_pulled_stalls_it_with_the_way_out() {
    let (set, revisions, mut pods) = on_the_way(object!({}), 4, 0);
    pods[0] = stuck(&pods[0], &set, 20, "ImagePullBackOff");
    let stalled = rollout(&set, &revisions, &pods);
    insta::assert_snapshot!("stalled", shown(&stalled));
    let picture = Picture::of(&stalled, now());
    assert_eq!(picture.state, State::Stalled(Reason::ImageUnavailable));
    assert!(picture.state.is_stalled() && picture.state.is_final());
    insta::assert_snapshot!("stalled_line", line(&picture));
    // After a minute the health gate closes as well.
    pods[0] = stuck(&pods[0], &set, 90, "ImagePullBackOff");
    let picture = Picture::of(&rollout(&set, &revisions, &pods), now());
    assert_eq!(picture.state, State::Stalled(Reason::HealthGate));
}

#[test]
fn every_workload_that_is_stalled_is_told() {
    let (set, revisions, _) = on_the_way(object!({"updateStrategy": {"maxUnavailable": "100%", "probe": false}}), 0, 0);
    let old = crate::rollout::fixture::set(V1, object!({}));
    let pods = ["web", "api", "jobs", "mail"].map(|name| stuck(&pod(&old, "shop", name, 0), &set, 20, "ErrImagePull"));
    insta::assert_snapshot!("stalled_workloads", shown(&rollout(&set, &revisions, &pods)));
}

#[test]
fn what_holds_a_rollout_is_told() {
    for (name, more) in [
        ("paused", object!({"updateStrategy": {"paused": true}})),
        ("not_updated", object!({"updateStrategy": {"type": "NotUpdate"}})),
        ("observing", object!({"mode": "Observe"})),
        ("selected", object!({"updateStrategy": {"selector": {"matchLabels": {"canary": "yes"}}}})),
    ] {
        let (set, revisions, pods) = on_the_way(more, 3, 1);
        insta::assert_snapshot!(name, shown(&rollout(&set, &revisions, &pods)));
    }
    let (set, revisions, pods) = on_the_way(object!({}), 3, 1);
    let budget = object!({"metadata": {"namespace": "shop", "name": "web"}, "spec": {"selector": {"matchLabels": {"app": "web"}}},
        "status": {"disruptionsAllowed": 0}});
    insta::assert_snapshot!("budget", shown(&rollout_with_budgets(&set, &revisions, &pods, &[budget])));
    // One that selects nothing holds nothing.
    let budget =
        object!({"metadata": {"namespace": "shop", "name": "web"}, "spec": {}, "status": {"disruptionsAllowed": 0}});
    let picture = Picture::of(&rollout_with_budgets(&set, &revisions, &pods, &[budget]), now());
    assert_eq!(picture.state, State::Moving);
    let mut off = rollout(&set, &revisions, &pods);
    off.world.given.facts.is_off = true;
    insta::assert_snapshot!("switched_off", shown(&off));
}

#[test]
fn pods_that_cannot_follow_are_listed_with_the_fields() {
    let more = object!({"initContainers": [{"name": "proxy", "image": V2, "restartPolicy": "Always", "env": [{"name": "A", "value": "b"}],
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}}}]});
    let (set, revisions, pods) = on_the_way(more, 3, 1);
    insta::assert_snapshot!("recreate", shown(&rollout(&set, &revisions, &pods)));
}

#[test]
fn what_is_done_is_done() {
    let (set, revisions, pods) = on_the_way(object!({}), 3, 3);
    let rollout = rollout(&set, &revisions, &pods);
    insta::assert_snapshot!("done", shown(&rollout));
    assert_eq!(Picture::of(&rollout, now()).state, State::Done);
    insta::assert_snapshot!("without_pods", shown(&crate::rollout::fixture::rollout(&set, &revisions, &[])));
    insta::assert_snapshot!("without_a_controller", shown(&without_revisions()));
}

#[test]
fn what_the_controller_knows_more_is_said() {
    let (mut set, revisions, pods) = on_the_way(object!({}), 3, 1);
    let told = |set: &Value| Picture::of(&rollout(set, &revisions, &pods), now()).controller;
    assert_eq!(told(&set), [""; 0]);
    set["status"] = object!({});
    assert_eq!(told(&set), ["the controller has not told anything of this set yet: does it run?"]);
    set["status"] = object!({"observedGeneration": 2});
    assert_eq!(told(&set), ["the controller has not seen the last edit yet"]);
    set["status"] = object!({"observedGeneration": 3,
        "conditions": [{"type": "Stalled", "status": "True", "reason": "ImageUnavailable", "message": "no such image"}]});
    assert_eq!(told(&set), ["the controller says that it is stalled: no such image"]);
    set["status"]["conditions"][0]["status"] = object!("False");
    assert_eq!(told(&set), [""; 0]);
}

#[test]
fn many_workloads_are_told_in_few_lines() {
    let (old, new) = (set(V2, object!({})), set(V3, object!({})));
    let mut pods = Vec::new();
    for namespace in 0..4 {
        for workload in 0..9 {
            let of = if (namespace + workload) % 3 == 0 { &old } else { &new };
            let name = format!("a-workload-with-quite-a-long-name-{workload}");
            pods.extend((0..2).map(|at| pod(of, &format!("team-{namespace}"), &name, at)));
        }
    }
    let rollout = rollout(&new, &[stored(&old, 1, &[], ago(90)), stored(&new, 2, &[], ago(9))], &pods);
    let picture = Picture::of(&rollout, now());
    insta::assert_snapshot!("in_30_lines", text(&picture, None, Detail::Lines(30)));
    insta::assert_snapshot!("in_16_lines", text(&picture, None, Detail::Lines(16)));
    for lines in 1..70 {
        let text = text(&picture, None, Detail::Lines(lines));
        assert!(text.lines().count() <= lines, "{lines}:\n{text}");
        let pods: usize = text
            .lines()
            .filter(|line| line.starts_with("  team-") || line.starts_with("  and "))
            .filter_map(|line| line.split_whitespace().find_map(|word| word.split_once('/')?.1.parse::<usize>().ok()))
            .sum();
        // No pod is lost where the tree has room at all.
        assert!(lines < 12 || pods == 72, "{lines}: {pods}\n{text}");
    }
}
