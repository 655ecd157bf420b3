//! What holds of every set.

use pillion_api::{Problem, SidecarSet, review};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::spelling;

/// JSON as a field of tomorrow might have.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[ -~]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{1,6}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn expression(resource: &'static str, constant: &'static str) -> impl Strategy<Value = String> {
    prop_oneof![
        Just(constant.to_owned()),
        (1..=100_u8).prop_map(move |percent| format!("{resource}*{percent}%")),
        (1..=100_u8).prop_map(move |percent| format!("max({resource}*{percent}%, {constant})")),
        Just(String::new()),
    ]
}

fn side() -> impl Strategy<Value = Value> {
    (prop::option::of(expression("cpu", "50m")), expression("memory", "64Mi")).prop_map(|(cpu, memory)| {
        let mut side = Map::from_iter([("memory".to_owned(), memory.into())]);
        side.extend(cpu.map(|cpu| ("cpu".to_owned(), cpu.into())));
        Value::Object(side)
    })
}

fn policy() -> impl Strategy<Value = Value> {
    let pattern = prop::option::of(prop_oneof![Just(".*"), Just("^app$"), Just("a|b")]);
    (prop_oneof![Just("sum"), Just("max")], pattern, prop::option::of(side()), side()).prop_map(
        |(mode, pattern, limits, requests)| {
            let mut policy = json!({"targetContainerMode": mode, "resourceExpr": {"requests": requests}});
            if let Some(pattern) = pattern {
                policy["targetContainersNameRegex"] = pattern.into();
            }
            if let Some(limits) = limits {
                policy["resourceExpr"]["limits"] = limits;
            }
            policy
        },
    )
}

fn container() -> impl Strategy<Value = Value> {
    let unknown = prop::collection::btree_map("[a-z]{3,8}OfTomorrow", any_json(), 0..3);
    let placement = prop::option::of(prop_oneof![Just("BeforeAppContainer"), Just("AfterAppContainer")]);
    (prop::option::of(policy()), unknown, placement, any::<bool>()).prop_map(|(policy, unknown, placement, sidecar)| {
        let mut container = json!({"image": "proxy:1", "sidecar": sidecar});
        let fields = container.as_object_mut().unwrap();
        fields.extend(unknown);
        fields.extend(policy.map(|policy| ("resourcesPolicy".to_owned(), policy)));
        fields.extend(placement.map(|placement| ("podInjectPolicy".to_owned(), placement.into())));
        container
    })
}

fn strategy() -> impl Strategy<Value = Value> {
    let revision = prop_oneof![
        Just(json!({})),
        "[a-z]{1,8}".prop_map(|name| json!({"controllerRevision": name})),
        "[a-z]{1,8}".prop_map(|name| json!({"revision": name})),
    ];
    (revision, prop::option::of(any::<bool>())).prop_map(|(mut strategy, paused)| {
        if let Some(paused) = paused {
            strategy["paused"] = paused.into();
        }
        strategy
    })
}

fn set() -> impl Strategy<Value = Value> {
    let containers = || prop::collection::vec(container(), 1..4);
    (containers(), prop::option::of(containers()), prop::option::of(strategy())).prop_map(
        |(mut containers, init, strategy)| {
            for (at, container) in containers.iter_mut().enumerate() {
                container["name"] = format!("c{at}").into();
            }
            let mut spec = json!({"selector": {"matchLabels": {"app": "web"}}, "containers": containers});
            if let Some(mut init) = init {
                for (at, container) in init.iter_mut().enumerate() {
                    container["name"] = format!("i{at}").into();
                    container["restartPolicy"] = "Always".into();
                }
                spec["initContainers"] = init.into();
            }
            if let Some(strategy) = strategy {
                spec["injectStrategy"] = strategy;
            }
            json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "SidecarSet", "metadata": {"name": "any"}, "spec": spec})
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn reading_and_writing_keeps_every_byte_of_a_valid_set(object in set()) {
        let review = review(&object);
        prop_assert_eq!(review.errors().collect::<Vec<_>>(), Vec::<&Problem>::new());
        let typed: SidecarSet = serde_json::from_value(object.clone()).unwrap();
        prop_assert_eq!(serde_json::to_value(&typed).unwrap(), object);
        prop_assert_eq!(typed.meaning().unwrap(), review.meaning.unwrap());
    }

    #[test]
    fn both_spellings_mean_the_same(object in set()) {
        let (ours, theirs) = (review(&object), review(&spelling::of_openkruise(&object)));
        prop_assert_eq!(ours.meaning, theirs.meaning);
        let told = |problems: &[Problem]| problems.iter().map(|it| (it.reason, it.message.clone())).collect::<Vec<_>>();
        prop_assert_eq!(told(&ours.problems), told(&theirs.problems));
    }

    #[test]
    fn any_spec_is_judged_without_a_panic(spec in any_json()) {
        let review = review(&json!({"metadata": {"name": "any"}, "spec": spec}));
        prop_assert_eq!(review.meaning.is_none(), review.errors().count() > 0);
    }

    #[test]
    fn what_cannot_be_read_beside_the_spec_is_an_error_and_never_a_silence(mut object in set(), labels in any_json(), status in any_json()) {
        object["metadata"]["labels"] = labels;
        object["status"] = status;
        let review = review(&object);
        prop_assert_eq!(review.meaning.is_none(), review.errors().count() > 0);
    }

    #[test]
    fn a_field_of_the_wrong_type_is_an_error_and_never_a_panic(mut object in set(), at in 0..FIELDS.len(), value in any_json()) {
        object["spec"][FIELDS[at]] = value;
        let review = review(&object);
        prop_assert_eq!(review.meaning.is_none(), review.errors().count() > 0);
    }
}

const FIELDS: [&str; 8] = [
    "selector",
    "containers",
    "initContainers",
    "volumes",
    "labels",
    "updateStrategy",
    "injectStrategy",
    "appVolumeMounts",
];
