//! The table of sets that are refused, warned about or accepted: `tests/sets.yaml`. The e2e tests ask a real API server the
//! same questions.

use std::collections::BTreeSet;

use pillion_api::{Reason, Severity, review};
use serde::Deserialize;
use serde_json::{Value, json};

/// One line of the table.
#[derive(Deserialize)]
struct Case {
    name: String,
    /// Merged over a good set; null removes.
    patch: Value,
    verdict: Verdict,
    /// `schema` if the API server alone must say the same.
    #[serde(default)]
    judged_by: Option<String>,
    /// Reason code, place and part of the message of one problem.
    #[serde(default)]
    expect: Option<Expected>,
}

#[derive(Deserialize, Debug, PartialEq, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Refused,
    Warned,
    Accepted,
}

#[derive(Deserialize)]
struct Expected {
    code: String,
    path: String,
    message: String,
    #[serde(default)]
    also: Vec<String>,
}

fn cases() -> Vec<Case> {
    serde_saphyr::from_str(include_str!("../sets.yaml")).unwrap()
}

fn good() -> Value {
    json!({
        "apiVersion": "apps.kruise.io/v1alpha1", "kind": "SidecarSet", "metadata": {"name": "good"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "containers": [{"name": "proxy", "image": "proxy:1"}]},
    })
}

#[test]
fn every_set_gets_its_verdict_and_the_words_for_it() {
    let mut wrong = Vec::new();
    for case in cases() {
        let mut object = good();
        json_patch::merge(&mut object, &case.patch);
        let review = review(&object);
        let verdict = match review.problems.iter().map(|problem| problem.severity).min() {
            Some(Severity::Error) => Verdict::Refused,
            Some(Severity::Warning) => Verdict::Warned,
            None => Verdict::Accepted,
        };
        let told: Vec<String> = review.problems.iter().map(ToString::to_string).collect();
        let found = case.expect.as_ref().is_none_or(|expected| {
            review.problems.iter().any(|problem| {
                problem.reason.code() == expected.code
                    && problem.path.to_string() == expected.path
                    && format!("{}: {}", problem.message, problem.help).contains(&expected.message)
                    && problem.also.iter().map(ToString::to_string).collect::<Vec<_>>() == expected.also
            })
        });
        let one = usize::from(case.expect.is_some());
        if verdict != case.verdict || !found || told.len() != one {
            wrong.push(format!("{}: {verdict:?} {told:#?}", case.name));
        }
        assert_eq!(review.meaning.is_some(), verdict != Verdict::Refused, "{}", case.name);
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn the_table_is_large_enough_and_has_every_code_of_sets() {
    let cases = cases();
    let count = |verdict, schema: bool| {
        cases
            .iter()
            .filter(|case| case.verdict == verdict)
            .filter(|case| (case.judged_by.as_deref() == Some("schema")) == schema)
            .count()
    };
    assert!(count(Verdict::Refused, true) >= 30, "{}", count(Verdict::Refused, true));
    assert!(count(Verdict::Refused, false) >= 15, "{}", count(Verdict::Refused, false));
    let names: BTreeSet<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    assert_eq!(names.len(), cases.len());
    let codes: BTreeSet<&str> =
        cases.iter().filter_map(|case| case.expect.as_ref()).map(|it| it.code.as_str()).collect();
    let all = Reason::ALL.iter().map(|reason| reason.code()).filter(|code| code.starts_with("PL1"));
    assert_eq!(codes, all.collect());
}

#[test]
fn all_mistakes_are_told_at_once_and_an_expression_with_its_caret() {
    let mut object = good();
    json_patch::merge(
        &mut object,
        &json!({"spec": {"Mode": "Inject", "labels": {"a": "b c"}, "containers": [{"name": "proxy", "image": "proxy:1",
            "resourcesPolicy": {"targetContainerMode": "sum", "resourceExpr": {"limits": {"memory": "max(memory, 200MB)"}}}}]}}),
    );
    let review = review(&object);
    let codes: Vec<&str> = review.problems.iter().map(|problem| problem.reason.code()).collect();
    assert_eq!(codes, ["PL102", "PL115", "PL121"]);
    let excerpt = review.problems[1].excerpt.as_ref().unwrap();
    assert_eq!(&excerpt.text[excerpt.start..excerpt.end], "200MB");
    let lines: Vec<&str> = excerpt.drawn.lines().collect();
    assert_eq!(lines[3..5], ["1 | max(memory, 200MB)", "  |             ^^^^^"]);
}
