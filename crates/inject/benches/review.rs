//! What one review costs: read the pod, match, inject, write the patch. The budget is that sets which do not match cost
//! nothing, and that a pod nothing matches takes less than 20 µs beside 1,000 sets.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use pillion_api::{Meaning, review};
use pillion_inject::{Candidate, Installation, Namespace, PodHead, SetIndex, inject};
use serde_json::{Value, json};

/// A pod as the API server sends it.
const REVIEW: &str = include_str!("../../../e2e/fixtures/admission-review-pod-of-replicaset.json");

fn pod(app: &str) -> Vec<u8> {
    let mut pod = serde_json::from_str::<Value>(REVIEW).expect("the fixture is JSON")["request"]["object"].take();
    pod["metadata"]["labels"] = json!({"app": app, "sidecar": "on", "pod-template-hash": "6d4b75cb6d"});
    serde_json::to_vec(&pod).expect("JSON can be written")
}

/// A set for pods of one app, with a computed size, a volume and variables to copy.
fn set(name: &str, app: &str) -> Meaning {
    let object = json!({
        "apiVersion": "apps.kruise.io/v1alpha1", "kind": "SidecarSet", "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"app": app, "sidecar": "on"}},
            "volumes": [{"name": "logs", "emptyDir": {}}],
            "containers": [{
                "name": "proxy", "image": "proxy:1.9.2", "volumeMounts": [{"name": "logs", "mountPath": "/logs"}],
                "shareVolumePolicy": {"type": "enabled"},
                "resourcesPolicy": {"targetContainerMode": "sum", "resourceExpr": {
                    "limits": {"cpu": "max(cpu*50%, 50m)", "memory": "max(memory*20%, 64Mi)"},
                    "requests": {"cpu": "max(cpu*50%, 10m)", "memory": "max(memory*10%, 32Mi)"},
                }},
            }],
        },
    });
    review(&object).meaning.expect("the set is valid")
}

/// What the webhook does with the bytes of a pod.
fn answer(pod: &[u8], sets: &SetIndex, namespace: &Namespace) -> Option<Vec<u8>> {
    let head = PodHead::parse(pod).expect("the pod is JSON");
    let matching = sets.of_pod(&head, namespace);
    if matching.is_empty() && !head.is_marked() {
        return None;
    }
    let pod: Value = serde_json::from_slice(pod).expect("the pod is JSON");
    let candidates = matching.into_iter().map(|set| Candidate::latest(set));
    let decision = inject(&pod, namespace, candidates, Installation::default());
    Some(serde_json::to_vec(&decision.patch).expect("a patch can be written"))
}

fn reviews(criterion: &mut Criterion) {
    let namespace = Namespace::named("shop");
    let [matching, other] = ["checkout", "unheard-of"].map(pod);
    for (name, pod, is_answered) in [("matching", &matching, true), ("not matching", &other, false)] {
        let mut group = criterion.benchmark_group(name);
        for count in [1, 100, 1_000, 5_000] {
            let others = (1..count).map(|number| set(&format!("set-{number}"), &format!("app-{number}")));
            let sets = SetIndex::new(others.chain([set("mesh", "checkout")]));
            assert_eq!(answer(pod, &sets, &namespace).is_some(), is_answered);
            group.bench_with_input(BenchmarkId::from_parameter(format!("{count} sets")), &sets, |bencher, sets| {
                bencher.iter(|| answer(black_box(pod), sets, &namespace));
            });
        }
        group.finish();
    }
}

fn changes(criterion: &mut Criterion) {
    let mut sets = SetIndex::new((0..5_000).map(|number| set(&format!("set-{number}"), &format!("app-{number}"))));
    let changed = set("set-7", "app-7");
    criterion.bench_function("one of 5000 sets changes", |bencher| {
        bencher.iter(|| sets.insert(black_box(changed.clone())));
    });
}

criterion_group!(benches, reviews, changes);
criterion_main!(benches);
