//! What holds of every set.

use pillion_api::{Review, SidecarSet, review, validate_write};
use pillion_generators::{any_json, law, mutated, sidecar_set};
use proptest::prelude::*;
use serde_json::json;

use crate::spelling;

/// How many cases a run tries; the environment can ask for more.
const CASES: u32 = 512;

/// A refusal has words, and only a refusal is without a meaning.
fn is_fair(review: &Review) -> Result<(), TestCaseError> {
    prop_assert_eq!(review.meaning.is_none(), review.errors().count() > 0);
    for problem in &review.problems {
        prop_assert!(!problem.message.is_empty() && !problem.help.is_empty(), "{}", problem);
    }
    Ok(())
}

#[test]
fn reading_and_writing_keeps_every_byte_of_a_valid_set() {
    law(CASES, &sidecar_set(), |object| {
        let review = review(&object);
        prop_assert_eq!(review.errors().collect::<Vec<_>>(), Vec::<&pillion_api::Problem>::new());
        let typed: SidecarSet = serde_json::from_value(object.clone()).unwrap();
        prop_assert_eq!(serde_json::to_value(&typed).unwrap(), object);
        prop_assert_eq!(typed.meaning().unwrap(), review.meaning.unwrap());
        Ok(())
    });
}

#[test]
fn both_spellings_mean_the_same() {
    law(CASES, &sidecar_set(), |object| {
        let (ours, theirs) = (review(&object), review(&spelling::of_openkruise(&object)));
        prop_assert_eq!(ours.meaning, theirs.meaning);
        // Their places differ, what is said does not.
        let said = |problems: Vec<pillion_api::Problem>| {
            problems.into_iter().map(|it| (it.severity, it.reason, it.message, it.help)).collect::<Vec<_>>()
        };
        prop_assert_eq!(said(ours.problems), said(theirs.problems));
        Ok(())
    });
}

#[test]
fn any_spec_is_judged_without_a_panic() {
    law(CASES, &any_json(), |spec| is_fair(&review(&json!({"metadata": {"name": "any"}, "spec": spec}))));
    law(CASES, &any_json(), |object| is_fair(&review(&object)));
}

#[test]
fn what_cannot_be_read_beside_the_spec_is_an_error_and_never_a_silence() {
    law(CASES, &(sidecar_set(), any_json(), any_json()), |(mut object, labels, status)| {
        object["metadata"]["labels"] = labels;
        object["status"] = status;
        is_fair(&review(&object))
    });
}

#[test]
fn one_break_is_an_error_or_none_and_never_a_panic() {
    law(CASES, &mutated(sidecar_set()), |object| is_fair(&review(&object)));
}

#[test]
fn any_template_is_validated_without_a_panic_and_never_changes_the_meaning() {
    let validated = |object: &serde_json::Value| {
        let (validation, review) = (validate_write(object), review(object));
        prop_assert!(validation.errors().count() >= review.errors().count().min(1));
        prop_assert_eq!(validation.meaning, review.meaning);
        for problem in &validation.problems {
            prop_assert!(!problem.message.is_empty() && !problem.help.is_empty(), "{}", problem);
        }
        Ok(())
    };
    law(CASES, &mutated(sidecar_set()), |object| validated(&object));
    law(CASES, &(any_json(), any_json()), |(container, volume)| {
        validated(&json!({"spec": {"containers": [container], "initContainers": container, "volumes": [volume]}}))
    });
}
