//! Which sets cannot both be applied to one pod.

use pillion_api::{Meaning, clashes, review};
use serde_json::{Value, json};

use crate::sets::good;

fn set(name: &str, patch: &Value) -> Meaning {
    let mut object = good(name);
    object["spec"]["containers"][0]["name"] = format!("of-{name}").into();
    json_patch::merge(&mut object, patch);
    let review = review(&object);
    review.meaning.unwrap_or_else(|| unreachable!("{:?}", review.problems))
}

/// Place in the first, place in the second, and what is said.
fn between(one: &Value, other: &Value) -> Vec<(String, String, String)> {
    let (one, other) = (set("one", one), set("two", other));
    let found = clashes(&one, [&other]);
    assert!(
        found.iter().all(|clash| clash.other == "two" && ["PL128", "PL160"].contains(&clash.problem.reason.code()))
    );
    // The other set sees the same from its side.
    let back = clashes(&other, [&one]);
    let places = |it: &pillion_api::Clash| (it.problem.path.to_string(), it.path_in_other.to_string());
    let mut turned: Vec<_> = back.iter().map(places).map(|(path, other)| (other, path)).collect();
    let mut straight: Vec<_> = found.iter().map(places).collect();
    turned.sort();
    straight.sort();
    assert_eq!(straight, turned);
    found
        .into_iter()
        .map(|it| (it.problem.path.to_string(), it.path_in_other.to_string(), it.problem.message))
        .collect()
}

fn places(one: &Value, other: &Value) -> Vec<(String, String)> {
    between(one, other).into_iter().map(|(path, other, _)| (path, other)).collect()
}

fn spec(spec: &Value) -> Value {
    json!({"spec": spec})
}

fn container(name: &str) -> Value {
    json!({"name": name, "image": "a:1", "volumeMounts": [{"name": "v", "mountPath": "/v"}]})
}

#[test]
fn what_both_sets_add_is_told_with_both_places() {
    let volume = |content: &str| json!({"name": "v", content: {}});
    let annotation = |policy: &str, value: &str| json!([{"annotations": {"a": value}, "patchPolicy": policy}]);
    let mount = |pattern: &str| {
        json!({"containers": [{"name": "x", "image": "a:1"}], "volumes": [{"name": "v", "emptyDir": {}}],
            "appVolumeMounts": [{"targetContainersNameRegex": pattern, "volume": "v", "path": "/p"}]})
    };
    for (one, other, places) in [
        (
            json!({"containers": [container("x"), container("same")]}),
            json!({"initContainers": [container("same")]}),
            Some(["spec.containers[1].name", "spec.initContainers[0].name"]),
        ),
        (
            json!({"containers": [container("x")], "volumes": [volume("emptyDir")]}),
            json!({"containers": [container("y")], "volumes": [{"name": "w", "emptyDir": {}}, volume("downwardAPI")], "appVolumeMounts": [{"volume": "w", "path": "/w"}]}),
            Some(["spec.volumes[0]", "spec.volumes[1]"]),
        ),
        (
            json!({"containers": [container("x")], "volumes": [volume("emptyDir")]}),
            json!({"containers": [container("y")], "volumes": [volume("emptyDir")]}),
            None,
        ),
        (json!({"labels": {"a": "1", "b": "1"}}), json!({"labels": {"a": "1", "b": "2"}}), Some(["spec.labels[b]"; 2])),
        (json!({"serviceAccountName": "a"}), json!({"serviceAccountName": "b"}), Some(["spec.serviceAccountName"; 2])),
        (json!({"serviceAccountName": "a"}), json!({"serviceAccountName": "a"}), None),
        (json!({"serviceAccountName": "a"}), json!({}), None),
        (
            json!({"shareProcessNamespace": true}),
            json!({"shareProcessNamespace": false}),
            Some(["spec.shareProcessNamespace"; 2]),
        ),
        (
            json!({"patchPodMetadata": annotation("Overwrite", "1")}),
            json!({"patchPodMetadata": annotation("Overwrite", "2")}),
            Some(["spec.patchPodMetadata[a]"; 2]),
        ),
        (
            json!({"patchPodMetadata": annotation("Overwrite", "1")}),
            json!({"patchPodMetadata": annotation("Overwrite", "1")}),
            None,
        ),
        (
            json!({"patchPodMetadata": annotation("Overwrite", "{}")}),
            json!({"patchPodMetadata": annotation("MergePatchJson", "{}")}),
            Some(["spec.patchPodMetadata[a]"; 2]),
        ),
        (
            json!({"patchPodMetadata": annotation("MergePatchJson", "{\"a\": 1}")}),
            json!({"patchPodMetadata": annotation("MergePatchJson", "{\"a\": 2}")}),
            None,
        ),
        (
            json!({"patchPodMetadata": annotation("Retain", "1")}),
            json!({"patchPodMetadata": annotation("Overwrite", "2")}),
            None,
        ),
        (
            mount("^a$"),
            {
                let mut other = mount("^b$");
                other["containers"][0]["name"] = "y".into();
                other
            },
            Some(["spec.appVolumeMounts[0].path"; 2]),
        ),
        (
            mount("^a$"),
            {
                let mut other = mount("^a$");
                other["containers"][0]["name"] = "y".into();
                other
            },
            None,
        ),
    ] {
        let expected: Vec<_> = places.into_iter().map(|[path, other]| (path.to_owned(), other.to_owned())).collect();
        assert_eq!(self::places(&spec(&one), &spec(&other)), expected, "{one} {other}");
    }
}

#[test]
fn who_wins_does_not_depend_on_who_is_asked() {
    let same = spec(&json!({"containers": [{"name": "proxy", "image": "a:1"}]}));
    let (one, two, three) = (set("one", &same), set("two", &same), set("three", &json!({})));
    let told = |found: Vec<pillion_api::Clash>| found.into_iter().map(|it| it.problem.message).collect::<Vec<_>>();
    assert_eq!(
        told(clashes(&two, [&one, &two, &three])),
        [
            "a container proxy is in set one too: two selects every pod that one selects, and two cannot be applied to them"
        ]
    );
    assert_eq!(
        told(clashes(&one, [&one, &two, &three])),
        [
            "a container proxy is in set two too: one selects every pod that two selects, and two cannot be applied to them"
        ]
    );
}

#[test]
fn sets_that_no_pod_matches_together_do_not_clash() {
    let same = json!([{"name": "proxy", "image": "a:1"}]);
    let expressions = |list: Value| json!({"matchLabels": null, "matchExpressions": list});
    for (one, other, clash) in [
        (json!({}), json!({}), true),
        (
            json!({"selector": {"matchLabels": {"app": "web"}}}),
            json!({"selector": {"matchLabels": {"app": "api"}}}),
            false,
        ),
        // A selector that does not mention a label says nothing about it.
        (
            json!({"selector": {"matchLabels": {"app": "web"}}}),
            json!({"selector": expressions(json!([{"key": "team", "operator": "Exists"}]))}),
            true,
        ),
        (
            json!({"selector": expressions(json!([{"key": "team", "operator": "Exists"}]))}),
            json!({"selector": expressions(json!([{"key": "team", "operator": "DoesNotExist"}]))}),
            false,
        ),
        (
            json!({"selector": expressions(json!([{"key": "app", "operator": "NotIn", "values": ["web"]}]))}),
            json!({}),
            false,
        ),
        (json!({"namespace": "a"}), json!({"namespace": "b"}), false),
        (json!({"namespace": "a"}), json!({"namespace": "a"}), true),
        (json!({"namespace": "a"}), json!({}), true),
        (json!({"namespace": "a"}), json!({"namespaceSelector": {"matchLabels": {"team": "x"}}}), true),
        (
            json!({"namespace": "a"}),
            json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "b"}}}),
            false,
        ),
        (
            json!({"namespaceSelector": {"matchLabels": {"team": "x"}}}),
            json!({"namespaceSelector": {"matchLabels": {"team": "y"}}}),
            false,
        ),
        (
            json!({"namespaceSelector": {"matchLabels": {"team": "x"}}}),
            json!({"namespaceSelector": {"matchLabels": {"tier": "y"}}}),
            true,
        ),
        (
            json!({}),
            json!({"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "Exists"}, {"key": "a", "operator": "DoesNotExist"}]}}),
            false,
        ),
        (json!({"mode": "Observe"}), json!({}), false),
    ] {
        let patch = |part: &Value| {
            let mut patch = spec(part);
            patch["spec"]["containers"] = same.clone();
            patch
        };
        assert_eq!(!between(&patch(&one), &patch(&other)).is_empty(), clash, "{one} {other}");
    }
}

#[test]
fn a_conflict_is_an_error_where_one_set_selects_every_pod_of_the_other() {
    let expressions = |list: Value| json!({"matchLabels": null, "matchExpressions": list});
    let labels = |labels: Value| json!({"selector": {"matchLabels": labels}});
    for (one, other, is_certain) in [
        (json!({}), json!({}), true),
        // A further label makes a subset, two different ones do not.
        (json!({}), labels(json!({"app": "web", "tier": "a"})), true),
        (labels(json!({"team": "x", "app": null})), labels(json!({"tier": "a", "app": null})), false),
        (json!({}), json!({"selector": expressions(json!([{"key": "app", "operator": "Exists"}]))}), true),
        (json!({"namespace": "a"}), json!({}), true),
        (json!({"namespace": "a"}), json!({"namespace": "a"}), true),
        // The labels of a namespace are not known from its name, except for the name itself.
        (json!({"namespace": "a"}), json!({"namespaceSelector": {"matchLabels": {"team": "x"}}}), false),
        (
            json!({"namespace": "a"}),
            json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "a"}}}),
            true,
        ),
        (json!({"namespaceSelector": {"matchLabels": {"team": "x"}}}), json!({}), true),
        // One is smaller in its pods, the other in its namespaces.
        (json!({"namespace": "a"}), labels(json!({"app": "web", "tier": "a"})), false),
        (json!({"injectStrategy": {"paused": true}}), json!({}), false),
    ] {
        let patch = |part: &Value| {
            let mut patch = spec(part);
            patch["spec"]["containers"] = json!([{"name": "proxy", "image": "a:1"}]);
            patch
        };
        let (one, other) = (set("one", &patch(&one)), set("two", &patch(&other)));
        for found in [clashes(&one, [&other]), clashes(&other, [&one])] {
            let severities: Vec<bool> = found.iter().map(|clash| clash.problem.is_error()).collect();
            assert_eq!(severities, [is_certain], "{found:?}");
        }
    }
}

#[test]
fn a_mount_into_containers_of_the_pod_is_never_a_certain_conflict() {
    let mount = |name: &str, pattern: &str| {
        let container = json!([{"name": name, "image": "a:1"}]);
        let mount = json!([{"targetContainersNameRegex": pattern, "volume": "v", "path": "/p"}]);
        spec(&json!({"containers": container, "volumes": [{"name": "v", "emptyDir": {}}], "appVolumeMounts": mount}))
    };
    let (one, other) = (set("one", &mount("x", "^a$")), set("two", &mount("y", "^b$")));
    let found = clashes(&one, [&other]);
    assert!(found.len() == 1 && !found[0].problem.is_error(), "{found:?}");
}
