//! Any bytes as an AdmissionReview, of a pod or a set: never a panic, and every answer is JSON that repeats the uid.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use pillion_api::review;
use pillion_inject::{Installation, Namespace, SetIndex};
use pillion_manager::admission::{Request, Response, pods, sets};
use serde_json::Value;

static SETS: LazyLock<SetIndex> = LazyLock::new(|| {
    let text = include_str!("../../examples/sidecarset/every-field.yaml");
    let set = serde_saphyr::from_str::<Value>(text).expect("an example is YAML");
    SetIndex::new(review(&set).meaning)
});

fn check(request: &Request<'_>, response: &Response) {
    let answer: Value = serde_json::from_slice(&response.to_bytes(&request.uid)).expect("an answer is JSON");
    assert_eq!(answer["response"]["uid"], *request.uid);
    assert!(!(response.is_patch() && !response.is_allowed()));
}

fuzz_target!(|bytes: &[u8]| {
    let Ok(request) = Request::parse(bytes) else { return };
    let namespace = Namespace::named(&request.namespace);
    let question = pods::Question { sets: &SETS, namespace: &namespace, installation: Installation::default() };
    if let Ok(answer) = pods::review(&request, question) {
        check(&request, &answer.response);
    }
    if let Ok(response) = sets::review(&request, &SETS) {
        check(&request, &response);
    }
});
