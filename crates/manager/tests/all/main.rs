//! Reviews, from bytes to bytes.
#![forbid(unsafe_code)]

mod canary;
mod laws;
mod pods;
mod sets;
mod sizing;

use std::collections::BTreeMap;
use std::sync::Arc;

use pillion_api::review;
use pillion_inject::{Installation, Namespace, SetIndex};
use pillion_manager::admission::pods::{Answer, Begun, Question, begin};
use pillion_manager::admission::{Request, Response};
use pillion_manager::view::Known;
use pillion_rollout::choice::Draw;
use serde_json::{Value, json};

/// The body of a review.
fn body(group: &str, resource: &str, operation: &str, object: &Value) -> Vec<u8> {
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "u-1", "operation": operation, "namespace": "shop",
        "resource": {"group": group, "version": "v1", "resource": resource}, "object": object}})
    .to_string()
    .into_bytes()
}

fn known(sets: &[Value]) -> Known {
    let sets = sets.iter().map(|set| review(set).meaning.expect("the set is valid"));
    Known { sets: Arc::new(SetIndex::new(sets)), ..Known::default() }
}

fn set(name: &str, spec: &Value) -> Value {
    let mut set = json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "SidecarSet", "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": {"app": "web"}}}});
    for (field, value) in spec.as_object().into_iter().flatten() {
        set["spec"][field] = value.clone();
    }
    set
}

/// What the API server is told about a pod of the namespace `shop`.
fn asked(pod: &Value, sets: &[Value]) -> (Answer, Value) {
    let bytes = body("", "pods", "CREATE", pod);
    let request = Request::parse(&bytes).expect("it is a review");
    let namespace = Namespace::named("shop");
    let known = known(sets);
    let answer = answered(begin(&request, question(&known, &namespace, Installation::default())).expect("it is a pod"));
    let told = told(&answer.response);
    (answer, told)
}

fn question<'a>(known: &'a Known, namespace: &'a Namespace, installation: Installation<'a>) -> Question<'a> {
    static UNTOLD: BTreeMap<String, usize> = BTreeMap::new();
    Question { known, namespace, installation, matched: &UNTOLD, draw: Draw(0), rightsizing: None }
}

/// The answer where no set counts.
#[expect(clippy::panic, reason = "it ends the test")]
fn answered(begun: Begun<'_>) -> Answer {
    match begun {
        Begun::Done(answer) => answer,
        Begun::Asking(asking) => panic!("a ledger is asked: {:?}", asking.asks()),
    }
}

fn told(response: &Response) -> Value {
    serde_json::from_slice::<Value>(&response.to_bytes("u-1")).expect("an answer is JSON")["response"].clone()
}
