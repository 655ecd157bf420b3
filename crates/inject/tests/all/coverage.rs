//! Pods that exist: which sidecars they carry, which they should carry and do not.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use pillion_api::{Meaning, Reason, SetMode};
use pillion_inject::coverage::{Coverage, LivingPod, Marks, Standing, Step, Tally, excuse, standings};
use pillion_inject::{Installation, Namespace, SetIndex, marks};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::asking::{ask, ask_in, image, joined, one_app, plain_set, pod, set};

/// When the selectors of the sets here were first observed.
const OBSERVED: i64 = 1_000;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// A pod as the controller reads it, created some seconds after the selectors were observed.
pub(crate) fn living(pod: &Value, seconds: i64) -> Option<LivingPod> {
    let metadata = &pod["metadata"];
    let labels = metadata["labels"].as_object().into_iter().flatten();
    let labels: Box<[(Box<str>, Box<str>)]> =
        labels.map(|(key, value)| (key.as_str().into(), value.as_str().unwrap().into())).collect();
    let is_labelled = labels.iter().any(|(key, _)| **key == *marks::INJECTED_LABEL);
    let annotation = |key: &str| metadata["annotations"][key].as_str();
    let marks = Marks::read(annotation, is_labelled, pod.to_string().contains("IS_INJECTED"))?;
    Some(LivingPod {
        labels: labels.into(),
        created: at(OBSERVED + seconds),
        is_deleting: false,
        is_ready: false,
        marks: marks.into(),
    })
}

fn stands_in(
    namespace: &str,
    living: &LivingPod,
    sets: &[Meaning],
    installation: Installation<'_>,
) -> Vec<(String, Standing)> {
    let (namespace, index) = (Namespace::named(namespace), SetIndex::new(sets.iter().cloned()));
    standings(living, &namespace, &index, installation, |_| Some(at(OBSERVED))).into_iter().collect()
}

fn stands(living: &LivingPod, sets: &[Meaning]) -> Vec<(String, Standing)> {
    stands_in("shop", living, sets, Installation::default())
}

fn of(set: &str, standing: Standing) -> Vec<(String, Standing)> {
    vec![(set.to_owned(), standing)]
}

#[test]
fn what_the_webhook_did_is_read_back_from_the_pod() {
    let sets = [
        set("ignores", json!({"containers": [image("app")], "failurePolicy": "Ignore"})),
        plain_set("mesh", "proxy"),
        set("optional", json!({"containers": [image("agent")], "allowOptOut": true})),
        set("paused", json!({"containers": [image("other")], "injectStrategy": {"paused": true}})),
        set("watches", json!({"containers": [image("eye")], "mode": "Observe"})),
    ];
    let mut pod = one_app();
    pod["metadata"]["annotations"] = json!({"pillion.dev/skip": "optional"});
    let injected = ask(&pod, &sets).pod.unwrap();
    let expected = [
        ("ignores", Standing::LeftOut(Reason::ContainerClash)),
        ("mesh", Standing::Carries),
        ("optional", Standing::LeftOut(Reason::OptedOut)),
        ("paused", Standing::LeftOut(Reason::InjectionPaused)),
        ("watches", Standing::LeftOut(Reason::Observed)),
    ];
    assert_eq!(stands(&living(&injected, 5).unwrap(), &sets), expected.map(|(set, how)| (set.to_owned(), how)));
    // The same pod, created while nobody was there to look at it.
    let expected = [
        ("ignores", Standing::Missed),
        ("mesh", Standing::Missed),
        ("optional", Standing::Missed),
        ("paused", Standing::Excused(Reason::InjectionPaused)),
        ("watches", Standing::Excused(Reason::Observed)),
    ];
    assert_eq!(stands(&living(&pod, 5).unwrap(), &sets), expected.map(|(set, how)| (set.to_owned(), how)));
}

#[test]
fn a_pod_is_missed_if_it_is_younger_than_the_selector() {
    let mesh = [plain_set("mesh", "proxy")];
    for (seconds, standing) in
        [(-1, Standing::Predates), (0, Standing::Predates), (1, Standing::Missed), (100, Standing::Missed)]
    {
        assert_eq!(stands(&living(&one_app(), seconds).unwrap(), &mesh), of("mesh", standing), "{seconds}");
    }
    // A selector that nobody has observed yet misses nothing.
    let index = SetIndex::new(mesh);
    let young = living(&one_app(), 100).unwrap();
    let found = standings(&young, &Namespace::named("shop"), &index, Installation::default(), |_| None);
    assert_eq!(found, BTreeMap::from([("mesh".to_owned(), Standing::Predates)]));
}

#[test]
fn pods_that_are_left_alone_stand_to_no_set() {
    let mesh = [plain_set("mesh", "proxy")];
    let missed = living(&one_app(), 5).unwrap();
    assert_eq!(stands(&LivingPod { is_deleting: true, ..missed.clone() }, &mesh), []);
    let installation = Installation { own_namespace: Some("pillion-system"), ..Installation::default() };
    for namespace in ["kube-system", "pillion-system"] {
        assert_eq!(stands_in(namespace, &missed, &mesh, installation), []);
    }
    assert_eq!(stands_in("shop", &missed, &mesh, installation), of("mesh", Standing::Missed));
    let mirror = joined(one_app(), json!({"metadata": {"annotations": {"kubernetes.io/config.mirror": "hash"}}}));
    assert_eq!(living(&mirror, 5), None);
    let other = pod(json!({"containers": [image("app")]}));
    let other = joined(other, json!({"metadata": {"labels": {"app": "db"}}}));
    assert_eq!(stands(&living(&other, 5).unwrap(), &mesh), []);
}

#[test]
fn nothing_is_missed_while_nothing_is_injected() {
    let mesh = plain_set("mesh", "proxy");
    let paused = set("mesh", json!({"containers": [image("proxy")], "injectStrategy": {"paused": true}}));
    let watches = set("mesh", json!({"containers": [image("proxy")], "mode": "Observe"}));
    let observing = Installation { mode: SetMode::Observe, ..Installation::default() };
    let off = Installation { is_off: true, ..Installation::default() };
    let missed = living(&one_app(), 5).unwrap();
    for (set, installation, reason) in [
        (&mesh, off, Reason::SwitchedOff),
        (&paused, off, Reason::SwitchedOff),
        (&paused, observing, Reason::InjectionPaused),
        (&mesh, observing, Reason::Observed),
        (&watches, Installation::default(), Reason::Observed),
    ] {
        let found = stands_in("shop", &missed, std::slice::from_ref(set), installation);
        assert_eq!(found, of("mesh", Standing::Excused(reason)));
        assert_eq!(excuse(set, installation), Some(reason));
        // What it has it has.
        let injected = ask(&one_app(), std::slice::from_ref(&mesh)).pod.unwrap();
        let found = stands_in("shop", &living(&injected, 5).unwrap(), std::slice::from_ref(set), installation);
        assert_eq!(found, of("mesh", Standing::Carries));
    }
    assert_eq!(excuse(&mesh, Installation::default()), None);
}

#[test]
fn marks_count_only_where_something_was_done() {
    let mesh = [plain_set("mesh", "proxy")];
    let claims = |label: Option<&str>, annotations: Value| {
        let mut pod = one_app();
        pod["metadata"]["annotations"] = annotations;
        if let Some(value) = label {
            pod["metadata"]["labels"][marks::INJECTED_LABEL] = json!(value);
        }
        living(&pod, 5).unwrap()
    };
    let list = json!({"kruise.io/sidecarset-injected-list": "logs, mesh"});
    // With our label and no sidecar; without it, as OpenKruise leaves pods.
    assert_eq!(stands(&claims(Some("true"), list.clone()), &mesh), of("mesh", Standing::Missed));
    assert_eq!(stands(&claims(None, list), &mesh), of("mesh", Standing::Carries));
    // A record that says "applied" beside no sidecar, and one that is none.
    for record in [r#"{"v":1,"sets":{"mesh":{"code":"PL201"}}}"#, r#"{"v":2,"sets":{}}"#, "{"] {
        let pod = claims(None, json!({"pillion.dev/decision": record}));
        assert_eq!(stands(&pod, &mesh), of("mesh", Standing::Missed), "{record}");
    }
    // A record without room for all sets leaves it open; one with room does not.
    for (cut, standing) in [(1, Standing::Missed), (2, Standing::LeftOut(Reason::RecordTruncated))] {
        let record = format!(r#"{{"v":1,"sets":{{"logs":{{"code":"PL205"}}}},"cut":{cut}}}"#);
        let pod = claims(None, json!({"pillion.dev/decision": record}));
        assert_eq!(stands(&pod, &mesh), of("mesh", standing), "{cut}");
    }
}

#[test]
fn a_copy_of_a_set_that_observed_is_excused_by_its_record() {
    // A pod of two sets, one of which only observed when it was created and injects now.
    let before = [plain_set("mesh", "proxy"), set("watches", json!({"containers": [image("eye")], "mode": "Observe"}))];
    let pod = one_app();
    let decision = ask_in(&Namespace::named("shop"), &pod, &before, Installation::default());
    let after = [plain_set("mesh", "proxy"), plain_set("watches", "eye")];
    let found = stands(&living(&decision.pod.unwrap(), 5).unwrap(), &after);
    let expected =
        vec![("mesh".to_owned(), Standing::Carries), ("watches".to_owned(), Standing::LeftOut(Reason::Observed))];
    assert_eq!(found, expected);
}

#[test]
fn labels_that_a_set_gives_make_no_pod_missed_by_another() {
    // A set whose own label takes the pod out of its selector, and one that selects pods by that label.
    let shy = json!({"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]});
    let gives = set("gives", json!({"containers": [image("proxy")], "labels": {"team": "green"}, "selector": shy}));
    let selects =
        set("selects", json!({"containers": [image("agent")], "selector": {"matchLabels": {"team": "green"}}}));
    let sets = [gives, selects];
    let pod = one_app();
    let decision = ask(&pod, &sets);
    assert_eq!(stands(&living(&decision.pod.unwrap(), 5).unwrap(), &sets), of("gives", Standing::Carries));
    // With the label of its own the pod is one that the second set is asked about.
    let green = joined(one_app(), json!({"metadata": {"labels": {"team": "green"}}}));
    assert_eq!(stands(&living(&green, 5).unwrap(), &sets), of("selects", Standing::Missed));
}

fn standing() -> impl Strategy<Value = Standing> {
    prop::sample::select(vec![
        Standing::Carries,
        Standing::LeftOut(Reason::OptedOut),
        Standing::Excused(Reason::Observed),
        Standing::Missed,
        Standing::Predates,
    ])
}

type Stood = (BTreeMap<String, Standing>, bool);

/// What becomes of one of five pods: it stands so to some of three sets, or is gone.
fn change() -> impl Strategy<Value = (u8, Option<Stood>)> {
    let standings = prop::collection::btree_map("[abc]", standing(), 0..4);
    (0..5_u8, prop::option::of((standings, any::<bool>())))
}

proptest! {
    #[test]
    fn counts_kept_in_step_are_those_counted_anew(changes in prop::collection::vec(change(), 0..40)) {
        let mut coverage = Coverage::default();
        let mut truth: BTreeMap<u8, Stood> = BTreeMap::new();
        for (pod, becomes) in changes {
            let before = truth.get(&pod).map(|(standings, _)| standings.clone()).unwrap_or_default();
            let steps = match becomes.clone() {
                Some((standings, is_ready)) => coverage.put(pod, standings, is_ready),
                None => coverage.remove(&pod),
            };
            match becomes {
                Some(stood) => truth.insert(pod, stood),
                None => truth.remove(&pod),
            };
            let after = truth.get(&pod).map(|(standings, _)| standings.clone()).unwrap_or_default();
            for set in ["a", "b", "c"] {
                let told = steps.iter().find(|step| step.set == set);
                let (before, after) = (before.get(set).copied(), after.get(set).copied());
                let news = Step { set: set.to_owned(), before, after };
                prop_assert_eq!(told, (before != after).then_some(&news));

                let pods = || truth.iter().filter_map(|(pod, (standings, ready))| Some((*pod, *standings.get(set)?, *ready)));
                let count = |holds: fn(Standing, bool) -> bool| pods().filter(|(_, how, ready)| holds(*how, *ready)).count();
                let expected = Tally {
                    matched: pods().count(),
                    injected: count(|how, _| how == Standing::Carries),
                    ready: count(|how, ready| how == Standing::Carries && ready),
                    left_out: count(|how, _| matches!(how, Standing::LeftOut(_))),
                    missed: count(|how, _| how == Standing::Missed),
                    predating: count(|how, _| how == Standing::Predates),
                };
                prop_assert_eq!(coverage.tally(set), expected);
                let missed: BTreeSet<u8> =
                    pods().filter(|(_, how, _)| *how == Standing::Missed).map(|(pod, ..)| pod).collect();
                prop_assert_eq!(coverage.missed(set).copied().collect::<BTreeSet<u8>>(), missed.clone());
                let all = coverage.all_missed();
                let named: BTreeSet<u8> =
                    all.iter().filter(|(_, sets)| sets.contains(&set)).map(|(pod, _)| **pod).collect();
                prop_assert_eq!(named, missed);
            }
        }
    }
}
