//! The cost of a hostile set: time in proportion to its size, and a bounded number of problems.

use std::time::Duration;

use pillion_api::{clashes, ratchet, review, validate_write};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

use crate::sets::good;

const SMALL: usize = 500;
const TIMES: usize = 8;
/// Kinds whose items are compared with one another. A comparison is cheap, so that only very many of them show in the time.
const COMPARED: [&str; 2] = ["both lists", "app mounts"];
const MANY: usize = 2_000;

/// A set of each kind that once took time in proportion to the square of its size, or might.
fn sets(count: usize) -> Vec<(&'static str, Value)> {
    let list = |of: &dyn Fn(usize) -> Value| (0..count).map(of).collect::<Value>();
    let container = |at: usize| json!({"name": format!("c{at}"), "image": "i:1"});
    let specs = [
        ("containers", json!({"containers": list(&container)})),
        (
            "broken containers",
            json!({"containers": list(&|at| json!({"name": format!("c{at}"), "image": "",
            "imagePullPolicy": "Foo", "livenesProbe": {}, "ports": [{"containerPort": 99_999}], "env": [{"name": "A=B"}],
            "resources": {"limits": {"cpu": "-1", "memory": "much"}}}))}),
        ),
        ("names twice", json!({"containers": list(&|_| container(0)), "initContainers": list(&container)})),
        ("empty containers", json!({"containers": list(&|_| json!({}))})),
        ("both lists", json!({"containers": list(&container), "initContainers": list(&|at| container(count + at))})),
        (
            "volumes",
            json!({"volumes": list(&|at| json!({"name": format!("v{at}"), "emptyDir": {}})),
            "containers": [{"name": "c", "image": "i:1",
                "volumeMounts": list(&|at| json!({"name": format!("v{}", at + count / 2), "mountPath": format!("/{at}")}))}]}),
        ),
        (
            "app mounts",
            json!({"volumes": list(&|at| json!({"name": format!("v{at}"), "emptyDir": {}})),
            "appVolumeMounts": list(&|at| json!({"volume": format!("v{at}"), "path": format!("/{at}")}))}),
        ),
        (
            "variables",
            json!({"containers": [{"name": "c", "image": "i:1",
            "env": list(&|at| json!({"name": format!("A{}", at / 2), "value": "$(A1)"})),
            "ports": list(&|at| json!({"name": "p", "containerPort": at + 1, "hostPort": 80}))}]}),
        ),
        (
            "annotations",
            json!({"patchPodMetadata": list(&|at| json!({"annotations": {format!("k{}", at / 2): "v"}})),
            "labels": (0..count).map(|at| (format!("l{at}"), json!("-"))).collect::<serde_json::Map<_, _>>()}),
        ),
        (
            "selector",
            json!({"selector": {"matchExpressions": list(&|at| json!({"key": format!("k{}", at / 4), "operator": "In",
            "values": [format!("v{at}"), "-"]}))}}),
        ),
        ("unknown fields", (0..count).map(|at| (format!("f{at}"), json!(1))).collect::<serde_json::Map<_, _>>().into()),
    ];
    let set = |spec: &Value| {
        let mut object = good("mesh");
        json_patch::merge(&mut object, &json!({"spec": spec}));
        object
    };
    specs.iter().map(|(name, spec)| (*name, set(spec))).collect()
}

/// All that the webhook does with a set: it is validated twice for an update, and compared with another one.
fn validate(set: &Value) -> usize {
    let [new, old] = [validate_write(set), validate_write(set)];
    let of_clashes = new.meaning.as_ref().map_or(0, |meaning| {
        let mut other = meaning.clone();
        "other".clone_into(&mut other.name);
        clashes(meaning, [&other]).len()
    });
    ratchet((set, new.problems), (set, &old.problems)).len() + of_clashes
}

fn fastest(work: impl Fn()) -> Duration {
    let once = |_| {
        let began = cpu_time();
        work();
        cpu_time().checked_sub(began).unwrap()
    };
    (0..3).map(once).min().unwrap()
}

/// CPU time of this thread: other tests, and other machines of the host, take none of it.
fn cpu_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap()
}

#[test]
fn attack_the_time_for_a_set_grows_with_its_size_and_not_with_its_square() {
    review(&good("warm"));
    for ((name, small), (_, large)) in sets(SMALL).iter().zip(&sets(SMALL * TIMES)) {
        check_growth(name, small, large);
    }
    let [small, large] = [MANY, MANY * TIMES].map(sets);
    for ((name, small), (_, large)) in small.iter().zip(&large).filter(|((name, _), _)| COMPARED.contains(name)) {
        check_growth(name, small, large);
    }
}

fn check_growth(name: &str, small: &Value, large: &Value) {
    let [of_small, of_large] = [small, large].map(|set| fastest(|| assert!(validate(set) < 40_000)));
    // Twice as much as in proportion; the square would be eight times as much.
    let allowed = of_small.max(Duration::from_millis(2)) * u32::try_from(TIMES).unwrap() * 2;
    assert!(of_large < allowed, "{name}: {of_small:?} for a set, {of_large:?} for one {TIMES} times as large");
}

#[test]
fn attack_the_problems_of_a_set_are_bounded() {
    for (name, set) in sets(5_000) {
        let problems = validate_write(&set).problems.len();
        assert!(problems <= 4_000, "{name}: {problems}");
    }
}
