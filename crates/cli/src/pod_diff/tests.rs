use proptest::prelude::*;
use serde_json::json;

use super::*;

fn told_of(before: &Value, after: &Value) -> Vec<String> {
    lines(&diff(before, after))
}

#[test]
fn things_are_told_by_name() {
    let before = json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {
            "containers": [{"name": "app", "env": [{"name": "A", "value": "1"}], "volumeMounts": [{"name": "v", "mountPath": "/a"}]}],
            "serviceAccountName": "default",
            "volumes": [{"name": "token"}, {"name": "v", "emptyDir": {}}],
        },
    });
    let after = json!({
        "metadata": {"labels": {"app": "shop", "pillion.dev/injected": "true"}, "annotations": {"a/b": "c"}},
        "spec": {
            "initContainers": [{"name": "first"}, {"name": "second"}],
            "containers": [
                {"name": "proxy", "image": "proxy:1"},
                {"name": "app", "env": [{"name": "A", "value": "2"}, {"name": "B", "value": "3"}],
                 "volumeMounts": [{"name": "v", "mountPath": "/a"}, {"name": "v", "mountPath": "/b"}]},
            ],
            "serviceAccountName": "mesh",
            "volumes": [{"name": "v", "emptyDir": {}}],
        },
    });
    assert_eq!(
        told_of(&before, &after),
        [
            "+ metadata.annotations[a/b]: c",
            "~ metadata.labels[app]: web → shop",
            "+ metadata.labels[pillion.dev/injected]: \"true\"",
            "+ spec.containers[proxy] (before app):",
            "+     name: proxy",
            "+     image: proxy:1",
            "~ spec.containers[app].env[A].value: \"1\" → \"2\"",
            "+ spec.containers[app].env[B]:",
            "+     name: B",
            "+     value: \"3\"",
            "+ spec.containers[app].volumeMounts[/b]:",
            "+     name: v",
            "+     mountPath: /b",
            "+ spec.initContainers[first] (before second):",
            "+     name: first",
            "+ spec.initContainers[second] (after first):",
            "+     name: second",
            "~ spec.serviceAccountName: default → mesh",
            "- spec.volumes[token]:",
            "-     name: token",
        ]
    );
    let back = told_of(&after, &before);
    assert!(back.contains(&"- metadata.annotations[a/b]: c".to_owned()), "{back:#?}");
    assert!(back.contains(&"- spec.initContainers[first]:".to_owned()), "{back:#?}");
}

#[test]
fn an_order_is_a_difference() {
    let list = |names: [&str; 3]| json!({"spec": {"containers": names.map(|name| json!({"name": name}))}});
    assert_eq!(
        told_of(&list(["a", "b", "c"]), &list(["b", "d", "a"])),
        [
            "- spec.containers[c]:",
            "-     name: c",
            "+ spec.containers[d] (after b):",
            "+     name: d",
            "~ spec.containers: order a, b → b, a",
        ]
    );
}

#[test]
fn lists_without_names_are_told_by_their_places() {
    let pod = |args: Value, ports: Value| json!({"args": args, "ports": ports});
    assert_eq!(
        told_of(&pod(json!(["a", "b"]), json!([])), &pod(json!(["a", "c", "d"]), json!([{"containerPort": 1}]))),
        ["~ args[1]: b → c", "+ args[2]: d", "+ ports[0]:", "+     containerPort: 1"]
    );
    let twice = |value: &str| json!({"env": [{"name": "A", "value": "1"}, {"name": "A", "value": value}]});
    assert_eq!(told_of(&twice("2"), &twice("3")), ["~ env[1].value: \"2\" → \"3\""]);
}

#[test]
fn empty_is_not_absent() {
    assert_eq!(told_of(&json!({}), &json!({"labels": {}})), ["+ labels: {}"]);
    assert_eq!(told_of(&json!({"spec": {"volumes": []}}), &json!({"spec": {}})), ["- spec.volumes: []"]);
    assert_eq!(told_of(&json!({"a": null}), &json!({})), ["- a: null"]);
    assert_eq!(told_of(&json!({"a": 1}), &json!({"a": "1"})), ["~ a: 1 → \"1\""]);
}

#[test]
fn records_in_annotations_are_looked_into() {
    let pod = |record: &str| json!({"metadata": {"annotations": {"r": record}}});
    let (one, other) = (pod(r#"{"a":{"b":[1,2]}}"#), pod(r#"{"a":{"b":[1,3]}}"#));
    assert_eq!(told_of(&one, &other), ["~ metadata.annotations[r].a.b[1]: 2 → 3"]);
    let spaced = pod(r#"{"a": {"b":[1,2]}}"#);
    assert_eq!(told_of(&one, &spaced), [r#"~ metadata.annotations[r]: '{"a":{"b":[1,2]}}' → '{"a": {"b":[1,2]}}'"#]);
    assert_eq!(told_of(&one, &pod("{")), [r#"~ metadata.annotations[r]: '{"a":{"b":[1,2]}}' → "{""#]);
}

#[test]
fn colour_follows_the_sign() {
    assert_eq!(painted("+ a"), "\u{1b}[32m+ a\u{1b}[0m");
    assert_eq!(painted("  - a"), "\u{1b}[31m  - a\u{1b}[0m");
    assert_eq!(painted("~ a"), "\u{1b}[33m~ a\u{1b}[0m");
    assert_eq!(painted("a"), "a");
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..3u8).prop_map(Value::from),
        "[ab]?".prop_map(Value::from),
        proptest::sample::select(&["{}", "{ }", "{\"x\":1}"][..]).prop_map(Value::from)
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let keys = proptest::sample::select(&["name", "labels", "containers", "mountPath", "a/b", "x"][..]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(keys, inner, 0..4).prop_map(|map| json!(map)),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2048))]
    #[test]
    fn nothing_is_told_exactly_where_nothing_differs(one in values(), other in values()) {
        prop_assert_eq!(diff(&one, &one), []);
        prop_assert_eq!(diff(&one, &other).is_empty(), one == other);
        prop_assert_eq!(diff(&one, &other).is_empty(), diff(&other, &one).is_empty());
    }
}
