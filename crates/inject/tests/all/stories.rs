//! The stories of "Computed resources for sidecars": the sets of `examples/sidecarset`, and what pods get of them.

use pillion_api::{Meaning, review};
use pillion_inject::{Candidate, Installation, Namespace, inject};
use serde_json::{Value, json};

fn set(text: &str) -> Meaning {
    let object: Value = serde_saphyr::from_str(text).expect("the example is YAML");
    review(&object).meaning.expect("the example is a valid set")
}

#[test]
fn a_pod_gets_the_sum_and_keeps_it() {
    let (set, namespace) =
        (set(include_str!("../../../../examples/sidecarset/story-2-sum.yaml")), Namespace::named("shop"));
    let resources = |cpu: [&str; 2], memory: [&str; 2]| json!({"limits": {"cpu": cpu[0], "memory": memory[0]}, "requests": {"cpu": cpu[1], "memory": memory[1]}});
    let pod = json!({"metadata": {"labels": {"app": "engine"}}, "spec": {"containers": [
        {"name": "large-engine-v4", "resources": resources(["200m", "50m"], ["200Mi", "100Mi"])},
        {"name": "large-engine-v8", "resources": resources(["400m", "100m"], ["400Mi", "200Mi"])},
    ]}});
    let decision = inject(&pod, &namespace, [Candidate::latest(&set)], Installation::default());
    let after = decision.pod.unwrap();
    assert_eq!(after["spec"]["containers"][0]["resources"], resources(["300m", "75m"], ["200Mi", "100Mi"]));
    let again = inject(&after, &namespace, [Candidate::latest(&set)], Installation::default());
    assert_eq!(again.patch, []);
}
