//! How often things meet: what is drawn must stay worth a test.

use std::collections::BTreeMap;

use pillion_api::{Meaning, PatchPolicy, Reason, Sidecar};
use pillion_expr::Outcome as Computed;
use pillion_generators::{Admission, admission, pod};
use pillion_inject::{Candidate, Decision, Installation, Namespace, Outcome, inject, mismatch};
use serde_json::{Map, Value};

use crate::laws::some;

const CASES: usize = 1_000;
/// How many of the cases must have each of the things below.
const LEAST: usize = 4;

/// Why sets are applied, or are not, or what is said about it: all that a pod as it is drawn can come to.
const REASONS: [Reason; 23] = [
    Reason::Injected,
    Reason::InjectionPaused,
    Reason::OptedOut,
    Reason::OptOutNotAllowed,
    Reason::Observed,
    Reason::NamespaceExcluded,
    Reason::MirrorPod,
    Reason::NegativeResult,
    Reason::NoTarget,
    Reason::RequestAboveLimit,
    Reason::ZeroLimit,
    Reason::AmountOutOfRange,
    Reason::ContainerClash,
    Reason::VolumeClash,
    Reason::VolumeMissing,
    Reason::MountClash,
    Reason::ServiceAccountClash,
    Reason::ProcessNamespaceClash,
    Reason::LabelClash,
    Reason::MergeNotJson,
    Reason::SetsClash,
    Reason::LowersPodSecurity,
    Reason::EnvNotFound,
];

/// A set that was applied to a pod.
struct Applied<'a> {
    before: &'a Value,
    after: &'a Value,
    set: &'a Meaning,
}

/// Whether a set that was applied is an example of something.
type LookAtApplied = fn(&Applied<'_>) -> bool;
/// Whether a pod is.
type LookAtPod = fn(&Value) -> bool;

/// What happens to pods besides, by a look for it.
const APPLIED: [(&str, LookAtApplied); 13] = [
    ("a container", |it| !it.set.template.containers.is_empty()),
    ("a native sidecar", |it| it.sidecars().any(|own| own.container.get("restartPolicy").is_some())),
    ("a volume the pod has already", |it| {
        it.set
            .template
            .volumes
            .iter()
            .any(|own| items(&it.before["spec"], "volumes").any(|pod| pod["name"] == own.name))
    }),
    ("a mount for the pod's containers", |it| !it.set.template.app_volume_mounts.is_empty()),
    ("mounts of the pod's containers", |it| it.has_more("volumeMounts")),
    ("devices of the pod's containers", |it| it.has_more("volumeDevices")),
    ("variables of the pod's containers", |it| {
        it.sidecars().any(|own| !own.transfers.is_empty()) && it.has_more("env")
    }),
    ("variables for the paths of mounts", |it| it.sidecars().all(|own| own.transfers.is_empty()) && it.has_more("env")),
    ("an account, and no default token", |it| {
        it.before.to_string().contains("kube-api-access-") && !it.after.to_string().contains("kube-api-access-")
    }),
    ("an annotation it has kept", |it| it.had_annotation(PatchPolicy::Retain)),
    ("another annotation", |it| it.had_annotation(PatchPolicy::Overwrite)),
    ("a merged annotation", |it| it.had_annotation(PatchPolicy::MergePatchJson)),
    ("a secret it has already", |it| {
        let has = |name: &String| items(&it.before["spec"], "imagePullSecrets").any(|own| own["name"] == *name);
        it.set.template.image_pull_secrets.iter().any(has)
    }),
];

impl Applied<'_> {
    fn sidecars(&self) -> impl Iterator<Item = &Sidecar> {
        self.set.template.init_containers.iter().chain(&self.set.template.containers)
    }

    /// Whether a sidecar has more in a list than it brought, our mark aside.
    fn has_more(&self, list: &str) -> bool {
        let spec = &self.after["spec"];
        self.sidecars().any(|own| {
            let mut all = items(spec, "initContainers").chain(items(spec, "containers"));
            let there = all.find(|it| it["name"] == own.name).unwrap();
            let brought = own.container.get(list).and_then(Value::as_array).map_or(0, Vec::len);
            items(there, list).filter(|it| it["name"] != "IS_INJECTED").count() > brought
        })
    }

    fn had_annotation(&self, policy: PatchPolicy) -> bool {
        let mut patches = self.set.template.annotations.iter().filter(|patch| patch.policy == policy);
        patches.any(|patch| self.before["metadata"]["annotations"].get(&patch.key).is_some())
    }
}

fn items<'a>(object: &'a Value, list: &str) -> impl Iterator<Item = &'a Value> {
    object[list].as_array().into_iter().flatten()
}

fn ask<'a>(case: &'a Admission, sets: &'a [Meaning]) -> Decision<'a> {
    let namespace = Namespace { name: case.namespace.name.clone(), labels: case.namespace.labels.clone() };
    let empty = Map::new();
    let labels = case.pod["metadata"]["labels"].as_object().unwrap_or(&empty);
    let label = |key: &str| labels.get(key).and_then(Value::as_str);
    let matching = sets.iter().filter(|set| mismatch(set, label, &namespace).is_none());
    inject(&case.pod, &namespace, matching.map(Candidate::latest), Installation::default())
}

#[test]
fn pods_and_sets_meet_in_every_way_and_none_too_often() {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut count = |what| *counts.entry(what).or_default() += 1;
    let (mut selected, mut twice, mut selecting, mut injected) = (0, 0, 0, 0);
    for case in some(admission(5), CASES) {
        let sets = case.meanings();
        let decision = ask(&case, &sets);
        selected += usize::from(!decision.verdicts.is_empty());
        twice += usize::from(decision.verdicts.len() > 1);
        selecting += decision.verdicts.len();
        for verdict in &decision.verdicts {
            count(verdict.reason.name());
            verdict.warnings.iter().for_each(|warning| count(warning.reason.name()));
            verdict.sizes.iter().for_each(|size| {
                count(if size.result == Computed::Unlimited { "a size without a limit" } else { "a size" });
            });
            if verdict.outcome == Outcome::Applied {
                injected += 1;
            }
            if let Some(after) = decision.pod.as_ref().filter(|_| verdict.outcome == Outcome::Applied) {
                let set = sets.iter().find(|set| set.name == verdict.set).unwrap();
                let applied = Applied { before: &case.pod, after, set };
                APPLIED.iter().filter(|(_, look)| look(&applied)).for_each(|(what, _)| count(what));
            }
        }
    }
    let injected = injected * 100 / selecting;
    let [selected, twice] = [selected, twice].map(|it: usize| it * 100 / CASES);
    println!("{counts:#?}\n{selected} % selected, {twice} % by two or more; {injected} % of those sets inject");
    assert!((50..80).contains(&selected) && (15..50).contains(&twice) && (30..60).contains(&injected));
    let wanted = REASONS.map(Reason::name).into_iter().chain(APPLIED.map(|(what, _)| what));
    let rare: Vec<_> =
        wanted.map(|it| (it, counts.get(it).copied().unwrap_or_default())).filter(|it| it.1 < LEAST).collect();
    assert_eq!(rare, []);
}

/// What pods have, by a look for it.
const PODS: [(&str, LookAtPod); 26] = [
    ("a name", |pod| pod["metadata"].get("name").is_some()),
    ("a prefix of a name", |pod| pod["metadata"].get("generateName").is_some()),
    ("no labels", |pod| pod["metadata"].get("labels").is_none()),
    ("an owner", |pod| pod["metadata"].get("ownerReferences").is_some()),
    ("a forged record", |pod| pod["metadata"]["annotations"].get("pillion.dev/decision").is_some()),
    ("a forged label", |pod| pod["metadata"]["labels"].get("pillion.dev/injected").is_some()),
    ("an empty map", |pod| pod["metadata"]["labels"].as_object().is_some_and(Map::is_empty)),
    ("an empty list", |pod| any(pod, |it| it["volumeMounts"].as_array().is_some_and(Vec::is_empty))),
    ("a list that is null", |pod| any(pod, |it| it.get("env") == Some(&Value::Null))),
    ("init containers", |pod| items(&pod["spec"], "initContainers").next().is_some()),
    ("a native sidecar", |pod| items(&pod["spec"], "initContainers").any(|it| it["restartPolicy"] == "Always")),
    ("limits only", |pod| {
        any(pod, |it| it["resources"]["limits"].is_object() && it["resources"]["requests"].is_null())
    }),
    ("requests only", |pod| {
        any(pod, |it| it["resources"]["limits"].is_null() && it["resources"]["requests"].is_object())
    }),
    ("no resources", |pod| any(pod, |it| it.get("resources").is_none())),
    ("an amount that is a number", |pod| any(pod, |it| it["resources"]["limits"]["cpu"].is_number())),
    ("a value from elsewhere", |pod| any(pod, |it| items(it, "env").any(|it| it.get("valueFrom").is_some()))),
    ("a path from a variable", |pod| {
        any(pod, |it| items(it, "volumeMounts").any(|it| it.get("subPathExpr").is_some()))
    }),
    ("a device", |pod| any(pod, |it| items(it, "volumeDevices").next().is_some())),
    ("a default token", |pod| pod["spec"]["volumes"].to_string().contains("kube-api-access-")),
    ("the account default", |pod| pod["spec"]["serviceAccountName"] == "default"),
    ("another account", |pod| pod["spec"]["serviceAccountName"] == "builder"),
    ("no account", |pod| pod["spec"].get("serviceAccountName").is_none()),
    ("the processes of its node", |pod| pod["spec"]["hostPID"] == true),
    ("an unknown field of its own", |pod| pod.get("fieldOfTomorrow").is_some()),
    ("an unknown field of a container", |pod| any(pod, |it| it.get("odd~name").is_some())),
    ("an unknown field of a variable", |pod| any(pod, |it| items(it, "env").any(|it| it.get("odd/name").is_some()))),
];

fn any(pod: &Value, holds: fn(&Value) -> bool) -> bool {
    items(&pod["spec"], "containers").any(holds)
}

#[test]
fn pods_have_all_that_pods_have() {
    let pods: Vec<Value> = some(pod(), CASES).collect();
    let counts = PODS.map(|(what, look)| (what, pods.iter().filter(|pod| look(pod)).count()));
    println!("{counts:?}");
    let rare: Vec<_> = counts.iter().filter(|(_, count)| *count < LEAST).collect();
    assert_eq!(rare, Vec::<&(&str, usize)>::new());
}
