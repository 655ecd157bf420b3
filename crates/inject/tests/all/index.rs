//! The index of sets: it finds what asking every set would find, whatever was added, replaced and removed.

use std::collections::BTreeMap;

use pillion_api::{Meaning, Namespaces, SetMode};
use pillion_inject::{Namespace, SetIndex};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::asking::{image, joined, set};

/// A set with these selectors.
fn selecting(name: &str, selector: &Value, namespaces: &Value) -> Meaning {
    set(name, joined(json!({"selector": selector, "containers": [image("proxy")]}), namespaces.clone()))
}

fn labelled(name: &str, labels: Value) -> Meaning {
    selecting(name, &json!({"matchLabels": labels}), &json!({}))
}

fn expression(key: &str, operator: &str, values: &[&str]) -> Value {
    json!({"key": key, "operator": operator, "values": values})
}

fn found(index: &SetIndex, labels: &[(&str, &str)], namespace: &str) -> Vec<String> {
    let found = index.matching(labels, &Namespace::named(namespace));
    found.iter().map(|set| set.name.clone()).collect()
}

#[test]
fn sets_are_inserted_replaced_and_removed() {
    let mut index = SetIndex::new([labelled("b", json!({"app": "web"})), labelled("a", json!({"app": "web"}))]);
    let web = [("app", "web")];
    assert_eq!(found(&index, &web, "shop"), ["a", "b"]);
    assert_eq!(index.sets().map(|set| set.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);

    index.insert(labelled("a", json!({"app": "api"})));
    assert_eq!(found(&index, &web, "shop"), ["b"]);
    assert_eq!(found(&index, &[("app", "api")], "shop"), ["a"]);
    assert_eq!(index.sets().len(), 2);

    let mut observing = labelled("a", json!({"app": "web"}));
    observing.mode = SetMode::Observe;
    index.insert(observing.clone());
    assert_eq!(found(&index, &[("app", "api")], "shop"), [""; 0]);
    assert_eq!(**index.get("a").unwrap(), observing);
    assert_eq!(**index.matching(&web, &Namespace::named("shop"))[0], observing);

    assert!(index.remove("b"));
    assert!(!index.remove("b"));
    assert_eq!(found(&index, &web, "shop"), ["a"]);
    assert!(index.remove("a"));
    assert_eq!(found(&index, &web, "shop"), [""; 0]);
    assert_eq!((index.sets().len(), index.get("a")), (0, None));
}

#[test]
fn an_index_that_was_emptied_is_as_new() {
    let sets = [
        selecting(
            "a",
            &json!({"matchExpressions": [expression("tier", "In", &["x", "y"])]}),
            &json!({"namespace": "shop"}),
        ),
        selecting(
            "b",
            &json!({"matchExpressions": [{"key": "tier", "operator": "Exists"}]}),
            &json!({
            "namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "Exists"}]}}),
        ),
        selecting("c", &json!({"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}), &json!({})),
    ];
    let mut index = SetIndex::new(sets);
    for name in ["b", "a", "c"] {
        assert!(index.remove(name));
    }
    assert_eq!(format!("{index:?}"), format!("{:?}", SetIndex::default()));
}

#[test]
fn two_sets_that_share_a_label_are_told_apart_by_the_other() {
    let index = SetIndex::new([
        labelled("front", json!({"app": "web", "tier": "front"})),
        labelled("back", json!({"app": "web", "tier": "back"})),
        labelled("any", json!({"app": "web"})),
    ]);
    assert_eq!(found(&index, &[("app", "web"), ("tier", "front")], "shop"), ["any", "front"]);
    assert_eq!(found(&index, &[("tier", "back"), ("app", "web")], "shop"), ["any", "back"]);
    assert_eq!(found(&index, &[("app", "web")], "shop"), ["any"]);
    assert_eq!(found(&index, &[("tier", "front")], "shop"), [""; 0]);
}

#[test]
fn every_operator_finds_its_pods() {
    let one = |name: &str, expression: Value| selecting(name, &json!({"matchExpressions": [expression]}), &json!({}));
    let index = SetIndex::new([
        one("in", expression("tier", "In", &["front", "mid"])),
        one("not-in", expression("tier", "NotIn", &["front", "mid"])),
        one("exists", json!({"key": "tier", "operator": "Exists"})),
        one("absent", json!({"key": "tier", "operator": "DoesNotExist"})),
    ]);
    assert_eq!(found(&index, &[("tier", "front")], "shop"), ["exists", "in"]);
    assert_eq!(found(&index, &[("tier", "mid"), ("app", "web")], "shop"), ["exists", "in"]);
    assert_eq!(found(&index, &[("tier", "back")], "shop"), ["exists", "not-in"]);
    assert_eq!(found(&index, &[("app", "web")], "shop"), ["absent", "not-in"]);
}

#[test]
fn namespaces_are_named_selected_or_all() {
    let named = |name: &str, namespaces: Value| selecting(name, &json!({"matchLabels": {"app": "web"}}), &namespaces);
    let team = json!({"namespaceSelector": {"matchLabels": {"team": "a"}}});
    let other = json!({"namespaceSelector": {"matchExpressions": [expression("team", "NotIn", &["a"])]}});
    let index = SetIndex::new([
        named("all", json!({})),
        named("shop", json!({"namespace": "shop"})),
        named("team", team),
        named("other", other),
    ]);
    let matching = |name: &str, labels: &[(&str, &str)]| {
        let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let namespace = Namespace { name: name.to_owned(), labels };
        index.matching(&[("app", "web")], &namespace).iter().map(|set| set.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(matching("shop", &[]), ["all", "other", "shop"]);
    assert_eq!(matching("shop", &[("team", "a")]), ["all", "shop", "team"]);
    assert_eq!(matching("bank", &[("team", "b")]), ["all", "other"]);
}

const KEYS: [&str; 3] = ["app", "tier", "kubernetes.io/metadata.name"];
const VALUES: [&str; 3] = ["a", "b", "c"];

fn selector() -> impl Strategy<Value = Value> {
    let key = || prop::sample::select(&KEYS[..]);
    let values = || prop::sample::subsequence(&VALUES[..], 1..=3);
    let requirement = prop_oneof![
        (key(), prop_oneof![Just("In"), Just("NotIn")], values())
            .prop_map(|(key, operator, values)| expression(key, operator, &values)),
        (key(), prop_oneof![Just("Exists"), Just("DoesNotExist")])
            .prop_map(|(key, operator)| json!({"key": key, "operator": operator})),
    ];
    let labels = btree_map(key(), prop::sample::select(&VALUES[..]), 0..=2);
    (labels, vec(requirement, 0..=2))
        .prop_filter("it requires something", |(labels, requirements)| labels.len() + requirements.len() > 0)
        .prop_map(|(labels, requirements)| json!({"matchLabels": labels, "matchExpressions": requirements}))
}

fn namespaces() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!({})),
        prop::sample::select(&VALUES[..]).prop_map(|name| json!({"namespace": name})),
        selector().prop_map(|selector| json!({"namespaceSelector": selector})),
    ]
}

/// One set after another is put in or taken out.
fn changes() -> impl Strategy<Value = Vec<(u8, Option<Meaning>)>> {
    let set = (selector(), namespaces()).prop_map(|(selector, namespaces)| selecting("x", &selector, &namespaces));
    vec((0..8_u8, proptest::option::weighted(0.75, set)), 1..24)
}

fn labels() -> impl Strategy<Value = BTreeMap<String, String>> {
    let text = |texts: &'static [&'static str]| prop::sample::select(texts).prop_map(str::to_owned);
    btree_map(text(&KEYS[..2]), text(&VALUES), 0..=2)
}

fn selects(set: &Meaning, labels: &BTreeMap<String, String>, namespace: &Namespace) -> bool {
    let namespaces = match &set.namespaces {
        Namespaces::All => true,
        Namespaces::Named(name) => *name == namespace.name,
        Namespaces::Selected(selector) => selector.matches(|key| namespace.label(key)),
    };
    namespaces && set.selector.matches(|key| labels.get(key).map(String::as_str))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn it_finds_what_asking_every_set_finds(
        changes in changes(), pods in vec((labels(), prop::sample::select(&VALUES[..]), labels()), 8),
    ) {
        let (mut index, mut sets) = (SetIndex::default(), BTreeMap::new());
        for (number, change) in changes {
            let name = number.to_string();
            if let Some(set) = change {
                let set = Meaning { name: name.clone(), ..set };
                index.insert(set.clone());
                sets.insert(name, set);
            } else {
                prop_assert_eq!(index.remove(&name), sets.remove(&name).is_some());
            }
            let all: Vec<&Meaning> = index.sets().map(AsRef::as_ref).collect();
            prop_assert_eq!(all, sets.values().collect::<Vec<_>>());
            for (labels, name, of_namespace) in &pods {
                let namespace = Namespace { name: (*name).to_owned(), labels: of_namespace.clone() };
                let pairs: Vec<(&String, &String)> = labels.iter().collect();
                let found: Vec<&Meaning> = index.matching(&pairs, &namespace).into_iter().map(AsRef::as_ref).collect();
                let expected: Vec<&Meaning> = sets.values().filter(|set| selects(set, labels, &namespace)).collect();
                prop_assert_eq!(found, expected);
            }
        }
    }
}
