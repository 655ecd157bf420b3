//! What holds of everything that is drawn.

use std::collections::BTreeSet;

use pillion_api::{Reason, review, sidecar_set_schema};
use pillion_expr::{Field, Program};
use pillion_generators::{
    Shape, admission, any_json, declared_fields, expression, given_fields, law, mutated, namespace, pod, sidecar_set,
    sidecar_set_of, sidecar_sets,
};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use serde_json::Value;

/// The first so many of a strategy.
pub(crate) fn some<S: Strategy>(strategy: S, count: usize) -> impl Iterator<Item = S::Value> {
    let mut runner = TestRunner::new(Config { rng_seed: RngSeed::Fixed(1), ..Config::default() });
    (0..count).map(move |_| strategy.new_tree(&mut runner).unwrap().current())
}

#[test]
fn no_set_has_an_error() {
    law(1_000, &sidecar_set(), |set| {
        let review = review(&set);
        prop_assert_eq!(review.errors().map(ToString::to_string).collect::<Vec<_>>(), Vec::<String>::new());
        prop_assert!(review.meaning.is_some());
        Ok(())
    });
}

#[test]
fn sets_drawn_together_have_names_of_their_own_and_are_small_if_asked() {
    law(50, &sidecar_sets(30), |sets| {
        let names: BTreeSet<&str> = sets.iter().map(|set| set["metadata"]["name"].as_str().unwrap()).collect();
        prop_assert_eq!(names.len(), 30);
        Ok(())
    });
    let small = Shape { sidecars: 1, unknown_percent: 0, ..Shape::default() };
    law(100, &sidecar_set_of(small), |set| {
        for list in ["containers", "initContainers"] {
            prop_assert!(set["spec"][list].as_array().map_or(0, Vec::len) <= 1);
        }
        Ok(())
    });
}

#[test]
fn a_namespace_has_the_label_of_its_name() {
    let mut names = BTreeSet::new();
    for namespace in some(namespace(), 500) {
        assert_eq!(namespace.labels.get("kubernetes.io/metadata.name"), Some(&namespace.name));
        names.insert(namespace.name);
    }
    assert_eq!(names.iter().map(String::as_str).collect::<Vec<_>>(), ["default", "kube-system", "payments", "shop"]);
}

#[test]
fn a_pod_that_names_its_namespace_names_the_one_it_is_in() {
    law(300, &admission(1), |case| {
        let named = &case.pod["metadata"]["namespace"];
        prop_assert!(named.is_null() || *named == case.namespace.name);
        Ok(())
    });
}

#[test]
fn every_expression_compiles_and_some_bend() {
    let mut texts = BTreeSet::new();
    for field in Field::ALL {
        let mut knees = 0;
        for text in some(expression(field), 500) {
            let program = Program::compile(&text, field);
            assert!(program.is_ok(), "{field}: {text}");
            knees += usize::from(program.unwrap().analysis().knees().len() > 0);
            texts.insert(text);
        }
        assert!((100..450).contains(&knees), "{knees} of 500 for {field} have a knee");
    }
    assert!(texts.len() > 450, "only {} different ones", texts.len());
}

#[test]
fn every_field_of_a_set_is_given_by_some() {
    let mut given = BTreeSet::new();
    for set in some(sidecar_set(), 2_000) {
        given.extend(given_fields(&set["spec"]));
    }
    let declared = declared_fields(&sidecar_set_schema()["properties"]["spec"]);
    let missing: Vec<_> = declared.difference(&given).map(String::as_str).collect();
    // Both are refused.
    assert_eq!(missing, [".containers.upgradeStrategy.hotUpgradeEmptyImage", ".customVersion"]);
}

#[test]
fn what_is_broken_is_refused_for_many_reasons_and_never_for_none() {
    let mut reasons = BTreeSet::new();
    let (mut refused, mut same) = (0, 0);
    let pairs = sidecar_set().prop_flat_map(|set| (Just(set.clone()), mutated(Just(set))));
    for (whole, object) in some(pairs, 2_500) {
        let review = review(&object);
        assert_eq!(review.meaning.is_none(), review.errors().count() > 0, "{object:#}");
        refused += usize::from(review.meaning.is_none());
        same += usize::from(object == whole);
        reasons.extend(review.errors().map(|problem| problem.reason));
    }
    assert!((1_000..2_250).contains(&refused), "{refused} of 2500 are refused");
    assert!(same < 125, "{same} of 2500 are as they were");
    // One set alone has no conflict.
    reasons.insert(Reason::ConflictsWithSet);
    let never: Vec<Reason> =
        Reason::ALL.iter().copied().filter(|it| it.code() < "PL151" && !reasons.contains(it)).collect();
    // Chance may miss a rare one.
    assert!(never.len() <= 2, "{never:?}");
}

#[test]
fn the_same_seed_gives_the_same() {
    let same = |one: Vec<Value>, other: Vec<Value>| {
        assert!(one == other, "two draws of one seed differ");
        assert!(one.windows(2).any(|pair| pair[0] != pair[1]));
    };
    same(some(pod(), 20).collect(), some(pod(), 20).collect());
    same(some(sidecar_set(), 20).collect(), some(sidecar_set(), 20).collect());
    same(some(any_json(), 20).collect(), some(any_json(), 20).collect());
}
