//! How often things meet: what is drawn must stay worth a test.

use std::collections::BTreeMap;

use pillion_generators::{admission, pod};
use serde_json::Value;

use crate::laws::some;
use crate::situation::{Situation, met};

const CASES: usize = 1_000;
/// How many of the cases must meet each situation.
const LEAST: usize = 4;

#[test]
fn pods_and_sets_meet_in_every_way_and_none_too_often() {
    let mut counts: BTreeMap<Situation, usize> = BTreeMap::new();
    let (mut selecting, mut clean) = (0, 0);
    for case in some(admission(5), CASES) {
        let (situations, selects, applies) = met(&case);
        for situation in situations {
            *counts.entry(situation).or_default() += 1;
        }
        selecting += selects;
        clean += applies;
    }
    println!("{counts:#?}\n{selecting} sets select a pod, {clean} have nothing against them");
    let percent = |situation| counts.get(&situation).copied().unwrap_or_default() * 100 / CASES;
    assert!((50..80).contains(&percent(Situation::Selected)), "{}", percent(Situation::Selected));
    assert!((15..50).contains(&percent(Situation::SelectedTwice)), "{}", percent(Situation::SelectedTwice));
    let clean = clean * 100 / selecting;
    assert!((30..60).contains(&clean), "{clean}");
    let rare: Vec<_> = counts.iter().filter(|(_, count)| **count < LEAST).collect();
    assert_eq!(rare, []);
    assert_eq!(counts.len(), Situation::LAST as usize + 1, "{:?}", counts.keys());
}

/// What pods have, by a look for it.
type Look = (&'static str, fn(&Value) -> bool);

const POD_HAS: [Look; 24] = [
    ("a name", |pod| pod["metadata"].get("name").is_some()),
    ("a prefix of a name", |pod| pod["metadata"].get("generateName").is_some()),
    ("no labels", |pod| pod["metadata"].get("labels").is_none()),
    ("an owner", |pod| pod["metadata"].get("ownerReferences").is_some()),
    ("an empty map", |pod| pod.to_string().contains("\"labels\":{}")),
    ("an empty list", |pod| pod.to_string().contains("\"volumeMounts\":[]")),
    ("a list that is null", |pod| pod.to_string().contains("\"env\":null")),
    ("init containers", |pod| pod["spec"]["initContainers"].as_array().is_some_and(|it| !it.is_empty())),
    ("a native sidecar", |pod| {
        pod["spec"]["initContainers"].as_array().into_iter().flatten().any(|it| it["restartPolicy"] == "Always")
    }),
    ("limits only", |pod| {
        any(pod, |it| it["resources"]["limits"].is_object() && it["resources"]["requests"].is_null())
    }),
    ("requests only", |pod| {
        any(pod, |it| it["resources"]["limits"].is_null() && it["resources"]["requests"].is_object())
    }),
    ("no resources", |pod| any(pod, |it| it.get("resources").is_none())),
    ("an amount that is a number", |pod| any(pod, |it| it["resources"]["limits"]["cpu"].is_number())),
    ("a value from elsewhere", |pod| pod.to_string().contains("secretKeyRef")),
    ("a path from a variable", |pod| pod.to_string().contains("subPathExpr")),
    ("a device", |pod| pod.to_string().contains("devicePath")),
    ("a default token", |pod| pod.to_string().contains("kube-api-access-")),
    ("the account default", |pod| pod["spec"]["serviceAccountName"] == "default"),
    ("another account", |pod| pod["spec"]["serviceAccountName"] == "builder"),
    ("no account", |pod| pod["spec"].get("serviceAccountName").is_none()),
    ("the processes of its node", |pod| pod["spec"]["hostPID"] == true),
    ("a mark that it is a mirror", |pod| pod.to_string().contains("config.mirror")),
    ("an unknown field of the pod itself", |pod| pod.get("fieldOfTomorrow").is_some()),
    ("an unknown field of a container", |pod| any(pod, |it| it.get("odd~name").is_some())),
];

fn any(pod: &Value, holds: fn(&Value) -> bool) -> bool {
    pod["spec"]["containers"].as_array().into_iter().flatten().any(holds)
}

#[test]
fn pods_have_all_that_pods_have() {
    let pods: Vec<Value> = some(pod(), CASES).collect();
    let counts = POD_HAS.map(|(what, look)| (what, pods.iter().filter(|pod| look(pod)).count()));
    println!("{counts:#?}");
    let rare: Vec<_> = counts.iter().filter(|(_, count)| *count < LEAST).collect();
    assert_eq!(rare, Vec::<&(&str, usize)>::new());
}
