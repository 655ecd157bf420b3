//! Which revision of a set a pod gets, and when a ledger is asked.
#![expect(clippy::unwrap_used, clippy::panic, reason = "what helpers of tests cannot do ends the test")]

use std::collections::BTreeMap;
use std::sync::Arc;

use json_patch::{Patch, patch};
use k8s_openapi::ByteString;
use pillion_api::{PodCount, revision};
use pillion_inject::{Installation, Namespace};
use pillion_manager::admission::pods::{Asking, Begun, Question, begin};
use pillion_manager::admission::{Ask, Request, Reservation};
use pillion_manager::view::{Judged, Known};
use pillion_rollout::choice::Draw;
use pillion_rollout::history::Revision;
use serde_json::{Value, json};

use crate::{answered, body, known, question, set, told};

/// A set that runs `proxy:2`, and pins what it was with `proxy:1`.
fn canary(strategies: &Value) -> (Known, String) {
    let before = set("mesh", &json!({"containers": [{"name": "proxy", "image": "proxy:1"}]}));
    let fields = revision::fields(before["spec"].as_object().unwrap());
    let old = revision::name("mesh", &fields);
    let mut now = set(
        "mesh",
        &json!({"containers": [{"name": "proxy", "image": "proxy:2"}],
        "injectStrategy": {"revision": old}, "updateStrategy": {"partition": "90%"}}),
    );
    for (field, value) in strategies.as_object().unwrap() {
        for (key, value) in value.as_object().into_iter().flatten() {
            now["spec"][field][key] = value.clone();
        }
        if !value.is_object() {
            now["spec"][field] = value.clone();
        }
    }
    let others = set("logs", &json!({"containers": [{"name": "app", "image": "logs:1"}], "failurePolicy": "Ignore"}));
    let mut known = known(&[now, others]);
    known.judged.insert("mesh".to_owned(), Arc::new(Judged { uid: "u-mesh".to_owned(), generation: 1, problem: None }));
    let template = Some(Arc::new(pillion_api::template(&fields).unwrap()));
    let stored = Revision {
        name: old.clone(),
        set_uid: "u-mesh".to_owned(),
        number: 1,
        custom_versions: Vec::new(),
        fields,
        template,
    };
    known.revisions.insert("u-mesh".to_owned(), vec![Arc::new(stored)]);
    (known, old)
}

fn pod(metadata: &Value) -> Value {
    let mut pod = json!({"metadata": {"name": "web-1", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "app", "image": "app:1"}]}});
    for (key, value) in metadata.as_object().unwrap() {
        pod["metadata"][key] = value.clone();
    }
    pod
}

fn begun<'a>(pod: &Value, question: Question<'a>) -> Begun<'a> {
    let bytes = body("", "pods", "CREATE", pod);
    begin(&Request::parse(&bytes).unwrap(), question).unwrap()
}

fn asking<'a>(pod: &Value, question: Question<'a>) -> Asking<'a> {
    match begun(pod, question) {
        Begun::Asking(asking) => asking,
        Begun::Done(answer) => panic!("no ledger is asked: {:?}", told(&answer.response)),
    }
}

fn reserved(is_newest: bool, trouble: Option<&str>) -> BTreeMap<String, Reservation> {
    let reservation = Reservation { is_newest, id: Some("r.1".to_owned()), trouble: trouble.map(str::to_owned) };
    BTreeMap::from([("mesh".to_owned(), reservation)])
}

/// The pod as it is stored after this answer.
fn stored(pod: &Value, told: &Value) -> Value {
    let ByteString(bytes) = serde_json::from_value(told["patch"].clone()).unwrap();
    let operations: Patch = serde_json::from_slice(&bytes).unwrap();
    let mut pod = pod.clone();
    patch(&mut pod, &operations).unwrap();
    pod
}

fn image(pod: &Value) -> &str {
    let containers = pod["spec"]["containers"].as_array().unwrap();
    containers.iter().find(|it| it["name"] == "proxy").map_or("", |it| it["image"].as_str().unwrap())
}

#[test]
fn a_ledger_decides_between_the_two_revisions() {
    let (known, old) = canary(&json!({}));
    let namespace = Namespace::named("shop");
    let owner =
        json!([{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "u", "controller": true}]);
    let pod = pod(&json!({"ownerReferences": owner}));
    let asking = asking(&pod, question(&known, &namespace, Installation::default()));
    let newest = known.sets.get("mesh").unwrap().revision.clone();
    let expected = Ask {
        set: "mesh".to_owned(),
        set_uid: "u-mesh".to_owned(),
        newest: newest.clone(),
        pinned: old.clone(),
        partition: PodCount::Percent(90),
        member: Some(("shop".to_owned(), "web".to_owned(), 1)),
    };
    assert_eq!(asking.asks(), [expected]);
    for (is_newest, proxy, revision) in [(true, "proxy:2", &newest), (false, "proxy:1", &old)] {
        let told = told(&asking.finish(&reserved(is_newest, None)).response);
        let stored = stored(&pod, &told);
        assert_eq!(image(&stored), proxy);
        let annotations = &stored["metadata"]["annotations"];
        assert_eq!(annotations["pillion.dev/revisions"], json!({"mesh": {"is": revision}}).to_string());
        let record: Value = serde_json::from_str(annotations["pillion.dev/decision"].as_str().unwrap()).unwrap();
        assert_eq!(record["sets"]["mesh"], json!({"code": "PL201", "reservation": "r.1"}));
    }
}

#[test]
fn a_ledger_that_does_not_answer_is_told_and_recorded() {
    let (known, old) = canary(&json!({}));
    let (namespace, pod) = (Namespace::named("shop"), pod(&json!({})));
    let asking = asking(&pod, question(&known, &namespace, Installation::default()));
    let told = told(&asking.finish(&reserved(false, Some("others were faster"))).response);
    let warning = format!("SidecarSet mesh: PL354: the pod gets revision {old}: others were faster");
    assert!(told["warnings"].as_array().unwrap().contains(&json!(warning)), "{told}");
    let stored = stored(&pod, &told);
    assert_eq!(image(&stored), "proxy:1");
    let record = stored["metadata"]["annotations"]["pillion.dev/decision"].as_str().unwrap();
    assert!(record.contains(r#""mesh":{"code":"PL201","reservation":"r.1","warnings":["PL354"]}"#), "{record}");
}

#[test]
fn a_pod_that_is_seen_again_keeps_its_revision_and_reserves_nothing() {
    let (known, old) = canary(&json!({}));
    let (namespace, pod) = (Namespace::named("shop"), pod(&json!({})));
    for is_newest in [true, false] {
        let question = question(&known, &namespace, Installation::default());
        let first = told(&asking(&pod, question).finish(&reserved(is_newest, None)).response);
        let once = stored(&pod, &first);
        let again = told(&answered(begun(&once, question)).response);
        assert_eq!(again.get("patch"), None, "{again}");
        assert_eq!(again["auditAnnotations"]["sets"], "logs=ignore:PL306 mesh=keep:PL208");
    }
    // One that says so and has nothing of it gets what everybody gets.
    let mut liar = pod.clone();
    liar["metadata"]["annotations"] = json!({"pillion.dev/revisions": json!({"mesh": {"is": old}}).to_string(),
        "kruise.io/sidecarset-injected-list": "mesh"});
    let asked = asking(&liar, question(&known, &namespace, Installation::default()));
    assert_eq!(asked.asks().len(), 1);
}

#[test]
fn a_pod_that_does_not_get_the_set_reserves_nothing() {
    let namespace = Namespace::named("shop");
    let audited = |known: &Known, pod: &Value, installation: Installation<'_>| {
        let told = told(&answered(begun(pod, question(known, &namespace, installation))).response);
        told["auditAnnotations"]["sets"].as_str().unwrap_or_default().to_owned()
    };
    let (known, _) = canary(&json!({"allowOptOut": true}));
    let skipping = pod(&json!({"annotations": {"pillion.dev/skip": "mesh"}}));
    assert_eq!(audited(&known, &skipping, Installation::default()), "logs=ignore:PL306 mesh=skip:PL205");
    let off = Installation { is_off: true, ..Installation::default() };
    assert_eq!(audited(&known, &pod(&json!({})), off), "logs=skip:PL210 mesh=skip:PL210");
    let (known, _) = canary(&json!({"injectStrategy": {"paused": true}}));
    assert_eq!(audited(&known, &pod(&json!({})), Installation::default()), "logs=ignore:PL306 mesh=skip:PL204");
    let (known, _) = canary(&json!({"mode": "Observe"}));
    assert_eq!(audited(&known, &pod(&json!({})), Installation::default()), "logs=ignore:PL306 mesh=observe:PL207");
    // It clashes with a container of the pod, and refuses it.
    let (known, _) = canary(&json!({}));
    let mut taken = pod(&json!({}));
    taken["spec"]["containers"][0]["name"] = "proxy".into();
    assert_eq!(audited(&known, &taken, Installation::default()), "logs=inject:PL201 mesh=refuse:PL306");
    // Another set refuses it.
    let (mut known, _) = canary(&json!({}));
    let other = set("other", &json!({"containers": [{"name": "app", "image": "other:1"}]}));
    Arc::make_mut(&mut known.sets).insert(pillion_api::review(&other).meaning.unwrap());
    let refused = "logs=ignore:PL306 mesh=inject:PL201 other=refuse:PL306";
    assert_eq!(audited(&known, &pod(&json!({})), Installation::default()), refused);
}

#[test]
fn a_pin_that_is_gone_is_never_replaced_by_the_newest() {
    let namespace = Namespace::named("shop");
    for strategies in
        [json!({}), json!({"injectStrategy": {"proportion": "Random"}}), json!({"updateStrategy": {"partition": 0}})]
    {
        let (mut known, old) = canary(&strategies);
        known.revisions.clear();
        for draw in (0..10).map(|tenth| Draw(u32::MAX / 10 * tenth)) {
            let drawn = Question { draw, ..question(&known, &namespace, Installation::default()) };
            let told = told(&answered(begun(&pod(&json!({})), drawn)).response);
            let message = told["status"]["message"].as_str().unwrap_or_default();
            assert!(message.contains(&format!("PL314: revision {old} does not exist")), "{told}");
        }
    }
}

#[test]
fn a_draw_decides_where_the_set_asks_for_one() {
    let (known, _) = canary(&json!({"injectStrategy": {"proportion": "Random"}}));
    let (namespace, pod) = (Namespace::named("shop"), pod(&json!({})));
    let old_of_hundred = |matched: &BTreeMap<String, usize>| {
        let images = (0..100_u32).map(|draw| {
            let draw = Draw(u32::MAX / 100 * draw);
            let question = Question { draw, matched, ..question(&known, &namespace, Installation::default()) };
            let told = told(&answered(begun(&pod, question)).response);
            image(&stored(&pod, &told)).to_owned()
        });
        images.filter(|image| image == "proxy:1").count()
    };
    assert_eq!(old_of_hundred(&BTreeMap::new()), 90);
    assert_eq!(old_of_hundred(&BTreeMap::from([("mesh".to_owned(), 2)])), 50, "one of two pods sees the canary");
}
