//! What an edit of a set would do to pods and templates.

use pillion_api::{Meaning, Reason};
use pillion_inject::{Cause, Counts, Edit, Effect, Impact, Installation, Namespace, SetIndex, Subject};
use serde_json::{Value, json};

use crate::api_server;
use crate::asking::{ask, image, joined, one_app, plain_set, pod, set, with};

/// The effect on a pod to be created, on the same pod once it is there, and on the same after the API server read it.
fn effect(before: Option<&Meaning>, after: Option<&Meaning>, others: &[Meaning], pod: &Value) -> Effect {
    let index = SetIndex::new(others.iter().cloned());
    let name = &before.or(after).unwrap().name;
    let edit = Edit::new(name, before, after, &index);
    let namespace = Namespace::named("shop");
    let effect = edit.effect(pod, &namespace, Installation::default());

    let sets: Vec<Meaning> = others.iter().chain(before).cloned().collect();
    if let Some(injected) = ask(pod, &sets).pod {
        for existing in [injected.clone(), api_server::returned(&injected)] {
            let found = edit.effect_on_existing(&existing, &namespace, Installation::default());
            assert_eq!(found, effect, "a pod that exists is judged as the pod it was: {existing:#}");
        }
    }
    effect
}

fn cause(set: &str, reason: Reason, message: &str) -> Cause {
    Cause { set: set.to_owned(), reason, message: message.to_owned() }
}

#[test]
fn a_pod_gains_what_a_new_set_adds_and_loses_what_a_deleted_one_added() {
    let mesh = plain_set("mesh", "proxy");
    assert_eq!(effect(None, Some(&mesh), &[], &one_app()), Effect::Gains);
    assert_eq!(effect(Some(&mesh), None, &[], &one_app()), Effect::Loses);
    assert_eq!(effect(Some(&mesh), Some(&mesh), &[], &one_app()), Effect::Unaffected);
    let other = set("mesh", json!({"selector": {"matchLabels": {"app": "db"}}, "containers": [image("proxy")]}));
    assert_eq!(effect(Some(&mesh), Some(&other), &[], &one_app()), Effect::Loses);
    assert_eq!(effect(None, Some(&other), &[], &one_app()), Effect::Unaffected);
}

#[test]
fn a_pod_changes_with_whatever_of_the_set_it_gets() {
    let spec = json!({
        "containers": [with("proxy", json!({"volumeMounts": [{"name": "spool", "mountPath": "/spool"}]}))],
        "volumes": [{"name": "spool", "emptyDir": {"sizeLimit": "1024Mi"}}],
        "appVolumeMounts": [{"volume": "spool", "path": "/var/spool"}],
        "labels": {"mesh": "1"},
        "patchPodMetadata": [{"patchPolicy": "Overwrite", "annotations": {"note": "1"}},
            {"patchPolicy": "Retain", "annotations": {"kept": "1"}},
            {"patchPolicy": "MergePatchJson", "annotations": {"merged": "{\"a\":1}"}}],
        "imagePullSecrets": [{"name": "registry"}],
        "serviceAccountName": "mesh",
        "shareProcessNamespace": true,
    });
    let mesh = set("mesh", spec.clone());
    let own = pod(json!({"containers": [image("app")], "imagePullSecrets": [{"name": "own"}]}));
    let own = joined(own, json!({"metadata": {"labels": {"app": "web"}, "annotations": {"merged": "{\"b\":2}"}}}));
    assert_eq!(effect(Some(&mesh), None, &[], &own), Effect::Loses);
    for (path, value) in [
        ("/containers/0/image", json!("registry.example/proxy:2")),
        ("/volumes/0/emptyDir/sizeLimit", json!("2Gi")),
        ("/appVolumeMounts/0/path", json!("/spool")),
        ("/labels/mesh", json!("2")),
        ("/patchPodMetadata/0/annotations/note", json!("2")),
        ("/patchPodMetadata/1/annotations/kept", json!("2")),
        ("/patchPodMetadata/2/annotations/merged", json!("{\"a\":2}")),
        ("/imagePullSecrets/0/name", json!("registry-2")),
        ("/serviceAccountName", json!("mesh-2")),
        ("/shareProcessNamespace", json!(false)),
    ] {
        let mut edited = spec.clone();
        *edited.pointer_mut(path).unwrap() = value;
        assert_eq!(effect(Some(&mesh), Some(&set("mesh", edited)), &[], &own), Effect::Changes, "{path}");
    }
    // What says the same in other words, and what pods do not get, changes nothing.
    for (path, value) in [
        ("/volumes/0/emptyDir/sizeLimit", json!("1024Mi")),
        ("/updateStrategy", json!({"paused": true})),
        ("/allowOptOut", json!(true)),
    ] {
        let mut edited = spec.clone();
        let (parent, field) = path.rsplit_once('/').unwrap();
        edited.pointer_mut(parent).unwrap()[field] = value;
        assert_eq!(effect(Some(&mesh), Some(&set("mesh", edited)), &[], &own), Effect::Unaffected, "{path}");
    }
}

#[test]
fn a_pod_may_be_refused_and_the_set_that_refuses_it_is_named() {
    let fine = plain_set("mesh", "proxy");
    let clash = plain_set("mesh", "app");
    let own = "the pod has a container app of its own";
    let refused = cause("mesh", Reason::ContainerClash, own);
    assert_eq!(effect(Some(&fine), Some(&clash), &[], &one_app()), Effect::Refused(refused.clone()));
    assert_eq!(effect(None, Some(&clash), &[], &one_app()), Effect::Refused(refused.clone()));
    assert_eq!(effect(Some(&clash), Some(&clash), &[], &one_app()), Effect::StillRefused(refused));
    assert_eq!(effect(Some(&clash), Some(&fine), &[], &one_app()), Effect::Admitted);
    assert_eq!(effect(Some(&clash), None, &[], &one_app()), Effect::Admitted);

    // A set that comes first in the order of names takes the name of the container away from another.
    let taken = cause("mesh", Reason::SetsClash, "set agent adds container proxy too");
    let others = [fine];
    let found = effect(None, Some(&plain_set("agent", "proxy")), &others, &one_app());
    let Effect::Refused(found) = found else { panic!("{found:?}") };
    assert_eq!((found.set, found.reason), (taken.set, taken.reason));
}

#[test]
fn a_set_may_be_left_out_where_its_policy_is_ignore() {
    let fine = plain_set("mesh", "proxy");
    let clash = set("mesh", json!({"containers": [image("app")], "failurePolicy": "Ignore"}));
    let left_out = Effect::LeftOut(cause("mesh", Reason::ContainerClash, "the pod has a container app of its own"));
    assert_eq!(effect(Some(&fine), Some(&clash), &[], &one_app()), left_out);
    assert_eq!(effect(None, Some(&clash), &[], &one_app()), left_out);
    assert_eq!(effect(Some(&clash), Some(&clash), &[], &one_app()), Effect::Unaffected);
    assert_eq!(effect(Some(&clash), Some(&fine), &[], &one_app()), Effect::Gains);
}

#[test]
fn a_set_that_observes_or_is_paused_gives_nothing() {
    let active = plain_set("mesh", "proxy");
    let observing = set("mesh", json!({"containers": [image("proxy")], "mode": "Observe"}));
    let paused = set("mesh", json!({"containers": [image("proxy")], "injectionStrategy": {"paused": true}}));
    for idle in [observing, paused] {
        assert_eq!(effect(None, Some(&idle), &[], &one_app()), Effect::Unaffected);
        assert_eq!(effect(Some(&idle), Some(&active), &[], &one_app()), Effect::Gains);
        assert_eq!(effect(Some(&active), Some(&idle), &[], &one_app()), Effect::Loses);
    }
}

#[test]
fn another_set_may_be_what_changes() {
    // The one that is left out now has the volume; without the edit it had none of its own to give.
    let spool = |name: &str, container: &str, size: &str| {
        let container = with(container, json!({"volumeMounts": [{"name": "spool", "mountPath": "/spool"}]}));
        let volume = json!({"name": "spool", "emptyDir": {"sizeLimit": size}});
        set(name, json!({"containers": [container], "volumes": [volume], "failurePolicy": "Ignore"}))
    };
    let others = [spool("mesh", "proxy", "1Gi")];
    let before = set("agent", json!({"containers": [image("agent")]}));
    let after = spool("agent", "agent", "2Gi");
    assert_eq!(effect(Some(&before), Some(&after), &others, &one_app()), Effect::Changes);
    assert_eq!(effect(Some(&after), None, &others, &one_app()), Effect::Loses);
}

#[test]
fn what_must_have_been_the_pods_own_stays() {
    // The label the set asks for, and a volume that the app mounts.
    let mounts = json!({"volumeMounts": [{"name": "spool", "mountPath": "/spool"}]});
    let volumes = json!([{"name": "spool", "emptyDir": {}}]);
    let spec = json!({"containers": [with("proxy", mounts.clone())], "volumes": volumes, "labels": {"app": "web"}});
    let own = pod(json!({"containers": [with("app", mounts.clone())], "volumes": volumes}));
    let mesh = set("mesh", spec);
    assert_eq!(effect(Some(&mesh), None, &[], &own), Effect::Loses);
    let no_volume = set("mesh", json!({"containers": [with("proxy", mounts)], "labels": {"app": "web"}}));
    assert_eq!(effect(Some(&mesh), Some(&no_volume), &[], &own), Effect::Unaffected);
}

#[test]
fn what_another_product_injected_is_not_taken_out() {
    let mut own = one_app();
    let injected = with("proxy", json!({"env": [{"name": "IS_INJECTED", "value": "true"}]}));
    own["spec"]["containers"].as_array_mut().unwrap().push(injected);
    let edit_of = |index: &SetIndex, own: &Value| {
        let mesh = plain_set("mesh", "proxy");
        Edit::new("mesh", None, Some(&mesh), index).effect_on_existing(
            own,
            &Namespace::named("shop"),
            Installation::default(),
        )
    };
    let message = "the pod has a container proxy that was injected, but not by this set";
    let refused = Effect::Refused(cause("mesh", Reason::ContainerClash, message));
    assert_eq!(edit_of(&SetIndex::default(), &own), refused);
}

#[test]
fn counts_are_kept_apart_and_examples_do_not_depend_on_the_order() {
    let subject =
        |kind: &str, name: &str| Subject { namespace: "shop".to_owned(), kind: kind.to_owned(), name: name.to_owned() };
    let refused = Effect::Refused(cause("mesh", Reason::NoTarget, "no container"));
    let mut all: Vec<(Subject, Effect)> = vec![
        (subject("Pod", "a"), Effect::Gains),
        (subject("Pod", "b"), Effect::Gains),
        (subject("Pod", "c"), Effect::Gains),
        (subject("Pod", "d"), Effect::Unaffected),
        (subject("Deployment", "web"), refused.clone()),
        (subject("Job", "once"), Effect::Loses),
        (subject("StatefulSet", "db"), Effect::Gains),
    ];
    let sum = |all: &[(Subject, Effect)]| {
        let mut impact = Impact::new(2);
        for (subject, effect) in all {
            impact.add(subject.clone(), effect.clone());
        }
        impact
    };
    let impact = sum(&all);
    assert_eq!(impact.pods, Counts { gains: 3, unaffected: 1, ..Counts::default() });
    assert_eq!(impact.templates, Counts { refused: 1, loses: 1, gains: 1, ..Counts::default() });
    assert_eq!((impact.pods.total(), impact.pods.affected()), (4, 3));
    assert_eq!((impact.templates.total(), impact.templates.affected()), (3, 3));
    assert!(impact.refuses());
    let named: Vec<(&str, &Effect)> =
        impact.examples().map(|example| (example.subject.name.as_str(), example.effect)).collect();
    assert_eq!(named, [("web", &refused), ("once", &Effect::Loses), ("db", &Effect::Gains), ("a", &Effect::Gains)]);
    all.reverse();
    assert_eq!(sum(&all), impact);
    all.retain(|(_, effect)| *effect != refused);
    assert!(!sum(&all).refuses());
}
