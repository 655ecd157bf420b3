//! An autoscaler explained, as people and programs see it.

use pillion_api::VerticalPodAutoscalerCheckpointStatus;
use pillion_rightsize::{Aggregate, Instance, Oom, Settings, Usage};
use serde_json::{Value, json};

use super::*;

const MEBI: i64 = 1 << 20;

fn at(minute: i64) -> Timestamp {
    Timestamp::from_second(1_762_300_800 + 60 * minute).unwrap()
}

/// What an hour of samples leaves behind.
fn checkpoint(container: &str, cpu: fn(i64) -> i64, memory: fn(i64) -> i64, oom: Option<i64>) -> Value {
    let settings = Settings::default();
    let mut aggregate = Aggregate::new(at(0), &settings);
    let mut instance = Instance::default();
    // Three days, a sample every ten minutes.
    for minute in (0..3 * 24 * 60).step_by(10) {
        let usage = Usage { at: at(minute), cpu: Some(cpu(minute)), memory: Some(memory(minute)) };
        aggregate.add(&mut instance, &usage, &settings);
    }
    if let Some(memory_used) = oom {
        aggregate.add_oom(&mut instance, &Oom { at: at(3 * 24 * 60 - 5), memory_used }, &settings);
    }
    let mut status: VerticalPodAutoscalerCheckpointStatus = aggregate.save([], at(3 * 24 * 60));
    status.last_update_time = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(at(3 * 24 * 60)));
    json!({"metadata": {"name": format!("web-{container}"), "namespace": "shop"},
        "spec": {"vpaObjectName": "web", "containerName": container}, "status": status})
}

fn autoscaler() -> Value {
    let published = |name: &str, lower: [&str; 2], target: [&str; 2], upper: [&str; 2]| {
        let list = |amounts: [&str; 2]| json!({"cpu": amounts[0], "memory": amounts[1]});
        json!({"containerName": name, "lowerBound": list(lower), "target": list(target), "upperBound": list(upper),
            "uncappedTarget": list(target)})
    };
    json!({
        "apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "updatePolicy": {"updateMode": "InPlaceOrRecreate"}, "recommenders": [{"name": "pillion"}],
            "resourcePolicy": {"containerPolicies": [{"containerName": "*", "maxAllowed": {"cpu": "300m"}}]}},
        "status": {
            "conditions": [{"type": "RecommendationProvided", "status": "True"},
                {"type": "pillion.dev/Applying", "status": "False", "reason": "WebhookDown",
                    "message": "no webhook replica has renewed its lease for a minute"}],
            "recommendation": {"containerRecommendations": [
                published("app", ["182m", "273Mi"], ["300m", "410Mi"], ["300m", "1Gi"]),
                published("proxy", ["12m", "40Mi"], ["24m", "64Mi"], ["40m", "100Mi"]),
            ]},
        },
    })
}

fn pod(number: u8) -> Value {
    let request =
        |cpu: &str, memory: &str| json!({"requests": {"cpu": cpu, "memory": memory}, "limits": {"memory": memory}});
    json!({
        "metadata": {"name": format!("web-5d-{number}"), "namespace": "shop", "labels": {"pod-template-hash": "5d"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5d", "controller": true}]},
        "spec": {
            "initContainers": [
                {"name": "setup", "resources": request("2", "2Gi")},
                {"name": "proxy", "restartPolicy": "Always", "resources": request("100m", "128Mi")},
            ],
            "containers": [{"name": "app", "resources": request("500m", "256Mi")}, {"name": "fresh"}],
        },
        "status": {"phase": "Running", "containerStatuses": [{"name": "app", "lastState": {"terminated":
            {"reason": if number == 0 { "OOMKilled" } else { "Completed" }, "finishedAt": "2025-11-08T00:00:00Z"}}}]},
    })
}

fn subject() -> Subject {
    let cpu = |minute: i64| 80 + (minute / 10 * 37) % 210;
    let memory = |minute: i64| (200 + (minute / 60 * 13) % 40) * MEBI;
    let checkpoints = [
        checkpoint("app", cpu, memory, Some(256 * MEBI)),
        checkpoint("proxy", |minute| 8 + (minute / 10 * 3) % 14, |_| 50 * MEBI, None),
        checkpoint("gone", |_| 5, |_| MEBI, None),
        json!({"spec": {"vpaObjectName": "other", "containerName": "app"}, "status": {"version": "v3"}}),
    ];
    let pods: Vec<Value> = (0..3).map(pod).collect();
    Subject::read(&autoscaler(), &checkpoints, &pods, at(3 * 24 * 60 + 4)).unwrap()
}

#[test]
fn every_container_is_explained_in_eighty_columns() {
    let text = text::text(&subject(), 80);
    assert_eq!(text.lines().find(|line| line.chars().count() > 80), None);
    insta::assert_snapshot!(text);
}

#[test]
fn one_container_is_explained_in_a_hundred_and_twenty_columns() {
    let mut subject = subject();
    subject.keep("proxy").unwrap();
    let text = text::text(&subject, 120);
    assert_eq!(text.lines().find(|line| line.chars().count() > 120), None);
    insta::assert_snapshot!(text);
}

#[test]
fn a_container_that_nobody_knows_is_wrong_usage() {
    assert_eq!(
        subject().keep("db"),
        Err("VerticalPodAutoscaler shop/web knows no container db: it knows app, fresh, gone, proxy".to_owned())
    );
}

#[test]
fn programs_get_steps_bars_and_what_is_published() {
    let mut subject = subject();
    subject.keep("proxy").unwrap();
    insta::assert_snapshot!(format!("{:#}", json::json(&subject)));
}

#[test]
fn the_picture_has_a_panel_for_each_resource() {
    let mut subject = subject();
    subject.keep("app").unwrap();
    let svg = svg::draw(&subject);
    assert_eq!(svg.matches("<g ").count(), 2);
    insta::assert_snapshot!(svg);
}

#[test]
fn a_checkpoint_of_another_form_is_said_and_what_is_published_is_shown() {
    let checkpoint = json!({"spec": {"vpaObjectName": "web", "containerName": "app"}, "status": {"version": "v2"}});
    let subject = Subject::read(&autoscaler(), &[checkpoint], &[], at(0)).unwrap();
    insta::assert_snapshot!(text::text(&subject, 80));
    assert_eq!(svg::draw(&subject).matches("no samples are kept yet").count(), 1);
}
