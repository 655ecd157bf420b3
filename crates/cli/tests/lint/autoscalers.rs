//! `VerticalPodAutoscaler`s, beside sets or alone.

use crate::asking::{CONTAINER, lint, lint_stdin, set};

const AUTOSCALER: &str = "apiVersion: autoscaling.k8s.io/v1\nkind: VerticalPodAutoscaler\nmetadata: {name: web}\nspec:\n  \
     targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}\n";

fn of(fields: &str) -> String {
    lint_stdin(&format!("{AUTOSCALER}{fields}"), &["-"])
}

#[test]
fn mistakes_are_pointed_at() {
    insta::assert_snapshot!(lint(&["examples/right-sizing/mistakes.yaml"]));
    insta::assert_snapshot!(lint(&["examples/right-sizing/mistakes.yaml", "-o", "json"]));
}

#[test]
fn a_good_one_is_counted_beside_sets() {
    assert_eq!(lint(&["examples/right-sizing/web.yaml"]), "status 0\n--- stderr\nno problems in 1 autoscaler\n");
    let both = format!("{AUTOSCALER}---\n{}", set("a", CONTAINER));
    assert!(lint_stdin(&both, &["-"]).ends_with("in 1 set and 1 autoscaler\n"), "{}", lint_stdin(&both, &["-"]));
}

#[test]
fn what_only_the_schema_can_tell_is_told_alone() {
    let said = of("  updatePolicy: {updateMode: Sometimes, minReplicas: few}\n");
    assert!(said.contains("error[PL101]: Unsupported value: \"Sometimes\""), "{said}");
    assert!(said.contains("must be of type integer"), "{said}");
    assert!(said.ends_with("2 errors in 1 autoscaler\n"), "{said}");
}

#[test]
fn what_the_schema_takes_and_nothing_can_read_is_told() {
    let wrong = AUTOSCALER.replace("{name: web}\nspec", "{name: web, labels: 3}\nspec");
    let said = lint_stdin(&wrong, &["-"]);
    assert!(said.contains("error[PL101]") && said.ends_with("1 error in 1 autoscaler\n"), "{said}");
}

#[test]
fn what_is_missing_is_named() {
    let said = of("  updatePolicy: {minReplicas: 2}\n");
    assert!(said.contains("error[PL601]: spec.updatePolicy.updateMode: is missing"), "{said}");
}

#[test]
fn what_upstream_would_serve_is_not_told_of_an_object_of_upstream() {
    let fields = "  updatePolicy: {updateMode: Recreate, evictAfterOOMSeconds: 300}\n";
    assert!(of(fields).ends_with("no problems in 1 autoscaler\n"), "{}", of(fields));
    let ours = format!("  recommenders: [{{name: pillion}}]\n{fields}");
    assert!(of(&ours).contains("warning[PL602]"), "{}", of(&ours));
}
