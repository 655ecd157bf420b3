//! Any bytes as a pod: never a panic, the patch applies, and what came of it stays as it is.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use pillion_api::{FailurePolicy, Meaning, review};
use pillion_inject::{Candidate, Decision, Installation, Namespace, PodHead, inject};
use serde_json::Value;

/// Sets that use every field there is.
static SETS: LazyLock<Vec<Meaning>> = LazyLock::new(|| {
    let texts = [
        include_str!("../../examples/sidecarset/every-field.yaml"),
        include_str!("../../examples/sidecarset/story-1-one-container.yaml"),
        include_str!("../../examples/sidecarset/story-6-native-sidecar.yaml"),
    ];
    let read = |text| serde_saphyr::from_str::<Value>(text).expect("an example is YAML");
    let meaning = |text| review(&read(text)).meaning.expect("an example is a valid set");
    // A pod that is refused ends the story; a set that is left out does not.
    texts.into_iter().map(|text| Meaning { failure_policy: FailurePolicy::Ignore, ..meaning(text) }).collect()
});

fn decide(pod: &Value) -> Decision<'_> {
    let sets = SETS.iter().map(|set| Candidate::latest(set));
    inject(pod, &Namespace::named("shop"), sets, Installation::default())
}

fuzz_target!(|bytes: &[u8]| {
    let head = PodHead::parse(bytes);
    let Ok(pod) = serde_json::from_slice::<Value>(bytes) else { return };
    if let Ok(head) = head {
        let _ = (head.labels().len(), head.is_marked());
    }
    let decision = decide(&pod);
    assert_eq!(decision.verdicts.len(), SETS.len());
    let Some(after) = &decision.pod else { return };
    assert!(!decision.patch.is_empty());
    assert_eq!(decide(after).patch, [], "{pod}");
});
