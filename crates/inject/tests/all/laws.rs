//! What holds for every pod and every sets, tried on drawn ones.

use std::collections::BTreeSet;

use jiff::Timestamp;
use pillion_api::{Group, Meaning, Reason, Template};
use pillion_generators::{Admission, admission, law};
use pillion_inject::coverage::{Standing, standings};
use pillion_inject::{
    Candidate, Decision, Edit, Installation, MAX_RECORD, Namespace, Outcome, PodHead, SetIndex, inject, marks,
};
use proptest::prelude::{TestCaseError, prop_assert, prop_assert_eq};
use proptest::test_runner::TestCaseResult;
use serde_json::{Map, Value, json};

use crate::coverage::living;
use crate::undo::undo;

const CASES: u32 = 10_000;
const SETS: usize = 5;

/// A case with its sets compiled.
struct Case {
    pod: Value,
    namespace: Namespace,
    sets: Vec<Meaning>,
    index: SetIndex,
}

impl Case {
    fn of(admission: &Admission) -> Self {
        let namespace =
            Namespace { name: admission.namespace.name.clone(), labels: admission.namespace.labels.clone() };
        let sets = admission.meanings();
        let index = SetIndex::new(sets.iter().cloned());
        Self { pod: admission.pod.clone(), namespace, sets, index }
    }

    fn matching(&self) -> Vec<&Meaning> {
        self.matching_pod(&self.pod)
    }

    fn matching_pod(&self, pod: &Value) -> Vec<&Meaning> {
        let bytes = pod.to_string();
        let head = PodHead::parse(bytes.as_bytes()).expect("a drawn pod is JSON");
        let names: BTreeSet<String> =
            self.index.of_pod(&head, &self.namespace).iter().map(|set| set.name.clone()).collect();
        self.sets.iter().filter(|set| names.contains(&set.name)).collect()
    }

    fn decide<'a>(&'a self, pod: &'a Value, sets: &[&'a Meaning]) -> Decision<'a> {
        inject(pod, &self.namespace, sets.iter().map(|set| Candidate::latest(set)), Installation::default())
    }
}

/// Drawing costs more than deciding, so one drawing serves all of them.
#[test]
fn the_laws_hold() {
    type Law = fn(&Case) -> TestCaseResult;
    let laws: [(&str, Law); 7] = [
        ("reviewing twice changes nothing the second time", reviewing_twice_changes_nothing_the_second_time),
        ("nothing but our additions changes", nothing_but_our_additions_changes),
        ("the order of the sets does not matter", the_order_of_the_sets_does_not_matter),
        ("another JSON patch gives the same pod", another_implementation_of_json_patch_gives_the_same_pod),
        ("an edit does to a pod what it did before", an_edit_does_to_an_injected_pod_what_it_does_to_the_pod_it_was),
        ("a pod tells what was decided", a_pod_that_exists_tells_what_was_decided),
        ("every decision has one fitting reason", every_decision_has_one_reason_that_fits_what_came_of_it),
    ];
    law(CASES, &admission(SETS), |drawn| {
        let case = Case::of(&drawn);
        for (name, law) in laws {
            law(&case).map_err(|broken| TestCaseError::fail(format!("{name}: {broken}")))?;
        }
        Ok(())
    });
}

fn reviewing_twice_changes_nothing_the_second_time(case: &Case) -> TestCaseResult {
    let sets = case.matching();
    let Some(after) = case.decide(&case.pod, &sets).pod else { return Ok(()) };
    // Also which sets are asked is the same: the labels they added bring no others.
    let asked = case.matching_pod(&after);
    let names = |sets: &[&Meaning]| sets.iter().map(|set| set.name.clone()).collect::<Vec<_>>();
    prop_assert_eq!(names(&asked), names(&sets));
    let again = case.decide(&after, &asked);
    prop_assert_eq!(serde_json::to_value(&again.patch)?, json!([]));
    prop_assert!(!again.is_refused());
    Ok(())
}

/// Nothing that was decided about a pod makes it one that was missed.
fn a_pod_that_exists_tells_what_was_decided(case: &Case) -> TestCaseResult {
    let sets = case.matching();
    let decision = case.decide(&case.pod, &sets);
    if decision.is_refused() {
        return Ok(());
    }
    let pod = decision.pod.as_ref().unwrap_or(&case.pod);
    let Some(living) = living(pod, 1) else { return Ok(()) };
    let found =
        standings(&living, &case.namespace, &case.index, Installation::default(), |_| Some(Timestamp::UNIX_EPOCH));
    let all_observe = decision.verdicts.iter().all(|verdict| verdict.outcome == Outcome::Observed);
    if all_observe && pod["metadata"]["annotations"].get(marks::INJECTED_SETS).is_some() {
        // A pod with a list that nobody had reason to look at.
        return Ok(());
    }
    for verdict in &decision.verdicts {
        let is_excluded = verdict.reason == Reason::NamespaceExcluded;
        let expected = match verdict.outcome {
            _ if is_excluded => None,
            Outcome::Applied | Outcome::Kept => Some(Standing::Carries),
            // A pod that nobody but observers looked at has no record.
            Outcome::Observed if all_observe => Some(Standing::Excused(Reason::Observed)),
            _ => Some(Standing::LeftOut(verdict.reason)),
        };
        prop_assert_eq!(found.get(verdict.set).copied(), expected, "{}", verdict.set);
    }
    Ok(())
}

fn nothing_but_our_additions_changes(case: &Case) -> TestCaseResult {
    let sets = case.matching();
    let decision = case.decide(&case.pod, &sets);
    let Some(after) = &decision.pod else { return Ok(()) };
    let applied: Vec<&Meaning> = decision
        .verdicts
        .iter()
        .filter(|verdict| verdict.outcome == Outcome::Applied)
        .filter_map(|verdict| sets.iter().find(|set| set.name == verdict.set).copied())
        .collect();
    let undone = undo(&case.pod, after, &applied).map_err(TestCaseError::fail)?;
    prop_assert_eq!(&undone, &case.pod);
    Ok(())
}

/// What was overwritten is not known any more, so pods that have of their own what a set gives are not asked about.
fn an_edit_does_to_an_injected_pod_what_it_does_to_the_pod_it_was(case: &Case) -> TestCaseResult {
    let sets = case.matching();
    if sets.iter().any(|set| has_its_own(&case.pod, &set.template)) {
        return Ok(());
    }
    let Some(injected) = case.decide(&case.pod, &sets).pod else { return Ok(()) };
    for (set, other) in sets.iter().zip(sets.iter().cycle().skip(1)) {
        let edited = Meaning { template: other.template.clone(), ..(*set).clone() };
        for after in [None, Some(&edited)] {
            let edit = Edit::new(&set.name, Some(set), after, &case.index);
            let expected = edit.effect(&case.pod, &case.namespace, Installation::default());
            let effect = edit.effect_on_existing(&injected, &case.namespace, Installation::default());
            prop_assert_eq!(effect, expected);
        }
    }
    Ok(())
}

/// Whether a pod has something of a name that a set gives.
fn has_its_own(pod: &Value, template: &Template) -> bool {
    let (metadata, spec) = (&pod["metadata"], &pod["spec"]);
    let named = |list: &str, name: &str| spec[list].as_array().into_iter().flatten().any(|item| item["name"] == name);
    template.labels.keys().any(|key| metadata["labels"].get(key).is_some())
        || template.annotations.iter().any(|patch| metadata["annotations"].get(&patch.key).is_some())
        || template.volumes.iter().any(|volume| named("volumes", &volume.name))
        || template.image_pull_secrets.iter().any(|secret| named("imagePullSecrets", secret))
        || spec.get("shareProcessNamespace").is_some_and(|_| template.share_process_namespace.is_some())
        || spec.get("serviceAccountName").is_some_and(|_| template.service_account_name.is_some())
}

fn the_order_of_the_sets_does_not_matter(case: &Case) -> TestCaseResult {
    let mut sets = case.matching();
    let bytes = |sets: &[&Meaning]| {
        let decision = case.decide(&case.pod, sets);
        let verdicts: Vec<_> = decision.verdicts.iter().map(|it| (it.set.to_owned(), it.reason)).collect();
        (serde_json::to_string(&decision.patch).expect("a patch can be written"), verdicts)
    };
    let first = bytes(&sets);
    sets.reverse();
    prop_assert_eq!(&bytes(&sets), &first);
    if !sets.is_empty() {
        sets.rotate_left(1);
    }
    prop_assert_eq!(&bytes(&sets), &first);
    Ok(())
}

#[test]
fn a_pod_that_nothing_concerns_only_loses_marks_nothing_stands_behind() {
    law(CASES, &admission(1), |drawn| {
        let case = Case::of(&drawn);
        let decision = case.decide(&case.pod, &[]);
        prop_assert!(decision.verdicts.is_empty());
        let ours = [
            marks::DECISION.replace('/', "~1"),
            marks::CONTAINERS.replace('/', "~1"),
            marks::INJECTED_SETS.replace('/', "~1"),
            marks::INJECTED_LABEL.replace('/', "~1"),
            pillion_api::REVISIONS.replace('/', "~1"),
        ];
        for operation in serde_json::to_value(&decision.patch)?.as_array().into_iter().flatten() {
            let path = operation["path"].as_str().unwrap_or_default();
            prop_assert!(ours.iter().any(|mark| path.ends_with(mark.as_str())), "{}", operation);
        }
        let bytes = case.pod.to_string();
        let head = PodHead::parse(bytes.as_bytes())?;
        prop_assert!(head.is_marked() || decision.patch.is_empty());
        Ok(())
    });
}

fn another_implementation_of_json_patch_gives_the_same_pod(case: &Case) -> TestCaseResult {
    let decision = case.decide(&case.pod, &case.matching());
    let Some(after) = &decision.pod else { return Ok(()) };
    let patch: json_patch::Patch = serde_json::from_value(serde_json::to_value(&decision.patch)?)?;
    let mut patched = case.pod.clone();
    json_patch::patch(&mut patched, &patch).map_err(|error| TestCaseError::fail(error.to_string()))?;
    prop_assert_eq!(&patched, after);
    Ok(())
}

fn every_decision_has_one_reason_that_fits_what_came_of_it(case: &Case) -> TestCaseResult {
    let sets = case.matching();
    let decision = case.decide(&case.pod, &sets);
    let mut names: Vec<&str> = sets.iter().map(|set| set.name.as_str()).collect();
    names.sort_unstable();
    prop_assert_eq!(decision.verdicts.iter().map(|verdict| verdict.set).collect::<Vec<_>>(), names);
    for verdict in &decision.verdicts {
        let stops = verdict.reason.group() == Group::Refusal && verdict.reason.code() < "PL350";
        let fits = match verdict.outcome {
            Outcome::Applied => matches!(verdict.reason, Reason::Injected | Reason::OptOutNotAllowed),
            Outcome::Kept => verdict.reason == Reason::AlreadyInjected,
            Outcome::Skipped => matches!(
                verdict.reason,
                Reason::InjectionPaused | Reason::OptedOut | Reason::NamespaceExcluded | Reason::MirrorPod
            ),
            Outcome::Ignored | Outcome::Refused => stops,
            Outcome::Observed => stops || verdict.reason == Reason::Observed,
        };
        prop_assert!(fits, "{:?} for {:?}", verdict.reason, verdict.outcome);
        prop_assert!(!verdict.message.is_empty());
    }
    prop_assert_eq!(decision.is_refused(), decision.verdicts.iter().any(|it| it.outcome == Outcome::Refused));
    prop_assert!(!decision.is_refused() || decision.patch.is_empty());
    Ok(())
}

#[test]
fn the_record_stays_within_its_cap_with_200_matching_sets() {
    // Sets are costly to draw; pods are not.
    let many: Vec<Value> = (0..200).map(everywhere).collect();
    let many: Vec<Meaning> =
        many.iter().map(|set| pillion_api::review(set).meaning.expect("the set is valid")).collect();
    let sets: Vec<&Meaning> = many.iter().collect();
    law(CASES / 10, &admission(0), |drawn| {
        let mut case = Case::of(&drawn);
        case.namespace = Namespace::named("shop");
        let decision = case.decide(&case.pod, &sets);
        let Some(after) = decision.pod else { return Ok(()) };
        let record = after.pointer("/metadata/annotations/pillion.dev~1decision").and_then(Value::as_str);
        let record = record.ok_or_else(|| TestCaseError::fail("there is no record"))?;
        prop_assert!(record.len() <= MAX_RECORD, "{} bytes", record.len());
        prop_assert_eq!(serde_json::to_value(&case.decide(&after, &sets).patch)?, json!([]));
        Ok(())
    });
}

/// A set that matches every pod, and is applied or has a long reason not to be.
fn everywhere(number: usize) -> Value {
    let policy = json!({"targetContainerMode": "sum", "resourceExpr": {"requests": {"cpu": "cpu*50% + 1m"}},
        "targetContainersNameRegex": if number.is_multiple_of(3) { "nobody-is-called-this" } else { ".*" }});
    json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "SidecarSet",
    "metadata": {"name": format!("a-set-with-a-rather-long-name-{number}")},
    "spec": {
        "selector": {"matchExpressions": [{"key": "nobody/has-this", "operator": "DoesNotExist"}]},
        "failurePolicy": "Ignore",
        "containers": [{"name": format!("sidecar-{number}"), "image": "i", "resourcesPolicy": policy}],
    }})
}

#[test]
fn what_is_no_pod_is_refused_and_never_panics() {
    law(CASES, &pillion_generators::mutated(pillion_generators::pod()), |pod| {
        let set = pillion_api::review(&everywhere(1)).meaning.expect("the set is valid");
        let decision = inject(&pod, &Namespace::named("shop"), [Candidate::latest(&set)], Installation::default());
        prop_assert_eq!(decision.verdicts.len(), 1);
        Ok(())
    });
}

#[test]
fn labels_are_read_from_the_bytes_as_from_the_json() {
    law(CASES, &pillion_generators::pod(), |pod| {
        let bytes = pod.to_string();
        let head = PodHead::parse(bytes.as_bytes())?;
        let read: Map<String, Value> =
            head.labels().iter().map(|(key, value)| (key.to_string(), json!(value))).collect();
        let labels = pod.pointer("/metadata/labels").and_then(Value::as_object).cloned().unwrap_or_default();
        prop_assert_eq!(read, labels);
        Ok(())
    });
}
