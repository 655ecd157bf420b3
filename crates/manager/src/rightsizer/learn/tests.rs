use pillion_api::{LabelSelector, VerticalPodAutoscaler};
use pillion_rightsize::{Amounts, RawPod, Usage};
use serde_json::{Value, json};

use super::*;

const MEBIBYTE: i64 = 1 << 20;
const MINUTE: Duration = Duration::from_mins(1);

fn at(minutes: i64) -> Timestamp {
    Timestamp::from_second(1_767_225_600 + minutes * 60).unwrap()
}

fn settings(native_sidecars: bool) -> Settings {
    Settings { native_sidecars, ..Settings::default() }
}

fn key(name: &str) -> Key {
    Key::new("shop", name)
}

fn autoscaler(name: &str) -> Arc<Autoscaler> {
    let object: VerticalPodAutoscaler = serde_json::from_value(json!({
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}},
    }))
    .unwrap();
    Arc::new(Autoscaler::read(&object).unwrap())
}

fn selector(app: &str) -> Selector {
    let stored: LabelSelector = serde_json::from_value(json!({"matchLabels": {"app": app}})).unwrap();
    Selector::compile(&stored).unwrap()
}

fn template(containers: &[(&str, ContainerType)]) -> Vec<(Box<str>, ContainerType)> {
    containers.iter().map(|(name, kind)| ((*name).into(), *kind)).collect()
}

/// A pod with an app, a native sidecar and a plain init container.
fn pod(name: &str, app: &str, oom: Option<(&str, i64)>) -> Pod {
    let status = |container: &str| -> Value {
        let ended = oom.filter(|(own, _)| *own == container).map(|(_, minutes)| {
            json!({"terminated": {"reason": "OOMKilled", "startedAt": at(0).to_string(), "finishedAt": at(minutes).to_string()}})
        });
        json!({"name": container, "restartCount": u32::from(ended.is_some()), "state": {"running": {"startedAt": at(0).to_string()}},
            "lastState": ended.unwrap_or_else(|| json!({}))})
    };
    let resources = json!({"requests": {"memory": "200Mi"}});
    let raw: RawPod = serde_json::from_value(json!({
        "metadata": {"name": name, "namespace": "shop", "uid": format!("u-{name}"), "labels": {"app": app, "pod-template-hash": name},
            "creationTimestamp": at(0).to_string()},
        "spec": {"nodeName": "n", "containers": [{"name": "app", "resources": resources}],
            "initContainers": [{"name": "setup"}, {"name": "proxy", "restartPolicy": "Always", "resources": resources}]},
        "status": {"phase": "Running", "containerStatuses": [status("app")], "initContainerStatuses": [status("setup"), status("proxy")]},
    }))
    .unwrap();
    Pod::read(raw)
}

/// A learner with one autoscaler that has its target.
fn learner(native_sidecars: bool) -> Learner {
    let mut learner = Learner::new(settings(native_sidecars));
    let containers = template(&[("proxy", ContainerType::NativeSidecar), ("app", ContainerType::App)]);
    assert!(learner.set(&key("web"), autoscaler("web"), Some((&selector("web"), &containers))));
    learner
}

fn take(learner: &mut Learner, pod: &str, container: &str, minutes: i64, millicores: i64) {
    let usage = Usage { at: at(minutes), cpu: Some(millicores), memory: Some(50 * MEBIBYTE) };
    learner.take(&Sample { namespace: "shop", pod, container, usage });
}

fn recommended(learner: &Learner) -> Vec<String> {
    let findings = learner.findings(&key("web")).unwrap();
    findings.recommendation.containers.into_iter().map(|own| own.container).collect()
}

fn samples(learner: &Learner) -> Vec<(String, u64)> {
    let slots = learner.aggregates.iter().flatten();
    slots.map(|slot| (format!("{}/{}", slot.autoscaler, slot.container), slot.aggregate.samples())).collect()
}

#[test]
fn samples_of_all_pods_of_an_autoscaler_come_together_by_container_whatever_their_labels() {
    let mut learner = learner(true);
    for name in ["a", "b"] {
        learner.observe(&key(name), Some(&pod(name, "web", None)));
        for container in ["app", "proxy", "setup", "unknown"] {
            take(&mut learner, name, container, 1, 100);
        }
    }
    // Samples of pods that nobody asked about are not wanted.
    learner.observe(&key("c"), Some(&pod("c", "other", None)));
    assert!(learner.wants("shop", "a") && !learner.wants("shop", "c") && !learner.wants("other", "a"));
    take(&mut learner, "c", "app", 1, 100);
    let own = |container: &str| (format!("shop/web/{container}"), 2);
    assert_eq!(samples(&learner), [own("proxy"), own("app")]);
    assert_eq!(recommended(&learner), ["app", "proxy"]);
    let findings = learner.findings(&key("web")).unwrap();
    assert_eq!(
        (findings.pods, findings.sidecars, findings.little),
        (2, vec!["proxy".to_owned()], vec!["app".to_owned(), "proxy".to_owned()])
    );
    assert_eq!(learner.memory_used("shop", "a", "app"), Some(50 * MEBIBYTE));
    assert_eq!(learner.memory_used("shop", "a", "setup"), None);
}

#[test]
fn without_a_sample_nothing_is_recommended() {
    let mut learner = learner(true);
    learner.observe(&key("a"), Some(&pod("a", "web", None)));
    assert_eq!(recommended(&learner), Vec::<String>::new());
    take(&mut learner, "a", "app", 1, 100);
    assert_eq!(recommended(&learner), ["app"]);
}

#[test]
fn with_the_gate_off_sidecars_are_neither_learned_of_nor_recommended_nor_kept() {
    let mut on = learner(true);
    on.observe(&key("a"), Some(&pod("a", "web", None)));
    take(&mut on, "a", "app", 1, 100);
    take(&mut on, "a", "proxy", 1, 100);
    let kept = on.due(at(2), MINUTE);
    assert_eq!(kept.len(), 2);

    let mut off = learner(false);
    for due in &kept {
        off.load(&key("web"), &due.container, &due.status).unwrap();
    }
    let before: Vec<_> = samples(&off);
    // Neither while there are pods nor while there are none.
    assert_eq!(recommended(&off), ["app"]);
    off.observe(&key("a"), Some(&pod("a", "web", Some(("proxy", 1)))));
    take(&mut off, "a", "proxy", 3, 100);
    assert_eq!(off.findings(&key("web")).unwrap().stale, ["app"]);
    assert_eq!((recommended(&off), samples(&off)), (vec!["app".to_owned()], before));
    assert!(off.due(at(60), MINUTE).iter().all(|due| &*due.container != "proxy"));
    take(&mut off, "a", "app", 3, 100);
    assert_eq!(off.findings(&key("web")).unwrap().stale, Vec::<String>::new());
    let target = |learner: &Learner| learner.findings(&key("web")).unwrap().recommendation.of("app").unwrap().target;
    // The floor of the app is its own.
    assert_eq!(target(&on), target(&off));
    assert_eq!(target(&off), Amounts { cpu: Some(126), memory: Some(250 * MEBIBYTE) });

    // And on again: it goes on with what it was.
    let mut again = learner(true);
    for due in &kept {
        again.load(&key("web"), &due.container, &due.status).unwrap();
    }
    again.observe(&key("a"), Some(&pod("a", "web", None)));
    assert_eq!(recommended(&again), ["app", "proxy"]);
}

#[test]
fn a_target_that_cannot_be_found_for_a_while_loses_nothing() {
    let mut learner = learner(true);
    learner.observe(&key("a"), Some(&pod("a", "web", None)));
    take(&mut learner, "a", "app", 1, 100);
    assert!(!learner.set(&key("web"), autoscaler("web"), None));
    take(&mut learner, "a", "app", 2, 100);
    assert_eq!(samples(&learner)[1], ("shop/web/app".to_owned(), 2));
    assert_eq!(learner.findings(&key("web")).unwrap().pods, 1);
}

#[test]
fn another_selector_takes_other_pods_and_keeps_what_was_learned() {
    let mut learner = learner(true);
    let (a, b) = (pod("a", "web", None), pod("b", "api", None));
    learner.observe(&key("a"), Some(&a));
    learner.observe(&key("b"), Some(&b));
    take(&mut learner, "a", "app", 1, 100);
    assert!(learner.set(&key("web"), autoscaler("web"), Some((&selector("api"), &[]))));
    for (name, pod) in [("a", &a), ("b", &b)] {
        learner.observe(&key(name), Some(pod));
    }
    assert!(!learner.wants("shop", "a") && learner.wants("shop", "b"));
    assert_eq!(samples(&learner)[1], ("shop/web/app".to_owned(), 1));
}

#[test]
fn a_pod_of_two_autoscalers_counts_for_both() {
    let mut learner = learner(true);
    learner.set(&key("also"), autoscaler("also"), Some((&selector("web"), &[])));
    learner.observe(&key("a"), Some(&pod("a", "web", None)));
    take(&mut learner, "a", "app", 1, 100);
    let mut counted: Vec<_> = samples(&learner).into_iter().filter(|(_, samples)| *samples == 1).collect();
    counted.sort();
    assert_eq!(counted, [("shop/also/app".to_owned(), 1), ("shop/web/app".to_owned(), 1)]);
}

#[test]
fn an_end_by_lack_of_memory_counts_once_for_apps_and_sidecars() {
    let target = |learner: &Learner, container: &str| {
        learner.findings(&key("web")).unwrap().recommendation.of(container).map(|own| own.target.memory.unwrap())
    };
    for container in ["app", "proxy"] {
        let mut learner = learner(true);
        learner.observe(&key("a"), Some(&pod("a", "web", None)));
        take(&mut learner, "a", container, 1, 100);
        let before = target(&learner, container).unwrap();
        learner.observe(&key("a"), Some(&pod("a", "web", Some((container, 2)))));
        let after = target(&learner, container).unwrap();
        // 200Mi were asked for, and a hundred more are taken to be needed.
        assert!(before <= 250 * MEBIBYTE && after > 300 * MEBIBYTE, "{container}: {before} {after}");
        let due = learner.due(at(3), MINUTE);
        learner.observe(&key("a"), Some(&pod("a", "web", Some((container, 2)))));
        assert_eq!(learner.due(at(3), MINUTE), due);
    }
}

#[test]
fn an_end_while_nobody_looked_counts_unless_it_is_older_than_what_is_kept() {
    let kept = |ended: i64, written: i64| {
        let mut first = learner(true);
        first.observe(&key("a"), Some(&pod("a", "web", None)));
        take(&mut first, "a", "app", 1, 100);
        let mut due = first.due(at(2), MINUTE).remove(0);
        due.status.last_update_time = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(at(written)));
        let mut next = learner(true);
        next.load(&key("web"), "app", &due.status).unwrap();
        next.observe(&key("a"), Some(&pod("a", "web", Some(("app", ended)))));
        next.due(at(written), MINUTE).len() == 1
    };
    let day = 24 * 60;
    assert!(kept(5, 3));
    // Its window may have been open when the checkpoint was written, so it is not in there.
    assert!(kept(5, 10));
    assert!(!kept(5, 5 + day));
}

#[test]
fn checkpoints_are_due_where_they_are_new_or_old_or_a_tenth_behind() {
    let mut learner = learner(true);
    let ten = Duration::from_mins(10);
    learner.observe(&key("a"), Some(&pod("a", "web", None)));
    assert_eq!(learner.due(at(0), ten), []);
    for minute in 1..=100 {
        take(&mut learner, "a", "app", minute, 100);
    }
    let due = learner.due(at(100), ten).remove(0);
    assert_eq!(due.status.total_samples_count, Some(100));
    learner.saved(&due, at(100));
    // The same again tells nothing new.
    take(&mut learner, "a", "app", 100, 100);
    assert_eq!(learner.due(at(120), ten), []);
    take(&mut learner, "a", "app", 101, 100);
    assert_eq!(learner.due(at(101), ten), []);
    assert_eq!(learner.due(at(110), ten).len(), 1);
    for minute in 102..=110 {
        take(&mut learner, "a", "app", minute, 100);
    }
    assert_eq!(learner.due(at(109), ten), []);
    take(&mut learner, "a", "app", 111, 100);
    assert_eq!(learner.due(at(109), ten).len(), 1);
}

#[test]
fn numbers_of_what_is_gone_are_given_to_others_without_a_trace() {
    let mut learner = learner(true);
    learner.observe(&key("a"), Some(&pod("a", "web", None)));
    take(&mut learner, "a", "app", 1, 100);
    learner.remove(&key("web"));
    assert_eq!(learner.counts(), (0, 0));
    learner.set(&key("api"), autoscaler("api"), Some((&selector("api"), &[])));
    learner.observe(&key("b"), Some(&pod("b", "api", None)));
    take(&mut learner, "a", "app", 2, 100);
    assert_eq!(samples(&learner), [("shop/api/app".to_owned(), 0), ("shop/api/proxy".to_owned(), 0)]);
    learner.observe(&key("a"), None);
    assert_eq!(learner.findings(&key("api")).unwrap().pods, 1);
}

#[test]
fn what_nobody_has_seen_for_eight_days_is_forgotten_and_a_container_that_left_is_not_recommended() {
    let mut learner = learner(true);
    learner.observe(&key("a"), Some(&pod("a", "web", None)));
    take(&mut learner, "a", "app", 1, 100);
    let mut renamed = pod("b", "web", None);
    for container in &mut renamed.containers {
        if &*container.name == "app" {
            container.name = "main".into();
        }
    }
    learner.observe(&key("a"), None);
    assert_eq!(recommended(&learner), ["app"]);
    learner.observe(&key("b"), Some(&renamed));
    take(&mut learner, "b", "main", 1, 100);
    assert_eq!(recommended(&learner), ["main"]);
    let days = |days: i64| at(days * 24 * 60 + 1);
    learner.expire(days(7));
    assert_eq!(learner.counts(), (1, 3));
    learner.expire(days(8));
    // The containers of the pod that runs stay.
    assert_eq!(learner.counts(), (1, 2));
}
